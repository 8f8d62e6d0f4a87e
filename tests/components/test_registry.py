"""MLflow's model registry, by MLflow's own library in this process; tests/pipelines/test_registry.py has a server."""

import json
import sys

import pytest
from known_models import model_folder, weights_of, write_extra

from crowdzoo.commands import main as cli
from crowdzoo.components.lineage import read_origin, update_origin
from crowdzoo.components.registry import fetch_version, register_version
from crowdzoo.components.rollback import take_back
from crowdzoo.components.serving_folder import fingerprint, push_version
from crowdzoo.errors import ConfigError, DataError, ServingError
from crowdzoo.files.version_folders import complete_versions

LINEAGE = {"inputs": {"annotations": "a" * 64}, "settings": "c" * 64, "software": {"tfx": "1.16.0"}, "parent": None}


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """The library, with a store of its own in this test's folder."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlflow").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # made in no time; that of SQLite takes seconds
    monkeypatch.chdir(tmp_path)
    return mlflow


def push(folder, weights, accuracy=0.5):
    """Adds a version with a card and a blessing to a served folder."""
    card = {"classes": ["cat", "dog"], "method": {"name": "ccem"}, "software": {"keras": "3.12"}, "lineage": LINEAGE}
    model = model_folder(folder.parent / f"model of {weights}", weights, model_card=card)
    blessing = {"model": fingerprint(model), "outcome": "pushed", "candidate": {"model": "x", "accuracy": accuracy}}
    return push_version(write_extra(model, blessing=blessing), folder)


def test_a_version_is_registered_once_with_card_lineage_figures_and_alias(mlflow, tmp_path, capsys):
    model = push(tmp_path / "served", "first", 0.75)
    words = ("register", str(tmp_path / "served"), "--name", "pets", "--alias")
    assert cli.main([*words, "canary"]) == 0
    assert capsys.readouterr().out == f"models:/pets/1, canary: registered at {mlflow.get_registry_uri()}\n"
    assert cli.main([*words, "stable"]) == 0
    assert "models:/pets/1, stable: was registered before at " in capsys.readouterr().out
    client = mlflow.MlflowClient()
    (entry,) = client.search_model_versions("name='pets'")
    assert client.get_model_version_by_alias("pets", "stable").version == entry.version
    tags = {name.removeprefix("crowdzoo."): value for name, value in entry.tags.items()}
    assert tags["fingerprint"] == fingerprint(model)
    assert tags["version"] == model.name
    assert tags["inputs.annotations"] == "a" * 64
    assert (tags["card.method.name"], tags["card.classes"]) == ("ccem", "['cat', 'dog']")
    assert (tags["blessing.outcome"], tags["blessing.candidate.accuracy"]) == ("pushed", "0.75")
    assert client.get_run(entry.run_id).data.metrics == {"accuracy": 0.75}
    assert cli.main(["lineage", str(model)]) == 0
    facts = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (facts["mlflow.run"], facts["mlflow.model"]) == (entry.run_id, "models:/pets/1")


def test_what_an_alias_names_becomes_the_newest_version_with_the_same_files(mlflow, tmp_path):
    first, second = (push(tmp_path / "served", name) for name in ("first", "second"))
    register_version(tmp_path / "served", "pets", version=int(first.name), aliases=["stable"])
    register_version(second, "pets", aliases=["canary"])
    folder = tmp_path / "elsewhere"
    assert fingerprint(fetch_version("models:/pets@stable", folder)) == fingerprint(first)
    assert fingerprint(fetch_version("models:/pets@canary", folder)) == fingerprint(second)
    before = complete_versions(folder)
    assert fetch_version("models:/pets/2", folder) == before[-1], "it is the newest already"
    newest = fetch_version("models:/pets@stable", folder)
    assert complete_versions(folder) == [*before, newest]
    assert weights_of(newest) == "first"
    assert json.loads((newest / "assets.extra" / "blessing.json").read_text())["outcome"] == "pushed"
    assert read_origin(newest)["mlflow"]["model"] == "models:/pets/1"


def test_models_that_were_trained_in_one_mlflow_run_stay_apart(mlflow, tmp_path):
    with mlflow.start_run() as run:
        pass
    for name in ("first", "second"):
        update_origin(push(tmp_path / "served", name), mlflow={"run": run.info.run_id})
        register_version(tmp_path / "served", "pets")
    entries = mlflow.MlflowClient().search_model_versions("name='pets'")
    assert {entry.run_id for entry in entries} == {run.info.run_id}
    fetched = [weights_of(fetch_version(f"models:/pets/{number}", tmp_path / "elsewhere")) for number in (1, 2)]
    assert fetched == ["first", "second"]


def test_a_model_that_was_trained_in_a_run_of_another_server_gets_a_run_of_its_own(mlflow, tmp_path):
    update_origin(push(tmp_path / "served", "first"), mlflow={"run": "0" * 32})
    register_version(tmp_path / "served", "pets")
    (entry,) = mlflow.MlflowClient().search_model_versions("name='pets'")
    assert mlflow.get_run(entry.run_id).info.status == "FINISHED"


def test_a_fetch_does_not_undo_a_rollback(mlflow, tmp_path, capsys):
    first = push(tmp_path / "served", "first")
    second = push(tmp_path / "served", "second")
    register_version(second, "pets", aliases=["stable"])
    take_back(tmp_path / "served", reason="worse on cats")
    words = ["fetch", "models:/pets@stable", str(tmp_path / "served")]
    assert cli.main(words) == ServingError.exit_code
    said = capsys.readouterr().err
    assert "worse on cats" in said
    assert complete_versions(tmp_path / "served") == [first]
    advice = said.partition("`crowdzoo ")[2].partition("`")[0]
    assert cli.main(advice.split()) == 0
    assert cli.main(words) == 0
    assert complete_versions(tmp_path / "served") == [first, second]


def test_files_that_changed_in_the_store_are_not_served(mlflow, tmp_path):
    register_version(push(tmp_path / "served", "first"), "pets")
    (data,) = (tmp_path / "mlflow").rglob("variables/data")
    data.write_text("other")
    with pytest.raises(DataError, match="its files changed since they were registered"):
        fetch_version("models:/pets/1", tmp_path / "elsewhere")
    data.with_name("saved_model.pb").write_text("another graph")
    with pytest.raises(DataError, match="has 2 TensorFlow SavedModels among its files, expected one"):
        fetch_version("models:/pets/1", tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_a_model_without_card_can_be_registered(mlflow, tmp_path):
    (tmp_path / "served" / "1").mkdir(parents=True)
    (tmp_path / "served" / "1" / "saved_model.pb").write_text("graph")
    assert register_version(tmp_path / "served", "pets") == ("models:/pets/1", True)
    assert fetch_version("models:/pets/1", tmp_path / "elsewhere").is_dir()


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("fetch", "models:/pets@nope", "served"), 6, "nope not found. Check the name, and MLFLOW_TRACKING_URI"),
        (("fetch", "models:/dogs/1", "served"), 6, "name=dogs"),
        (("fetch", "models:/pets", "served"), 4, "'models:/pets': is not models:/NAME@ALIAS or models:/NAME/VERSION"),
        (("fetch", "served/1", "elsewhere"), 4, "is not models:/NAME@ALIAS"),
        (("register", "served", "--name", "a'b"), 4, '"a\'b": names and aliases have letters'),
        (("register", "served", "--name", "pets", "--alias", "a/b"), 4, "'a/b': names and aliases have letters"),
        (("register", "served", "--name", "pets", "--version", "7"), 6, "served/7: the folder does not exist"),
        (("register", "nowhere", "--name", "pets"), 6, "nowhere: the folder does not exist"),
    ],
)
def test_what_cannot_be_registered_or_fetched_is_said(mlflow, tmp_path, capsys, words, code, reason):
    (tmp_path / "served" / "1").mkdir(parents=True)
    (tmp_path / "served" / "1" / "saved_model.pb").write_text("graph")
    register_version(tmp_path / "served", "pets")
    assert cli.main([*words]) == code
    assert reason in capsys.readouterr().err


def test_without_mlflow_the_command_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"pip install 'crowdzoo\[mlflow\]'"):
        fetch_version("models:/pets@stable", tmp_path)
