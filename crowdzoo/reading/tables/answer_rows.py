"""What tables of Hugging Face hold beyond plain columns: codes with names, and cells with lists of answers."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import DataError
from crowdzoo.files.arrow import one_array
from crowdzoo.files.json import JsonError, parse_json

_KEY = b"huggingface"
LISTS = ("annotator", "label")  # columns whose cells may hold several


def code_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Column -> the names behind its codes, where the library `datasets` wrote them: features of type `ClassLabel`."""
    names_by_code: dict[str, list[str]] = {}
    try:
        features = parse_json((schema.metadata or {})[_KEY])["info"]["features"].items()
    except (JsonError, KeyError, TypeError, AttributeError):  # not of this library, or of another version
        return names_by_code
    for column, feature in features:
        while (isinstance(feature, list) and feature) or (isinstance(feature, dict) and "feature" in feature):
            feature = feature[0] if isinstance(feature, list) else feature["feature"]  # of lists, old or new
        names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            names_by_code[column] = list(dict.fromkeys(names))
    return names_by_code


def answer_rows(
    columns: Mapping[str, pa.Array | pa.ChunkedArray],
    found: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
    source: str,
    first: int = 0,
) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """A row an answer, with names: cells of lists become rows of their own, and codes their names.

    Answers whose code is -1, by which the library `datasets` says that there is no label, are left out.

    Args:
        columns: our name -> array [n]; lists of the annotators and of their labels are of the same length in a row.
        found: our name -> the source's.
        names: the source's name -> names behind the codes.
        source: name of the source in error messages.
        first: number of the first row.

    Returns:
        The columns [A], and the row that each stands in, int64 [A]; None: the rows are as they were.

    Raises:
        DataError: lists of different lengths in a row.
    """
    arrays = {ours: one_array(each) if isinstance(each, pa.ChunkedArray) else each for ours, each in columns.items()}
    rows = None
    lists = {ours for ours, each in arrays.items() if pa.types.is_list(each.type) or pa.types.is_large_list(each.type)}
    if "ranking" in lists:  # as text, which `parse_order` reads
        cells = arrays["ranking"].to_pylist()
        arrays["ranking"] = pa.array(["" if cell is None else str(cell) for cell in cells], pa.large_string())
    if lists.issuperset(LISTS):
        annotators, labels = (pc.fill_null(pc.list_value_length(arrays[ours]), 0).to_numpy() for ours in LISTS)
        for row in np.flatnonzero(annotators != labels)[:1]:
            who, what = (found[ours] for ours in LISTS)
            raise DataError(
                f"{source}, row {first + row}: '{who}' holds {annotators[row]} values and '{what}' {labels[row]}. "
                "Write a label for each annotator."
            )
        rows = np.repeat(np.arange(len(labels)), labels)
        arrays = {
            ours: pc.list_flatten(array) if ours in LISTS else array.take(pa.array(rows))
            for ours, array in arrays.items()
        }
    if found.get("label") in names and pa.types.is_integer(arrays["label"].type):
        answered = np.flatnonzero(pc.not_equal(arrays["label"], -1).fill_null(True).to_numpy(zero_copy_only=False))
        if len(answered) < len(arrays["label"]):
            rows = answered if rows is None else rows[answered]
            arrays = {ours: array.take(pa.array(answered)) for ours, array in arrays.items()}
    for ours, array in arrays.items():
        arrays[ours] = named(array, names.get(found[ours]))
    return arrays, None if rows is None else first + rows


def named(array: pa.Array, names: Sequence[str] | None) -> pa.Array:
    """Codes as the names that stand behind them, null where there is none; other arrays as they are."""
    if names is None or not pa.types.is_integer(array.type):
        return array
    has_name = pc.and_(pc.greater_equal(array, 0), pc.less(array, len(names)))
    return pa.array(names, pa.large_string()).take(pc.if_else(has_name, array, pa.scalar(None, array.type)))
