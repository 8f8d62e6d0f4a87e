"""YAML for the pipeline: the core schema of YAML 1.2, no repeated keys, and no expansion beyond a limit."""

import json
import os
import re
from typing import Any

import yaml

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.text import MAX_CHARACTERS, configuration_text

MAX_DEPTH = 50
_INT64 = 1 << 63
_TAG = "tag:yaml.org,2002:"


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Reads a YAML file.

    Plain scalars are those of YAML 1.2's core schema: `010` is ten and `yes`, `no`, `on`, `off` and `1:30` are text,
    while PyYAML would read eight, booleans and ninety.

    Args:
        path: a regular file in UTF-8.

    Returns:
        Dictionaries with text as keys, lists, text, integers of 64 bits, floats, booleans and None.

    Raises:
        ConfigError: no regular file, not UTF-8, not YAML, a key that appears twice (names both lines) or is not text, a
            tag beyond the core schema, nesting deeper than 50 levels, more than 256 KiB of text (with aliases
            expanded), an integer beyond 64 bits, or a NUL or half a surrogate pair in text; the message names file and
            place.
    """
    return _parsed(configuration_text(path), os.fspath(path))


def read_value(text: str, name: str) -> Any:
    """Reads one value as in a YAML file, for an option such as `--set training.epochs=20`.

    Args:
        text: the value.
        name: the option, for messages.

    Raises:
        ConfigError: as `read_yaml`.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"{name}: the value is larger than 256 KiB, which no setting is.")
    return _parsed(text, name)


def _parsed(text: str, name: str) -> Any:
    try:
        node = yaml.compose(text, Loader=_Loader)
        return None if node is None else _Values().of(node, 1)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        reasons = (
            error.context if error.context == "expected a single document in the stream" else None,
            error.problem,
        )
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{name}{place}: not valid YAML: {', '.join(filter(None, reasons))}.") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"{name}, line {line}: not valid YAML: the character U+{ord(text[error.position]):04X} is not allowed."
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {str(error).splitlines()[0]}.") from None
    except (ValueError, OverflowError):  # PyYAML passes the number in \U to chr
        raise ConfigError(f"{name}: not valid YAML: an escape such as \\U00110000 is not a character.") from None


def yaml_text(value: object) -> str:
    """Writes a value in one line, as read by `read_value`."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    text = text.removesuffix("...\n").strip()
    return json.dumps(value, ensure_ascii=False) if "\n" in text else text


class _Loader(yaml.SafeLoader):
    """PyYAML's parser with the core schema of YAML 1.2 (its section 10.3.2)."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012, of PyYAML

    def __init__(self, stream: Any):
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth >= MAX_DEPTH:
            raise _problem(f"nested deeper than {MAX_DEPTH} levels", self.peek_event())
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


for _kind, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z", list("-+0123456789")),
    (
        "float",
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(_pattern), _first)


class _Dumper(yaml.SafeDumper):
    """Quotes text that `_Loader` would read as another type."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


class _Values:
    """Makes values from a document's nodes, and counts characters to limit the expansion of aliases."""

    def __init__(self) -> None:
        self._left = MAX_CHARACTERS

    def of(self, node: yaml.Node, depth: int) -> Any:
        """The value of a node and of everything below it."""
        self._left -= 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        if self._left < 0:
            raise _problem("aliases make more than 256 KiB of this document; write it without aliases", node)
        if depth > MAX_DEPTH:
            raise _problem(f"nested deeper than {MAX_DEPTH} levels, or an alias is inside what it names", node)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.of(child, depth + 1) for child in node.value]
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        raise _problem(f"tag {short_repr(node.tag)} is not supported here", node)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self.of(key_node, depth + 1)
            if not isinstance(key, str):
                raise _problem(f"the key {short_repr(key)} is not text; put quotes round it", key_node)
            line = key_node.start_mark.line + 1
            if key in values:
                raise _problem(
                    f"the key {short_repr(key)} appears twice, in line {lines[key]} and in line {line}", key_node
                )
            values[key] = self.of(value_node, depth + 1)
            lines[key] = line
        return values


def _scalar(node: yaml.ScalarNode) -> Any:
    tag, text = node.tag.removeprefix(_TAG), node.value
    if tag == "str":
        if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text):
            raise _problem(f"text {short_repr(text)} has a NUL or half a surrogate pair in it", node)
        return text
    if tag == "null":
        return None
    if tag == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if tag in ("int", "float"):
        try:
            number = _integer(text) if tag == "int" else float(text.replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            raise _problem(f"{short_repr(text)} is not a number", node) from None
        if isinstance(number, int) and not -_INT64 <= number < _INT64:
            raise _problem(f"{short_repr(text)} is beyond 64 bits; put quotes round a name of digits", node)
        return number
    raise _problem(f"tag {short_repr(node.tag)} is not supported here", node)


def _integer(text: str) -> int:
    digits = text.lstrip("+-").removeprefix("0o").removeprefix("0x").lstrip("0")
    if len(digits) > 30:  # Python raises its own ValueError for 4,300 digits
        return _INT64
    return int(text, 8) if text.startswith("0o") else int(text, 16) if text.startswith("0x") else int(text)


def _problem(what: str, node: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark)
