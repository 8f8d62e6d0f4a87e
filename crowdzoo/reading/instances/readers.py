"""Readers by kind of instances, and detection of the kind of a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from crowdzoo.data.instance_kinds import IMAGES, TEXTS, VECTORS, InstanceKind
from crowdzoo.reading.instances import images, tables, texts, vectors
from crowdzoo.reading.instances.table import InstanceReader, check_ending, find_instance_columns
from crowdzoo.reading.tables.layout import Layout, own_encoding
from crowdzoo.reading.tables.suffixes import column_names

# Kind -> reader of its files; sentences have none
READERS: Mapping[InstanceKind, InstanceReader] = {
    each: each for each in (vectors.READER, texts.READER, images.READER, tables.READER)
}


def recognised(path: str | Path, inputs: Mapping[str, str] | None = None, layout: Layout | None = None) -> InstanceKind:
    """Detect the kind of instances in a file by name and columns; feature vectors if no other kind matches.

    Args:
        path: path of the file.
        inputs: types of columns, as for `tables`; if there are any, the file is a table.
        layout: layout of the file. If it names a column of texts or image paths, this determines the kind.

    Raises:
        DataError: the file does not exist, or is neither a table nor a file of another kind.
    """
    path = Path(path)
    if inputs:
        return tables.tables(inputs)
    layout = layout or Layout.of_second(None, {})
    for name, kind in (("text", TEXTS), ("image", IMAGES)):
        if name in layout.columns:
            return kind
    matches = _looks_like(path, (), layout)  # files other than tables have no columns
    if matches is None:
        check_ending(path)
        layout = own_encoding(path, layout)
        header = column_names(path, layout)
        for usual in ((), ("task",)):  # a column image is preferably a path, and only then a usual name of the task
            matched, _ = find_instance_columns(str(path), header, layout, usual)
            ours = {theirs: name for name, theirs in matched.items()}
            names = [ours.get(column, column) for column in header]
            if usual and names == header:
                break
            matches = matches or _looks_like(path, names, layout)
    return matches or VECTORS


def _looks_like(path: Path, header: Sequence[str], layout: Layout) -> InstanceKind | None:
    kinds = (kind for kind in READERS.values() if kind.looks_like is not None and kind.looks_like(path, header, layout))
    return next(kinds, None)


def reader_of(kind: InstanceKind) -> InstanceReader:
    """Reader of a kind; a kind that was created for given columns reads itself."""
    return kind if isinstance(kind, InstanceReader) else READERS[kind]
