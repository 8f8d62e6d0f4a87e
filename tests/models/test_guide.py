"""docs/methods.md: its code runs as it stands, and it lists what there is."""

import re
from pathlib import Path

import keras
import pytest

from crowdzoo.models import METHODS
from crowdzoo.training.methods import crowd_layer_class

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


def test_every_method_stands_in_the_table_with_its_layer():
    rows = re.findall(r"^\| `([\w-]+)` \| (?:`(\w+)`|none) \|", TEXT, re.M)
    assert [name for name, _ in rows if name not in METHODS] == []
    assert {name for name, _ in rows} == {*METHODS}
    for name, layer in rows:
        found = crowd_layer_class(name)
        assert (found.__name__ if found else "") == layer
