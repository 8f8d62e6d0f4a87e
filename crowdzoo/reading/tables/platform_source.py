"""Exports of labelling platforms as a source of annotations."""

import json
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from crowdzoo.errors import BadRow, ConfigError
from crowdzoo.files.text import readable
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.platforms.record import Record
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.sources import REQUIRED, SLOW_ROWS, Batch, Source

_Row = tuple[Record, str, str, float]  # with the annotator, the label and the seconds that it took


class PlatformSource(Source):
    """What annotators said in an export, a row for each label; gold is passed over.

    Args:
        path: the export.
        kind: "classification" or "regression".
        platform: see `Export`.
        field: see `Export`.
        image: see `Export`.
        layout: which labels are none, and which one stands for none; None: an answer without a label is left out.

    Raises:
        ConfigError: kind "sequence", whose readers are others; or as `Export`.
        DataError: as `Export`.
    """

    text = sparse = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        kind: str,
        platform: str,
        field: str | None = None,
        image: str | bool | None = None,
        layout: Layout | None = None,
    ):
        super().__init__(kind, layout)
        if self.label_kind.has_positions:
            raise ConfigError("an export with spans is read by crowdzoo.sequences.read_sentences(path, platform=...).")
        self.export = Export(path, platform, kind, field, image)
        self.path = self.export.path
        self.name = self.export.name

    def batches(self) -> Iterator[Batch]:
        """Walks through the export from its start."""
        platform, image = self.export.platform, self.export.image
        ends = {"label": self.export.question}
        self.found = {what: platform.column(what, ends.get(what, "")) for what in platform.columns if what in REQUIRED}
        if image is not None:
            self.found["task"] = platform.column("data", image)
        nothing = [] if self.layout.no_label is None else [self.layout.no_label]
        rows: list[_Row] = []
        bad: list[tuple[BadRow, str]] = []
        for record in self.export.records():
            if isinstance(record, BadRow):
                bad.append((record, str(record.value)))
            else:
                for (who, labels), seconds in zip(record.answers, record.seconds, strict=True):
                    if who is not None:
                        rows += [(record, who, label, seconds) for label in labels or nothing]
            if len(rows) + len(bad) >= SLOW_ROWS:
                yield _batch(rows, bad)
                rows, bad = [], []
        yield _batch(rows, bad)


def _batch(rows: list[_Row], bad: list[tuple[BadRow, str]]) -> Batch:
    columns = zip(*((record.task, who, label) for record, who, label, _ in rows), strict=True) if rows else ((),) * 3

    def originals(wanted: Sequence[int]) -> list[str]:
        return [readable(json.dumps(rows[row][0].entry, ensure_ascii=False, default=str)) for row in wanted]

    arrays = {name: pa.array(values, pa.large_string()) for name, values in zip(REQUIRED, columns, strict=True)}
    arrays["seconds"] = pa.array([row[3] for row in rows], pa.float64())
    return Batch(arrays, np.array([record.row for record, *_ in rows], np.int64), originals, bad)
