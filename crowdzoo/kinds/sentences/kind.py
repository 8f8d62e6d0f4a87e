"""Sentences: one tag per token."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.checks.constraints import TABLE_FORMATS
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import GOLD, outermost, side_by_side
from crowdzoo.data.instance_kinds import SENTENCES as SENTENCE_INSTANCES
from crowdzoo.data.instance_kinds import InstanceKind
from crowdzoo.data.label_kinds import SEQUENCE
from crowdzoo.data.retokenized import retokenized
from crowdzoo.data.tags import READ_AS, spans_of, tags_of
from crowdzoo.errors import ConfigError, DataError, Setting
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.aggregating import Aggregating, DrawnText
from crowdzoo.kinds.kind import EXPORT_OPTIONS, FOR_CLASSES, Kind, KindOptions, Option, Prediction, loaded, made
from crowdzoo.kinds.reading import Reading, period_of
from crowdzoo.kinds.scoring import Codes, Rows
from crowdzoo.kinds.sentences.scoring import DRAWN_F1, SCORING, TAGS_F1, Tags, span_rows
from crowdzoo.kinds.training import Encoder, Inputs, Targets, TrainedModel, Training, TrainingSet
from crowdzoo.quality.span_scores import drawn_scores, span_scores
from crowdzoo.reading.instances.gold import check_shared
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.sentences.predicted_spans import read_predicted_spans
from crowdzoo.reading.sentences.sentence_files import read_sentences
from crowdzoo.reading.sentences.span_writing import write_spans
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.training.bases import is_own
from crowdzoo.training.settings import Settings, TaggerSettings

if TYPE_CHECKING:
    from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
    from crowdzoo.networks.token_encoder import TokenEncoder
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples

NO_TABLES = "files of sentences are not tables; leave it out."
NOT_TABLES = (*(name for name in LAYOUT_OPTIONS if name != "encoding"), "instance_columns", "gold_columns")


class SpanReading(Reading[CrowdSequences, Tags]):
    """Gold is the tags of each sentence, None where unknown, and is in the file of annotations."""

    def read(self, annotations: str | Path, *, tasks: ArrayLike | None = None, **options: Any) -> CrowdSequences:
        """See `Reading.read`; options are those of `read_sentences`.

        Raises:
            ConfigError: gold of spans in another file, or a time in `exclude`.
            DataError: an invalid file.
        """
        if dated := next(filter(period_of, options.get("exclude") or ()), None):
            raise ConfigError(f"{Setting('exclude', dated)}: sentences have no timestamps; name the annotator.")
        return read_sentences(annotations, **options)

    def gold_of(self, crowd: CrowdSequences, path: Path | None, layout: Layout | None = None) -> Tags | None:
        """Tags of each sentence, as read by `read`."""
        return None if crowd.gold is None else crowd.gold_tags()

    def predictions_of(self, crowd: CrowdSequences, path: Path, column: str, layout: Layout | None = None) -> Tags:
        """See `Reading.predictions_of`.

        Args:
            crowd: result of `read`.
            path: spans in the columns task, start, end and type, as written by `crowdzoo predict`, where a sentence
                without a row has no span; or sentences as for `read`, by one annotator or gold.
            column: not used.
            layout: layout of a table.
        """
        names = list(map(str, crowd.annotations.tasks.tolist()))
        if path.suffix == ".parquet" or Path(path.name.removesuffix(".gz")).suffix == ".csv":
            spans = read_predicted_spans(path, crowd, layout)
            sizes = zip(names, crowd.lengths.tolist(), strict=True)
            return [tags_of(spans.get(name, ()), size, crowd.scheme) for name, size in sizes]
        model = read_sentences(path, scheme=crowd.scheme)
        if (number := model.annotations.num_annotators) > 1 or (not number and model.gold is None):
            raise DataError(f"{path}: has {number:,} annotators. Give the sentences of one model.")
        tasks, tags = model.answers_of(0) if number else (np.arange(len(model)), model.gold_tags())
        known = dict(zip(map(str, model.annotations.tasks[tasks].tolist()), zip(tasks, tags, strict=True), strict=True))
        check_shared(path, known, crowd.annotations.tasks)
        for name, tokens in zip(names, crowd.tokens, strict=True):
            if name in known and model.tokens[known[name][0]] != tokens:
                raise DataError(f"{path}: sentence {name!r} has other tokens than the annotators'. Give the same ones.")
        return [known[name][1] if name in known else None for name in names]

    def size_rows(self, crowd: CrowdSequences, what: str = "") -> Rows:
        """See `Reading.size_rows`."""
        rows = [
            (f"{self.counted}{what}", f"{len(crowd):,}"),
            (f"tokens{what}", f"{int(crowd.lengths.sum()):,}"),
            ("annotators", f"{crowd.annotations.num_annotators:,}"),
            ("answers (one sentence by one annotator)", f"{int(crowd.annotations.redundancy.sum()):,}"),
        ]
        rows += [("rows left out", f"{crowd.annotations.num_rejected:,}")] if crowd.annotations.num_rejected else []
        return rows + ([("tags fixed", f"{crowd.num_mended:,}")] if crowd.num_mended else [])

    def write_export(
        self, crowd: CrowdSequences, export: Export, folder: Path, columns: Mapping[str, str],
        keep: Collection[str] = (),
    ) -> dict[str, str | None]:  # fmt: skip
        """See `Reading.write_export`; writes one file of spans, including gold."""
        write_spans(crowd, folder / "spans.jsonl")
        return {}


class SpanAggregating(Aggregating[CrowdSequences, "SequenceAggregation", Tags]):
    """Results have one tag per token."""

    def method_class(self, method: str) -> type | None:
        """See `Aggregating.method_class`; methods for classes keep their settings."""
        from crowdzoo.aggregation.named import FOR_CLASSES

        return FOR_CLASSES.get(method) or super().method_class(method)

    def rows(self, result: SequenceAggregation, crowd: CrowdSequences, gold: Tags | None, used_gold: bool) -> Rows:
        """F1 of spans."""
        return [] if gold is None else _span_rows("", crowd, gold, result.tags(), result.drawn(crowd))

    def answer_counts(self, result: SequenceAggregation) -> Codes:
        """Number of annotators per sentence, [N]."""
        return result.annotators_per_task

    def consensus(
        self, result: SequenceAggregation, crowd: CrowdSequences, tasks: Codes
    ) -> Iterable[tuple[list[DrawnText], float]]:
        """Spans in characters, with the mean probability of the sentence's tags."""
        drawn, sure = result.drawn(crowd), result.posteriors[np.arange(len(result.labels)), result.labels]
        texts = cast(Sequence[str], crowd.texts)
        for task in tasks.tolist():
            edges, text, spans = crowd.edges(task), texts[task], []
            for span in drawn[task]:
                start, end = edges[span.start][0], edges[span.end - 1][1]
                spans.append(DrawnText(span.label, {"start": start, "end": end, "text": text[start:end]}))
            yield spans, sure[result.starts[task] : result.starts[task + 1]].mean()

    def write(
        self, result: SequenceAggregation, crowd: CrowdSequences, path: Path, file_format: str = "parquet"
    ) -> None:
        """See `Aggregating.write`; a folder of Parquet files also has the sentences' words."""
        if file_format == "parquet" and path.suffix[1:] not in TABLE_FORMATS:
            result.to_parquet(path, crowd)
        else:
            result.write(path, file_format)


class SpanTraining(Training[CrowdSequences, "SequenceAggregation", Tags]):
    """Models are taggers."""

    fit_aggregated = (
        "train_tagger(settings, tokens, annotations, tasks=ids, "
        "tag_distribution=np.split(result.posteriors, result.starts[1:-1]))"
    )

    def instances_of(
        self, instances: Path | None, inputs: Inputs = None, layout: Layout | None = None, base: str | None = None
    ) -> InstanceKind:
        """See `Training.instances_of`; sentences are in the file of annotations."""
        if base is not None and is_own(base):
            what = f"sentences are tagged by {self.bases[0]}; a base of your own is for other labels."
            raise ConfigError(f"base {base}: {what}")
        return SENTENCE_INSTANCES if base is None else self.instances_for(base)

    def settings(self, base: str, **given: Any) -> TaggerSettings:
        """See `Training.settings`."""
        for name in sorted(given.keys() - {field.name for field in fields(TaggerSettings)}):
            raise ConfigError(f"{Setting(name)}: is not for sentences; leave it out.")
        return TaggerSettings(**given)

    def settings_class(self, base: str) -> type[TaggerSettings]:
        """See `Training.settings_class`."""
        return TaggerSettings

    def read(
        self, annotations: Path, instances: Path | None, *_: Any, **options: Any
    ) -> TrainingSet[CrowdSequences, Tags]:
        """See `Training.read`; sentences are split into the tokens of the served model."""
        if instances is not None:
            raise ConfigError(f"{instances}: sentences are in the file of annotations; leave this file out.")
        crowd = retokenized(READING.read(annotations, **options))
        trained = np.ones(len(crowd), bool)
        return TrainingSet(crowd, crowd.tokens, crowd.annotations, trained, READING.gold_of(crowd, None))

    def targets(self, result: SequenceAggregation, annotations: Annotations) -> list[np.ndarray]:
        """Distributions of tags, [T, K] per sentence."""
        return np.split(result.posteriors, result.starts[1:-1])

    def train(
        self, settings: Settings, x: Examples, crowd: CrowdSequences, targets: Targets | None = None, **how: Any
    ) -> TrainedModel:
        """See `Training.train`."""
        import keras

        from crowdzoo.training.tagger_training import train_tagger

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            # sentences of many lengths cause repeated tracing, and TensorFlow warns of it on the terminal
            tf.get_logger().setLevel("ERROR")
        annotations, tokens = crowd.annotations, cast("Sequence[Sequence[str]]", x)
        how |= {"tasks": annotations.tasks, "scheme": crowd.scheme, "tag_distribution": targets}
        return train_tagger(cast(TaggerSettings, settings), tokens, annotations, **how)

    def rows(self, model: CrowdModel, encoder: Encoder, data: TrainingSet[CrowdSequences, Tags]) -> Rows:
        """Spans that the model cannot have learned, and F1 of spans in the training sentences."""
        crowd, rows = data.crowd, []
        if crowd.drawn is not None:
            said = [spans for (_, who), spans in crowd.drawn.items() if who != GOLD]
            total, kept = (sum(map(len, each)) for each in (said, map(outermost, said)))
            rows.append(("spans that are not learnt, as tags lack them", f"{total - kept:,} of {total:,}"))
        if data.gold is None or (model.crowd is not None and model.crowd.traits.needs_hidden_layer):
            return rows
        tags = [crowd.tag_set.tags(codes) for codes in model.base.tag(cast("TokenEncoder", encoder)(data.x))]
        found = [side_by_side(spans_of(each, crowd.scheme)) for each in tags]
        return rows + _span_rows(" in the sentences trained on", crowd, data.gold, tags, found)


class SpanPrediction(Prediction):
    """Spans."""

    def lines(self, tasks: Iterable[object], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """See `Prediction.lines`; a line is a span, with the offsets of `outputs`."""
        lines = []
        for row, task in enumerate(tasks):
            for place in range(int(outputs["lengths"][row])):
                start, end, score = (outputs[name][row, place] for name in ("starts", "ends", "scores"))
                cells = (task, start, end, outputs["types"][row, place], outputs["texts"][row, place])
                lines.append(",".join([*map(csv_cell, cells), f"{score:.6f}"]))
        return lines

    def write(self, path: Path | None, instances: Instances, outputs: Mapping[str, np.ndarray]) -> None:
        """See `Prediction.write`; offsets are converted to those of span files."""
        super().write(path, instances, counted_in_characters(instances.values, outputs))


def counted_in_characters(texts: Sequence[str], outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Convert the offsets of a served tagger to those of span files.

    Args:
        texts: N texts of the request.
        outputs: answers with `starts` and `ends`, int64 [N, S], in UTF-8 bytes.

    Returns:
        The answers with `starts` and `ends` in characters.
    """
    found = dict(outputs)
    for name in ("starts", "ends"):
        found[name] = np.array(outputs[name])
        for row, text in enumerate(texts):
            content = text.encode()
            if len(content) > len(text):  # else each character is one byte
                found[name][row] = [len(content[:offset].decode()) for offset in outputs[name][row].tolist()]
    return found


def _span_rows(where: str, crowd: CrowdSequences, gold: Tags, tags: list[list[str]], drawn: list[Any]) -> Rows:
    """F1 of spans: of the original spans if the crowd's overlap or are in pieces, else of those from tags."""
    known = int(SCORING.known(gold).sum())
    more = "" if known == len(gold) else f", {known:,} sentences with gold"
    if crowd.drawn is None:
        return span_rows(f"{TAGS_F1}{where}", span_scores(list(gold), tags, crowd.scheme), more)
    return span_rows(f"{DRAWN_F1}{where}", drawn_scores(crowd.gold_drawn(), drawn), more)


READING = SpanReading(SEQUENCE, "sentences")
AGGREGATING = SpanAggregating(SEQUENCE, "bsc-seq")
SENTENCES = Kind(
    labels=SEQUENCE,
    options=KindOptions(
        ("gold", "scheme", "classes", "on_bad_tags", "layer", *EXPORT_OPTIONS, "text", "encoding", *ROW_OPTIONS),
        refused={
            **dict.fromkeys(NOT_TABLES, NO_TABLES),
            "form": "a form belongs to texts, with --kind classification or --kind regression.",
            "hidden": "a tagger has no such layers; leave it out.",
            "image": "sentences have no images; leave it out.",
            **dict.fromkeys(("only", "since", "until"), "sentences are chosen by --exclude alone."),
            "keep": "spans are written with their text alone; leave it out.",
            **FOR_CLASSES,
            "use_gold": "no method for sentences takes known tags; leave it out.",
        },
        own=(
            Option("scheme", "sentences: tagging scheme (default BIO)", tuple(READ_AS), "BIO"),
            Option(
                "on_bad_tags",
                "sentences: tags that break the scheme, such as I- without B-, and spans that end inside a token: "
                "stop (default), or correct them",
                ("error", "mend"),
                "error",
            ),
            Option(
                "layer",
                "sentences: read the spans with these labels alone, such as one of those that lie inside each other",
                metavar="LABEL,…",
                refusal="is for --kind sequence; leave it out.",
            ),
        ),
        inputs=("annotations", "gold"),
        needed=("annotations",),
    ),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=SpanTraining(SEQUENCE, READING, AGGREGATING, SCORING),
    prediction=SpanPrediction("types", ("task", "start", "end", "type", "text", "score"), "spans"),
    load_page=loaded("crowdzoo.kinds.sentences.page:SpanPage"),
    load_measure=loaded("crowdzoo.kinds.sentences.measure:SpanMeasure"),
    load_questions=made("crowdzoo.kinds.sentences.questions:SpanQuestions"),
    load_records=made("crowdzoo.kinds.sentences.records:SpanRecords"),
)
