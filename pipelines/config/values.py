"""The types of single settings."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from crowdzoo.checks.constraints import Flag, Number, Rule
from crowdzoo.errors import ConfigError
from crowdzoo.files.paths import local_path, scheme_of

__all__ = [
    "Bool", "ClassName", "Count", "Dropout", "EvalFraction", "Fraction", "LearningRate", "LocalPath", "Nats", "Place",
    "Rating", "Resource", "Seed", "Size", "Trials",
]  # fmt: skip


def _follows(rule: Rule, text: str = "") -> BeforeValidator:
    """Checks a value by a rule; a float that is an integer, such as 1e4, counts as one."""

    def check(value: Any) -> Any:
        try:
            return rule.checked("", "", int(value) if isinstance(value, float) and value.is_integer() else value)
        except ConfigError:
            raise ValueError(f"must be {text or rule}") from None

    return BeforeValidator(check)


def _class_name(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be text (put quotes round true and false)")
    return str(value) if isinstance(value, int | float) else value


def _local_path(value: Any) -> Any:
    return local_path(str(value).strip()) if isinstance(value, str | Path) else value


def _place(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str | Path):
        raise ValueError("must be a path")
    remote = bool((info.context or {}).get("kubeflow")) and scheme_of(str(value).strip()) is not None
    return str(value).strip() if remote else _local_path(value)


Bool = Annotated[bool, _follows(Flag(), "true or false, without quotes")]
Size = Annotated[int, _follows(Number(1, 1_000_000, whole=True))]
Trials = Annotated[int, _follows(Number(2, 10_000, whole=True))]
Count = Annotated[int, _follows(Number(0, 1000, whole=True))]
Resource = Annotated[float, _follows(Number(0, 100_000, above=True), "a number above 0 and at most 100,000")]
Seed = Annotated[int, _follows(Number(0, 2**31 - 1, whole=True))]
Fraction = Annotated[float, _follows(Number(0, 1))]
Nats = Annotated[float, _follows(Number(0, 1000), "a number from 0 to 1000")]
EvalFraction = Annotated[float, _follows(Number(0, 1, above=True, below=True))]
Dropout = Annotated[float, _follows(Number(0, 1, below=True), "a number from 0 to below 1")]
LearningRate = Annotated[float, _follows(Number(0, 1000, above=True), "a number above 0 and at most 1000")]
Rating = Annotated[float, _follows(Number(-1e30, 1e30), "a number from -1e30 to 1e30")]
ClassName = Annotated[str, BeforeValidator(_class_name), Field(min_length=1)]
LocalPath = Annotated[Path, BeforeValidator(_local_path)]
# A local path, or for Kubeflow (the validation's context) a URI
Place = Annotated[Path | str, BeforeValidator(_place)]
