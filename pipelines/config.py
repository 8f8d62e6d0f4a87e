"""The pipeline's settings: one YAML file, checked as a whole before anything starts."""

import difflib
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from crowdzoo.errors import SHOWN, ConfigError, short_repr, shorten
from crowdzoo.files.paths import local_path, scheme_of
from crowdzoo.pipelines.config_checks import outside_problems
from crowdzoo.pipelines.yaml_files import read_yaml

__all__ = ["BEAM_RUNNERS", "PipelineConfig", "load_config"]


def _integer(low: int, high: int) -> BeforeValidator:
    """Checks for an integer within bounds; a float that is one, such as 1e4, counts."""

    def check(value: Any) -> int:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value != int(value) or not low <= value <= high:
            raise ValueError(f"should be an integer from {low:,} to {high:,}")
        return int(value)

    return BeforeValidator(check)


def _number(low: float, high: float, *, above: bool = False, below: bool = False) -> BeforeValidator:
    """Checks for a number within bounds, of which `above` and `below` exclude the lower and the upper one."""

    def check(value: Any) -> float:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if (
            not number
            or not low <= value <= high  # so no NaN either
            or (above and value == low)
            or (below and value == high)
        ):
            if above:
                limits = f"above {low:g} and {'below' if below else 'at most'} {high:g}"
            else:
                limits = f"from {low:g} {'to below' if below else 'to'} {high:g}"
            raise ValueError(f"should be a number {limits}")
        return float(value)

    return BeforeValidator(check)


def _true_or_false(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("should be true or false, without quotes")
    return value


def _class_name(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is a boolean to YAML; put quotes round true and false")
    return str(value) if isinstance(value, int | float) else value


def _local_path(value: Any) -> Any:
    if isinstance(value, str | Path):
        try:
            local_path(str(value).strip())
        except ConfigError as error:
            # the key stands before it
            raise ValueError(
                str(error).removeprefix(f"path {value}: ").removeprefix("path ").removeprefix(": ")
            ) from None
    return value


Bool = Annotated[bool, BeforeValidator(_true_or_false)]
Size = Annotated[int, _integer(1, 1_000_000)]
Fraction = Annotated[float, _number(0, 1)]
Rating = Annotated[float, _number(-1e30, 1e30)]
ClassName = Annotated[str, BeforeValidator(_class_name), Field(min_length=1)]
LocalPath = Annotated[Path, BeforeValidator(_local_path)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class DataConfig(_Section):
    """Where the labels and the instances are.

    Attributes:
        dataset: name of a data set that crowdzoo ships; takes the place of the files.
        annotations: long table with the columns task, annotator, label (.csv .tsv .jsonl .parquet, also .gz). For task
            `sequence` sentences with annotators' tags: spans in .jsonl, columns under any other ending.
        gold: for task `sequence`, a file in columns with the true tags of the same sentences; spans have them inside.
        scheme: for task `sequence`, how tags are written.
        on_bad_tags: for task `sequence`, whether tags that break the scheme stop or are mended (I- without B-).
        low: for task `regression`, the lowest rating that annotators may give; a rating below is a bad row.
        high: for task `regression`, the highest one.
        instances: table with the columns task, features (list) or one numeric column per feature, and
            optionally gold (a class, of ratings a number) and split (.parquet or .csv, .csv.gz).
        classes: names of the classes in the order of their codes; None takes those that occur, sorted.
        on_bad_rows: `error` stops at bad annotations, `reject` keeps them in a file and goes on.
        on_duplicate: what to do with a second label by one annotator for one task.
        eval_fraction: share of the tasks held out for evaluation where `instances` has no column split.
    """

    dataset: str | None = None
    annotations: LocalPath | None = None
    instances: LocalPath | None = None
    gold: LocalPath | None = None
    scheme: Literal["BIO", "IOBES"] = "BIO"
    on_bad_tags: Literal["error", "mend"] = "error"
    low: Rating | None = None
    high: Rating | None = None
    classes: tuple[ClassName, ...] | None = Field(default=None, min_length=2)
    on_bad_rows: Literal["error", "reject"] = "error"
    on_duplicate: Literal["error", "first", "last"] = "error"
    eval_fraction: Annotated[float, _number(0, 1, above=True, below=True)] = 0.25

    @model_validator(mode="after")
    def _one_source(self) -> "DataConfig":
        if self.dataset is not None and (self.annotations is not None or self.instances is not None):
            raise ValueError("'dataset' takes the place of 'annotations' and 'instances': give the one or the others")
        if self.dataset is not None and self.gold is not None:
            raise ValueError("'dataset' brings its own gold: leave 'gold' away")
        if self.classes is not None and len(set(self.classes)) < len(self.classes):
            raise ValueError("'classes' names a class twice")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"'low' should be below 'high', not {self.low:g} and {self.high:g}")
        return self


class AggregationConfig(BaseModel):
    """How the labels of several annotators become one estimate of the truth.

    Attributes:
        method: a name in `crowdzoo.aggregation.METHODS` (for sequences `SEQUENCE_METHODS`, for ratings
            `RATING_METHODS`); dawid-skene, bsc-seq and rating-em where it is not set. All other keys are arguments of
            that method.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    method: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The method's own arguments, those that are set."""
        return dict(self.model_extra or {})


class ModelConfig(_Section):
    """The base model, which is also the one that is served. What is not set is as the base has it (`BASES`).

    Attributes:
        base: which base, by the task: `feature-classifier` is a multilayer perceptron over standardised features,
            `feature-regressor` the same for ratings, `text-regressor` for ratings of texts, `sequence-tagger` a
            convolution and a GRU over words.
        dropout: share of hidden units dropped in training.
        hidden: of the bases of features: units of each hidden layer; an empty list gives logistic (linear) regression.
            Of texts: units of the last hidden layer, a list of one.
        batch_normalization: of the bases of features: normalises features and hidden layers by their batch.
        form: of texts: `convolutional` or `bag-of-words`.
        max_words: of texts: the most frequent words that are known.
        min_texts: of texts: training texts that a known word occurs in.
        max_length: of texts: words of a text that count; all where it is not set.
        embedding: length of a word's vector.
        filters: of the convolution.
        units: of the tagger's GRU.
        bidirectional: of the tagger: whether a second GRU reads backwards.
        characters: of the tagger: whether it sees characters beside words and their shapes.
        crf: of the tagger: whether tags are the best path of a conditional random field.
    """

    base: Literal["feature-classifier", "feature-regressor", "text-regressor", "sequence-tagger"] | None = None
    dropout: Annotated[float, _number(0, 1, below=True)] | None = None
    hidden: Annotated[tuple[Size, ...], Field(max_length=100)] | None = None
    batch_normalization: Bool | None = None
    form: Literal["convolutional", "bag-of-words"] | None = None
    max_words: Size | None = None
    min_texts: Size | None = None
    max_length: Size | None = None
    embedding: Size | None = None
    filters: Size | None = None
    units: Size | None = None
    bidirectional: Bool | None = None
    characters: Bool | None = None
    crf: Bool | None = None


class MethodConfig(BaseModel):
    """How the base learns from the crowd.

    Attributes:
        name: a name in `crowdzoo.models.METHODS` (for sequences `SEQUENCE_METHODS`, for ratings `RATING_METHODS`):
            `aggregated` trains on the aggregation's posterior or estimate, every other on the annotators' labels. All
            other keys are hyperparameters of that method.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = "crowdsourced-layer"

    @property
    def arguments(self) -> dict[str, Any]:
        """The method's own hyperparameters, those that are set."""
        return dict(self.model_extra or {})


class TrainingConfig(_Section):
    """The training loop.

    Attributes:
        epochs: passes over the training split; where not set, chosen by the number of tasks (see
            `crowdzoo.training.length`) and written into the log.
        batch_size: tasks in a batch; likewise.
        learning_rate: Adam's step size.
    """

    epochs: Size | None = None
    batch_size: Size | None = None
    learning_rate: Annotated[float, _number(0, 1000, above=True)] = 1e-3


class EvaluationConfig(_Section):
    """When a model is good enough to be pushed.

    Attributes:
        tolerance: how far accuracy (F1, R²) may fall below that of the last pushed model (0.01 is one point).
        minimum_accuracy: the least accuracy that any pushed classifier must have.
        minimum_f1: the least F1 of spans that any pushed tagger must have.
        minimum_r2: the least R² that any pushed regressor must have; at 0, the default, it is at least as good as one
            and the same number for every task.
    """

    tolerance: Fraction = 0.0
    minimum_accuracy: Fraction = 0.0
    minimum_f1: Fraction = 0.0
    minimum_r2: Fraction = 0.0


class OutputConfig(_Section):
    """Where results go.

    Attributes:
        root: folder of metadata, artifacts and logs.
        serving: folder of pushed models, one subfolder a version; `<root>/serving` where not set.
    """

    root: LocalPath
    serving: LocalPath

    @field_validator("root", "serving")
    @classmethod
    def _no_pattern(cls, path: Path) -> Path:
        if set("*?[") & set(str(path)):
            raise ValueError("should not hold any of * ? [, which Beam takes for patterns")
        return path


# Beam's own names; Beam itself is slow to import, and a configuration is checked without it
BEAM_RUNNERS = (
    "DataflowRunner",
    "DirectRunner",
    "FlinkRunner",
    "FnApiRunner",
    "PortableRunner",
    "PrismRunner",
    "SparkRunner",
    "SwitchingDirectRunner",
)


class BeamConfig(_Section):
    """What runs the Beam steps.

    Attributes:
        runner: name of a Beam runner, or the dotted name of a runner's class.
        options: further Beam options as on a command line, e.g. `--direct_num_workers=2`.
    """

    runner: str = Field(default="FnApiRunner", min_length=1)
    options: tuple[str, ...] = ()

    @field_validator("runner")
    @classmethod
    def _known(cls, runner: str) -> str:
        spelt = {name.lower().removesuffix("runner"): name for name in BEAM_RUNNERS}
        short = runner.lower().removesuffix("runner")
        if "." in runner or short in spelt:
            return spelt.get(short, runner)
        near = [spelt[match] for match in difflib.get_close_matches(short, spelt, 1)]
        raise ValueError(f"is not a Beam runner; there are {', '.join(BEAM_RUNNERS)}." + _did_you_mean(near))

    @field_validator("options")
    @classmethod
    def _options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        for option in options:
            if not option.startswith("--"):
                raise ValueError(
                    f"holds {short_repr(option)}; each is one argument that begins with --, like --name=value"
                )
            if option.split("=")[0] == "--runner":
                raise ValueError("holds --runner; set beam.runner instead")
        return options


class PipelineConfig(_Section):
    """Everything that a run of the pipeline depends on. Paths are absolute once loaded.

    Attributes:
        name: name of the pipeline in metadata, and of the served model.
        task: kind of label: `classification`, `sequence` for tagged sentences, or `regression` for ratings.
        seed: seed of everything random.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
    task: Literal["classification", "sequence", "regression"] = "classification"
    seed: Annotated[int, _integer(0, 2**31 - 1)] = 0
    data: DataConfig
    aggregation: AggregationConfig
    model: ModelConfig = ModelConfig()
    method: MethodConfig = MethodConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    output: OutputConfig
    beam: BeamConfig = BeamConfig()

    @model_validator(mode="before")
    @classmethod
    def _aggregation_of_the_task(cls, values: Any) -> Any:
        """Fills in the method of aggregation, whose default the task decides."""
        if not isinstance(values, Mapping):
            return values
        task, given = values.get("task", "classification"), values.get("aggregation")
        known = TASKS.get(task) if isinstance(task, str) else None
        if given is not None and not isinstance(given, Mapping):
            return values  # refused as what it is
        default = (known or TASKS["classification"]).aggregation
        return {**values, "aggregation": {"method": default, **(given or {})}}

    @model_validator(mode="after")
    def _fits_the_task(self) -> "PipelineConfig":
        known = TASKS[self.task]
        if self.base not in known.bases:
            raise ValueError(f"model.base '{self.base}' is not for task {self.task}; it is {' or '.join(known.bases)}")
        owner = f"task {self.task}" if self.base == known.bases[0] else f"base {self.base}"
        for section, allowed in {**known.keys, "model": ("base", *BASES[self.base])}.items():
            strange = sorted(getattr(self, section).model_fields_set - set(allowed))
            if strange:
                raise ValueError(f"{section}.{strange[0]} is not for {owner}, where {section} has {', '.join(allowed)}")
        if self.base == "text-regressor" and self.model.hidden is not None and len(self.model.hidden) != 1:
            raise ValueError(
                f"model.hidden {list(self.model.hidden)} is not for base text-regressor, which has one hidden layer: "
                "give a list of one, such as [64]"
            )
        missing = [key for key in known.files if getattr(self.data, key) is None]
        if self.data.dataset is None and missing:
            raise ValueError(
                f"data needs {' and '.join(repr(key) for key in known.files)}, or 'dataset' (the name of a shipped set)"
            )
        return self

    @property
    def base(self) -> str:
        """The base's name."""
        return self.model.base or TASKS[self.task].bases[0]

    @property
    def base_arguments(self) -> dict[str, Any]:
        """The base and those of the model's settings that it has."""
        defaults = BASES[self.base]
        given = self.model.model_dump(mode="json", include=set(defaults))
        arguments = {name: default if given[name] is None else given[name] for name, default in defaults.items()}
        if self.base == "text-regressor" and arguments["hidden"] is not None:
            (arguments["hidden"],) = arguments["hidden"]
        return {"base": self.base, **arguments}

    @property
    def minimum(self) -> float:
        """The least value of the task's metric that any pushed model must have."""
        return getattr(self.evaluation, TASKS[self.task].minimum)


@dataclass(frozen=True)
class _Task:
    """What belongs to a task: bases, keys of sections that it has, files that it needs, bar, default of aggregation."""

    bases: tuple[str, ...]
    keys: Mapping[str, tuple[str, ...]]
    files: tuple[str, ...]
    minimum: str
    aggregation: str


# What each base can be told, and what it is without
BASES: dict[str, dict[str, Any]] = {
    "feature-classifier": {"hidden": [128], "dropout": 0.5, "batch_normalization": False},
    "feature-regressor": {"hidden": [128], "dropout": 0.5, "batch_normalization": False},
    "text-regressor": {
        "form": "convolutional",
        "embedding": 64,
        "filters": 128,
        "hidden": None,
        "dropout": 0.5,
        "max_words": 20_000,
        "min_texts": 1,
        "max_length": None,
    },
    "sequence-tagger": {
        "dropout": 0.5,
        "embedding": 100,
        "filters": 512,
        "units": 50,
        "bidirectional": False,
        "characters": False,
        "crf": False,
    },
}

TASKS = {
    "classification": _Task(
        ("feature-classifier",),
        {
            "data": ("dataset", "annotations", "instances", "classes", "on_bad_rows", "on_duplicate", "eval_fraction"),
            "evaluation": ("tolerance", "minimum_accuracy"),
        },
        ("annotations", "instances"),
        "minimum_accuracy",
        "dawid-skene",
    ),
    "sequence": _Task(
        ("sequence-tagger",),
        {
            "data": ("dataset", "annotations", "gold", "scheme", "classes", "on_bad_tags", "eval_fraction"),
            "evaluation": ("tolerance", "minimum_f1"),
        },
        ("annotations",),
        "minimum_f1",
        "bsc-seq",
    ),
    "regression": _Task(
        ("feature-regressor", "text-regressor"),
        {
            "data": (
                "dataset",
                "annotations",
                "instances",
                "low",
                "high",
                "on_bad_rows",
                "on_duplicate",
                "eval_fraction",
            ),
            "evaluation": ("tolerance", "minimum_r2"),
        },
        ("annotations", "instances"),
        "minimum_r2",
        "rating-em",
    ),
}


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> PipelineConfig:
    """Reads and checks a pipeline's configuration.

    Relative paths in the file are relative to the file's folder; those in `overrides`, and the default
    `output.root` of `runs/<name>`, are relative to the current folder. Checks that input files exist and
    have the columns they need, and that method names and their arguments are known.

    Args:
        path: a YAML file.
        overrides: values that replace the file's, by dotted key: `{"training.epochs": 5}`.

    Returns:
        The checked configuration.

    Raises:
        ConfigError: names the file, each bad key, its value and what to do; ten are shown, the rest counted.
    """
    path = Path(path)
    values = read_yaml(path)
    if not isinstance(values, dict):
        what = "is empty" if values is None else f"holds a {type(values).__name__}"
        raise ConfigError(f"{path}: {what}; a configuration is a mapping that begins like 'name: labelme'.")
    _resolve_paths(values, path.parent)
    for key, value in (overrides or {}).items():
        _override(values, key, value)
    _fill_output(values)
    _resolve_paths(values, Path.cwd())
    try:
        # a section without lines is None to YAML
        config = PipelineConfig.model_validate({key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        problems = [problem for problem in error.errors() if problem["type"] != "too_short" or not problem["input"]]
        raise _config_error(path, [_sentence(problem) for problem in problems]) from None
    problems = outside_problems(config)
    if problems:
        raise _config_error(path, problems)
    return config


_PATH_KEYS = (
    ("data", "annotations"),
    ("data", "instances"),
    ("data", "gold"),
    ("output", "root"),
    ("output", "serving"),
)


def _resolve_paths(values: dict[str, Any], base: Path) -> None:
    for section, key in _PATH_KEYS:
        inside = values.get(section)
        if isinstance(inside, dict) and isinstance(inside.get(key), str | Path) and str(inside[key]).strip():
            inside[key] = _resolved(str(inside[key]).strip(), base)


def _resolved(path: str, base: Path) -> str:
    """An absolute path; what is none, such as `gs://bucket`, stays and is refused with its key."""
    if scheme_of(path) is not None:
        return path
    try:
        return str((base / Path(path).expanduser()).absolute())
    except RuntimeError:  # ~user where there is no such user
        return str((base / path).absolute())


_DEEPEST_KEY = 10


def _override(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    if len(sections) > _DEEPEST_KEY:
        raise ConfigError(
            f"{shorten(key)}: has {len(sections) + 1:,} parts; no setting has more than {_DEEPEST_KEY + 1}."
        )
    inside = values
    for section in sections:
        if inside.get(section) is None:
            inside[section] = {}
        inside = inside[section]
        if not isinstance(inside, dict):
            raise ConfigError(f"{key}: '{section}' holds a value, not a section, so nothing below it can be set.")
    inside[last] = value


def _fill_output(values: dict[str, Any]) -> None:
    """Sets the default folders: `runs/<name>` here, and `serving` in it."""
    output = values.setdefault("output", {})
    if output is None:
        output = values["output"] = {}
    if isinstance(output, dict):
        if output.get("root") is None:
            output["root"] = str(Path("runs") / str(values.get("name", "crowdzoo")))
        if output.get("serving") is None and isinstance(output["root"], str | Path):
            output["serving"] = str(Path(output["root"]) / "serving")


_WANTED = {
    "model_type": "a section: lines of 'key: value', indented",
    "tuple_type": "a list in square brackets, with commas between",
    "string_type": "text; put quotes round it",
    "path_type": "a path",
}


def _sentence(problem: Mapping[str, Any]) -> str:
    """One of pydantic's problems as 'key: value, what is wrong, and the way out'."""
    key = ".".join(str(part) for part in problem["loc"])
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        known = _known_keys(problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, 1)
        return f"{key}: no such key." + (_did_you_mean(near) or f" Known here: {', '.join(known)}.")
    if kind == "missing":
        return f"{key}: is missing."
    value = problem["input"]
    shown = "" if isinstance(value, dict) and kind != "tuple_type" else f"{short_repr(value)} "
    if kind == "literal_error":
        choices = [choice.strip(" '") for choice in context["expected"].replace(" or ", ", ").split(",")]
        spelt = {choice.lower(): choice for choice in choices}
        near = [spelt[match] for match in difflib.get_close_matches(short_repr(value).strip("'").lower(), spelt, 1)]
        return f"{key}: {shown}is not one of {', '.join(choices)}." + _did_you_mean(near)
    if kind in _WANTED:
        return f"{key}: {shown}should be {_WANTED[kind]}."
    if kind == "string_pattern_mismatch":
        return f"{key}: {shown}should begin with a letter and hold letters, digits, - and _ only (63 at most)."
    reason = str(context.get("error", "")) if kind == "value_error" else problem["msg"].replace("Input", "", 1).strip()
    reason = reason.removesuffix(".")
    place = f"{key}: " if key else ""  # what sections have to do with each other names its keys itself
    return f"{place}{shown}{reason[0].lower() + reason[1:]}" + ("" if reason.endswith("?") else ".")


def _known_keys(sections: Sequence[str | int]) -> list[str]:
    model: Any = PipelineConfig
    for section in sections:
        model = model.model_fields[section].annotation
    return list(model.model_fields)


def _did_you_mean(near: Sequence[str]) -> str:
    return f" Did you mean '{near[0]}'?" if near else ""


def _config_error(path: Path, problems: Sequence[str]) -> ConfigError:
    if len(problems) == 1:
        return ConfigError(f"{path}, {problems[0]}")
    lines = [f"{path}: {len(problems)} settings cannot be used.", *(f"  {problem}" for problem in problems[:SHOWN])]
    if len(problems) > SHOWN:
        lines.append(f"  ... and {len(problems) - SHOWN:,} more")
    return ConfigError("\n".join(lines))
