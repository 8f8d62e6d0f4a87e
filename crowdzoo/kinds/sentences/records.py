"""Sentences as tf.Examples: created from annotators' files, and read back into arrays for training."""

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.retokenized import retokenized
from crowdzoo.errors import DataError
from crowdzoo.export.predict import load_and_predict
from crowdzoo.kinds.records import Crowds, Fit, Records, TrainingFiles
from crowdzoo.kinds.scoring import Scores, scored_models
from crowdzoo.kinds.sentences.scoring import SpanScoring
from crowdzoo.reading.sentences.sentence_files import read_sentences
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.records import example_files
from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table
from crowdzoo.records.example_dataset import files_of
from crowdzoo.records.example_files import SPLITS, DatasetInfo, GenOptions, LabelledTasks, split_by_hash, split_files
from crowdzoo.records.training import WARMUP, Trained
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import Settings, TaggerSettings
from crowdzoo.training.tagger_training import train_tagger


def read_crowd_sequences(options: GenOptions) -> CrowdSequences:
    """Read annotated sentences, split into the tokens of the served model.

    Args:
        options: `annotations` (the file), and options of `read_sentences`.

    Raises:
        ConfigError: gold of spans in another file.
        DataError: invalid files, or no marked spans.
    """
    path = options["annotations"]
    names = ("gold", "scheme", "classes", "on_bad_tags", "platform", "field", *ROW_OPTIONS)
    sequences = read_sentences(path, **{name: options[name] for name in names if name in options})
    if len(sequences.annotations) == 0:
        raise DataError(f"{path}: holds no annotations.")
    if sequences.annotations.num_classes < 2:
        raise DataError(f"{path}: nobody marked a span, so there is nothing to learn.")
    return retokenized(sequences)


def sentence_example(sequences: CrowdSequences, task: int) -> tf.train.Example:
    """Create the Example of a sentence.

    `task` (bytes), `instances` (bytes, the text), `tokens` (bytes, [T]), `annotator_ids` (int64, [M]),
    `annotator_labels` (int64, [M T], annotator by annotator), and, if known, `gold` (int64, [T]).
    """
    tokens = sequences.tokens[task]
    ids, labels = sequences.annotations.padded(np.array([task]))
    example = tf.train.Example()
    feature = example.features.feature
    feature["task"].bytes_list.value.append(str(sequences.annotations.tasks[task]).encode())
    feature["instances"].bytes_list.value.append((sequences.texts or ())[task].encode())
    feature["tokens"].bytes_list.value.extend(token.encode() for token in tokens)
    feature["annotator_ids"].int64_list.value.extend(ids[0])
    feature["annotator_labels"].int64_list.value.extend(labels[0, : len(tokens)].T.ravel())
    if sequences.gold is not None and (codes := sequences.gold[task]) is not None:
        feature["gold"].int64_list.value.extend(codes)
    return example


@dataclasses.dataclass(frozen=True)
class ReadSentences:
    """Sentences read from Examples.

    Attributes:
        texts: N strings.
        tokens: N lists of strings.
        annotations: kind "sequence"; tasks are numbered in the files' order.
        posteriors: N arrays [T_i, K] of the aggregation, zeros for tokens without labels.
        evaluation_labels: N arrays int64 [T_i].
        evaluation_weights: float [N], 0 without known labels.
    """

    texts: list[str]
    tokens: list[list[str]]
    annotations: Annotations
    posteriors: list[np.ndarray]
    evaluation_labels: list[np.ndarray]
    evaluation_weights: np.ndarray


def read_examples(patterns: Sequence[str], info: DatasetInfo) -> ReadSentences:
    """Read a complete split written by CrowdAggregator.

    Args:
        patterns: patterns of gzipped TFRecord files.
        info: result of `read_dataset_info`: `classes`, `annotators`.

    Raises:
        FileNotFoundError: no file matches.
    """
    num_classes = len(info["classes"])
    answers: list[tuple[int, int, np.ndarray]] = []
    texts, sentences, posteriors, evaluation_labels, weights = [], [], [], [], []
    for task, record in enumerate(_records(files_of(patterns))):
        example = tf.train.Example.FromString(record)
        feature, tokens = example.features.feature, _tokens(example)
        ids = feature["annotator_ids"].int64_list.value
        labels = np.array(feature["annotator_labels"].int64_list.value, np.int64).reshape(-1, len(tokens))
        answers += [(task, annotator, tags) for annotator, tags in zip(ids, labels, strict=True)]
        posterior = np.array(feature["posterior"].float_list.value, np.float32)
        texts.append(feature["instances"].bytes_list.value[0].decode())
        sentences.append(tokens)
        empty = np.zeros((len(tokens), num_classes))
        posteriors.append(posterior.reshape(empty.shape) if len(posterior) else empty)
        evaluation_labels.append(np.array(feature["evaluation_label"].int64_list.value, np.int64))
        weights.append(feature["evaluation_weight"].float_list.value[0])
    annotators = np.array(info["annotators"], object)
    annotations = sentence_annotations(answers, np.arange(len(texts)), annotators, info["classes"])
    return ReadSentences(texts, sentences, annotations, posteriors, evaluation_labels, np.array(weights))


def read_tokens(pattern: str) -> dict[str, list[str]]:
    """Tokens of the sentences in a split, by task."""
    tokens = {}
    for record in _records(sorted(tf.io.gfile.glob(pattern))):
        task, example = example_files.task_and_example(record)
        tokens[task] = _tokens(example)
    return tokens


def _tokens(example: tf.train.Example) -> list[str]:
    return [token.decode() for token in example.features.feature["tokens"].bytes_list.value]


def _records(files: Iterable[str]) -> Iterator[bytes]:
    return tf.data.TFRecordDataset(list(files), "GZIP").as_numpy_iterator()


def _sentences(annotations: Annotations, tokens: Mapping[str, list[str]], info: DatasetInfo) -> CrowdSequences:
    """Annotated sentences with known tokens."""
    crowd = annotations.select_tasks(np.array([str(name) in tokens for name in annotations.tasks], bool))
    return CrowdSequences([tokens[str(name)] for name in crowd.tasks], crowd, scheme=info["scheme"])


class SpanRecords(Records):
    """Sentences."""

    def read(self, options: GenOptions, rejects: str, folder: str) -> LabelledTasks:
        """Read sentences and split them by text, so that no text is in both splits.

        Args:
            options: settings of AnnotationExampleGen.
            rejects: path of the file of rejected rows.
            folder: not used, since sentences are in memory.

        Raises:
            DataError: see `read_crowd_sequences`.
        """
        skips = options.get("on_bad_rows") == "reject"
        sequences = read_crowd_sequences(options | {"rejects": rejects} if skips else options)
        crowd = sequences.annotations
        tags = [None] * len(sequences) if sequences.gold is None else sequences.gold_tags()
        return LabelledTasks(
            annotations=crowd,
            names=[str(name) for name in crowd.tasks],
            split=split_by_hash(sequences.texts or (), options["eval_fraction"]),
            labelled=crowd.redundancy > 0,
            gold=[None if row is None else json.dumps(row) for row in tags],
            info={"classes": sequences.classes, "scheme": sequences.scheme},
            change_split="Change data.eval_fraction.",
            example=functools.partial(sentence_example, sequences),
        )

    def labelled(self, crowd: Annotations, examples: str, info: DatasetInfo) -> CrowdSequences:
        """The sentences of both splits with their tags."""
        tokens = {name: words for split in SPLITS for name, words in read_tokens(split_files(examples, split)).items()}
        return _sentences(crowd, tokens, info)

    def train(self, settings: Settings, files: TrainingFiles) -> Trained:
        """Train a tagger on sentences, which are read completely.

        Args: see `Records.train`.
        """
        assert isinstance(settings, TaggerSettings)
        sentences = read_examples(files.patterns, files.info)
        crowd, targets = sentences.annotations, sentences.posteriors if settings.method == AGGREGATED else None
        how: dict[str, Any] = {"tag_distribution": targets, "verbose": 2, "checkpoint": files.checkpoint}
        scheme, tasks = files.info["scheme"], crowd.tasks
        model, encoder = train_tagger(settings, sentences.tokens, crowd, tasks=tasks, scheme=scheme, **how)
        return Trained(model, model.history, encoder, sentences.texts[:WARMUP])

    def model_scores(self, models: Mapping[str, str], files: str, info: DatasetInfo) -> dict[str, Scores]:
        """Score taggers on sentences with known tags, with text as input, as on a server.

        Args and Returns: see `Records.model_scores`.

        Raises:
            ValueError: a model splits a text into other tokens than those tagged.
        """
        sentences = read_examples([files], info)
        known = np.flatnonzero(sentences.evaluation_weights > 0)
        # batches have sentences of similar length
        order = known[np.argsort([len(sentences.tokens[task]) for task in known], kind="stable")]
        gold = [[info["classes"][code] for code in sentences.evaluation_labels[task]] for task in order]
        answers = {}
        for name, folder in models.items():
            outputs = load_and_predict(folder, [sentences.texts[task] for task in order], batch_size=128)
            for task, cut, length in zip(order, outputs["tokens"], outputs["lengths"], strict=True):
                tokens, own = cut[:length].tolist(), sentences.tokens[task]
                if tokens != own:
                    raise ValueError(f"{folder}: cuts {sentences.texts[task]!r} into {tokens}, not {own}")
            pairs = zip(outputs["tags"], outputs["lengths"], strict=True)
            answers[name] = [tags[:length].tolist() for tags, length in pairs]
        return scored_models(SpanScoring(info["scheme"]), models, gold, answers)

    def aggregate(self, method: Aggregator, crowds: Crowds, fit: Fit, examples: str) -> CrowdAnswers:
        """Fit to each split separately; tokens of sentences without annotations get "O".

        Args: see `Records.aggregate`.
        """
        info = example_files.read_dataset_info(examples)
        fitted, tables = {}, {}
        for split, annotations in crowds.items():
            tokens = read_tokens(split_files(examples, split))
            sentences = _sentences(annotations, tokens, info)
            crowd = sentences.annotations
            if len(crowd) == 0:
                tables[split] = answers_table(crowd.tasks[:0], np.zeros(0, np.int64))
                continue
            result = fitted[split] = fit(sentences)
            table = answers_table(crowd.tasks, result.labels, result.posteriors, result.starts)
            tables[split] = table.filter(pa.array(crowd.redundancy > 0))
        return CrowdAnswers(fitted["train"], tables, [], info["classes"].index("O"))
