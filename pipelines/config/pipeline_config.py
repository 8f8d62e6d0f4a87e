"""The whole configuration, and what its sections have to do with each other."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from crowdzoo.pipelines.config.kinds import BASES, TASKS
from crowdzoo.pipelines.config.sections import (
    AggregationConfig,
    BeamConfig,
    DataConfig,
    EvaluationConfig,
    MethodConfig,
    ModelConfig,
    OutputConfig,
    Section,
    TrainingConfig,
)
from crowdzoo.pipelines.config.values import Seed

__all__ = ["PipelineConfig"]


class PipelineConfig(Section):
    """Everything that a run of the pipeline depends on. Paths are absolute once loaded.

    Attributes:
        name: name of the pipeline in metadata, and of the served model.
        kind: of label, the file's key `task`: `classification`, `sequence` for tagged sentences, or `regression` for
            ratings.
        seed: seed of everything random.
    """

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
    kind: Annotated[Literal["classification", "sequence", "regression"], Field(alias="task")] = "classification"
    seed: Seed = 0
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
    def _default_aggregation(cls, values: Any) -> Any:
        """Fills in the method of aggregation, whose default depends on the kind of label."""
        if not isinstance(values, Mapping):
            return values
        kind, given = values.get("task", values.get("kind")), values.get("aggregation")
        known = TASKS.get(kind) if isinstance(kind, str) else None
        if given is not None and not isinstance(given, Mapping):
            return values  # refused as what it is
        default = (known or TASKS["classification"]).aggregation
        return {**values, "aggregation": {"method": default, **(given or {})}}

    @model_validator(mode="after")
    def _fits_together(self) -> "PipelineConfig":
        known = TASKS[self.kind]
        if self.base not in known.bases:
            raise ValueError(f"model.base '{self.base}' is not for task {self.kind}; it is {' or '.join(known.bases)}")
        owner = f"task {self.kind}" if self.base == known.bases[0] else f"base {self.base}"
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
        return self.model.base or TASKS[self.kind].bases[0]

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
        return getattr(self.evaluation, TASKS[self.kind].minimum)
