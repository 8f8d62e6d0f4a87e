"""Methods of packages and scripts: known by name everywhere, imported late, and refused with a reason."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import crowdzoo
from crowdzoo import datasets, plugins, saving
from crowdzoo.aggregation import MajorityVote, create
from crowdzoo.aggregation.registry import METHODS_OF
from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.reading.platforms.export import PLATFORMS
from crowdzoo.report.cards import method_cards
from crowdzoo.testing import check_aggregator, check_layer, simulated_crowd
from crowdzoo.training.bases import BASES, is_own, own_files, source_hash
from crowdzoo.training.methods import crowd_layer_class, methods_of

pytestmark = pytest.mark.usefixtures("nothing_registered")
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "own_method"
ROOT = EXAMPLE.parents[1]

PACKAGE = """
from crowdzoo.aggregation import MajorityVote, RatingMean
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.platform import Platform

class Mine(MajorityVote):
    '''A vote of one's own.'''

class MineOfRatings(RatingMean):
    pass

def make_net(context, units=3):
    import keras
    inputs = context.inputs()
    hidden = keras.layers.Dense(units)(inputs)
    return keras.Model(inputs, keras.layers.Dense(context.num_classes, activation="softmax")(hidden))

TOY = Platform(name="toy", title="Toy", suffixes=(".jsonl",), menu="", records=json_records,
               is_own=lambda entry: "says" in entry, questions=lambda entry: [("says", "class")], read=None)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with entry points where Python finds it, as pip would."""

    def put(name, points, source=PACKAGE, version="1.0", module=None):
        module = module or name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"[crowdzoo.{sort}]\n{name} = {value}\n" for sort, name, value in points]
        (info / "entry_points.txt").write_text("\n".join(lines))
        plugins._installed_on.cache_clear()
        return module

    monkeypatch.syspath_prepend(str(tmp_path))
    yield put
    plugins._installed_on.cache_clear()
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


def test_a_package_is_imported_when_its_name_is_asked_for_and_not_before(install):
    module = install("my-method", [("aggregators", "mine", "my_method:Mine"), ("bases", "net", "my_method:make_net")])
    assert type(create("dawid-skene")).__name__ == "DawidSkene"
    assert "majority-vote" in METHODS_OF["classification"]
    assert "ccem" in methods_of("classification")
    assert is_own("net")
    with pytest.raises(KeyError):
        METHODS_OF["classification"]["nine"]
    assert module not in sys.modules
    assert type(create("mine", voting="hard")).__name__ == "Mine"
    assert module in sys.modules


def test_the_command_line_the_cards_and_compare_know_a_package_by_its_name(install, tmp_path, capsys, refusal_of, here):
    install("my-method", [("aggregators", "mine", "my_method:Mine")])
    (tmp_path / "a.csv").write_text("task,annotator,label\n" + "".join(
        f"{task},{who},{'xy'[(task + (who == 'c')) % 2]}\n" for task in range(24) for who in "abc"
    ))  # fmt: skip
    assert cli.main(["aggregate", "a.csv", "--method", "mine", "--set", "voting=hard", "--out", "labels.csv"]) == 0
    assert (tmp_path / "labels.csv").read_text().count("\n") == 25
    (tmp_path / "g.csv").write_text("task,gold\n" + "".join(f"{task},{'xy'[task % 2]}\n" for task in range(24)))
    assert cli.main(["compare", "a.csv", "--gold", "g.csv", "--methods", "mine,wawa", "--out", "runs"]) == 0
    assert "mine" in capsys.readouterr().out
    assert cli.main(["methods", "mine", "--kind", "classification"]) == 0
    said = capsys.readouterr().out
    assert "my-method==1.0" in said
    assert "A vote of one's own." in said
    assert "Did you mean 'mine'?" in refusal_of("aggregate", "a.csv", "--method", "mien", "--out", "b.csv")
    (card,) = method_cards("sequence", "mine")
    assert (card.package, card.python) == ("my-method==1.0", "TokenAggregation('mine').fit(annotations)")


def test_a_method_is_offered_for_its_own_kind_of_labels(install):
    install("my-method", [("aggregators", "mean-too", "my_method:MineOfRatings")])
    assert type(create("mean-too", kind="regression")).__name__ == "MineOfRatings"
    assert "mean-too" in kind_of("regression").aggregation.methods()
    with pytest.raises(ConfigError, match="unknown aggregation method 'mean-too'"):
        create("mean-too")


def test_a_broken_package_is_named_with_its_reason_and_breaks_nothing_else(install):
    install("broken-one", [("aggregators", "bad", "broken_one:Bad")], "import nothing_of_that_name\n")
    said = (
        r"aggregator 'bad' of broken-one==1.0 \(broken_one:Bad\) cannot be used: ModuleNotFoundError: No module named "
        "'nothing_of_that_name'. Correct it, or uninstall it."
    )
    with pytest.raises(ConfigError, match=said):
        create("bad")
    assert create("wawa").fit(simulated_crowd()[0]).labels.shape == (60,)
    with pytest.warns(UserWarning, match=said):
        names = [*METHODS_OF["classification"]]
    assert "bad" not in names
    assert "wawa" in names


@pytest.mark.parametrize(
    ("group", "source", "ask", "said"),
    [
        ("aggregators", "Bad = 3", lambda: create("bad"), "a class with a method fit"),
        ("aggregators", "class Bad:\n  kind = 'regresion'\n  fit = print", lambda: create("bad"), "mean 'regression'"),
        ("aggregators", "import sys; sys.exit(3)", lambda: create("bad"), "SystemExit: 3"),
        ("layers", "class Bad: pass", lambda: crowd_layer_class("bad"), "a subclass of crowdzoo.layers.CrowdLayer"),
        ("platforms", "Bad = 3", lambda: PLATFORMS["bad"], "no attribute .suffixes"),
        ("datasets", "def Bad(): return 3", lambda: datasets.load("bad"), "must return a CrowdDataset"),
        ("datasets", "def Bad(): raise OSError('no net')", lambda: datasets.load("bad"), "OSError: no net"),
    ],
)  # fmt: skip
def test_what_is_not_what_its_group_says_is_refused_with_the_package(install, group, source, ask, said):
    install("broken-two", [(group, "bad", "broken_two:Bad")], source + "\n")
    with pytest.raises(ConfigError, match=f"(?is)broken-two==1.0.*{said}"):
        ask()


def test_a_layer_that_saved_models_would_not_find_is_refused_with_the_line_that_is_missing(install):
    source = "from crowdzoo.layers import ConfusionMatrices\nclass Bad(ConfusionMatrices): pass\n"
    install("broken-three", [("layers", "bad", "broken_three:Bad")], source)
    with pytest.raises(ConfigError, match="register_keras_serializable") as caught:
        crowd_layer_class("bad")
    line = str(caught.value).partition("class: ")[2].partition(". Correct")[0]
    sys.modules.pop("broken_three")
    Path(sys.path[0], "broken_three.py").write_text(
        f"import keras\n{source.replace('class', line + chr(10) + 'class')}"
    )
    assert crowd_layer_class("bad").__name__ == "Bad"


def test_a_name_that_is_taken_twice_is_refused_with_both_names(install):
    install("one", [("aggregators", "mine", "one:Mine"), ("aggregators", "wawa", "one:Mine")])
    install("two", [("aggregators", "mine", "two:Mine")])
    with pytest.raises(ConfigError, match=r"(one==1.0 \(one:Mine\) and two|two==1.0 \(two:Mine\) and)"):
        create("mine")
    with pytest.warns(UserWarning, match=r"'wawa' is crowdzoo's own, .* and one==1.0 \(one:Mine\)"):
        assert type(create("wawa")).__name__ == "Wawa"


def test_the_decorator_gives_a_name_in_this_process_and_refuses_a_second_owner():
    @crowdzoo.register("aggregator", "noted")
    class Noted(MajorityVote):
        pass

    assert isinstance(create("noted"), Noted)
    crowd, truth = simulated_crowd()
    frame = crowdzoo.compare(crowd, gold=truth, methods=["noted"]).frame
    assert set(frame["method"]) == {"noted", "majority-vote"}
    assert METHODS_OF["classification"].version("noted").startswith(f"{__name__}:")

    @crowdzoo.register("aggregator", "noted")  # as a cell of a notebook that runs again
    class Noted(MajorityVote):
        pass

    assert isinstance(create("noted"), Noted)
    with pytest.raises(ConfigError, match="already has that name"):
        crowdzoo.register("aggregator", "noted")(MajorityVote)
    with pytest.raises(ConfigError, match="choose one of aggregator, layer, platform, base, dataset"):
        crowdzoo.register("method", "other")


def test_a_decorated_layer_trains_and_compares(eager):
    @crowdzoo.register("layer", "noted-matrices")
    @keras.saving.register_keras_serializable(package="notes")
    class NotedMatrices(crowdzoo.layers.ConfusionMatrices):
        """Matrices."""

    from crowdzoo.models import TrainingSettings, train

    crowd, truth = simulated_crowd()
    x = np.eye(3, dtype="float32")[truth]
    model, _ = train(TrainingSettings(method="noted-matrices", epochs=1), x, annotations=crowd)
    assert type(model.crowd) is NotedMatrices
    how = {"settings": TrainingSettings(epochs=1), "held_out": np.arange(60) < 20}
    found = crowdzoo.compare(crowd, x, truth, methods=["noted-matrices"], **how)
    assert "noted-matrices" in set(found.frame["method"])


def test_runs_of_a_comparison_are_made_again_when_the_package_changes(install, tmp_path):
    install("my-method", [("aggregators", "mine", "my_method:Mine")])
    crowd, truth = simulated_crowd()
    made = []

    def compare():
        made.clear()
        crowdzoo.compare(
            crowd, gold=truth, methods=["mine"], folder=tmp_path / "runs", on_run=lambda *done: made.append(done)
        )
        return len(made)

    assert (compare(), compare()) == (2, 0)
    (tmp_path / "my_method.py").write_text(PACKAGE + "\nX = 1\n")
    assert compare() == 1


def test_a_version_names_the_package_and_follows_its_sources(install, tmp_path):
    install("my-method", [("aggregators", "mine", "my_method:Mine"), ("platforms", "toy", "my_method:TOY")])
    table = kind_of("classification").aggregation.methods()
    before = table.version("mine")
    assert before.startswith("my-method==1.0 ")
    assert (table.version("wawa"), PLATFORMS.version("coco"), PLATFORMS.version("toy")) == ("", "", before)
    (tmp_path / "my_method.py").write_text(PACKAGE + "\nX = 1\n")
    assert table.version("mine") != before


@pytest.mark.slow
def test_the_pipelines_cache_knows_the_packages_of_its_methods(install, tmp_path):
    pytest.importorskip("tfx")
    from crowdzoo.pipelines.config.load import load_config
    from crowdzoo.pipelines.pipeline import create_pipeline

    install("my-method", [("aggregators", "mine", "my_method:Mine")])
    install("my-layers", [("layers", "my-matrices", "my_layers:Mine")], LAYER, version="2.3")
    file = tmp_path / "config.yaml"

    def parameters(aggregation, method):
        file.write_text(
            f"name: own\nkind: classification\ndata: {{dataset: labelme}}\naggregation: {{method: {aggregation}}}\n"
            f"method: {{name: {method}}}\ntraining: {{epochs: 1}}\noutput: {{root: {tmp_path}/root}}\n"
        )
        parts = {each.id: each for each in create_pipeline(load_config(file)).components}
        return str(parts["CrowdAggregator"].exec_properties), str(parts["Trainer"].exec_properties)

    aggregator, trainer = parameters("mine", "my-matrices")
    assert "my-method==1.0 " in aggregator
    assert "my-layers==2.3 " in trainer
    assert "packages" not in "".join(parameters("wawa", "ccem"))


def test_a_base_of_a_package_is_a_function_under_a_short_name(install, tmp_path, eager):
    install("my-method", [("bases", "my-net", "my_method:make_net")])
    kind = kind_of("classification")
    settings = kind.training.settings("my-net", epochs=1, base_arguments={"units": 5})
    crowd, truth = simulated_crowd()
    model, _ = kind.training.train(settings, np.eye(3, dtype="float32")[truth], crowd)
    assert model.base.layers[1].units == 5
    assert own_files("my-net") == [tmp_path / "my_method.py"]
    assert source_hash("my-net").startswith("my-method==1.0 ")
    with pytest.raises(KeyError):
        BASES["my-nett"]
    with pytest.raises(ConfigError, match="Did you mean 'my-net'"):
        kind.training.instances_for("my-nett")


def test_platforms_and_data_sets_of_packages_have_names(install):
    source = (EXAMPLE / "own_method" / "blobs.py").read_text()
    install("my-sets", [("datasets", "blobs", "my_sets:load_blobs")], source)
    install("my-method", [("platforms", "toy", "my_method:TOY")])
    assert PLATFORMS["toy"].title == "Toy"
    assert datasets.has("blobs")
    assert not datasets.has("blobs", "regression")
    assert datasets.names() == ("labelme", "labelme-images", "blobs")
    assert datasets.instances_of("blobs") is datasets.instances_of("labelme")
    assert datasets.load("blobs").annotations.num_annotators == 6


LAYER = """
import keras
from crowdzoo.layers import ConfusionMatrices

@keras.saving.register_keras_serializable(package="my_layers")
class Mine(ConfusionMatrices):
    '''Matrices.'''
"""


def test_a_saved_model_says_which_package_it_needs_and_loads_where_that_is_installed(install, tmp_path):
    install("my-layers", [("layers", "my-matrices", "my_layers:Mine")], LAYER, version="2.3")
    layer = crowd_layer_class("my-matrices")(4)
    inputs = keras.Input((3,))
    base = keras.Model(inputs, keras.layers.Softmax()(inputs))
    plain = keras.Model(inputs, layer(base(inputs)))
    model = crowdzoo.CrowdModel(base, crowd_layer_class("my-matrices")(4))
    model.build((None, 3))
    for name, each in (("plain", plain), ("crowd", model)):
        each.save(tmp_path / f"{name}.keras")
    keras.saving.get_custom_objects().pop("my_layers>Mine")
    sys.modules.pop("my_layers")  # as in a fresh process
    saving._register_placeholders()
    for name in ("plain", "crowd"):
        loaded = keras.saving.load_model(tmp_path / f"{name}.keras")
        assert [type(each).__name__ for each in loaded.layers][-1] == "Mine"
    # without the package
    shutil.rmtree(tmp_path / "my_layers-2.3.dist-info")
    plugins._installed_on.cache_clear()
    keras.saving.get_custom_objects().pop("my_layers>Mine")
    for name in ("plain", "crowd"):
        with pytest.raises(DataError, match=r"my-layers==2\.3\. Install it: pip install 'my-layers==2\.3'"):
            crowdzoo.load_model(tmp_path / f"{name}.keras")
        with pytest.raises(Exception, match=r"my-layers==2\.3"):
            keras.saving.load_model(tmp_path / f"{name}.keras")


# === The batteries ===


class Infinite(MajorityVote):
    """Takes the logarithm of a count that may be 0."""

    def fit(self, annotations, gold=None):
        np.log(annotations.redundancy)
        return super().fit(annotations, gold)


class TwoShort(MajorityVote):
    """Gives posteriors of too few tasks."""

    def fit(self, annotations):
        return super().fit(annotations.select_rows(annotations.task_ids < 58).select_tasks(np.arange(58)))


def test_a_failure_of_the_battery_says_which_check_on_what_data_and_what_to_do():
    with pytest.raises(AssertionError) as caught:
        check_aggregator(Infinite())
    said = str(caught.value)
    assert said.startswith("check_sparse_and_odd_tables of Infinite(")
    assert "Avoid divisions by zero counts and logarithms of 0" in said
    assert "Data: a task without annotations; last fitted to <Annotations" in said
    assert "task_ids [0, 0, 2]" in said
    assert "FloatingPointError in test_plugins.py, line" in said
    with pytest.raises(AssertionError) as caught:
        check_aggregator(TwoShort())
    said = str(caught.value)
    assert "Data: simulated_crowd(num_classes=3, seed=0) of crowdzoo" in said
    assert "assert result.posteriors.shape == (n, k)" in said  # where the check itself says nothing


def test_answers_that_are_no_log_probabilities_are_noticed():
    @keras.saving.register_keras_serializable(package="notes")
    class Twice(crowdzoo.layers.ConfusionMatrices):
        def call(self, inputs, annotators=None, training=None):
            return 2 * super().call(inputs, annotators)

    with pytest.raises(AssertionError, match=r"for logits .*\s*`traits = LayerTraits\(returns_logits="):
        check_layer(
            Twice,
            {"num_annotators": 2},
            np.full((4, 3), 1 / 3, "float32"),
            (4, 2, 3),
            annotators=np.array([[0, 1]] * 4),
        )


def test_a_failure_of_a_layer_says_its_arguments_and_shapes():
    @keras.saving.register_keras_serializable(package="notes")
    class Forgetful(keras.layers.Dense):
        def get_config(self):
            return {**super().get_config(), "units": 7}

    with pytest.raises(AssertionError) as caught:
        check_layer(Forgetful, {"units": 2}, np.ones((4, 3), "float32"), (4, 2))
    said = str(caught.value)
    assert said.startswith("config_holds_every_argument of Forgetful(units=2).")
    assert "Data: inputs [4, 3] float32" in said
    assert "add it in `get_config`" in said


def test_the_page_on_a_method_of_ones_own_runs_and_shows_the_failure_as_it_is():
    page = (ROOT / "docs" / "own_method.md").read_text(encoding="utf-8")
    names = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/own_method.md", "exec"), names)
    names["test_the_layer"]()
    layer, codes = names["OneNumber"](5, start=2.0), np.array([[3, -1]], "int32")
    p = np.array([[0.5, 0.3, 0.2]], "float32")
    right = np.exp(2) / (np.exp(2) + 2)  # by hand: an answer is right, or one of the two others
    expected = p[0] * right + (1 - p[0]) * (1 - right) / 2
    np.testing.assert_allclose(
        np.exp(keras.ops.convert_to_numpy(layer(p, annotators=codes)))[0, 0], expected, rtol=1e-5
    )
    with pytest.raises(AssertionError) as caught:
        names["test_the_aggregator"]()
    shown = page.partition("and fails:\n\n")[2]
    assert str(caught.value).startswith(textwrap.dedent(shown).strip().removesuffix(" …"))


def test_the_page_names_the_entry_points_of_the_example():
    page = (ROOT / "docs" / "own_method.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert block.strip() in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


# === The example ===


def installed_example(folder):
    """A folder with the example's wheel in it, as pip unpacks it, and the environment that finds it."""
    source = folder / "source"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
    words = [sys.executable, "-W", "ignore", "-c", code, str(folder)]
    subprocess.run(words, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "target")
    path = os.pathsep.join([str(folder / "target"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "KERAS_BACKEND": "tensorflow"}


@pytest.mark.slow
def test_the_example_package_is_installed_and_all_that_the_guide_says_works(tmp_path):
    environment = installed_example(tmp_path)

    def run(*words):
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-3000:]
        return ended.stdout

    def command(*words):
        return run("-m", "crowdzoo", *words)

    assert "blobs" in command("datasets")
    command("datasets", "blobs", "--write", "data")
    files = ("data/annotations.csv", "data/instances.parquet")
    command("aggregate", files[0], "--method", "weighted-vote", "--set", "power=3", "--out", "labels")
    assert json.loads((tmp_path / "labels" / "summary.json").read_text())["method"] == "weighted-vote"
    assert "weighted-vote" in command("compare", files[0], "--methods", "weighted-vote,wawa", "--out", "runs")
    listed = command("methods")
    assert "weighted-vote" in listed
    assert "instance-confusions" in listed
    assert "own-method==1.0" in command("methods", "instance-confusions")
    command("train", *files, "--method", "instance-confusions", "--epochs", "20", "--out", "model.keras")
    said = run("-c", "import crowdzoo, keras; print(type(keras.saving.load_model('model.keras').crowd).__name__)")
    assert "InstanceConfusions" in said
    command("export", "model.keras", "served")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "source", "source/tests")


@pytest.mark.parametrize("name", ["my vote", "quick", "gold", "", "a,b", "Mine"])
def test_a_name_that_cannot_be_written_where_methods_are_named_is_refused(name):
    with pytest.raises(ConfigError, match="a name consists of small letters"):
        crowdzoo.register("aggregator", name)


@pytest.mark.parametrize(
    "content", [b"[crowdzoo.aggregators]\nmine\n", b"[a\nx = \xff\n"], ids=["no value", "no UTF-8"]
)
def test_malformed_entry_points_of_a_package_are_left_out_with_a_warning(content, tmp_path, monkeypatch):
    for name, text in (("broken", content), ("sound", b"[crowdzoo.aggregators]\nsound = crowdzoo.aggregation:Wawa\n")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_bytes(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match=r"broken-1\.0\.dist-info: entry_points.txt cannot be read"):
        assert plugins._installed("aggregator")["sound"][0].value == "crowdzoo.aggregation:Wawa"
