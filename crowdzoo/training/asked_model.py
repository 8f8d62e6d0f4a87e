"""What a trained model says: the truth of instances, and what was learnt of the annotators."""

from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import as_strings
from crowdzoo.training.compared_model import ComparedModel
from crowdzoo.training.data import TrainingData
from crowdzoo.training.expectation import annotation_columns, e_step, expected_counts
from crowdzoo.training.fit_arguments import check_shapes, crowd_arrays, token_ids
from crowdzoo.training.mask_data import MaskData
from crowdzoo.training.pair_rows import instances_of
from crowdzoo.training.sparse_batch import has_annotators

# Lines that messages tell to write; see `pair_rows`
POSTERIORS = "posteriors(x, annotations, tasks={})"
CALIBRATED = "calibrated_confusions(x, annotations, tasks={})"


class AskedModel(ComparedModel):
    """Parent of `CrowdModel`: its answers."""

    _base_and_features: Any = None

    def predict(self, x: Any, **kwargs: Any) -> np.ndarray:
        """Estimates the truth; annotators, where x names any, are not looked at.

        Args:
            x: instances `[N, ...]`, or a `tf.data.Dataset` of batches: instances, or what `fit` takes.
            **kwargs: as for `keras.Model.predict`.

        Returns:
            The base's output: `[N, K]` probabilities, `[N, T, K]` for sequences, `[N, H, W, K]` for masks, `[N, 1]`
            for regression.
        """
        if hasattr(x, "element_spec"):  # a tf.data.Dataset
            spec = x.element_spec
            if has_annotators(spec[0] if isinstance(spec, tuple) else spec):
                x = x.map(lambda inputs, *_: inputs["instances"])
        x = keras.tree.map_structure(as_strings, token_ids(self, instances_of(x)))
        if self.built:
            check_shapes(self, x)
        return super().predict(x, **kwargs)

    def posteriors(
        self, x: Any, y: Any = None, *, tasks: Any = None, task: str | None = None, batch_size: int = 256
    ) -> np.ndarray:
        """What annotated tasks are, given their instances and the labels that they got.

        `q_i(k) ~ p_i(k) prod_r P(r says y_ir | truth k)` (Bayes' rule with the model's own annotators).

        Args:
            x: instances, or `TrainingData`; as in `fit`.
            y: annotations, as in `fit`.
            tasks: ids of the rows of x, as in `fit`.
            task: a frame's column, as in `fit`.
            batch_size: tasks in a batch.

        Returns:
            float32 `[N, K]`, a row for each row of x, rows sum to one; where nobody labelled a task, the estimate from
            its instance. Of sequences `[N, T, K]`, T the longest labelled one; rows of zeros beyond a sentence's last
            labelled token. Of masks `[N, H, W, K]`, the estimate where a pixel has no label.

        Raises:
            ValueError: there is no crowd layer, or (`DoctorNet`) one that knows no truth.
            NotImplementedError: a crowd layer of your own that does not say how labels depend on the truth.
        """
        self._crowd()
        if isinstance(x, TrainingData):
            return self.e_step(x, batch_size=batch_size)[0]
        data = crowd_arrays(self, x, y, tasks, task, POSTERIORS)
        found = self.e_step(data, batch_size=batch_size)[0]
        if isinstance(data, MaskData):
            labelled = found.any(axis=-1, keepdims=True)
            return found if labelled.all() else np.where(labelled, found, self.predict(data.x, verbose=0))
        unlabelled = np.flatnonzero(data.annotations.redundancy == 0)
        if len(unlabelled):
            rest = keras.tree.map_structure(lambda array: np.asarray(array)[unlabelled], data.x)
            estimates = self.predict(rest, verbose=0)
            found[unlabelled] = estimates if data.num_tokens is None else estimates[:, : data.num_tokens]
        return found

    def e_step(self, data: TrainingData, *, batch_size: int = 256) -> tuple[np.ndarray, float]:
        """Posteriors of the annotated tasks, and how likely their labels are.

        Args:
            data: annotated tasks.
            batch_size: tasks in a batch.

        Returns:
            posteriors float32 `[N, K]` (sequences `[N, T, K]`, masks `[N, H, W, K]`, tokens and pixels taken one by
            one), rows of zeros where nobody labelled; and the log-likelihood of all labels, in nats:
            `sum_i log sum_k p_i(k) prod_r P(r says y_ir | truth k)`.
        """
        self._crowd()
        return e_step(self, data, batch_size)

    # === What was learnt of the annotators ===

    def annotator_confusions(self) -> np.ndarray:
        """The label distribution of every annotator for each certain truth, float64 `[R, K, K]`; rows sum to one.

        Of `CrowdsourcedLayer` this is no estimate of how often an annotator is right: its softmax stands on another
        softmax, that of the base, so its diagonal is too low by design. See `calibrated_confusions`.
        """
        return self._crowd().annotator_confusions()

    def calibrated_confusions(
        self, x: Any, y: Any = None, *, tasks: Any = None, task: str | None = None, batch_size: int = 256
    ) -> np.ndarray:
        """What every annotator said of tasks of each class, counted by the tasks' posteriors.

        `sum_i q_i(k) 1[y_ir = l] / sum_i q_i(k) 1[r labelled i]`, q as `posteriors` gives it.

        Args:
            x: instances, or `TrainingData`; as in `fit`.
            y: annotations, as in `fit`.
            tasks: ids of the rows of x, as in `fit`.
            task: a frame's column, as in `fit`.
            batch_size: tasks in a batch.

        Returns:
            float64 `[R, K, K]`, `[annotator, true, said]`; rows sum to one, and are uniform where an annotator labelled
            nothing.

        Raises:
            ValueError: as `posteriors`.
        """
        crowd = self._crowd()
        data = x if isinstance(x, TrainingData) else crowd_arrays(self, x, y, tasks, task, CALIBRATED)
        posteriors = self.e_step(data, batch_size=batch_size)[0]
        rows = posteriors.reshape(-1, posteriors.shape[-1]).astype("float64")
        counts = expected_counts(rows, *annotation_columns(data), crowd.num_annotators)
        total = counts.sum(axis=2, keepdims=True)
        return np.where(total > 0, counts / np.where(total > 0, total, 1), 1 / counts.shape[2])

    def log_confusions(self, x: Any, annotators: np.ndarray) -> np.ndarray:
        """Log-probabilities of what annotators would say of tasks, for every possible truth.

        Methods that look at the instances (CoNAL, LIA) differ from task to task.

        Args:
            x: instances `[B, ...]`.
            annotators: int `[B, M]`, annotator codes.

        Returns:
            float32 `[B, M, K, K]`, `[task, annotator, true, said]`.

        Raises:
            ValueError: there is no crowd layer, or (`DoctorNet`) one that knows no truth.
            NotImplementedError: a crowd layer of your own that does not say how labels depend on the truth.
        """
        crowd, codes = self._crowd(), ops.convert_to_tensor(np.asarray(annotators, dtype="int32"))
        if not crowd.uses_features:
            return ops.convert_to_numpy(crowd.log_confusions(codes))
        return ops.convert_to_numpy(crowd.log_confusions(codes, self.features_of(x)))

    def features_of(self, x: Any) -> Any:
        """What a crowd layer that looks at the instances sees of them.

        Args:
            x: instances `[B, ...]`.

        Returns:
            A tensor `[B, D]`, float32 or wider.

        Raises:
            ValueError: the crowd layer does not look at the instances.
        """
        if self._base_and_features is None:
            raise ValueError(f"{type(self._crowd()).__name__} does not look at the instances, so it has no features")
        return self._base_and_features(x)[1]

    def annotator_scales(self) -> np.ndarray:
        """Factor of every annotator of a regression, float64 `[R]`."""
        return self._crowd().annotator_scales()

    def annotator_biases(self) -> np.ndarray:
        """Bias of every annotator of a regression, in the labels' unit, float64 `[R]`."""
        return self._crowd().annotator_biases()

    def _crowd(self) -> Any:
        if self.crowd is None:
            raise ValueError("CrowdModel: there is no crowd layer, so nothing was learnt about the annotators")
        return self.crowd
