"""Deep EM whose E-step hears only networks that have not seen the task."""

import inspect
import tempfile
import warnings
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from crowdzoo.constraints import Number
from crowdzoo.errors import DataError
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.layers.deep_em import DeepEM
from crowdzoo.layers.expectation import (
    ExpectationStep,
    ExpectedLogLikelihood,
    expected_counts,
    posteriors_given_labels,
)
from crowdzoo.layers.phases import answers_of_batch

__all__ = ["CrossFittedEM"]

FOLDS = Number(2, 100, whole=True)  # each is a copy of the base


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrossFittedEM(DeepEM):
    """Deep EM in which a network's word about a task comes from a copy that was not trained on that task.

    In deep EM the base soon repeats what it was trained on: its estimate of a task is the task's last posterior, so the
    E-step counts the same labels twice, and what the posterior got wrong at first stays wrong. Here the tasks are dealt
    into F folds. Beside the base, F copies of it train on the same posteriors, copy f on all folds but f:

    | step | what happens |
    |------|--------------|
    | first | `q_i(k)` = shares of the votes |
    | M | matrices as in `DeepEM`; base and copies descend on `-sum_ik q_i(k) log p_i(k)`, each on its tasks |
    | E | `q_i(k) ~ p_i^(copy of i's fold)(k) prod_r pi[r, k, y_ir]`, normalised, in log-space |

    The base learns from all tasks and is what predicts; the copies go when `fit` ends. They cost F times the base's
    own step in time and F times its weights and optimizer in memory, so a large frozen backbone is better run once
    and its features kept.

    Args:
        num_annotators: R, number of annotators.
        prior: as in `DeepEM`.
        diagonal: as in `DeepEM`.
        epochs_per_round: as in `DeepEM`.
        folds: F, at least 2.
        **kwargs: `keras.layers.Layer`'s own (`name`, `dtype`).

    Attributes:
        task_posteriors: after `fit`, the last E-step's q of the tasks that were trained on, float32 `[N, K]`, zeros
            where nobody labelled; None before, and in a model that was loaded. `CrowdModel.posteriors` asks the base
            instead, which knows these tasks already, and is less often right about them.

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None asks everybody.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: impossible values, an input of the wrong rank, or (`fit`) a base that cannot be made again from its
            configuration.
        DataError: (`fit`) fewer tasks than folds.

    Source:
        Deep EM: see `DeepEM`. Estimates of nuisance parts on other rows than those they are used for: V. Chernozhukov
        et al.: Double/Debiased Machine Learning for Treatment and Structural Parameters. Econometrics Journal, 2018.
        Out-of-sample predictions beside crowd labels: H. W. Goh, U. Tkachenko, J. Mueller: CROWDLAB, 2022. Putting
        them into the E-step, between epochs, is this project's.
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)

    def __init__(
        self,
        num_annotators: int,
        prior: float = 1.0,
        diagonal: float = 0.8,
        epochs_per_round: int = 1,
        folds: int = 5,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, prior, diagonal, epochs_per_round, **kwargs)
        self.folds = FOLDS.checked("CrossFittedEM", "folds", folds)
        self.task_posteriors: np.ndarray | None = None

    def _rounds(
        self,
        model: Any,
        data: Any,
        columns: tuple[np.ndarray, np.ndarray, np.ndarray],
        posteriors: np.ndarray,
        *,
        batch_size: int,
        seed: int,
        shuffle: bool,
    ) -> ExpectationStep:
        if data.num_tasks < self.folds:
            raise DataError(
                f"CrossFittedEM: {self.folds} folds need as many tasks, there are {data.num_tasks}; set folds lower, "
                "or use DeepEM"
            )
        self.task_posteriors = posteriors  # changed in place from round to round
        fold_of = np.random.default_rng([seed, self.folds]).permutation(data.num_tasks) % self.folds
        copies = _Copies(_copies_of(model.base, self.folds), fold_of)
        for x, _ in data.batches(1, 0, shuffle=False, inputs=("tasks",), targets=posteriors):
            copies(x)  # makes the weights
            break
        for base in copies.bases:
            base.set_weights(model.base.get_weights())
        optimizer = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model.optimizer))
        copies.compile(optimizer, loss=_LearningTasks(), jit_compile=model.jit_compile, run_eagerly=model.run_eagerly)
        learning = data.batches(batch_size, seed + 1, shuffle=shuffle, inputs=("tasks",), targets=posteriors)

        def maximise(posteriors: np.ndarray) -> None:
            self.update(expected_counts(posteriors, *columns, self.num_annotators))
            copies.fit(learning, epochs=self.epochs_per_round, shuffle=False, verbose=0)

        def estimate() -> tuple[np.ndarray, float]:
            log_prior = np.zeros(posteriors.shape)
            for x, _ in data.batches(256, 0, shuffle=False, inputs=("tasks",), targets=posteriors):
                tasks = np.asarray(x["tasks"])
                log_prior[tasks] = answers_of_batch(copies, x, len(tasks))[:, 1]
            return posteriors_given_labels(log_prior, *columns, self.annotator_confusions())

        return ExpectationStep(data, posteriors, every=self.epochs_per_round, after=maximise, e_step=estimate)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), "folds": self.folds}


# === The copies ===


def _copies_of(base: Any, number: int) -> list[Any]:
    """Models like the base, with weights of their own and its vocabularies.

    Raises:
        ValueError: a class of the base says too little of itself to be made again.
    """
    layers = base._flatten_layers()
    # classes that are not registered are known all the same: nothing leaves the process, which is also why it is safe
    classes = {keras.saving.get_registered_name(type(layer)): type(layer) for layer in layers}
    copies = []
    for copy in range(number):
        # a scope each: Keras on PyTorch knows a model's weights by their paths
        with keras.name_scope(f"copy_{copy}"):
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message="The object being serialized includes a `lambda`")
                    settings = keras.saving.serialize_keras_object(base)  # anew: making a functional model empties it
                settings.pop("compile_config", None)
                made = keras.saving.deserialize_keras_object(settings, custom_objects=classes, safe_mode=False)
            except (TypeError, ValueError, NotImplementedError) as error:
                raise ValueError(_how_to_be_copied(base)) from error
        for layer, same in zip(layers, made._flatten_layers(), strict=True):
            if hasattr(layer, "get_vocabulary"):
                with tempfile.TemporaryDirectory() as folder:
                    layer.save_assets(folder)
                    same.load_assets(folder)
        copies.append(made)
    return copies


def _how_to_be_copied(base: Any) -> str:
    """What to add to the class that cannot be made again: a part of the base that has no configuration, or the base."""

    def is_silent(layer: Any) -> bool:
        try:
            layer.get_config()
        except NotImplementedError:
            return True
        return False

    layers = [layer for layer in base._flatten_layers() if layer is not base]
    kind = type(next((layer for layer in layers if is_silent(layer)), base))
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    lines = ", ".join(["**super().get_config()", *(f'"{name}": self.{name}' for name in names)])
    return (
        f"CrossFittedEM makes copies of the base, and {kind.__name__} cannot be made again from its configuration. Its "
        "__init__ must accept **kwargs and pass them to super().__init__, and the class needs the method\n\n"
        f"    def get_config(self):\n        return {{{lines}}}\n\n"
        "Arguments that are layers or models are returned through keras.saving.serialize_keras_object, and read by "
        "from_config through keras.saving.deserialize_keras_object. DeepEM needs no copies."
    )


class _Copies(keras.Model):
    """Copies of a base, each of which leaves a fold of the tasks out.

    Args:
        bases: F models.
        fold_of: fold of every task, int `[N]`.

    Call arguments:
        inputs: `{"instances": ..., "tasks": int [B]}`.

    Returns:
        `[B, 2, K]`: the sum of log-probabilities of the copies that learn from the task, and those of the copy that
        does not.
    """

    def __init__(self, bases: list[Any], fold_of: np.ndarray):
        super().__init__(autocast=False, name="copies")
        self.bases = bases
        self.fold_of = fold_of.astype("int32")

    def call(self, inputs: Any, training: bool = False) -> Any:
        p = ops.stack([base(inputs["instances"], training=training) for base in self.bases], axis=1)
        logs = ops.log(ops.maximum(ops.cast(p, keras.backend.result_type(self.variable_dtype, "float32")), SMALLEST))
        folds = ops.take(ops.convert_to_tensor(self.fold_of), ops.cast(inputs["tasks"], "int32"))
        left_out = ops.expand_dims(ops.one_hot(folds, len(self.bases), dtype=logs.dtype), -1)
        # a copy sees F - 1 of F tasks of a batch: its steps are as long as the base's all the same
        learning = (1 - left_out) * (len(self.bases) / (len(self.bases) - 1))
        return ops.stack([ops.sum(learning * logs, axis=1), ops.sum(left_out * logs, axis=1)], axis=1)


class _LearningTasks(ExpectedLogLikelihood):
    """`ExpectedLogLikelihood` of the first of the two."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return super().call(y_true, y_pred[:, 0])
