"""The examples in docstrings run."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).resolve().parents[1]
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "crowdzoo").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("place", ["aggregation", "layers", "losses", "metrics", "models", "optimizers"])
def test_every_public_class_has_an_example(place):
    module = importlib.import_module(f"crowdzoo.{place}")
    public = {name: getattr(module, name) for name in module.__all__}
    classes = {name: value for name, value in public.items() if inspect.isclass(value) or place == "metrics"}
    assert classes
    assert [name for name, value in classes.items() if ">>> " not in (value.__doc__ or "")] == []


@pytest.mark.parametrize("name", WITH_EXAMPLES)
@pytest.mark.usefixtures("nothing_registered")
def test_the_examples_of_a_module_run(name):
    keras.utils.set_random_seed(0)
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(importlib.import_module(name), globs={}):
        for example in test.examples:
            example.source = re.sub(r"epochs=\d+", "epochs=2", example.source)
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
