"""The types of single settings."""

from dataclasses import Field as DataclassField
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BeforeValidator, Field, ValidationInfo

from crowdzoo.checks.constraints import Choice, Flag, Number, Rule
from crowdzoo.errors import ConfigError
from crowdzoo.files.paths import local_path, scheme_of
from crowdzoo.layers.ranges import HIDDEN, UNITS


def _follows(rule: Rule, text: str = "") -> BeforeValidator:
    """Checks a value by a rule; a float with an integer value, such as 1e4, is accepted as an integer."""

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
Count = Annotated[int, _follows(Number(0, 1000, whole=True))]
Resource = Annotated[float, _follows(Number(0, 100_000, above=True), "a number above 0 and at most 100,000")]
Seed = Annotated[int, _follows(Number(0, 2**31 - 1, whole=True))]
Fraction = Annotated[float, _follows(Number(0, 1))]
Nats = Annotated[float, _follows(Number(0, 1000), "a number from 0 to 1000")]
EvalFraction = Annotated[float, _follows(Number(0, 1, above=True, below=True))]
Rating = Annotated[float, _follows(Number(-1e30, 1e30), "a number from -1e30 to 1e30")]
ClassName = Annotated[str, BeforeValidator(_class_name), Field(min_length=1)]
LocalPath = Annotated[Path, BeforeValidator(_local_path)]
# A local path, or for Kubeflow (the validation's context) a URI
Place = Annotated[Path | str, BeforeValidator(_place)]


def keys_of(*classes: type, without: type | None = None, unset: bool = False) -> dict[str, Any]:
    """Keys of a section from the fields of classes of settings, where they are declared.

    Args:
        *classes: frozen dataclasses; for repeated fields the first is used.
        without: a dataclass whose fields are left out.
        unset: whether missing keys are None, whatever the setting's default.

    Returns:
        Name -> pydantic's type and default.
    """
    passed = set() if without is None else {field.name for field in fields(without)}
    keys: dict[str, Any] = {}
    for cls in classes:
        hints = get_type_hints(cls)
        for field in fields(cls):
            if field.name not in passed and field.name not in keys:
                keys[field.name] = (_type_of(field, hints[field.name]) | None, None if unset else field.default)
    return keys


def _type_of(setting: DataclassField[Any], hint: Any) -> Any:
    rule = setting.metadata.get("rule")
    if isinstance(rule, Number):
        return Annotated[int if rule.whole else float, _follows(replace(rule, optional=False))]
    if isinstance(rule, Choice):
        return Literal[tuple(rule.words)]
    if isinstance(rule, Flag):
        return Bool
    if rule is HIDDEN:
        return Annotated[tuple[Annotated[int, _follows(UNITS)], ...], Field(max_length=100)]
    return hint
