"""The public names are those of public_api.txt; `python tests/test_public_api.py` writes it after a change."""

import importlib
import inspect
from pathlib import Path

import pytest

import crowdzoo

LIST = Path(__file__).with_name("public_api.txt")
# a name that is removed or renamed here needs a deprecation first, see CONTRIBUTING.md
INNER = [name for name in crowdzoo.__all__ if name in crowdzoo._MODULES]
MODULES = ["crowdzoo", *(f"crowdzoo.{name}" for name in INNER)]


def public_names() -> list[str]:
    """`module.name` of each public name, without modules."""
    names = []
    for module in MODULES:
        listed = importlib.import_module(module).__all__
        names += [f"{module}.{name}" for name in listed if name not in INNER and name[0] != "_"]
    return sorted(names)


def test_the_public_names_are_those_of_the_list():
    assert public_names() == LIST.read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_public_names_only_and_each_of_them_is_there(name):
    module = importlib.import_module(name)
    assert dir(module) == sorted(module.__all__)
    assert [each for each in module.__all__ if not hasattr(module, each)] == []


@pytest.mark.parametrize("name", MODULES[1:])
def test_a_public_name_is_not_hidden_by_a_module_of_the_same_name_once_that_is_loaded(name):
    module = importlib.import_module(name)
    for each in module.__all__:
        getattr(module, each)  # loads its module, which Python makes an attribute of the package
        assert not inspect.ismodule(getattr(module, each)), each


def test_what_tfx_looks_up_is_there_without_being_listed():
    assert "AnnotationsArtifact" not in dir(crowdzoo)
    pytest.importorskip("tfx")
    assert crowdzoo.AnnotationsArtifact.TYPE_NAME


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
