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
    """A section that only has known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class WithArguments(BaseModel):
    """A section whose other keys are arguments of the named object."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that are set."""
        return dict(self.model_extra or {})


class DataConfig(Section):
    """Files of labels and instances.

    Attributes:
        dataset: name of a data set that ships with crowdzoo, in place of files.
        annotations: long table with the columns task, annotator, label (.csv .tsv .jsonl .json .xlsx .parquet, text
            also in .gz); for kind `preference` left, right, annotator, label. For kind `sequence` sentences with
            annotators' tags: spans in .jsonl, columns in files with any other suffix.
        gold: for kind `sequence`, a file in columns with the true tags of the same sentences; files of spans include
            them. For kind `preference`, a table with the columns left, right, gold: which side is better. For kind
            `region` an export of one annotator, a folder of masks, or a table with the columns task, gold.
        scheme: for kind `sequence`, how tags are written.
        on_bad_tags: for kind `sequence`, whether tags that break the scheme stop the run or are fixed (I- without B-).
        low: for kind `regression`, the lowest rating that annotators may give; a rating below is a bad row.
        high: for kind `regression`, the highest one.
        instances: table with the column task, the model's inputs (features, a column text or image, or columns of
            several types), and optionally gold (a class, or for ratings a number) and split (.parquet or .csv,
            .csv.gz); or a folder of images. See `crowdzoo.instances.read_instances`.
        classes: names of the classes in the order of their codes; None uses those that occur, sorted.
        platform: name of the labelling platform whose export `annotations` is; None: a table, or sentences.
        field: question of that export to use; None if it has only one.
        image: column of that export with the image of a task, if there are several and instances are a folder.
        on_bad_rows: `error` stops at invalid annotations, `reject` writes them to a file and continues.
        on_duplicate: what to do with a second label by one annotator for one task.
        exclude: annotators whose annotations are left out.
        columns: crowdzoo's names of the columns of annotations -> the file's, such as
            `{task: HITId, annotator: WorkerId}`; others are found by crowdzoo's name, or by a usual one.
        separator: one character between the values of CSV; None infers it from the header.
        sheet: sheet of an Excel workbook; None is the first one.
        encoding: encoding of text files; None is UTF-8, or that of a byte order mark.
        header: whether the first line of annotations has names; if not, `columns` are numbers from 1.
        decimal: decimal mark of numbers in text, "." or ",".
        wide: whether annotations have one row per task and one column per annotator.
        missing: labels that mean a missing label.
        label_separator: separator of several labels in a cell.
        annotator_separator: separator of several annotators in a cell, and of their labels in another.
        rename: labels to replace by others, such as `{tie (bothbad): tie}`.
        instance_columns: as `columns`, for instances: task, gold, split, text, image, features.
        outside_images: whether a table of instances may name images outside its folder.
        eval_fraction: share of the tasks held out for evaluation if `instances` has no column split.
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
            raise ValueError("'dataset' replaces 'annotations' and 'instances': give either it or the files")
        if self.dataset is not None and self.gold is not None:
            raise ValueError("'dataset' has its own gold: leave out 'gold'")
        for name in ("field", "image"):
            if getattr(self, name) is not None and self.platform is None:
                raise ValueError(f"'{name}' belongs to an export: give its 'platform' as well")
        _ = self.layout, self.instance_layout
        return self

    @property
    def layout(self) -> Layout:
        """Layout of annotations."""
        return Layout.of(dict(self))

    @property
    def instance_layout(self) -> Layout:
        """Layout of instances."""
        return Layout.of_second(self.instance_columns, dict(self))


class AggregationConfig(WithArguments):
    """Aggregation of the labels of several annotators.

    Attributes:
        method: a name in `crowdzoo.aggregation.METHODS` (for sequences `SEQUENCE_METHODS`, for ratings
            `RATING_METHODS`, for preferences `PREFERENCE_METHODS`); by default robust, bsc-seq, rating-em,
            annotator-bradley-terry or staple. All other keys are arguments of that method.
    """

    method: str


class _ModelConfig(Section):
    """The base model, which is also the served model. Defaults are those of the base (`BASES`).

    Attributes:
        base: name of the base for the kinds of labels and instances: `feature-classifier` is a multilayer perceptron
            over standardised features, `feature-regressor` the same for ratings, `text-classifier` and `text-regressor`
            are networks over the words of texts, `image-classifier` and `image-regressor` over images,
            `image-segmenter` finds regions of images, `table-classifier` and `table-regressor` take columns of numbers,
            categories and texts, `sequence-tagger` is a convolution and a GRU over words. By default the columns of the
            file of instances decide. Or your own function that makes a Keras model, `package.module:function` or
            `path/to/file.py:function`.
        arguments: arguments of that function, by name.
        encoder: for your own base, settings of the encoder of instances, such as `max_words` of texts.

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
            estimate, all others on the annotators' labels. All other keys are hyperparameters of that method.
    """

    name: str


class _TrainingConfig(Section):
    """The training loop.

    Attributes:
        checkpoint: whether to save the state of the training after each epoch, so that an interrupted run continues
            from there when started again.
        warm_start: whether training starts from the weights of the served model instead of new ones.

    Other keys: fields of `crowdzoo.training.settings.Settings` that do not belong to the method or the base.
    """

    checkpoint: values.Bool = False
    warm_start: values.Bool = False


_ELSEWHERE = ("method", "arguments", "dropout", "seed")  # set in other sections
TrainingConfig = create_model(
    "TrainingConfig",
    __base__=_TrainingConfig,
    **{name: key for name, key in values.keys_of(Settings).items() if name not in _ELSEWHERE},
)


def as_key(name: str, value: object) -> str:
    """A setting as a key of the file and its value, such as `data.header: false`; see `crowdzoo.errors.Setting`."""
    if name == "rejects":
        return "the pipeline"  # which always keeps rejected rows
    sections: dict[str, type[Section]] = {"data": DataConfig, "model": ModelConfig, "training": TrainingConfig}
    section = next((f"{title}." for title, section in sections.items() if name in section.model_fields), "")
    return section + name if value is ... else f"{section}{name}: {yaml_text(value)}".removeprefix(": ")


def placed(place: str, problem: str) -> str:
    """Prefixes a problem with its place ("data: "), if it does not begin with a key."""
    return problem if re.match(r"(data|model|training)\.", problem) else place + problem


class EvaluationConfig(Section):
    """Conditions for pushing a model.

    Attributes:
        tolerance: largest loss of accuracy (F1, R², share of pairs) relative to the last pushed model (0.01 is one
            point), with 95 % confidence.
        undecided: what to do if there are too few held-out tasks to decide whether the loss is larger: `keep` the
            served model, or `push` the new one.
        compare: criterion for comparing a new classifier with the last pushed one: `labels` is accuracy against gold or
            aggregated labels; `annotations` is the log-likelihood of the annotations of the held-out tasks. Default:
            `labels` if any held-out task has gold, else `annotations`.
        annotation_tolerance: largest loss of that log-likelihood, in nats per annotation.
        new_signatures: whether to push a model whose classes, inputs or columns differ from the last pushed one, so
            that they cannot be compared.
        minimum_accuracy: smallest accuracy of a pushed classifier.
        minimum_f1: smallest F1 of spans of a pushed tagger.
        minimum_r2: smallest R² of a pushed regressor; with 0, the default, it is at least as good as a constant
            prediction.
        minimum_pair_accuracy: smallest share of pairs whose better side has the higher score, for a pushed reward
            model.
        minimum_dice: smallest Dice coefficient of a pushed model of masks.
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
    """Allowed differences of the data from those of the served model, see `DriftValidator`.

    Attributes:
        jensen_shannon: largest Jensen-Shannon divergence of a distribution of numbers, from 0 to 1.
        infinity_norm: largest change of the share of a category, from 0 to 1.
        action: what to do if one is larger, or a column is missing or of another type: `warn` reports it in the summary
            and on the page, `keep` also keeps the served model, and `fail` ends the run before training.
    """

    jensen_shannon: values.Fraction = 0.1
    infinity_norm: values.Fraction = 0.1
    action: Literal["warn", "keep", "fail"] = "warn"


class ReportConfig(Section):
    """The page about the crowd and the model, as from `crowdzoo report`; written if the file has this section.

    Attributes:
        page: whether to write the page.
        fail_if: conditions under which the model is not pushed, such as `alpha<0.6`; see `crowdzoo report --fail-if`.
    """

    page: values.Bool = True
    fail_if: tuple[str, ...] = ()


class OutputConfig(Section):
    """Folders of results.

    Attributes:
        root: folder of metadata, artifacts and logs.
        serving: folder of pushed models, with one subfolder per version; default `<root>/serving`.
    """

    root: values.LocalPath
    serving: values.LocalPath

    @property
    def metadata(self) -> Path:
        """SQLite file of ML Metadata."""
        return self.root / "metadata.sqlite"

    def check(self) -> None:
        """Checks that folders can be created or written, without creating them.

        Raises:
            ConfigError: names the setting and the folder.
        """
        for name, folder in (("root", self.root), ("serving", self.serving)):
            parent = next(place for place in (folder, *folder.absolute().parents) if place.exists())
            if not parent.is_dir():
                raise ConfigError(f"output.{name}: {folder} cannot be made: {parent} is a file. Choose another folder.")
            if not os.access(parent, os.W_OK | os.X_OK):
                raise ConfigError(f"output.{name}: {parent} may not be written. Choose another folder.")

    @field_validator("root", "serving")
    @classmethod
    def _no_pattern(cls, path: Path) -> Path:
        if set("*?[") & set(str(path)):
            raise ValueError("must not hold * ? or [, which Beam takes for patterns")
        return path


# Beam's names, as Beam is slow to import and not needed to check a configuration
_RUNNERS = ("Dataflow", "Direct", "Flink", "FnApi", "Portable", "Prism", "Spark", "SwitchingDirect")
BEAM_RUNNERS = tuple(f"{name}Runner" for name in _RUNNERS)


LOCAL_RUNNER = "FnApiRunner"
# Components with Beam steps
RETRYING_COMPONENT = "CrowdAggregator"
BEAM_COMPONENTS = ("StatisticsGen", RETRYING_COMPONENT, "Evaluator")


class BeamConfig(Section):
    """Runner and options of Beam steps.

    Attributes:
        runner: name of a Beam runner, or the dotted name of a runner's class.
        options: further Beam options as on a command line, e.g. `--direct_num_workers=2`.
        components: components that use the runner and the options; others run in this process. Default: all.
        retries: number of times that CrowdAggregator repeats a failed pipeline, from its last checkpoint.
        timeout: seconds after which CrowdAggregator cancels a running pipeline, which counts as a failure.
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
