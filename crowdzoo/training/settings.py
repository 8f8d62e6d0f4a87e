"""Settings of every training: values that can be printed and compared. Does not import Keras."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from crowdzoo.checks.constraints import COUNT, FLAG, Checked, Choice, Flag, check_ends, check_settings, setting
from crowdzoo.data.instance_kinds import (
    IMAGES,
    INPUT_TYPES,
    SENTENCES,
    TABLES,
    TEXTS,
    VECTORS,
    InstanceKind,
    instance_kind,
)
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import ConfigError, Setting, unknown
from crowdzoo.layers.ranges import (
    BATCH,
    DROPOUT,
    EPOCHS,
    FITS,
    HIDDEN,
    LEARNING_RATE,
    NETWORKS,
    PIXEL_SCALES,
    SEED,
    SIDE,
    UNITS,
)
from crowdzoo.training.methods import AGGREGATED, check_method, default_method

FORMS = (*NETWORKS, "characters")  # of a text model; the last is a bag of characters and of pairs of characters

# dtype policies of a base
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")

MAY_BE_NONE = replace(BATCH, optional=True)


@dataclass(frozen=True)
class Settings(Checked, ABC):
    """Settings that all trainings have.

    Attributes:
        method: a name in `crowdzoo.training.methods.methods_of(kind)`. "aggregated" learns from one label distribution
            (one number) per task, all others from the annotations through a crowd layer. None is the kind's default:
            "ccem" for classes, "pair-annotators" for pairs, else "crowdsourced-layer".
        arguments: the method's hyperparameters: arguments of its crowd layer, such as `{"connection": "VW"}`.
        dropout: share of hidden units dropped in training.
        epochs: passes over the tasks; by default chosen from the number of tasks (`crowdzoo.training.length`).
        batch_size: tasks in a batch; by default chosen in the same way.
        learning_rate: learning rate of Adam.
        seed: seed of weights, dropout and the order of the tasks.
        precision: dtype policy of the base, "float32", "mixed_bfloat16" or "mixed_float16"; weights, crowd layers and
            losses stay in float32. Default: Keras' configuration.
        jit_compile: whether XLA compiles the steps; by default Keras decides.
        gradient_accumulation_steps: number of batches whose gradients are averaged for one step.
        patience: for classes: hold out the annotations of a tenth of the tasks, and stop after this many epochs without
            a better prediction of them; the weights of the best epoch are kept
            (`crowdzoo.training.held_out_annotations`).
        devices: number of devices that each batch is spread over: GPUs, or CPUs if there are no GPUs.

    Raises:
        ConfigError: a value out of its range, or settings that do not go together; it names the setting.
    """

    method: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    dropout: float = setting(0.5, DROPOUT)
    epochs: int | None = setting(None, replace(EPOCHS, optional=True))
    batch_size: int | None = setting(None, MAY_BE_NONE)
    learning_rate: float = setting(1e-3, LEARNING_RATE)
    seed: int = setting(0, SEED)
    precision: str | None = setting(None, Choice(PRECISIONS, optional=True))
    jit_compile: bool | None = setting(None, Flag(optional=True))
    gradient_accumulation_steps: int = setting(1, COUNT)
    patience: int | None = setting(None, replace(COUNT, optional=True))
    devices: int = setting(1, COUNT)

    usual_epochs: ClassVar[int]
    instances: ClassVar[InstanceKind]

    @property
    def base(self) -> str:
        """Name of the base model that is trained."""
        return self.instances.bases[self.kind]

    @property
    @abstractmethod
    def kind(self) -> str:
        """Kind of label."""

    def _check(self, kind: str, low: float | None = None, high: float | None = None) -> None:
        try:
            method = default_method(kind) if self.method is None else self.method
            object.__setattr__(self, "method", method)
            check_method(method, self.arguments, kind)
            check_ends(low, high)
        except ConfigError as error:
            raise ConfigError(f"training: {error}") from error
        check_settings(self, self.rules, "training")
        if self.patience is not None and not label_kind(kind).one_class:
            raise ConfigError(
                "training: patience holds out annotations of classes, and these are labels of another kind. Set epochs "
                "instead, or write model.fit(..., validation_data=..., callbacks=[keras.callbacks.EarlyStopping()])."
            )
        if self.patience is not None and self.method == AGGREGATED:
            raise ConfigError(
                "training: patience holds out annotations, and method aggregated does not use them. Set epochs, or "
                "choose another method."
            )
        if self.devices > 1 and self.gradient_accumulation_steps > 1:
            raise ConfigError(
                "training: Keras accumulates gradients on one device only. Set "
                f"{Setting('gradient_accumulation_steps', 1)}, or {Setting('devices', 1)}."
            )


@dataclass(frozen=True)
class InstanceSettings(Settings):
    """Settings that trainings on instances have, for classes and ratings.

    Attributes:
        kind: kind of label, a key of `LABEL_KINDS`.
        low: lowest rating of the scale, in the labels' unit; lower ratings are rejected. None: no limit.
        high: highest rating of the scale; None: no limit.
        encoder_fields: fields for the encoder of the instances; a custom base has no others.

    Other attributes: see `Settings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    kind: str = "classification"
    low: float | None = None
    high: float | None = None

    encoder_fields: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self._check(self.kind, self.low, self.high)
        if not label_kind(self.kind).has_numbers and (self.low, self.high) != (None, None):
            raise ConfigError("training: low and high are for kind regression")


@dataclass(frozen=True)
class TrainingSettings(InstanceSettings):
    """How to train a model of feature vectors.

    Attributes:
        hidden: units of each hidden layer of the base.
        batch_normalization: whether the base normalises batches; see `FeatureClassifier`.

    Other attributes: see `InstanceSettings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.

    Example:
        >>> from crowdzoo.models import TrainingSettings
        >>> settings = TrainingSettings(method="crowdsourced-layer", arguments={"connection": "VW"}, epochs=20)
        >>> settings.method, settings.base
        ('crowdsourced-layer', 'feature-classifier')
    """

    hidden: tuple[int, ...] = setting((128,), HIDDEN)  # YAML gives a list
    batch_normalization: bool = setting(False, FLAG)

    usual_epochs: ClassVar[int] = 60
    instances: ClassVar[InstanceKind] = VECTORS


@dataclass(frozen=True)
class TextSettings(InstanceSettings):
    """How to train a classifier or a regressor of texts.

    Attributes:
        form: "convolutional", "bag-of-words" or "characters", a bag of characters and of pairs of them in place of
            words. Default: "characters" if most training texts are in languages without spaces between words, else
            "bag-of-words".
        embedding: length of a word's vector (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is the form's default.
        max_words: size of the vocabulary: the most frequent words of the training texts.
        min_texts: number of training texts that a word of the vocabulary occurs in, at least.
        max_length: number of words read from a text; None is all.

    Other attributes: see `InstanceSettings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.

    Example:
        >>> from crowdzoo.models import TextSettings
        >>> settings = TextSettings(method="deep-em", form="convolutional")
        >>> settings.form, settings.base
        ('convolutional', 'text-classifier')
    """

    form: str | None = setting(None, Choice(FORMS, optional=True))
    embedding: int = setting(64, UNITS)
    filters: int = setting(128, UNITS)
    hidden: int | None = setting(None, replace(UNITS, optional=True))
    max_words: int = setting(20_000, BATCH)
    min_texts: int = setting(1, BATCH)
    max_length: int | None = setting(None, MAY_BE_NONE)

    usual_epochs: ClassVar[int] = 15
    instances: ClassVar[InstanceKind] = TEXTS
    encoder_fields = ("form", "max_words", "min_texts", "max_length")


@dataclass(frozen=True)
class ImageSettings(InstanceSettings):
    """How to train a classifier or a regressor of images.

    Attributes:
        height: rows of the model's input, in pixels; 128 for masks.
        width: columns, in pixels; 128 for masks.
        fit: how images of other shapes are fitted: "crop" keeps the middle, "stretch" the whole image.
        stages: filters of each stage of the residual network; see `ImageClassifier`.
        hidden: units of each hidden layer after the convolutions.
        backbone: a network in place of the residual one: a name in `keras.applications`, or the path of a `.keras`
            file (`load_backbone`).
        backbone_weights: path of the weights of a named backbone; random if not set.
        pixel_scale: values of pixels that the backbone expects, "0 to 255", "0 to 1", "-1 to 1", "imagenet" or
            "imagenet-bgr"; by default those that a named one was trained on.
        fine_tune: whether the backbone's weights are trained as well.
        augment: whether images are flipped and shifted at random in training; do not use it where left and right differ
            in meaning, as in letters.

    Other attributes: see `InstanceSettings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    height: int = setting(64, SIDE)
    width: int = setting(64, SIDE)
    fit: str = setting("crop", Choice(FITS))
    stages: tuple[int, ...] = setting((32, 64, 128), HIDDEN)
    hidden: tuple[int, ...] = setting((), HIDDEN)
    backbone: str | None = None
    backbone_weights: str | None = None
    pixel_scale: str | None = setting(None, Choice(PIXEL_SCALES, optional=True))
    fine_tune: bool = setting(False, FLAG)
    augment: bool = setting(True, FLAG)

    usual_epochs: ClassVar[int] = 60
    instances: ClassVar[InstanceKind] = IMAGES
    encoder_fields = ("height", "width", "fit")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.stages:
            raise ConfigError("training: stages must be a list of at least one number of filters, such as [32, 64]")
        if self.backbone is None:
            backbone_settings = {"backbone_weights": self.backbone_weights, "pixel_scale": self.pixel_scale}
            for name in (name for name, value in backbone_settings.items() if value is not None):
                raise ConfigError(f"training: {Setting(name)} is for a backbone, and none is given")


@dataclass(frozen=True)
class MaskSettings(InstanceSettings):
    """How to train a `UNet`, which predicts the class of each pixel.

    Attributes:
        height: rows of images and masks for the model, in pixels; images are scaled to them.
        width: columns.
        stages: filters of each stage on the way down.

    Other attributes: see `InstanceSettings`; `dropout` applies to the deepest stage's outputs.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    kind: str = "region"
    dropout: float = setting(0.0, DROPOUT)
    height: int = setting(128, SIDE)
    width: int = setting(128, SIDE)
    stages: tuple[int, ...] = setting((16, 32, 64), HIDDEN)

    usual_epochs: ClassVar[int] = 30
    instances: ClassVar[InstanceKind] = IMAGES
    fit: ClassVar[str] = "stretch"
    encoder_fields = ("height", "width")


@dataclass(frozen=True)
class TableSettings(TrainingSettings):
    """How to train a model of the columns of a table.

    Attributes:
        inputs: column -> "number", "category", "text", "vector" or "image", for columns whose type should not be
            inferred.
        max_categories: largest number of categories per column: the most frequent ones of the training tasks.
        texts: settings of the networks for columns of texts: fields of `TextSettings` such as `form`.
        images: settings of the networks for columns of images: fields of `ImageSettings` such as `height`.

    Other attributes: see `TrainingSettings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.

    Example:
        >>> from crowdzoo.models import TableSettings
        >>> settings = TableSettings(inputs={"zip": "category"}, max_categories=100)
        >>> settings.method, settings.base
        ('ccem', 'table-classifier')
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    max_categories: int = setting(1000, BATCH)
    texts: Mapping[str, Any] = field(default_factory=dict)
    images: Mapping[str, Any] = field(default_factory=dict)

    instances: ClassVar[InstanceKind] = TABLES
    encoder_fields = ("inputs", "max_categories", "texts", "images")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in self.inputs.items():
            if kind not in INPUT_TYPES:
                raise ConfigError(f"training: inputs: column {name!r} is {unknown('type', kind, INPUT_TYPES)}")
        for key, values, settings_class in (
            ("texts", self.texts, TextSettings),
            ("images", self.images, ImageSettings),
        ):
            known = sorted(
                {field.name for field in fields(settings_class)} - {field.name for field in fields(InstanceSettings)}
            )
            for name in values:
                if name not in known:
                    raise ConfigError(f"training: {key}: {unknown('setting', name, known)}")
        _ = self.text_settings, self.image_settings

    @property
    def text_settings(self) -> TextSettings:
        """Settings of the networks of texts."""
        return TextSettings(kind=self.kind, method=self.method, dropout=self.dropout, **self.texts)

    @property
    def image_settings(self) -> ImageSettings:
        """Settings of the networks of images."""
        return ImageSettings(kind=self.kind, method=self.method, dropout=self.dropout, **self.images)


@dataclass(frozen=True)
class OwnSettings(InstanceSettings):
    """How to train a base model that the user's function makes.

    Attributes:
        reference: `package.module:function` or `path/to/file.py:function`.
        instance_kind: name of the kind of instances.
        base_arguments: arguments of the function, by name.
        encoder: settings of the encoder of the instances, as for crowdzoo's own base, such as `max_words`.

    Other attributes: see `InstanceSettings`; `dropout` is not used.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    reference: str = ""
    instance_kind: str = VECTORS.name
    base_arguments: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)

    usual_epochs: ClassVar[int] = 30

    @property
    def base(self) -> str:
        """Name of the base model that is trained."""
        return self.reference

    @property
    def instances(self) -> InstanceKind:  # type: ignore[override]  # an attribute of the base
        """Kind of instances."""
        return instance_kind(self.instance_kind)


@dataclass(frozen=True)
class TaggerSettings(Settings):
    """How to train a tagger. The method's first phase, if any, precedes the epochs.

    Attributes:
        embedding: length of a word's vector.
        filters: number of filters of the convolution.
        units: number of units of the GRU (in each direction).
        bidirectional: whether a second GRU reads backwards.
        characters: whether the tagger sees characters as well as words and their shapes.
        crf: whether to predict the best path of a linear-chain CRF, which follows the scheme.

    Other attributes: see `Settings`; `dropout` applies to the convolution's outputs.

    Raises:
        ConfigError: a value out of its range; it names the setting.

    Example:
        >>> from crowdzoo.models import TaggerSettings
        >>> settings = TaggerSettings(crf=True, epochs=10)
        >>> settings.method, settings.kind
        ('crowdsourced-layer', 'sequence')
    """

    embedding: int = setting(100, UNITS)
    filters: int = setting(512, UNITS)
    units: int = setting(50, UNITS)
    bidirectional: bool = setting(False, FLAG)
    characters: bool = setting(False, FLAG)
    crf: bool = setting(False, FLAG)

    usual_epochs: ClassVar[int] = 30
    instances: ClassVar[InstanceKind] = SENTENCES

    @property
    def kind(self) -> str:
        """Kind of label."""
        return "sequence"

    def __post_init__(self) -> None:
        self._check(self.kind)
        if self.crf and self.method == "doctor-net":
            raise ConfigError("training: doctor-net has a softmax for each annotator, so crf must be false")
