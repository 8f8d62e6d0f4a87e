"""The commands of `crowdzoo` for ratings: `--task regression`, and predictions of numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from crowdzoo.errors import ConfigError, did_you_mean
from crowdzoo.instances.instances import holds_texts, read_gold_ratings, read_instances
from crowdzoo.report.tables import print_table

__all__ = ["aggregate_ratings", "refuse_scale", "train_ratings", "value_lines"]

METHOD = "rating-em"


def refuse_scale(arguments: argparse.Namespace) -> None:
    """Refuses --low and --high where labels are no ratings.

    Raises:
        ConfigError: one of them is given.
    """
    for name in ("low", "high"):
        if getattr(arguments, name) is not None:
            raise ConfigError(f"--{name} is an end of a scale of ratings: it belongs to --task regression.")


def aggregate_ratings(arguments: argparse.Namespace, settings: dict[str, Any], read: Callable[..., Any]) -> None:
    """`crowdzoo aggregate --task regression`: one number a task.

    Args:
        arguments: of the command line.
        settings: of the method, from `--set` and its friends.
        read: reads the annotations, given their kind.

    Raises:
        ConfigError: settings that are not for ratings, an unknown method, an impossible scale.
        DataError: ratings or gold that cannot be used.
    """
    from crowdzoo.aggregation import create

    _refuse_classes(arguments)
    if arguments.use_gold:
        raise ConfigError("--use-gold takes classes for certain; no method for ratings does that. Leave it away.")
    aggregator = create(arguments.method or METHOD, kind="regression", **_scale(arguments), **settings)
    annotations = read(arguments, kind="regression", **_scale(arguments))
    gold = None if arguments.gold is None else read_gold_ratings(arguments.gold, annotations.tasks)
    result = aggregator.fit(annotations)
    result.to_parquet(arguments.out)
    rows = _sizes(annotations)
    if len(annotations):
        rows += [("estimates", _span(result.estimates))]
    if result.biases is not None:
        rows += [("annotators' biases", _span(result.biases))]
    rows += [] if gold is None else _scores("", gold, result.estimates)
    rows += [("iterations", f"{result.num_iterations} ({'converged' if result.converged else 'NOT converged'})")]
    print_table(result.method, ("", ""), [*rows, ("results", str(arguments.out))])


def train_ratings(
    arguments: argparse.Namespace,
    hyperparameters: dict[str, Any],
    given: dict[str, Any],
    read: Callable[..., Any],
    progress: Callable,
) -> dict[str, Any]:
    """`crowdzoo train --task regression`: a regressor, of texts where instances are, and what its file needs beside it.

    Args:
        arguments: of the command line.
        hyperparameters: of the method, from `--set`.
        given: fields of `TrainingSettings` or `TextSettings` that were given.
        read: reads the annotations, given their kind and the names of the tasks.
        progress: makes a bar with a title and a number of steps, as a context that gives a function for one step.

    Returns:
        `model`, `classes` (None), `annotators` (names), `rows` (for a table); of texts `text_ids`, the configuration
        of `TextIds`.

    Raises:
        ConfigError: settings that are not for ratings, an unknown method, an impossible scale.
        DataError: ratings, instances or gold that cannot be used.
    """
    import keras

    from crowdzoo.aggregation import create
    from crowdzoo.training.features import train
    from crowdzoo.training.length import length_rows, num_labelled, with_length
    from crowdzoo.training.methods import AGGREGATED
    from crowdzoo.training.settings import TextSettings, TrainingSettings
    from crowdzoo.training.texts import train_text_regressor

    _refuse_classes(arguments)
    learned, aggregation = _method(arguments.method)
    scale = _scale(arguments)
    texts = holds_texts(arguments.instances)
    if texts:
        given = {**given, **_text_settings(arguments, given.get("hidden"))}
    how = {"method": learned or AGGREGATED, "arguments": hyperparameters if learned else {}, **scale, **given}
    settings: Any
    if texts:
        settings = TextSettings(**how)
    else:
        if arguments.form is not None:
            raise ConfigError(f"--form {arguments.form}: {arguments.instances} has features and no column 'text'.")
        settings = TrainingSettings(task="regression", **how)
    aggregator = None if aggregation is None else create(aggregation, kind="regression", **scale, **hyperparameters)
    instances = read_instances(arguments.instances, texts=texts)
    gold = instances.gold_ratings(arguments.instances)
    # given names of tasks, so that task codes are rows of the instances
    annotations = read(arguments, kind="regression", tasks=instances.tasks, **scale)
    training = np.ones(len(instances), bool) if instances.split is None else instances.split != "eval"
    used = annotations.select_tasks(np.flatnonzero(training))
    labels: dict[str, Any] = {"annotations": used, "tasks": used.tasks}
    if aggregator is not None:
        # a task that nobody rated has the mean of the others there, and nothing to teach
        estimates = aggregator.fit(used).estimates
        labels = {"ratings": np.where(used.redundancy > 0, estimates, np.nan)}
    trained: dict[str, Any] = {"classes": None, "annotators": annotations.annotators}
    settings = with_length(settings, num_labelled(used))
    with progress("training", settings.epochs) as step:
        labels["callbacks"] = [keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: step())]
        if texts:
            words = np.array(instances.texts, object)
            model, encoder = train_text_regressor(settings, words[training].tolist(), **labels)
            x, trained["text_ids"] = encoder.to_numpy(words.tolist()), encoder.get_config()
        else:
            x = instances.features
            model = train(settings, x[training], **labels)
    rows = [*_sizes(used, " trained on"), *length_rows(settings)]
    for name, chosen in (("training ", training), ("held-out ", ~training)):
        known = chosen & ~np.isnan(gold)
        if known.any():
            rows += _scores(name, gold[known], model.predict(x[known], verbose=0)[:, 0])
    return {"model": model, **trained, "rows": rows}


def value_lines(tasks: Iterable[Any], outputs: dict[str, np.ndarray], quoted: Callable[[Any], str]) -> list[str]:
    """CSV lines of a regressor's answers, header first.

    Args:
        tasks: names.
        outputs: of the signature `serving_default`, `value` [N] in the labels' unit.
        quoted: makes a cell of a CSV file.
    """
    pairs = zip(tasks, outputs["value"].tolist(), strict=True)
    return ["task,value", *(f"{quoted(task)},{value:.6g}" for task, value in pairs)]


def _method(name: str) -> tuple[str | None, str | None]:
    """The name of a crowd layer's method, or of the aggregation whose estimates are learnt from."""
    from crowdzoo import aggregation
    from crowdzoo.training.methods import AGGREGATED, RATING_METHODS

    if name == AGGREGATED:
        return None, METHOD
    if name in RATING_METHODS:
        return name, None
    if name in aggregation.RATING_METHODS:
        return None, name
    known = list(dict.fromkeys([*RATING_METHODS, *aggregation.RATING_METHODS]))
    raise ConfigError(
        f"--method {name}: there is no such method for ratings; choose one of {', '.join(known)}."
        f"{did_you_mean(name, known)}"
    )


def _text_settings(arguments: argparse.Namespace, hidden: Sequence[int] | None) -> dict[str, Any]:
    """Fields of `TextSettings` from the options that regressors of features have otherwise or not at all."""
    if hidden is not None and len(hidden) != 1:
        raise ConfigError(f"--hidden {arguments.hidden}: a regressor of texts has one hidden layer; give one number.")
    found: dict[str, Any] = {} if arguments.form is None else {"form": arguments.form}
    return found if hidden is None else {**found, "hidden": hidden[0]}


def _refuse_classes(arguments: argparse.Namespace) -> None:
    if arguments.classes:
        raise ConfigError(f"--classes {arguments.classes}: ratings have no classes; leave it away.")


def _scale(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in ("low", "high") if (value := getattr(arguments, name)) is not None}


def _sizes(annotations: Any, what: str = "") -> list[tuple[str, str]]:
    rows = [(f"ratings{what}", f"{len(annotations):,}")]
    if annotations.num_rejected:  # no rating disappears quietly
        rows += [("rows left out", f"{annotations.num_rejected:,}")]
    return [
        *rows, (f"tasks{what}", f"{annotations.num_tasks:,}"), ("annotators", f"{annotations.num_annotators:,}")
    ]  # fmt: skip


def _span(values: np.ndarray) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"


def _scores(name: str, gold: np.ndarray, found: np.ndarray) -> list[tuple[str, str]]:
    from crowdzoo.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    known = int((~np.isnan(gold)).sum())
    if not known:
        return [(f"{name}errors against gold", "unknown (on 0 tasks with gold)")]
    return [
        (f"{name}R² against gold", f"{r2_score(gold, found):.4f} (on {known:,} tasks with gold)"),
        (f"{name}MAE", f"{mean_absolute_error(gold, found):.4f}"),
        (f"{name}RMSE", f"{root_mean_squared_error(gold, found):.4f}"),
    ]
