"""The sections of a configuration."""

import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from crowdzoo.errors import ConfigError, short_repr, unknown
from crowdzoo.pipelines.config import values
from crowdzoo.pipelines.yaml_files import yaml_text
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.training.settings import (
    ImageSettings,
    InstanceSettings,
    Settings,
    TableSettings,
    TaggerSettings,
    TextSettings,
    TrainingSettings,
)


class Section(BaseModel):
    """A section with known keys only."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class WithArguments(BaseModel):
    """A section whose further keys are arguments of what it names."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that are set."""
        return dict(self.model_extra or {})


class DataConfig(Section):
    """Where the labels and the instances are.

    Attributes:
        dataset: name of a data set that crowdzoo ships; takes the place of the files.
        annotations: long table with the columns task, annotator, label (.csv .tsv .jsonl .json .xlsx .parquet, text
            also in .gz); for kind `preference` left, right, annotator, label. For kind `sequence` sentences with
            annotators' tags: spans in .jsonl, columns under any other ending.
        gold: for kind `sequence`, a file in columns with the true tags of the same sentences; spans have them inside.
            For kind `preference`, a table with the columns left, right, gold: which side is better. For kind `region`
            an export of one annotator, a folder of masks, or a table with the columns task, gold.
        scheme: for kind `sequence`, how tags are written.
        on_bad_tags: for kind `sequence`, whether tags that break the scheme stop the run or are fixed (I- without B-).
        low: for kind `regression`, the lowest rating that annotators may give; a rating below is a bad row.
        high: for kind `regression`, the highest one.
        instances: table with the column task, what a model learns from (features, a column text or image, or
            columns of several types), and optionally gold (a class, of ratings a number) and split (.parquet or .csv,
            .csv.gz); or a folder of images. See `crowdzoo.instances.read_instances`.
        classes: names of the classes in the order of their codes; None takes those that occur, sorted.
        platform: name of the labelling platform whose export `annotations` is; None: it is a table, or sentences.
        field: question of that export that is meant; None where it has only one.
        image: column of that export that names the image of a task, where several may and the instances are a folder.
        on_bad_rows: `error` stops at bad annotations, `reject` keeps them in a file and goes on.
        on_duplicate: what to do with a second label by one annotator for one task.
        exclude: annotators whose annotations are left out.
        columns: our names of the columns of annotations -> the file's, such as `{task: HITId, annotator: WorkerId}`;
            those that are not given are found by our name, or by a usual one.
        separator: one character between the values of CSV; None takes what the header shows.
        sheet: of an Excel workbook; None takes the first one.
        encoding: of text files; None is UTF-8, or what a byte order mark says.
        header: whether the first line of annotations holds names; if not, `columns` are numbers from 1.
        decimal: decimal mark of numbers in text, "." or ",".
        wide: whether a row of annotations is a task, and a column an annotator.
        missing: labels that mean a missing label.
        label_separator: what separates several labels in a cell.
        annotator_separator: what separates several annotators in a cell, and their labels in another.
        rename: labels that are taken for others, such as `{tie (bothbad): tie}`.
        instance_columns: the same for instances: task, gold, split, text, image, features.
        outside_images: whether a table of instances may name images outside of its own folder.
        eval_fraction: share of the tasks held out for evaluation where `instances` has no column split.
    """

    dataset: str | None = None
    annotations: values.Place | None = None
    instances: values.Place | None = None
    gold: values.Place | None = None
    scheme: Literal["BIO", "IOBES"] = "BIO"
    on_bad_tags: Literal["error", "mend"] = "error"
    low: values.Rating | None = None
    high: values.Rating | None = None
    classes: tuple[values.ClassName, ...] | None = Field(default=None, min_length=2)
    platform: str | None = None
    field: str | None = None
    image: str | None = None
    on_bad_rows: Literal["error", "reject"] = "error"
    on_duplicate: Literal["error", "first", "last"] = "error"
    exclude: tuple[str, ...] | None = None
    columns: dict[str, str | int] | None = None
    separator: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    header: values.Bool = True
    decimal: Literal[".", ","] = "."
    wide: values.Bool = False
    missing: tuple[str | int | float, ...] | None = None
    label_separator: str | None = None
    annotator_separator: str | None = None
    rename: dict[str, str] | None = None
    instance_columns: dict[str, str | int] | None = None
    outside_images: values.Bool = False
    eval_fraction: values.EvalFraction = 0.25

    @model_validator(mode="after")
    def _one_source(self) -> "DataConfig":
        if self.dataset is not None and (self.annotations is not None or self.instances is not None):
            raise ValueError("'dataset' takes the place of 'annotations' and 'instances': give the one or the others")
        if self.dataset is not None and self.gold is not None:
            raise ValueError("'dataset' brings its own gold: leave 'gold' out")
        for name in ("field", "image"):
            if getattr(self, name) is not None and self.platform is None:
                raise ValueError(f"'{name}' belongs to an export: give its 'platform' as well")
        _ = self.layout, self.instance_layout
        return self

    @property
    def layout(self) -> Layout:
        """How annotations are laid out."""
        return Layout.of(dict(self))

    @property
    def instance_layout(self) -> Layout:
        """How instances are laid out."""
        return Layout.of_second(self.instance_columns, dict(self))


class AggregationConfig(WithArguments):
    """How the labels of several annotators become one estimate of the truth.

    Attributes:
        method: a name in `crowdzoo.aggregation.METHODS` (for sequences `SEQUENCE_METHODS`, for ratings
            `RATING_METHODS`, for preferences `PREFERENCE_METHODS`); robust, bsc-seq, rating-em,
            annotator-bradley-terry and staple where it is not set. All other keys are arguments of that method.
    """

    method: str


class _ModelConfig(Section):
    """The base model, which is also the one that is served. What is not set is as the base has it (`BASES`).

    Attributes:
        base: which base, by the task and the kind of instances: `feature-classifier` is a multilayer perceptron over
            standardised features, `feature-regressor` the same for ratings, `text-classifier` and `text-regressor`
            are networks over the words of texts, `image-classifier` and `image-regressor` over images,
            `image-segmenter` finds regions of images, `table-classifier` and `table-regressor` take columns of numbers,
            categories and texts, `sequence-tagger` is a convolution and a GRU over words. Where it is not set, the
            columns of the file of instances decide. Or a function of your own that makes a Keras model,
            `package.module:function` or `path/to/file.py:function`.
        arguments: of that function, by name.
        encoder: of a base of your own: settings of what encodes the instances, such as `max_words` of texts.

    Other keys: the settings of the base, see the classes of `crowdzoo.training.settings`.
    """

    base: str | None = Field(default=None, min_length=1)
    arguments: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None
    dropout: Any = None  # before the others, which come from the settings


_OF_BASES = (TrainingSettings, TableSettings, TextSettings, ImageSettings, TaggerSettings)
ModelConfig = create_model(
    "ModelConfig",
    __base__=_ModelConfig,
    dropout=values.keys_of(Settings, unset=True)["dropout"],
    **values.keys_of(*_OF_BASES, without=InstanceSettings, unset=True),
)


class MethodConfig(WithArguments):
    """How the base learns from the crowd.

    Attributes:
        name: a name in `crowdzoo.models.METHODS` (for sequences `SEQUENCE_METHODS`, for ratings `RATING_METHODS`, for
            preferences `pair-annotators`, the default there): `aggregated` trains on the aggregation's posterior or
            estimate, every other on the annotators' labels. All other keys are hyperparameters of that method.
    """

    name: str


class _TrainingConfig(Section):
    """The training loop.

    Attributes:
        checkpoint: whether the state of the training is kept after each epoch, so that a run that was killed goes on
            there when it is started again.
        warm_start: whether the training begins with the weights of the served model, in place of fresh ones.

    Other keys: those of `crowdzoo.training.settings.Settings` that are not of the method or the base.
    """

    checkpoint: values.Bool = False
    warm_start: values.Bool = False


_ELSEWHERE = ("method", "arguments", "dropout", "seed")  # in other sections
TrainingConfig = create_model(
    "TrainingConfig",
    __base__=_TrainingConfig,
    **{name: key for name, key in values.keys_of(Settings).items() if name not in _ELSEWHERE},
)


def as_key(name: str, value: object) -> str:
    """A setting as a key of the file and its value, such as `data.header: false`; see `crowdzoo.errors.Setting`."""
    if name == "rejects":
        return "the pipeline"  # which always keeps them
    sections: dict[str, type[Section]] = {"data": DataConfig, "model": ModelConfig, "training": TrainingConfig}
    section = next((f"{title}." for title, section in sections.items() if name in section.model_fields), "")
    return section + name if value is ... else f"{section}{name}: {yaml_text(value)}".removeprefix(": ")


def placed(place: str, problem: str) -> str:
    """A problem with its place ("data: ") before it, if it does not begin with a key itself."""
    return problem if re.match(r"(data|model|training)\.", problem) else place + problem


class EvaluationConfig(Section):
    """When a model is good enough to be pushed.

    Attributes:
        tolerance: how far accuracy (F1, R², share of pairs) may fall below that of the last pushed model (0.01 is one
            point), with 95 % confidence.
        undecided: what happens where the held-out tasks are too few to say whether it falls by more: `keep` the served
            model, or `push` the new one.
        compare: what a new classifier and the last pushed one are compared by: `labels` is accuracy, against gold or
            aggregated labels; `annotations` is the log-likelihood of the annotations of the held-out tasks. Where it is
            not set, `labels` if any held-out task has gold, else `annotations`.
        annotation_tolerance: how far that log-likelihood may fall, nats for each annotation.
        new_signatures: push a model of other classes, inputs or columns than the last pushed one, which it cannot be
            compared with; otherwise it is not pushed.
        minimum_accuracy: the least accuracy that any pushed classifier must have.
        minimum_f1: the least F1 of spans that any pushed tagger must have.
        minimum_r2: the least R² that any pushed regressor must have; at 0, the default, it is at least as good as one
            and the same number for every task.
        minimum_pair_accuracy: the least share of pairs whose better side has the higher score that any pushed reward
            model must have.
        minimum_dice: the least Dice coefficient that any pushed model of masks must have.
    """

    tolerance: values.Fraction = 0.02
    undecided: Literal["keep", "push"] = "keep"
    compare: Literal["labels", "annotations"] | None = None
    annotation_tolerance: values.Nats = 0.01
    new_signatures: values.Bool = False
    minimum_accuracy: values.Fraction = 0.0
    minimum_f1: values.Fraction = 0.0
    minimum_r2: values.Fraction = 0.0
    minimum_pair_accuracy: values.Fraction = 0.0
    minimum_dice: values.Fraction = 0.0


class DriftConfig(Section):
    """How far the data may differ from those of the served model, see `DriftValidator`.

    Attributes:
        jensen_shannon: largest Jensen-Shannon divergence of a distribution of numbers, from 0 to 1.
        infinity_norm: largest change of the share of a category, from 0 to 1.
        action: what happens where one is larger, or a column is missing or of another type: `warn` says so in the
            summary and on the page, `keep` also keeps the served model, and `fail` ends the run before the training.
    """

    jensen_shannon: values.Fraction = 0.1
    infinity_norm: values.Fraction = 0.1
    action: Literal["warn", "keep", "fail"] = "warn"


class ReportConfig(Section):
    """The page on the crowd and the model, as `crowdzoo report` writes it; made where the file has this section.

    Attributes:
        page: whether it is made.
        fail_if: conditions on which the model is not pushed, such as `alpha<0.6`; see `crowdzoo report --fail-if`.
    """

    page: values.Bool = True
    fail_if: tuple[str, ...] = ()


class OutputConfig(Section):
    """Where results go.

    Attributes:
        root: folder of metadata, artifacts and logs.
        serving: folder of pushed models, one subfolder a version; `<root>/serving` where not set.
    """

    root: values.LocalPath
    serving: values.LocalPath

    @property
    def metadata(self) -> Path:
        """SQLite file of ML Metadata."""
        return self.root / "metadata.sqlite"

    def check(self) -> None:
        """Refuses folders that cannot be made or written; makes none.

        Raises:
            ConfigError: names the setting and the folder.
        """
        for name, folder in (("root", self.root), ("serving", self.serving)):
            there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
            if not there.is_dir():
                raise ConfigError(f"output.{name}: {folder} cannot be made: {there} is a file. Choose another folder.")
            if not os.access(there, os.W_OK | os.X_OK):
                raise ConfigError(f"output.{name}: {there} may not be written. Choose another folder.")

    @field_validator("root", "serving")
    @classmethod
    def _no_pattern(cls, path: Path) -> Path:
        if set("*?[") & set(str(path)):
            raise ValueError("must not hold * ? or [, which Beam takes for patterns")
        return path


# Beam's own names; Beam itself is slow to import, and a configuration is checked without it
_RUNNERS = ("Dataflow", "Direct", "Flink", "FnApi", "Portable", "Prism", "Spark", "SwitchingDirect")
BEAM_RUNNERS = tuple(f"{name}Runner" for name in _RUNNERS)


LOCAL_RUNNER = "FnApiRunner"
# Components with Beam steps
RETRYING_COMPONENT = "CrowdAggregator"
BEAM_COMPONENTS = ("StatisticsGen", RETRYING_COMPONENT, "Evaluator")


class BeamConfig(Section):
    """What runs the Beam steps.

    Attributes:
        runner: name of a Beam runner, or the dotted name of a runner's class.
        options: further Beam options as on a command line, e.g. `--direct_num_workers=2`.
        components: which components use the runner and the options; the others run in this process. Default: all.
        retries: how often CrowdAggregator runs a pipeline that failed again, from its last checkpoint.
        timeout: seconds after which CrowdAggregator cancels a pipeline that has not ended, which then has failed.
    """

    runner: str = Field(default=LOCAL_RUNNER, min_length=1)
    options: tuple[str, ...] = ()
    components: tuple[Literal[BEAM_COMPONENTS], ...] = BEAM_COMPONENTS  # type: ignore[valid-type]
    retries: int = Field(default=0, ge=0)
    timeout: float | None = Field(default=None, gt=0)

    def arguments(self, component: str) -> list[str]:
        """Beam's arguments for a component."""
        if component not in self.components:
            return [f"--runner={LOCAL_RUNNER}"]
        again = {"retries": self.retries or None, "timeout": self.timeout}
        flags = [f"--crowdzoo_{name}={value:g}" for name, value in again.items() if value is not None]
        return [f"--runner={self.runner}", *self.options, *(flags if component == RETRYING_COMPONENT else [])]

    @field_validator("runner")
    @classmethod
    def _known(cls, runner: str) -> str:
        spelt = {name.lower().removesuffix("runner"): name for name in BEAM_RUNNERS}
        short = runner.lower().removesuffix("runner")
        if "." in runner or short in spelt:
            return spelt.get(short, runner)
        raise ValueError(unknown("Beam runner", runner, BEAM_RUNNERS))

    @field_validator("options")
    @classmethod
    def _options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        for option in options:
            if not option.startswith("--"):
                raise ValueError(f"each must begin with --, like --name=value, got {short_repr(option)}")
            if option.split("=")[0] == "--runner":
                raise ValueError("set beam.runner in place of --runner")
        return options
