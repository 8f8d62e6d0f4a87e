"""Tuner: what TFX's Tuner runs, a search for settings by KerasTuner."""

import warnings
from collections.abc import Mapping
from typing import Any

import keras_tuner
import numpy as np
import tensorflow as tf
from absl import logging
from keras_tuner.engine.base_tuner import BaseTuner

from crowdzoo.comparison.method_choice import choose_method
from crowdzoo.components.tfx_internals import FnArgs, TunerFnResult
from crowdzoo.kinds.kind import kind_of
from crowdzoo.records.example_dataset import read_batches
from crowdzoo.records.example_files import read_dataset_info
from crowdzoo.records.task_examples import read_tasks
from crowdzoo.training.tuned_values import EPOCHS, OWN, as_choice, check_gold, tuned_values, with_values

SECTIONS = ("model", "method", "training")
_READ = 1024


def tuner_fn(fn_args: FnArgs) -> TunerFnResult:
    """What TFX's Tuner runs: settings are searched for that predict hidden tasks of the split train best.

    A trial trains as `choose_method` does: without a part of the tasks of train, whose annotations (or gold) it is then
    asked about; the hidden tasks are the same in each trial. The split eval is not used. The first trial has the
    configuration's own values, where these lie in the space.

    Args:
        fn_args: TFX's arguments; `custom_config` holds what the Trainer's has, and `tuner`: `trials`, `algorithm`,
            `objective` and `dimensions`, by dotted key `{"values": [...]}` or `{"min", "max", "step", "log"}`.

    Returns:
        The tuner, whose trials have the settings' values by dotted key, lists and words as JSON, and the number of
        epochs that was best as "tuner/epochs".

    Raises:
        DataError: fewer than 20 labelled tasks, or than 20 tasks of train with gold where that is the objective.
    """
    config = fn_args.custom_config
    options, info = config["tuner"], read_dataset_info(config["examples"])
    instances, annotations = read_tasks(fn_args.train_files, info)
    gold = _gold(fn_args.train_files, info) if options["objective"] == "gold" else None
    tf.config.experimental.enable_op_determinism()
    own = {key: config[key.split(".")[0]].get(key.split(".")[1]) for key in options["dimensions"]}
    space = keras_tuner.HyperParameters()
    for key, dimension in options["dimensions"].items():
        _add(space, key, dimension)
    inside = all(_holds(dimension, own[key]) for key, dimension in options["dimensions"].items())
    first = {key: _drawn(dimension, own[key]) for key, dimension in options["dimensions"].items()} if inside else None
    tuner = _Tuner(
        _oracle(options, space, config["seed"], first),
        directory=fn_args.working_dir,
        project_name="tuner",
        overwrite=True,
    )
    return TunerFnResult(tuner=tuner, fit_kwargs={
        "config": config, "kind": info["kind"], "x": instances, "annotations": annotations, "gold": gold, "own": inside
    })  # fmt: skip


class _Tuner(BaseTuner):
    """Makes trials as `choose_method` compares methods."""

    def run_trial(
        self, trial: Any, *, config: Mapping[str, Any], kind: str, x: Any, annotations: Any, gold: Any, own: bool
    ) -> dict[str, float]:
        """The score of a trial; the number of epochs goes to its values."""
        values = trial.hyperparameters.values
        sections = with_values({name: config[name] for name in SECTIONS}, tuned_values(values))
        arguments = {key: value for key, value in sections["method"].items() if key != "name"}
        settings = kind_of(kind).settings(
            method=sections["method"]["name"], arguments=arguments, seed=config["seed"],
            **sections["model"], **sections["training"],
        )  # fmt: skip
        (best,) = choose_method(
            settings, x, annotations, candidates=((settings.method, settings.arguments),), gold=gold
        ).candidates
        is_first = trial.trial_id == self.oracle.start_order[0]
        values |= {EPOCHS: best.settings.epochs, **({OWN: True} if own and is_first else {})}
        logging.info("trial %s: %s: %.4f", trial.trial_id, tuned_values(values), best.score)
        return {"score": best.score}


def _oracle(options: Mapping[str, Any], space: Any, seed: int, first: dict[str, Any] | None) -> Any:
    """KerasTuner's search, with the configuration's own values before those that it draws."""
    known = {
        "random": keras_tuner.oracles.RandomSearchOracle,
        "bayesian": keras_tuner.oracles.BayesianOptimizationOracle,
    }[options["algorithm"]]

    class Oracle(known):  # type: ignore[misc, valid-type]
        def populate_space(self, trial_id: str) -> Any:
            if first is not None and not self.trials:
                return {"status": "RUNNING", "values": dict(first)}
            with warnings.catch_warnings():  # of its Gaussian process, of few trials; there is nothing to do about them
                warnings.filterwarnings("ignore", r"(?s)The optimal value found for|lbfgs failed to converge")
                return super().populate_space(trial_id)

    return Oracle(
        objective=keras_tuner.Objective("score", "max"), max_trials=options["trials"], hyperparameters=space, seed=seed
    )


def _add(space: Any, key: str, dimension: Mapping[str, Any]) -> None:
    """A dimension of the space, in KerasTuner's words."""
    if "values" in dimension:
        space.Choice(key, _choices(dimension["values"]))
        return
    kind = space.Int if isinstance(dimension["min"], int) else space.Float
    more = {"sampling": "log"} if dimension["log"] else {"step": dimension["step"]}
    kind(key, dimension["min"], dimension["max"], **{name: value for name, value in more.items() if value is not None})


def _choices(values: list[Any]) -> list[Any]:
    """Values as KerasTuner takes them, all of one type."""
    choices = [as_choice(value) for value in values]
    if any(isinstance(choice, str) for choice in choices):
        return [choice if isinstance(choice, str) else str(choice) for choice in choices]
    return choices if all(isinstance(choice, int) for choice in choices) else [*map(float, choices)]


def _drawn(dimension: Mapping[str, Any], value: Any) -> Any:
    """A value that a dimension holds, as KerasTuner would draw it."""
    if "values" not in dimension:
        return value
    return _choices(dimension["values"])[dimension["values"].index(value)]


def _holds(dimension: Mapping[str, Any], value: Any) -> bool:
    if "values" in dimension:
        return value in dimension["values"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and dimension["min"] <= value <= dimension["max"]


def _gold(files: list[str], info: dict[str, Any]) -> np.ndarray:
    """Codes of the tasks of train, -1 where unknown; they are in the files' order."""
    known = {"gold": tf.io.FixedLenFeature([1], tf.int64, default_value=-1)}
    codes = [batch["gold"][:, 0] for batch in read_batches(files, info, "train", _READ, instances=(), others=known)]
    gold = np.concatenate(codes)
    check_gold(gold)
    return gold
