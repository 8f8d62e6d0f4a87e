"""The commands of `crowdzoo` for tagged sentences: `--task sequence`, and predictions on text."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.regular import open_regular
from crowdzoo.instances.instances import read_text_columns
from crowdzoo.report.tables import print_table
from crowdzoo.sequences import CrowdSequences, SpanScores, read_conll, read_spans, span_scores
from crowdzoo.sequences.retokenized import retokenized

__all__ = ["aggregate_sentences", "encoder_of", "read_texts", "span_lines", "train_sentences"]

METHOD = "bsc-seq"


def aggregate_sentences(arguments: argparse.Namespace, settings: dict[str, Any]) -> None:
    """`crowdzoo aggregate --task sequence`: one tagged copy of each sentence.

    Args:
        arguments: of the command line.
        settings: of the method, from `--set` and its friends.
    """
    from crowdzoo.aggregation import create

    aggregator = create(arguments.method or METHOD, kind="sequence", **settings)
    sequences = _read(arguments)
    result = aggregator.fit(sequences)
    result.to_parquet(arguments.out, sequences)
    rows = [*_sizes(sequences), *_scores("F1 of spans", sequences, result.tags())]
    rows += [("iterations", f"{result.num_iterations} ({'converged' if result.converged else 'NOT converged'})")]
    rows += [("note", note) for note in result.notes]
    print_table(result.method, ("", ""), [*rows, ("results", str(arguments.out))])


def train_sentences(
    arguments: argparse.Namespace, hyperparameters: dict[str, Any], given: dict[str, Any], progress: Callable
) -> dict[str, Any]:
    """`crowdzoo train --task sequence`: a tagger, and what its file needs beside it.

    Args:
        arguments: of the command line.
        hyperparameters: of the method, from `--set`.
        given: fields of `TaggerSettings` that were given.
        progress: makes a bar with a title and a number of steps, as a context that gives a function for one step.

    Returns:
        `model`, `classes`, `annotators` (names), `encoder` (its config), `rows` (for a table).
    """
    import keras
    import tensorflow as tf

    from crowdzoo.aggregation import create
    from crowdzoo.training.length import length_rows, num_labelled, with_length
    from crowdzoo.training.methods import AGGREGATED, SEQUENCE_METHODS
    from crowdzoo.training.settings import TaggerSettings
    from crowdzoo.training.taggers import train_tagger

    # sentences of many lengths are traced often, and TensorFlow warns of that on the terminal
    tf.get_logger().setLevel("ERROR")
    learned = arguments.method in SEQUENCE_METHODS and arguments.method != AGGREGATED
    settings = TaggerSettings(
        method=arguments.method if learned else AGGREGATED, arguments=hyperparameters if learned else {}, **given
    )
    aggregator = None if learned else create(arguments.method, kind="sequence", **hyperparameters)
    sequences = retokenized(_read(arguments))
    distribution = None
    if aggregator is not None:
        result = aggregator.fit(sequences)
        distribution = np.split(result.posteriors, result.starts[1:-1])
    settings = with_length(settings, num_labelled(sequences.annotations))
    with progress("training", settings.epochs) as step:
        model, encoder = train_tagger(
            settings, sequences.tokens, sequences.annotations, tasks=sequences.annotations.tasks,
            scheme=sequences.scheme, tag_distribution=distribution,
            callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: step())],
        )  # fmt: skip
    rows = [*_sizes(sequences), *length_rows(settings)]
    if sequences.gold is not None and (model.crowd is None or not model.crowd.stands_on_hidden_layer):
        found = model.base.tag(encoder(sequences.tokens))
        tags = [sequences.tag_set.tags(codes) for codes in found]
        rows += _scores("F1 of spans in the sentences trained on", sequences, tags)
    return {
        "model": model, "classes": sequences.classes, "annotators": sequences.annotations.annotators,
        "encoder": encoder.get_config(), "rows": rows,
    }  # fmt: skip


def _read(arguments: argparse.Namespace) -> CrowdSequences:
    path = arguments.annotations
    classes = None if not arguments.classes else [name.strip() for name in arguments.classes.split(",")]
    if Path(path.name.removesuffix(".gz")).suffix == ".jsonl":
        if arguments.gold is not None:
            raise ConfigError("--gold: spans have their gold in the same file, with annotator null.")
        return read_spans(path, scheme=arguments.scheme)
    return read_conll(
        path, gold=arguments.gold, scheme=arguments.scheme, classes=classes, on_bad_tags=arguments.on_bad_tags
    )


def _sizes(sequences: CrowdSequences) -> list[tuple[str, str]]:
    crowd = sequences.annotations
    rows = [
        ("sentences", f"{len(sequences):,}"),
        ("tokens", f"{int(sequences.lengths.sum()):,}"),
        ("annotators", f"{crowd.num_annotators:,}"),
        ("sentences tagged by one annotator", f"{int(crowd.redundancy.sum()):,}"),
    ]
    return rows + ([("tags mended", f"{sequences.num_mended:,}")] if sequences.num_mended else [])


def _scores(name: str, sequences: CrowdSequences, tags: list[list[str]]) -> list[tuple[str, str]]:
    if sequences.gold is None:
        return []
    scores: SpanScores = span_scores(sequences.gold_tags(), tags, sequences.scheme)
    return [(name, f"{scores.f1:.4f} (precision {scores.precision:.4f}, recall {scores.recall:.4f})")]


def read_texts(path: Path) -> tuple[list[str], list[str]]:
    """Texts to be tagged.

    Args:
        path: .txt, a text a line; or .csv, .csv.gz, .parquet with the columns task and text.

    Returns:
        Names of the tasks (line numbers from 1 for .txt), and their texts.

    Raises:
        DataError: no such file or column, or it is not UTF-8.
    """
    if path.suffix == ".txt":
        with open_regular(path) as file:
            content = file.read()
        try:
            lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
        lines = lines if lines[-1] else lines[:-1]
        return [str(number) for number in range(1, len(lines) + 1)], lines
    return read_text_columns(path)


def span_lines(tasks: Iterable[str], outputs: dict[str, np.ndarray], quoted: Callable[[Any], str]) -> list[str]:
    """CSV lines of the answers of the signature `spans`, header first; offsets in bytes of the text's UTF-8."""
    lines = ["task,start,end,type,text,score"]
    for row, task in enumerate(tasks):
        for place in range(int(outputs["lengths"][row])):
            start, end, score = (outputs[name][row, place] for name in ("starts", "ends", "scores"))
            cells = (task, start, end, outputs["types"][row, place], outputs["texts"][row, place])
            lines.append(",".join([*(quoted(cell) for cell in cells), f"{score:.6f}"]))
    return lines


def encoder_of(names: dict[str, Any], path: Path) -> Any:
    """What turns text into the input of a tagger or of a regressor of texts, saved beside it; None for other models.

    Args:
        names: what `crowdzoo.files.model_files.read_model_names` found.
        path: the file, for messages.

    Raises:
        DataError: settings that make no encoder.
    """
    from crowdzoo.models.text_ids import TextIds
    from crowdzoo.models.token_encoder import TokenEncoder

    for key, kind in (("text_ids", TextIds), ("encoder", TokenEncoder)):
        if key in names:
            try:
                return kind(**names[key])
            except Exception as error:  # arguments of any kind stand in a file that was changed
                raise DataError(f"{path}: {key!r} makes no {kind.__name__}: {error}. Train the model again.") from error
    return None
