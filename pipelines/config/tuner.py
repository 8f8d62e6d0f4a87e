"""The section that says which settings are searched for."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from crowdzoo.errors import short_repr, unknown
from crowdzoo.pipelines.config.sections import Section
from crowdzoo.pipelines.config.values import Trials

_WANTED = "must be a list of two values or more, or a range such as {min: 16, max: 128}"
_RANGE = ("min", "max", "step", "log")


def _dimension(value: Any) -> dict[str, Any]:
    """What a setting may be: `{"values": [...]}`, or a range with all its keys."""
    if isinstance(value, list | tuple):
        if len(value) < 2 or any(each == other for place, each in enumerate(value) for other in value[:place]):
            raise ValueError(f"{_WANTED}, no value twice, got {short_repr(value)}")
        return {"values": list(value)}
    if not isinstance(value, dict) or not {"min", "max"} <= {*value}:
        raise ValueError(f"{_WANTED}, got {short_repr(value)}")
    for key in value:
        if key not in _RANGE:
            raise ValueError(unknown("key of a range", str(key), _RANGE))
    low, high, step, log = value["min"], value["max"], value.get("step"), value.get("log", False)
    for number in (low, high, *([] if step is None else [step])):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(f"min, max and step must be numbers, got {short_repr(number)}")
    if not isinstance(log, bool):
        raise ValueError(f"log must be true or false, got {short_repr(log)}")
    if not low < high:
        raise ValueError(f"min must be below max, got {low} and {high}")
    if log and (low <= 0 or step is not None):
        raise ValueError("with log, min must be above 0, and there is no step")
    if step is not None and not 0 < step <= high - low:
        raise ValueError(f"step must be above 0 and at most max - min, got {step}")
    if not all(isinstance(number, int) for number in (low, high, *([] if step is None else [step]))):
        low, high, step = float(low), float(high), None if step is None else float(step)
    return {"min": low, "max": high, "step": step, "log": log}


Dimensions = dict[str, Annotated[dict[str, Any], BeforeValidator(_dimension)]]


class SearchConfig(Section):
    """The space that is searched: by section and setting a list of values, or a range.

    Attributes:
        model: of the base, such as `hidden: [[32], [64, 64]]`.
        method: hyperparameters of the method, such as `connection: [MW, VW]`.
        training: such as `learning_rate: {min: 0.0003, max: 0.03, log: true}`; with `step` the range has that grid.
    """

    model: Dimensions = Field(default={})
    method: Dimensions = Field(default={})
    training: Dimensions = Field(default={})

    @model_validator(mode="after")
    def _something(self) -> "SearchConfig":
        if not self.dimensions:
            raise ValueError("must have a setting to search for, such as training: {learning_rate: [0.001, 0.01]}")
        return self

    @property
    def dimensions(self) -> dict[str, dict[str, Any]]:
        """Dotted key -> `{"values": [...]}` or `{"min": …, "max": …, "step": …, "log": …}`."""
        return {
            f"{section}.{key}": given
            for section in ("model", "method", "training")
            for key, given in getattr(self, section).items()
        }


class TunerConfig(Section):
    """The search for settings before the training, by KerasTuner.

    Attributes:
        search: the space.
        trials: how many points of it are tried.
        algorithm: `random`, or `bayesian`, which learns from the trials before it.
        objective: what a trial is judged by, on tasks of train that it does not learn from: `annotations`, the
            likelihood of their annotations, or `gold`, the accuracy against their gold.
    """

    search: SearchConfig
    trials: Trials = 20
    algorithm: Literal["random", "bayesian"] = "random"
    objective: Literal["annotations", "gold"] = "annotations"
