"""Commands of all pages are known; their code and that of the notebooks runs, and says what the text says."""

import importlib
import json
import re
import shlex
from pathlib import Path

import keras
import numpy as np
import pytest
from scipy.stats import spearmanr

import crowdzoo
from crowdzoo import Annotations, ConfigError, aggregation, layers, losses, quality
from crowdzoo.commands.main import COMMANDS, _parser, main
from crowdzoo.datasets import load_labelme
from crowdzoo.export import load_and_predict
from crowdzoo.pipelines.config.load import load_config

DOCS = Path(__file__).parents[2] / "docs"


def commands(page):
    """Command lines of a page, without comments; the prompt of an example counts as none."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"^    (?:\$ )?(crowdzoo [a-z-]+ .*)$", text, flags=re.M)
    for block in re.findall(r"```(?:sh|bash)\n(.*?)```", text, flags=re.S):
        found += re.findall(r"^(crowdzoo [a-z-]+ .*)$", block, flags=re.M)
    return [shlex.split(line, comments=True)[1:] for line in found]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_command_of_a_page_has_known_options(page):
    for words in commands(page):
        _parser().parse_args([word for word in words if word not in ("...", "…")])


def test_the_page_of_commands_lists_them_all_with_examples_that_parse():
    rows = re.findall(r"^\| \[([a-z-]+)\]\(.*?\) \| (.*?) \| `crowdzoo (.*?)` \|$", text_of("commands.md"), flags=re.M)
    assert {name: sentence for name, sentence, _ in rows} == COMMANDS
    for name, _, example in rows:
        assert shlex.split(example)[0] == name
        _parser().parse_args(shlex.split(example))


def test_commands_are_found_in_pages():
    assert sum(len(commands(page)) for page in DOCS.glob("*.md")) > 80


def text_of(name):
    return (DOCS / name).read_text(encoding="utf-8")


def run_page(name, **names):
    """Names after the page's code."""
    for block in re.findall(r"```python\n(.*?)```", text_of(name), flags=re.S):
        exec(compile(block, name, "exec"), names)
    return names


def run_notebook(name):
    names = {}
    for cell in json.loads((DOCS / "notebooks" / name).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), names)
    return names


def test_the_code_of_the_page_about_data_runs(here):
    names = run_page("data.md")
    assert names["annotations"].task_ids.tolist() == [0, 0, 1]
    assert names["labels"].shape == (2, 2)


@pytest.mark.slow
def test_the_code_of_the_migration_page_runs():
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    names = run_page("migration.md")
    assert names["predictions"].shape == (200, 3)
    theirs = crowdkit.DawidSkene(n_iter=100, tol=0).fit_predict(names["df"])
    assert (names["labels"] == theirs).mean() > 0.98
    assert names["labels"].name == theirs.name
    assert names["labels"].index.name == theirs.index.name
    assert names["scores"].shape == (2, 4, 3)
    assert np.asarray(names["best"]).shape == (2, 4)
    assert np.asarray(names["marginals"]).sum(axis=-1) == pytest.approx(1)
    # transitions are zeros on both sides
    assert np.asarray(names["loss"]) == pytest.approx(-np.asarray(names["likelihood"]))


def test_the_names_of_the_migration_page_are_there():
    text = text_of("migration.md")
    crowd_kit = text[text.index("## crowd-kit") : text.index("## cleanlab")]
    row = re.search(r"^\| (`MajorityVote`.*) \| the same names", crowd_kit, flags=re.M)[1]
    kit = pytest.importorskip("crowdkit.aggregation")
    for name in re.findall(r"`(\w+)`", row):
        assert hasattr(aggregation, name)
        assert hasattr(kit, name)
    for name in ("MaskedCrowdCrossentropy", "MaskedCrowdMeanSquaredError"):
        assert hasattr(losses, name)
        assert f"`{name}()`" in text
    assert hasattr(importlib.import_module("crowdkit.metrics.data"), "alpha_krippendorff")
    for connection in ("MW", "VW"):
        layers.CrowdsourcedLayer(3, connection=connection)
    layers.CrowdsourcedLayer(3, kind="regression", connection="B")
    with pytest.raises(ConfigError, match="connection"):
        layers.CrowdsourcedLayer(3, kind="regression", connection="MW")


@pytest.mark.slow
def test_the_code_of_the_page_about_judges_runs(capsys):
    names = run_page("judges.md")
    shown = f"both.correlation                                           # {names['both'].correlation}: "
    assert shown in text_of("judges.md")
    printed = capsys.readouterr().out
    assert "judge-a True" in printed
    votes = quality.effective_votes(names["annotations"])
    assert 1 < votes < 5
    apart = Annotations.from_dense(np.stack([names["said"][name] for name in ("ann", "bob", "cleo")], axis=1))
    assert votes / 5 < quality.effective_votes(apart) / 3  # two judges who err alike are worth less


@pytest.mark.slow
def test_the_code_of_aggregation_runs_and_has_the_accuracy_that_it_shows(here):
    names = run_page("aggregation.md")
    assert (here / "labels" / "tasks.parquet").exists()
    accuracy = names["result"].accuracy(names["labelme"].gold)
    assert f"# {accuracy:.3f};" in text_of("aggregation.md")
    assert f"# {names['usable'].accepted.sum()} of 1,000\n" in text_of("aggregation.md")


@pytest.mark.slow
def test_the_code_of_preferences_runs_and_says_what_the_text_says(here):
    names = run_page("preferences.md")
    found, quality_, x, model = (names[name] for name in ("found", "quality", "x", "model"))
    assert (here / "texts" / "pairs.parquet").exists()
    assert spearmanr(found.scores, quality_).statistic > 0.95
    assert found.skills.argmin() == 4
    assert found.position_biases().argmax() == 5
    assert abs(names["effect"] - 0.8) < 1.96 * names["error"]
    scored = names["scorer"].predict(x, verbose=0)[:, 0]
    assert spearmanr(scored, quality_).statistic > 0.95
    assert model.crowd.slopes.argmin() == 4
    pairs = {"left": x[:2], "right": x[2:4]}
    served = load_and_predict(here / "served_pairs", pairs, signature="pairs")
    np.testing.assert_allclose(served["probabilities"], model.predict(pairs, verbose=0), rtol=1e-4)
    np.testing.assert_allclose(load_and_predict(here / "served_pairs", x)["score"], scored, rtol=1e-4)


@pytest.mark.slow
def test_the_code_of_ratings_runs_and_says_what_the_text_says(here):
    names = run_page("ratings.md")
    assert (here / "films" / "tasks.parquet").exists()
    found, truth, stars = names["found"], names["truth"], names["annotations"]
    mean = np.bincount(stars.task_ids, stars.labels) / np.maximum(stars.redundancy, 1)
    mean[stars.redundancy == 0] = np.nan
    assert np.std(found.estimates - truth) < 0.7 * np.nanstd(mean - truth)
    assert found.skills.argmin() == 5
    assert np.corrcoef(found.biases[:5], names["harshness"][:5])[0, 1] > 0.98
    assert np.corrcoef(names["on_features"].predict(names["x"], verbose=0)[:, 0], truth)[0, 1] > 0.9
    served = load_and_predict(here / "served_reviews", ["a great great film", "a dull awful film"])["value"]
    np.testing.assert_allclose(served, names["values"][:, 0], rtol=1e-5)
    assert served[0] > served[1] + 2


@pytest.mark.slow
def test_the_code_of_methods_runs_and_gives_the_shapes_it_names(here):
    names = run_page("methods.md")
    model, train, instances = names["model"], names["train"], names["labelme"].instances
    shapes = dict(re.findall(r"model\.(\w+)\(.*# .*?\[([\d, ]+)\]", text_of("methods.md")))
    assert str(model.predict(instances[names["test"]], verbose=0).shape) == f"({shapes['predict']})"
    assert str(model.annotator_confusions().shape) == f"({shapes['annotator_confusions']})"
    assert model.posteriors(instances[train], names["annotations"], tasks=names["ids"]).shape == (len(train), 8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:keras_tuner.*")
@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")  # KerasTuner loads weights alone
def test_the_code_of_the_page_about_keras_runs(here):
    keras.utils.set_random_seed(0)
    names = run_page("keras.md")
    assert names["loaded"].predict(names["x"][:2], verbose=0).shape == (2, 3)
    assert names["loaded"].annotator_confusions().shape == names["shares"].shape == (6, 3, 3)
    assert names["accuracies"].shape == (6,)
    assert (here / "served" / "1" / "saved_model.pb").is_file()


def indented(text):
    """The blocks of a page that are indented."""
    for block in re.findall(r"((?:^    .*\n|^\n)+)", text, flags=re.M):
        yield "\n".join(line[4:] for line in block.splitlines())


@pytest.mark.slow
def test_the_code_of_many_annotators_runs():
    code = "\n".join(indented(text_of("scale.md").partition("## Many annotators")[2]))
    names = {"num_annotators": 20}
    exec(code.replace("1_000_000", "20"), names)
    x = {"instances": np.ones((2, 512), "float32"), "annotators": np.array([[0, 1], [2, -1]], "int32")}
    names["model"].train_on_batch(x, np.array([[1, 2], [3, -1]], "int32"))
    assert type(names["model"].optimizer).__name__ == "LazyAdam"


@pytest.mark.slow
def test_the_code_of_beam_runs(capsys):
    pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")
    run_page("scale.md")
    printed = capsys.readouterr().out
    assert f"# {float(printed.splitlines()[0]):.3f}, as" in text_of("scale.md")
    assert "[0 1 2]" in printed


def test_the_commands_of_beam_are_accepted(monkeypatch):
    pytest.importorskip("yaml", reason="the pipeline extra is not installed")
    monkeypatch.chdir(DOCS.parent)
    page_commands = re.findall(r"^    crowdzoo run (.*)$", text_of("scale.md").replace("\\\n", " "), flags=re.M)
    assert len(page_commands) == 4
    for command in page_commands:
        given = _parser().parse_args(["run", *shlex.split(command)])
        overrides = dict(override.split("=", 1) for override in given.overrides)
        options = json.loads(overrides["beam.options"])
        config = load_config(given.config, {**overrides, "beam.options": options})
        assert config.beam.options == tuple(options)
        assert config.beam.runner == overrides.get("beam.runner", "FnApiRunner")


@pytest.mark.slow
def test_the_code_of_the_page_about_scikit_learn_runs():
    names = run_page("scikit-learn.md")
    assert names["model"].score(names["x"][names["test"]], names["labelme"].gold[names["test"]]) > 0.5
    assert names["search"].best_params_["crowdclassifier__method"] in ("deep-em", "crowdsourced-layer")


@pytest.mark.slow
def test_the_code_of_tables_runs_and_what_it_exports_takes_the_request_of_the_page(here, capsys):
    run_page("tables.md")
    assert capsys.readouterr().out == "(1, 2)\n"
    columns = eval(re.search(r'\{"inputs": (\{.*?\})\}', text_of("tables.md"))[1], {"NaN": float("nan")})
    assert load_and_predict("served", columns)["class"][0] == "yes"


@pytest.mark.slow
def test_the_commands_of_quality_print_what_is_shown(here, capsys):
    for command in re.findall(r"^    \$ crowdzoo (.*)$", text_of("quality.md"), flags=re.M):
        capsys.readouterr()
        assert main(command.split()) == 0
    shown = capsys.readouterr().out.split()
    example = text_of("quality.md").split("--top 3\n\n")[1].split("\n\nBy gold")[0].split()
    assert len(example) > 100
    assert shown[: len(example)] == example


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(one-coin|robust). Class:UserWarning")  # annotations without a truth behind them
def test_the_python_lines_of_quality_run():
    columns = np.repeat(np.arange(30), 3), np.tile(["ann", "bo", "cy"], 30), np.arange(90) % 7 % 4
    names = {"crowdzoo": crowdzoo, "annotations": Annotations.from_arrays(*columns)}
    python = [
        block for block in indented(text_of("quality.md")) if "quality." in block and "crowdzoo quality" not in block
    ]
    assert len(python) == 4
    for block in python:
        exec(block, names)
    assert names["redo"].shape == (30,)
    assert names["report"].alpha.low < names["report"].alpha.value


def test_figures_of_the_page_about_quality_are_those_of_labelme():
    alpha = quality.krippendorff_alpha(load_labelme().annotations).value
    assert f".{round(alpha * 1000)}" in text_of("quality.md")


@pytest.mark.slow
def test_the_notebook_of_answers_runs(here):
    pytest.importorskip("pandas")
    names = run_notebook("answers_only.ipynb")
    assert names["annotations"].num_annotators == 59
    assert names["accuracies"]["MajorityVote"] == pytest.approx(0.766, abs=0.001)
    assert names["accuracies"]["Robust"] > names["accuracies"]["MajorityVote"]
    assert (here / "labelme" / "report.html").is_file()
    assert (here / "labelme" / "report.json").is_file()


@pytest.mark.slow
def test_the_notebook_of_a_crowd_layer_runs(here):
    names = run_notebook("crowd_layer.ipynb")
    assert names["accuracies"]["crowd layer"] > 0.78
    assert (here / "served" / "1" / "saved_model.pb").is_file()
    assert {each.decode() for each in names["answer"]["class"].numpy()} <= set(load_labelme().annotations.classes)
