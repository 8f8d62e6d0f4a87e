"""docs/methods.md: its code runs as it stands."""

import re
from pathlib import Path

import keras
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "methods.md"
TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the guide is about no backend in particular")
def test_the_code_of_the_guide_runs_and_gives_the_shapes_it_names():
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names = {}
    exec(code.replace('model.save("model.keras")\n', ""), names)
    model, test, train = names["model"], names["test"], names["train"]
    instances = names["labelme"].instances
    shapes = dict(re.findall(r"model\.(\w+)\(.*# .*?\[([\d, ]+)\]", code))
    assert str(model.predict(instances[test], verbose=0).shape) == f"({shapes['predict']})"
    assert str(model.annotator_confusions().shape) == f"({shapes['annotator_confusions']})"
    assert model.posteriors(instances[train], names["annotations"], tasks=names["ids"]).shape == (len(train), 8)
