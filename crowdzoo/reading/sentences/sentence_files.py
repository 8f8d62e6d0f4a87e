"""Annotated sentences from either file format."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import GOLD
from crowdzoo.data.tags import READ_AS, TagSet
from crowdzoo.errors import ConfigError, Setting
from crowdzoo.reading.sentences.conll_files import read_conll
from crowdzoo.reading.sentences.span_files import read_spans
from crowdzoo.reading.tables.options import not_excluded


def read_sentences(
    path: str | Path,
    gold: str | Path | None = None,
    scheme: str = "BIO",
    classes: Sequence[str] | None = None,
    on_bad_tags: str = "error",
    platform: str | None = None,
    exclude: Sequence[str] | None = None,
    **spans: Any,
) -> CrowdSequences:
    """Read sentences with annotators' tags.

    Args:
        path: spans in .jsonl, including gold; columns for any other suffix.
        gold: file of columns with the true tags.
        scheme: "BIO", "IOBES" or "BILOU"; see `read_conll`.
        classes: the tags; for spans, only their types are used, not their order.
        on_bad_tags: "error" or "mend"; see `read_conll` and `read_spans`.
        platform: name of the labelling platform of an export; see `read_spans`.
        exclude: names of annotators whose tags are ignored.
        **spans: further arguments of `read_spans`: field, text and encoding for an export, and on_bad_rows,
            on_duplicate, rejects and layer.

    Raises:
        ConfigError: gold of spans in another file; an unknown platform, or several questions and no field; an unknown
            annotator in `exclude`.
        DataError: an invalid file.
    """
    for name in ("field", "text", "encoding"):
        if spans.get(name) is not None and platform is None:
            raise ConfigError(f"{Setting(name)} belongs to an export of a labelling platform: name it as well.")
    if platform is None and Path(Path(path).name.removesuffix(".gz")).suffix != ".jsonl":
        if strange := next((name for name, value in spans.items() if value not in (None, "error")), None):
            reason = "is for spans; nothing of files of columns can be left out. Correct the file."
            raise ConfigError(f"{Setting(strange)} {reason}", setting=strange)
        sequences = read_conll(path, gold=gold, scheme=scheme, classes=classes, on_bad_tags=on_bad_tags)
        return _without(sequences, exclude or (), path)
    if gold is not None:
        end = "Of an export make such a file: `crowdzoo convert EXPORT --kind sequence --platform NAME --out DIR`."
        there = f'spans have their gold in the same file, {path}, in lines with "gold": true.'
        raise ConfigError(f"{Setting('gold')}: {there} {end}", setting="gold", value=gold)
    scheme = READ_AS.get(scheme, scheme)
    types = classes and TagSet(classes, scheme).types
    sequences = read_spans(path, scheme=scheme, types=types, on_bad_tags=on_bad_tags, platform=platform, **spans)
    return _without(sequences, exclude or (), path)


def _without(crowd: CrowdSequences, names: Sequence[str], path: str | Path) -> CrowdSequences:
    """Remove annotators from the sentences."""
    table = crowd.annotations
    known = list(map(str, table.annotators.tolist()))
    if unmet := [name for name in names if name not in known]:
        raise not_excluded(unmet[0], str(path), known)
    gone = np.array([name in names for name in known], bool)
    kept = table.select_rows(~gone[table.annotator_ids])
    places = [*np.where(gone, len(gone), np.cumsum(~gone) - 1).tolist(), GOLD]  # the last one is for gold
    drawn = crowd.drawn and {
        (task, places[who]): spans for (task, who), spans in crowd.drawn.items() if places[who] < len(gone)
    }
    codes = np.array(places)[kept.annotator_ids]
    named = replace(kept, annotator_ids=codes, annotators=table.annotators[~gone])
    return replace(crowd, annotations=named, drawn=drawn)
