"""The recipe of `CrossFittedEM`: deep EM with a copy of the base for each fold of the tasks."""

import inspect
import tempfile
import warnings
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Config, Tensor, flattened_layers
from crowdzoo.errors import DataError
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.losses import ExpectedLogLikelihood
from crowdzoo.training.data import BatchOrder, TrainingData
from crowdzoo.training.expectation import Answers, ExpectationStep, posteriors_given_answers
from crowdzoo.training.phases import answers_of_batch
from crowdzoo.training.recipes.deep_em import fit_rounds, maximisation
from crowdzoo.training.training_state import (
    epoch_callbacks,
    replay,
    restore_state,
    restore_variables,
    state_of,
    variables_of,
)


def fit(model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """Cross-fitted EM; see `crowdzoo.layers.CrossFittedEM`, and `descend` for the arguments."""
    layer = model.crowd
    if data.num_tasks < layer.folds:
        raise DataError(
            f"CrossFittedEM: {layer.folds} folds need as many tasks, there are {data.num_tasks}; set folds lower, "
            "or use DeepEM"
        )

    def rounds(answers: Answers, posteriors: np.ndarray) -> ExpectationStep:
        layer.task_posteriors = posteriors  # changed in place in each round
        copies = _compile_copies(model, data, posteriors, order["seed"])
        learning = data.batches(**{**order, "seed": order["seed"] + 1}, inputs=("tasks",), targets=posteriors)

        step = maximisation(layer, answers, order.get("sample_weight"))

        def maximise(posteriors: np.ndarray, first: bool) -> None:
            step(posteriors, first)
            pinned = epoch_callbacks(copies, learning)
            copies.fit(learning, epochs=layer.epochs_per_round, shuffle=False, verbose=0, callbacks=pinned)

        def estimate() -> tuple[np.ndarray, float]:
            log_prior = np.zeros(posteriors.shape)
            for x, _ in data.batches(256, 0, shuffle=False, inputs=("tasks",), targets=posteriors):
                tasks = np.asarray(x["tasks"])
                log_prior[tasks] = answers_of_batch(copies, x, len(tasks))[:, 1]
            return posteriors_given_answers(log_prior, answers, layer.annotator_confusions())

        every = layer.epochs_per_round
        return _CopiesStep(copies, learning, data, posteriors, every=every, after=maximise, e_step=estimate)

    return fit_rounds(model, data, order, rounds, **kwargs)


def _compile_copies(model: keras.Model, data: TrainingData, posteriors: np.ndarray, seed: int) -> "_Copies":
    """Copies of the model's base with its weights, each of which leaves out a fold of the tasks."""
    folds = model.crowd.folds
    fold_of = np.random.default_rng([seed, folds]).permutation(data.num_tasks) % folds
    copies = _Copies(_copy_base(model.base, folds), fold_of)
    for x, _ in data.batches(1, 0, shuffle=False, inputs=("tasks",), targets=posteriors):
        copies(x)  # makes the weights
        break
    for base in copies.bases:
        base.set_weights(model.base.get_weights())
    optimizer = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model.optimizer))
    copies.compile(optimizer, loss=_LearningTasks(), jit_compile=model.jit_compile, run_eagerly=model.run_eagerly)
    return copies


def _copy_base(base: keras.Model, number: int) -> list[keras.Model]:
    """Copies of the base with its vocabularies and weights of their own.

    Raises:
        ValueError: a class of the base cannot be rebuilt from its configuration.
    """
    layers = flattened_layers(base)
    # classes need not be registered: nothing leaves the process, so this is safe as well
    classes = {keras.saving.get_registered_name(type(layer)): type(layer) for layer in layers}
    copies = []
    for copy in range(number):
        # one scope each, as Keras on PyTorch identifies weights by their paths
        with keras.name_scope(f"copy_{copy}"):
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message="The object being serialized includes a `lambda`")
                    settings = keras.saving.serialize_keras_object(base)  # each time, as making a model empties it
                settings.pop("compile_config", None)
                model = keras.saving.deserialize_keras_object(settings, custom_objects=classes, safe_mode=False)
            except (TypeError, ValueError, NotImplementedError) as error:
                raise ValueError(_how_to_be_copied(base)) from error
        for layer, same in zip(layers, flattened_layers(model), strict=True):
            if hasattr(layer, "get_vocabulary"):
                with tempfile.TemporaryDirectory() as folder:
                    layer.save_assets(folder)
                    same.load_assets(folder)
        copies.append(model)
    return copies


def _how_to_be_copied(base: keras.Model) -> str:
    """How to fix the class that cannot be rebuilt: a part of the base that has no configuration, or the base."""
    kind = type(base)
    for layer in flattened_layers(base):
        try:
            if layer is not base:
                layer.get_config()
        except NotImplementedError:
            kind = type(layer)
            break
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}]
    lines = ", ".join(["**super().get_config()", *(f'"{name}": self.{name}' for name in names)])
    return (
        f"CrossFittedEM makes copies of the base, and {kind.__name__} cannot be made again from its configuration. Its "
        "__init__ must accept **kwargs and pass them to super().__init__, and the class needs the method\n\n"
        f"    def get_config(self):\n        return {{{lines}}}\n\n"
        "Arguments that are layers or models are returned through keras.saving.serialize_keras_object, and read by "
        "from_config through keras.saving.deserialize_keras_object. DeepEM needs no copies."
    )


class _CopiesStep(ExpectationStep):
    """`ExpectationStep` that trains copies of the base, whose state is part of its own.

    Args:
        copies: compiled `_Copies`.
        learning: their training batches, iterated `every` times per round.
        *args: arguments of `ExpectationStep`.
        **kwargs: see `args`.
    """

    def __init__(self, copies: "_Copies", learning: Any, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._copies = copies
        self._learning = learning

    def state(self) -> Config:
        """See `state_of`."""
        return {"own": state_of(self), "copies": variables_of(self._copies)}

    def restore_state(self, state: Config) -> None:
        """Restores the result of `state` in a training that has just begun."""
        restore_state(self, state["own"])
        restore_variables(self._copies, state["copies"])
        replay(self._learning, -(-self._epochs // self.every) * self.every)


class _Copies(keras.Model):
    """Copies of a base, each of which leaves out a fold of the tasks.

    Args:
        bases: F models.
        fold_of: fold of every task, int `[N]`.

    Call arguments:
        inputs: `{"instances": ..., "tasks": int [B]}`.

    Returns:
        `[B, 2, K]`: the sum of log-probabilities of the copies that learn from the task, and those of the copy that
        does not.
    """

    def __init__(self, bases: list[keras.Model], fold_of: np.ndarray):
        super().__init__(autocast=False, name="copies")
        self.bases = bases
        self.fold_of = fold_of.astype("int32")

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        p = ops.stack([base(inputs["instances"], training=training) for base in self.bases], axis=1)
        logs = ops.log(ops.maximum(ops.cast(p, keras.backend.result_type(self.variable_dtype, "float32")), SMALLEST))
        folds = ops.take(ops.convert_to_tensor(self.fold_of), ops.cast(inputs["tasks"], "int32"))
        left_out = ops.expand_dims(ops.one_hot(folds, len(self.bases), dtype=logs.dtype), -1)
        # a copy sees F - 1 of F tasks of a batch; its steps are still as long as the base's
        learning = (1 - left_out) * (len(self.bases) / (len(self.bases) - 1))
        return ops.stack([ops.sum(learning * logs, axis=1), ops.sum(left_out * logs, axis=1)], axis=1)


class _LearningTasks(ExpectedLogLikelihood):
    """`ExpectedLogLikelihood` of the copies that learn from the task."""

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> Any:
        return super().__call__(y_true, y_pred[:, 0], sample_weight)
