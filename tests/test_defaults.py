"""Defaults of public constructors: saved results, docs and users' configurations depend on them.

A default that is changed on purpose is changed here too:  python tests/test_defaults.py
"""

import inspect
import json
import re
from pathlib import Path

import pytest

from crowdzoo import aggregation, layers, losses, models, optimizers
from crowdzoo.aggregation import registry
from crowdzoo.commands.train import describe
from crowdzoo.kinds import kind_of
from crowdzoo.serving import Limits

KNOWN = Path(__file__).with_name("defaults.json")
PAGE = Path(__file__).parents[1] / "docs" / "serving.md"


def defaults():
    """Class -> argument -> default, of everything public that is constructed with settings."""
    found = {}
    for package in (aggregation, layers, losses, models, optimizers):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isclass(value) and not issubclass(value, Exception):
                found[f"{package.__name__}.{name}"] = inspect.signature(value.__init__).parameters
    for method in {method for methods in registry.METHODS_OF.values() for method in methods.own.values()}:
        found[f"crowdzoo.aggregation.{method.__name__}"] = inspect.signature(method.__init__).parameters
    known = {
        name: {key: repr(each.default) for key, each in parameters.items() if each.default is not each.empty}
        for name, parameters in found.items()
    }
    return {name: known[name] for name in sorted(known) if known[name]}


def test_defaults_are_the_known_ones():
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    found = defaults()
    assert [*found] == [*known]
    for name, arguments in found.items():
        assert arguments == known[name], name


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("classification", "ccem"),
        ("regression", "crowdsourced-layer"),
        ("sequence", "crowdsourced-layer"),
        ("preference", "pair-annotators"),
    ],
)
def test_python_and_the_command_line_take_the_same_deep_method_for_who_names_none(kind, method):
    of_kind = kind_of(kind)
    assert of_kind.training.default == method  # which the command line and the pipeline take
    for base in of_kind.training.bases:
        kinds = {} if kind == "sequence" else {"kind": kind}
        assert of_kind.training.settings_class(base)(**kinds).method == method
        assert of_kind.training.settings_class(base)(method="aggregated", **kinds).method == "aggregated"
    from command_line import actions_of

    [told] = [action.help for action in actions_of(describe) if action.dest == "method"]
    names = {"classification": "default", "regression": "ratings", "sequence": "sentences", "preference": "preferences"}
    assert re.search(rf"{names[kind]}\b[^,;]*\b{method}\b", told)


def test_the_limits_of_a_server_are_those_of_the_page():
    limits, units = Limits(), {"": 1, "MiB": 1 << 20, "GiB": 1 << 30}
    told = {}
    table = PAGE.read_text(encoding="utf-8").split("### Limits")[1].split("##")[0]
    for names, values in re.findall(r"^\| ((?:`\w+`(?:, )?)+)[^|]*\| ([^|]*) \|", table, flags=re.M):
        names = re.findall(r"`(\w+)`", names)
        told |= dict(zip(names, values.split(", ") if len(names) > 1 else [values], strict=True))
    assert {*told} == {*vars(limits)}
    del told["threads"]  # depends on the processors
    for name, value in told.items():
        number, _, unit = value.partition(" ")
        assert getattr(limits, name) == int(number) * units[unit], name


if __name__ == "__main__":
    KNOWN.write_text(json.dumps(defaults(), indent=1) + "\n", encoding="utf-8")
