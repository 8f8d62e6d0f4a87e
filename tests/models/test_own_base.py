"""A base model that a function of the user's makes: trained on any instances, or refused by what is wrong."""

import sys
import types

import keras
import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError
from crowdzoo.kinds import kind_of
from crowdzoo.training.bases import own_files, own_function, source_hash

if keras.backend.backend() != "tensorflow":
    pytest.skip("the command line and the pipeline train on TensorFlow", allow_module_level=True)

N, D, K, R = 40, 4, 3, 5
RNG = np.random.default_rng(0)
GOLD = RNG.integers(K, size=N)
VECTORS = (RNG.normal(size=(N, D)) / 4 + np.eye(K, D)[GOLD]).astype("float32") * 5 + 100
TEXTS = [f"{('good', 'bad', 'dull')[k]} film number {i}" for i, k in enumerate(GOLD)]
LABELS = np.where(RNG.random((N, R)) < 0.8, GOLD[:, None], RNG.integers(K, size=(N, R)))
CLASSES = Annotations.from_dense(LABELS, classes=np.arange(K))

PRELUDE = "import keras\nfrom keras import layers\n\n"
OF_VECTORS = """
def build(context, units=8):
    from crowdzoo.layers import Standardization

    x = inputs = context.inputs()
    x = layers.Dense(units, "relu")(Standardization()(x))
    end = layers.Dense(context.num_classes, "softmax") if context.num_classes else layers.Dense(1)
    return keras.Model(inputs, end(x) if context.head else x)
"""
OF_WORDS = """
def build(context):
    x = inputs = context.inputs()
    x = layers.GlobalAveragePooling1D()(layers.Embedding(context.encoder.num_words, 8)(x))
    return keras.Model(inputs, layers.Dense(context.num_classes, "softmax")(x))
"""
OF_STRINGS = """
def build(context):
    words = layers.TextVectorization(vocabulary=["good", "bad", "dull"], output_mode="multi_hot")
    return keras.Sequential([
        keras.Input((1,), dtype="string"), words, layers.Dense(context.num_classes, "softmax")
    ])
"""


def own(folder, text, name="bases.py"):
    (folder / name).write_text(PRELUDE + text)
    return f"{folder / name}:build"


def trained(reference, x, annotations, **given):
    kind = kind_of(annotations.kind)
    given = {"epochs": 12, "batch_size": 8, "learning_rate": 0.05, **given}
    settings = kind.training.settings(reference, seed=0, **given)
    return kind.training.train(settings, x, annotations)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "x", "instances"),
    [
        (OF_VECTORS, VECTORS, "feature vectors"),
        (OF_WORDS, TEXTS, "texts"),
        (OF_STRINGS, TEXTS, "texts"),
    ],
    ids=["vectors", "words", "strings"],
)
def test_a_base_of_ones_own_is_trained_exported_and_asked(source, x, instances, tmp_path):
    from crowdzoo.export import load_and_predict

    model, encoder = trained(own(tmp_path, source), x, CLASSES, instance_kind=instances)
    path = model.export(tmp_path / "1", classes=["a", "b", "c"], annotators=[str(r) for r in range(R)], encoder=encoder)
    answers = load_and_predict(path, x)
    assert (answers["label"] == GOLD).mean() > 0.9
    given = x if encoder is None else encoder.to_numpy(x)
    np.testing.assert_allclose(answers["probabilities"], model.predict(given, verbose=0), atol=1e-5)


def a_model(end, inputs="context.inputs()"):
    return f"def build(context):\n    x = inputs = {inputs}\n    return keras.Model(inputs, {end})\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def build(context):\n    return 3\n", r"returns int instead of a keras\.Model"),
        ("def build(context):\n    x = 1\n    return x / 0\n", r"bases\.py, line 6: ZeroDivisionError: division by"),
        ("import no_such_module\n", r"bases\.py, line 4: ModuleNotFoundError"),
        ("def build(:\n", "SyntaxError"),
        ("def built(context):\n    return 3\n", r"has no function 'build'\. Did you mean 'built'\?"),
        ("def build():\n    return 3\n", "TypeError: build"),
        (a_model("layers.Dense(7, 'softmax')(x)"), r"gives shape \[2, 7\] for 2 instances, not 3 classes: .*softmax"),
        (a_model("layers.Dense(3, bias_initializer='ones')(x)"), "sum to 3 for an instance, and probabilities sum to"),
        (a_model("layers.Dense(3, 'softmax')(x)", "keras.Input((9,))"), r"does not take a batch of feature vectors,"),
    ],
)
def test_what_does_not_fit_is_named(source, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        trained(own(tmp_path, source), VECTORS, CLASSES)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nowhere/base.py:build", "does not exist"),
        ("no_such_package.module:build", "there is no module 'no_such_package.module'"),
        ("json:", "write package.module:function or path/to/file.py:function"),
    ],
)
def test_a_function_that_is_not_there_is_refused_before_anything_is_imported(reference, message):
    with pytest.raises(ConfigError, match=message):
        own_files(reference)


def test_two_bases_and_a_changed_file_have_their_own_modules_of_one_name(tmp_path, monkeypatch):
    user = types.ModuleType("sizes")
    monkeypatch.setitem(sys.modules, "sizes", user)

    def units(folder, number=None, lazy=False):
        (tmp_path / folder).mkdir(exist_ok=True)
        if number is not None:
            (tmp_path / folder / "sizes.py").write_text(f"UNITS = {number}\n")
        imported = "from sizes import UNITS\n"
        source = f"def build():\n    {imported}    return UNITS\n" if lazy else f"{imported}def build(): return UNITS\n"
        (tmp_path / folder / "base.py").write_text(source)
        return own_function(f"{tmp_path / folder / 'base.py'}:build")

    first, second = units("a", 3), units("b", 4)
    assert (first(), second()) == (3, 4)
    assert units("a", 5)() == 5
    first, second = units("a", 3, lazy=True), units("b", 4, lazy=True)
    assert (first(), second(), first()) == (3, 4, 3)
    assert sys.modules["sizes"] is user
    assert not list(tmp_path.rglob("*.pyc"))


def test_settings_of_the_encoder_are_those_of_the_kind_of_instances():
    def settings(instances, **encoder):
        return kind_of("classification").training.settings("a:b", instance_kind=instances, encoder=encoder)

    assert settings("images", height=32, fit="stretch").encoder == {"height": 32, "fit": "stretch"}
    with pytest.raises(ConfigError, match=r"encoder: unknown setting 'hight': .* height, width, fit"):
        settings("images", hight=32)
    with pytest.raises(ConfigError, match="height must be"):
        settings("images", height=1)
    with pytest.raises(ConfigError, match="height: is not for feature vectors"):
        settings("feature vectors", height=32)


def test_the_hash_follows_the_modules_beside_the_function_and_not_their_place(tmp_path, monkeypatch):
    def write(folder, helper="UNITS = 3\n"):
        (folder / "mine" / "sub").mkdir(parents=True)
        (folder / "mine" / "__init__.py").write_text("")
        (folder / "mine" / "bases.py").write_text("import json\n\nfrom .sub import helper\n\ndef build(c): pass\n")
        (folder / "mine" / "sub" / "__init__.py").write_text("")
        (folder / "mine" / "sub" / "helper.py").write_text(helper)
        (folder / "mine" / "unused.py").write_text(helper)
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(folder)
        for name in [name for name in sys.modules if name.split(".")[0] == "mine"]:
            monkeypatch.delitem(sys.modules, name)
        sys.path_importer_cache.clear()
        files = {str(file.relative_to(folder)) for file in own_files("mine.bases:build")}
        assert files == {"mine/__init__.py", "mine/bases.py", "mine/sub/__init__.py", "mine/sub/helper.py"}
        return source_hash("mine.bases:build"), source_hash(f"{folder}/mine/sub/helper.py:f")

    folders = [tmp_path / name for name in "abc"]
    first, same = write(folders[0]), write(folders[1])
    changed = write(folders[2], "UNITS = 4\n")
    assert first == same
    assert first[0] != changed[0]
    assert first[1] != changed[1]
