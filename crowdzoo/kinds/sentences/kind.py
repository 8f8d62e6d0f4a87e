"""Sentences: one tag for each token."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.checks.constraints import TABLE_FORMATS
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import GOLD, outermost, side_by_side
from crowdzoo.data.instance_kinds import SENTENCES, InstanceKind
from crowdzoo.data.retokenized import retokenized
from crowdzoo.data.tags import READ_AS, spans_of
from crowdzoo.errors import ConfigError, Setting
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.base import EXPORT_OPTIONS, RATINGS_ONLY, Kind
from crowdzoo.kinds.scoring import Rows
from crowdzoo.kinds.sentences.scoring import DRAWN_F1, SCORING, TAGS_F1, span_rows
from crowdzoo.kinds.training_set import TrainingSet
from crowdzoo.quality.span_scores import drawn_scores, span_scores
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.sentences.sentence_files import read_sentences
from crowdzoo.reading.sentences.span_writing import write_spans
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.training.bases import is_own
from crowdzoo.training.settings import TaggerSettings


class Sentences(Kind):
    """Labels are tags of tokens, which mark spans; models are taggers."""

    name = "sequence"
    counted = "sentences"
    inputs = ("annotations", "gold")
    needed = ("annotations",)
    reading = ("gold", "scheme", "classes", "on_bad_tags", "layer", *EXPORT_OPTIONS, "text", "encoding", *ROW_OPTIONS)
    own_options = ("layer",)
    aggregation = "bsc-seq"
    metric = "f1"
    metric_title = "F1"
    scoring = SCORING
    signature = "spans"
    answer = "types"
    header = ("task", "start", "end", "type", "text", "score")
    fit_aggregated = (
        "train_tagger(settings, tokens, annotations, tasks=ids, "
        "tag_distribution=np.split(result.posteriors, result.starts[1:-1]))"
    )
    refused: ClassVar = {
        **RATINGS_ONLY,
        **dict.fromkeys(
            (*(name for name in LAYOUT_OPTIONS if name != "encoding"), "instance_columns", "gold_columns"),
            "files of sentences are no tables; leave it out.",
        ),
        "form": "a form belongs to texts, with --kind classification or --kind regression.",
        "hidden": "a tagger has no such layers; leave it out.",
        "image": "sentences have no images; leave it out.",
        **dict.fromkeys(("only", "since"), "sentences are chosen by --exclude alone."),
        "keep": "spans are written with their text alone; leave it out.",
        "calibrate": "calibration is for classes; leave it out.",
        "predictions": "a report compares with predictions of classes only; leave it out.",
        "use_gold": "no method for sentences takes known tags; leave it out.",
    }

    def add_arguments(self, command: argparse.ArgumentParser) -> None:
        """How tags are written."""
        command.add_argument(
            "--scheme", choices=tuple(READ_AS), default="BIO", help="sentences: tagging scheme (default BIO)"
        )
        command.add_argument(
            "--on-bad-tags", choices=("error", "mend"), default="error",
            help="sentences: tags that break the scheme, such as I- without B-, and spans that end inside a token: "
            "stop (default), or correct them",
        )  # fmt: skip
        command.add_argument("--layer", metavar="LABEL,…",
            help="sentences: read the spans with these labels alone, such as one of those that lie inside each other",
        )  # fmt: skip

    # === Input ===

    def read(self, annotations: str | Path, *, tasks: Any = None, **options: Any) -> CrowdSequences:
        """Reads sentences with annotators' tags.

        Args:
            annotations: the file.
            tasks: not for sentences.
            **options: as `read_sentences` takes them.

        Raises:
            ConfigError: gold of spans in another file.
            DataError: a file that cannot be used.
        """
        return read_sentences(annotations, **options)

    def write_export(
        self,
        crowd: CrowdSequences,
        export: Export,
        folder: Path,
        columns: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> dict[str, str | None]:
        """See `Kind.write_export`; one file of spans, gold among them."""
        write_spans(crowd, folder / "spans.jsonl")
        return {}

    def gold_of(
        self, crowd: CrowdSequences, path: Path | None, layout: Layout | None = None
    ) -> list[list[str] | None] | None:
        """Tags of each sentence, which `read` has read."""
        return None if crowd.gold is None else crowd.gold_tags()

    def size_rows(self, crowd: CrowdSequences, what: str = "") -> Rows:
        """See `Kind.size_rows`."""
        rows = [
            (f"{self.counted}{what}", f"{len(crowd):,}"),
            (f"tokens{what}", f"{int(crowd.lengths.sum()):,}"),
            ("annotators", f"{crowd.annotations.num_annotators:,}"),
            ("answers, a sentence by an annotator", f"{int(crowd.annotations.redundancy.sum()):,}"),
        ]
        rows += [("rows left out", f"{crowd.annotations.num_rejected:,}")] if crowd.annotations.num_rejected else []
        return rows + ([("tags fixed", f"{crowd.num_mended:,}")] if crowd.num_mended else [])

    # === Aggregation ===

    def aggregator_class(self, method: str) -> type | None:
        """See `Kind.aggregator_class`; a method for classes takes its own settings."""
        from crowdzoo.aggregation.named import FOR_CLASSES

        return FOR_CLASSES.get(method) or super().aggregator_class(method)

    def result_rows(
        self, result: Any, crowd: CrowdSequences, gold: list[list[str] | None] | None, used_gold: bool
    ) -> Rows:
        """F1 of spans."""
        return [] if gold is None else _span_rows("", crowd, gold, result.tags(), result.drawn(crowd))

    def write_result(self, result: Any, crowd: CrowdSequences, path: Path, file_format: str = "parquet") -> None:
        """See `Kind.write_result`; a folder of Parquet files has the sentences' words too."""
        if file_format == "parquet" and path.suffix[1:] not in TABLE_FORMATS:
            result.to_parquet(path, crowd)
        else:
            result.write(path, file_format)

    def targets(self, result: Any, annotations: Annotations) -> list[np.ndarray]:
        """Distributions of tags, [T, K] for each sentence."""
        return np.split(result.posteriors, result.starts[1:-1])

    # === Training ===

    def instances_of(
        self, instances: Path | None, inputs: Any = None, layout: Any = None, base: str | None = None
    ) -> InstanceKind:
        """See `Kind.instances_of`; sentences are in the file of annotations."""
        if base is not None and is_own(base):
            raise ConfigError(
                f"base {base}: sentences are tagged by {self.bases[0]}; a base of your own is for other labels."
            )
        return SENTENCES if base is None else self.taken_by(base)

    def settings(self, base: str, **given: Any) -> TaggerSettings:
        """See `Kind.settings`."""
        for name in sorted(given.keys() - {field.name for field in fields(TaggerSettings)}):
            raise ConfigError(f"{Setting(name)}: is not for sentences; leave it out.")
        return TaggerSettings(**given)

    def settings_class(self, base: str) -> type[TaggerSettings]:
        """See `Kind.settings_class`."""
        return TaggerSettings

    def training_set(self, annotations: Path, instances: Path | None, *_: Any, **options: Any) -> TrainingSet:
        """See `Kind.training_set`; sentences are cut into the tokens that the served model will see."""
        if instances is not None:
            raise ConfigError(f"{instances}: sentences are in the file of annotations; leave this file out.")
        crowd = retokenized(self.read(annotations, **options))
        return TrainingSet(crowd, crowd.tokens, crowd.annotations, np.ones(len(crowd), bool), self.gold_of(crowd, None))

    def train(
        self, settings: Any, x: Any, annotations: Annotations, *, targets: Any = None, crowd: Any = None, **how: Any
    ) -> tuple[Any, Any]:
        """See `Kind.train`."""
        import keras

        from crowdzoo.training.tagger_training import train_tagger

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            # sentences of many lengths are traced often, and TensorFlow warns of that on the terminal
            tf.get_logger().setLevel("ERROR")
        tasks = annotations.tasks
        return train_tagger(settings, x, annotations, tasks=tasks, scheme=crowd.scheme, tag_distribution=targets, **how)

    # === Evaluation ===

    def training_rows(self, model: Any, encoder: Any, data: TrainingSet) -> Rows:
        """Spans that it cannot have learnt, and F1 of the spans in the sentences that were trained on."""
        crowd, rows = data.crowd, []
        if crowd.drawn is not None:
            said = [spans for (_, who), spans in crowd.drawn.items() if who != GOLD]
            total, kept = (sum(map(len, each)) for each in (said, map(outermost, said)))
            rows.append(("spans that are not learnt, as tags lack them", f"{total - kept:,} of {total:,}"))
        if data.gold is None or (model.crowd is not None and model.crowd.stands_on_hidden_layer):
            return rows
        tags = [crowd.tag_set.tags(codes) for codes in model.base.tag(encoder(data.x))]
        found = [side_by_side(spans_of(each, crowd.scheme)) for each in tags]
        return rows + _span_rows(" in the sentences trained on", crowd, data.gold, tags, found)

    # === Prediction ===

    def prediction_lines(self, tasks: Iterable[Any], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """See `Kind.prediction_lines`; a line is a span, with its offsets as `outputs` has them."""
        lines = []
        for row, task in enumerate(tasks):
            for place in range(int(outputs["lengths"][row])):
                start, end, score = (outputs[name][row, place] for name in ("starts", "ends", "scores"))
                cells = (task, start, end, outputs["types"][row, place], outputs["texts"][row, place])
                lines.append(",".join([*map(csv_cell, cells), f"{score:.6f}"]))
        return lines


def counted_in_characters(texts: Sequence[str], outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The answer of a served tagger with offsets as files of spans count them.

    Args:
        texts: what was asked, N.
        outputs: with `starts` and `ends`, int64 [N, S], in bytes of the texts' UTF-8.

    Returns:
        The same, `starts` and `ends` in characters.
    """
    found = dict(outputs)
    for name in ("starts", "ends"):
        found[name] = np.array(outputs[name])
        for row, text in enumerate(texts):
            content = text.encode()
            if len(content) > len(text):  # else each character has a byte
                found[name][row] = [len(content[:offset].decode()) for offset in outputs[name][row].tolist()]
    return found


def _span_rows(
    where: str, crowd: CrowdSequences, gold: list[list[str] | None], tags: list[list[str]], drawn: list[Any]
) -> Rows:
    """F1 of spans: as they were drawn, where the crowd's do not lie side by side, else those of tags."""
    known = int(SCORING.known(gold).sum())
    more = "" if known == len(gold) else f", {known:,} sentences with gold"
    if crowd.drawn is None:
        return span_rows(f"{TAGS_F1}{where}", span_scores(gold, tags, crowd.scheme), more)
    return span_rows(f"{DRAWN_F1}{where}", drawn_scores(crowd.gold_drawn(), drawn), more)


KIND = Sentences()
