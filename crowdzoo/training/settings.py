"""Settings of every training: values that can be printed, compared and hashed. Loads no Keras."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from crowdzoo.constraints import FLAG, Rule
from crowdzoo.errors import ConfigError, did_you_mean
from crowdzoo.label_kinds import label_kind
from crowdzoo.layers.ranges import BATCH, DROPOUT, EPOCHS, HIDDEN, LEARNING_RATE, SEED, UNITS
from crowdzoo.tables.scale import check_ends
from crowdzoo.training.methods import check_method

__all__ = ["FORMS", "SETTINGS", "Settings", "TaggerSettings", "TextSettings", "TrainingSettings"]

FORMS = ("convolutional", "bag-of-words")  # of a regressor of texts

RULES: dict[str, Rule] = {
    "epochs": replace(EPOCHS, optional=True),
    "batch_size": replace(BATCH, optional=True),
    "learning_rate": LEARNING_RATE,
    "dropout": DROPOUT,
    "seed": SEED,
    "embedding": UNITS,
    "filters": UNITS,
    "units": UNITS,
    "max_words": BATCH,
    "min_texts": BATCH,
    "max_length": replace(BATCH, optional=True),
    "batch_normalization": FLAG,
    "bidirectional": FLAG,
    "characters": FLAG,
    "crf": FLAG,
}


@dataclass(frozen=True)
class Settings:
    """What every training has.

    Attributes:
        method: a name in `crowdzoo.training.methods.methods_of(kind)`: "aggregated" learns from one label distribution
            (one number) a task, every other from the annotations themselves, through a crowd layer.
        arguments: the method's hyperparameters: arguments of its crowd layer, such as `{"connection": "VW"}`.
        dropout: share of hidden units dropped in training.
        epochs: passes over the tasks; None chooses by their number, see `crowdzoo.training.length.with_length`.
        batch_size: tasks in a batch; None chooses by their number.
        learning_rate: learning rate of Adam.
        seed: seed of weights, dropout and the order of the tasks.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    method: str = "crowdsourced-layer"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    dropout: float = 0.5
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float = 1e-3
    seed: int = 0

    usual_epochs: ClassVar[int]

    def _check(self, kind: str, low: float | None = None, high: float | None = None) -> None:
        try:
            check_method(self.method, self.arguments, kind)
            check_ends(low, high)
        except ConfigError as error:
            raise ConfigError(f"training: {error}") from error
        for name, rule in RULES.items():
            if hasattr(self, name):
                rule.checked("training", name, getattr(self, name))


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """How to train a model of feature vectors.

    Attributes:
        hidden: units of each hidden layer of the base.
        batch_normalization: of the base; see `FeatureClassifier`.
        task: kind of label, "classification" or "regression" (ratings).
        low: lowest rating of the scale, in the labels' unit; ratings below are refused. None is any.
        high: highest rating of the scale; None is any.

    Other attributes: see `Settings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    hidden: tuple[int, ...] = (128,)
    batch_normalization: bool = False
    task: str = "classification"
    low: float | None = None
    high: float | None = None

    usual_epochs: ClassVar[int] = 60

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", HIDDEN.checked("training", "hidden", self.hidden))  # YAML gives a list
        self._check(self.task, self.low, self.high)
        if label_kind(self.task).has_classes and (self.low, self.high) != (None, None):
            raise ConfigError("training: low and high belong to task regression")

    @property
    def kind(self) -> str:
        """Kind of label."""
        return self.task

    def __hash__(self) -> int:
        return hash(json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True)
class TextSettings(Settings):
    """How to train a regressor of texts.

    Attributes:
        form: "convolutional" or "bag-of-words"; see `TextRegressor`.
        embedding: numbers for each word (convolutional).
        filters: number of filters of each convolution.
        hidden: units of the last hidden layer; None is the form's own number.
        max_words: the most frequent words of the training texts that are known.
        min_texts: training texts that a known word occurs in.
        max_length: words of a text that count; None is all.
        low: lowest rating of the scale, in the labels' unit; ratings below are refused. None is any.
        high: highest rating of the scale; None is any.

    Other attributes: see `Settings`.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    form: str = "convolutional"
    embedding: int = 64
    filters: int = 128
    hidden: int | None = None
    max_words: int = 20_000
    min_texts: int = 1
    max_length: int | None = None
    low: float | None = None
    high: float | None = None

    kind: ClassVar[str] = "regression"
    usual_epochs: ClassVar[int] = 15

    def __post_init__(self) -> None:
        self._check(self.kind, self.low, self.high)
        replace(UNITS, optional=True).checked("training", "hidden", self.hidden)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise ConfigError(
                f"training: form must be one of {', '.join(FORMS)}, got {self.form!r}.{did_you_mean(self.form, FORMS)}"
            )


@dataclass(frozen=True)
class TaggerSettings(Settings):
    """How to train a tagger. A first phase of the method's own comes before the epochs.

    Attributes:
        embedding: length of a word's vector.
        filters: number of filters of the convolution.
        units: number of units of the GRU (in each direction).
        bidirectional: whether a second GRU reads backwards.
        characters: whether the tagger sees characters beside words and their shapes.
        crf: whether tags are those of a linear-chain CRF's best path, which keeps the scheme.

    Other attributes: see `Settings`; `dropout` is the share of the convolution's outputs.

    Raises:
        ConfigError: a value out of its range; it names the setting.
    """

    embedding: int = 100
    filters: int = 512
    units: int = 50
    bidirectional: bool = False
    characters: bool = False
    crf: bool = False

    kind: ClassVar[str] = "sequence"
    usual_epochs: ClassVar[int] = 30

    def __post_init__(self) -> None:
        self._check(self.kind)
        if self.crf and self.method == "doctor-net":
            raise ConfigError("training: doctor-net has a softmax for each annotator, so crf must be false")


# Base model -> its settings
SETTINGS: dict[str, type[Settings]] = {
    "feature-classifier": TrainingSettings,
    "feature-regressor": TrainingSettings,
    "text-regressor": TextSettings,
    "sequence-tagger": TaggerSettings,
}
