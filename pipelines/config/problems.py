"""Turns pydantic's errors about a configuration into sentences."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from crowdzoo.errors import SHOWN, ConfigError, did_you_mean, short_repr, unknown
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import placed

_WANTED = {
    "model_type": "a section (lines of 'key: value', indented)",
    "tuple_type": "a list in square brackets, with commas between",
    "string_type": "text (put quotes round it)",
    "path_type": "a path",
}


def config_error(path: Path, problems: Sequence[str]) -> ConfigError:
    """One error about all problems; ten are shown, the rest are counted."""
    if len(problems) == 1:
        return ConfigError(f"{path}, {problems[0]}")
    lines = [f"{path}: {len(problems)} settings cannot be used.", *(f"  {problem}" for problem in problems[:SHOWN])]
    if len(problems) > SHOWN:
        lines.append(f"  ... and {len(problems) - SHOWN:,} more")
    return ConfigError("\n".join(lines))


def sentences(error: ValidationError) -> list[str]:
    """A sentence for each problem with key, reason and given value."""
    problems = error.errors()
    # a tuple with invalid values is also reported as too short
    return [_sentence(problem) for problem in problems if problem["type"] != "too_short" or not problem["input"]]


def _sentence(problem: Mapping[str, Any]) -> str:
    *sections, last = problem["loc"] or ("",)
    wrong, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    if wrong == "extra_forbidden":
        return f"{_place(sections)}{unknown('key', last, _known_keys(sections))}"
    place = _place(problem["loc"])
    if wrong == "missing":
        return f"{place}is missing."
    hint = ""
    if wrong == "value_error":
        reason = str(context["error"])
        if not reason.startswith("must "):  # a complete message, which names keys and values itself
            return placed(place, reason) + ("" if reason.endswith(("?", ".")) else ".")
    elif wrong == "literal_error":
        choices = [choice.strip(" '") for choice in context["expected"].replace(" or ", ", ").split(",")]
        reason, hint = f"must be one of {', '.join(choices)}", did_you_mean(value, choices)
    elif wrong == "string_pattern_mismatch":
        reason = "must begin with a letter and hold letters, digits, - and _ only (63 at most)"
    elif wrong in _WANTED:
        reason = f"must be {_WANTED[wrong]}"
    else:
        reason = problem["msg"].replace("Input should", "must")
    return f"{place}{reason}, got {short_repr(value)}.{hint}"


def _place(keys: Iterable[str | int]) -> str:
    return ".".join(map(str, keys)) + ": " if keys else ""


def _known_keys(sections: Sequence[str | int]) -> list[str]:
    model: Any = PipelineConfig
    for section in sections:
        model = model.model_fields[section].annotation
        model = next((option for option in get_args(model) if option is not type(None)), model)  # of a section or None
    return [field.alias or name for name, field in model.model_fields.items()]
