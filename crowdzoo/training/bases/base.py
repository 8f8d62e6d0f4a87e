"""Base: makes the base model of a training; and the context for a user's function. Does not import Keras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from crowdzoo.training.settings import Settings

if TYPE_CHECKING:
    import keras

    from crowdzoo.networks.instance_encoder import InstanceEncoder

Batches = Callable[[], Iterable[Any]]


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model that depend on the data.

    Attributes:
        num_annotators: R; None without annotations.
        num_classes: K; 0 if the base estimates a number: a rating, or the score of one task of a pair.
        center: mean of the ratings; see `rating_unit`.
        unit: their standard deviation.
        num_features: D, length of feature vectors; None for other instances.
        head: whether the base ends in the estimate. False: in its last hidden layer, for crowd layers that use
            one (`DoctorNet`).
        num_annotations: A, number of annotations for training on pairs; None for other labels.

    Example:
        >>> from crowdzoo.models import Sizes, TrainingSettings, build_model
        >>> sizes = Sizes(num_annotators=5, num_classes=4, num_features=20)
        >>> model = build_model(TrainingSettings(method="ccem"), sizes)
        >>> model.crowd.num_annotators
        5
    """

    num_annotators: int | None = None
    num_classes: int = 0
    center: float = 0.0
    unit: float = 1.0
    num_features: int | None = None
    head: bool = True
    num_annotations: int | None = None


@dataclass(frozen=True)
class BaseContext:
    """Information for a function that makes a base model.

    Attributes:
        kind: kind of label, a key of `LABEL_KINDS`.
        instances: kind of instances: "feature vectors", "texts" and so on.
        shapes: shape of one instance as the model gets it, such as `(20,)`; None for an axis of any length. For several
            inputs a dictionary by their names.
        dtypes: their types, such as "float32", in the same form.
        encoder: converts instances from files to the model's input; None for feature vectors. For texts
            `encoder.num_words` is the number of word ids.
        num_classes: K; 0 for ratings and pairs.
        num_annotators: R; None if the method does not use annotations.
        head: whether the model ends in the estimate: probabilities `[B, K]`, a rating `[B, 1]`, or for pairs the score
            of one instance `[B, 1]`. If False, it ends in its last hidden layer, `[B, D]`, for methods that use one
            (`doctor-net`).
        center: mean of the training ratings, in their unit.
        unit: their standard deviation.
    """

    kind: str
    instances: str
    shapes: Any
    dtypes: Any
    encoder: Any = None
    num_classes: int = 0
    num_annotators: int | None = None
    head: bool = True
    center: float = 0.0
    unit: float = 1.0

    def inputs(self) -> keras.KerasTensor | dict[str, keras.KerasTensor]:
        """Creates `keras.Input`s of the shapes; for several inputs a dictionary of them."""
        import keras

        if isinstance(self.shapes, dict):
            return {name: keras.Input(shape, dtype=self.dtypes[name], name=name) for name, shape in self.shapes.items()}
        return keras.Input(self.shapes, dtype=self.dtypes, name="instances")


def fields_of(settings: Settings | Sizes, *names: str) -> dict[str, Any]:
    """Some fields of settings or sizes, as keyword arguments of a network."""
    return {name: getattr(settings, name) for name in names}


class Base(ABC):
    """One entry of `BASES`. Keras and TensorFlow are imported inside the methods.

    `batches` is a function that iterates over the training instances once, in order: it yields parts of
    `Instances.values` (strings from TFRecords are bytes), and may be called any number of times.

    Attributes:
        settings: class of the settings of its training.
    """

    settings: ClassVar[type[Settings]]

    def make_settings(self, **values: Any) -> Settings:
        """Makes the settings of a training.

        Args:
            **values: fields of `settings`, lists where YAML has lists.

        Raises:
            ConfigError: a value out of its range.
        """
        return self.settings(**values)

    def encoder(self, settings: Any, batches: Batches) -> InstanceEncoder | None:
        """Makes the encoder of the instances from the training instances; None if they are the input.

        Raises:
            DataError: no encoder can be made from the instances.
        """
        return None

    @abstractmethod
    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """Makes the Keras model, named "base"; its weights depend on `keras.utils.set_random_seed`."""

    def adapt(self, model: keras.Model, encoder: Any, batches: Batches) -> None:  # noqa: B027  most have nothing to adapt
        """Adapts the model to the training instances, for example to their mean and variance.

        Raises:
            DataError: instances that cannot be learned from.
        """

    def features(self, model: keras.Model) -> str | None:
        """Name of the layer whose output is the features for crowd layers such as LIA and CoNAL; see `CrowdModel`.

        None: they get the base's input.
        """
        return None
