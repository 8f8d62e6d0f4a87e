"""`crowdzoo lineage` on versions whose files are written by hand."""

import hashlib
import json
import subprocess

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.components.lineage import commit_of, read_origin, write_origin
from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.errors import DataError

LINEAGE = {
    "inputs": {"annotations": "a" * 64, "instances": "b" * 64}, "settings": "c" * 64, "code_version": "d" * 32,
    "software": {"tfx": "1.16.0"}, "parent": None,
}  # fmt: skip


def version(folder, weights, lineage, **blessing):
    """A version of the served folder; its blessing is of its own files where none is given."""
    (folder / "assets.extra").mkdir(parents=True)
    (folder / "saved_model.pb").write_text(weights)
    card = {"classes": ["x"], "software": {"keras": "3.12"}, **({"lineage": lineage} if lineage else {})}
    (folder / "assets.extra" / "model_card.json").write_text(json.dumps(card))
    blessing = {"model": fingerprint(folder), "outcome": "pushed", "loss": {"upper": 0.01}, **blessing}
    (folder / "assets.extra" / "blessing.json").write_text(json.dumps(blessing))
    return folder


def facts(text):
    return [dict(line.split(maxsplit=1) for line in part.splitlines()) for part in text.split("\n\n")]


def test_a_version_is_led_back_to_its_files_its_decision_and_the_model_that_it_began_with(tmp_path, capsys):
    first = version(tmp_path / "3", "first", LINEAGE)
    second = version(tmp_path / "7", "second", {**LINEAGE, "parent": fingerprint(first)})
    assert cli.main(["lineage", str(second)]) == 0
    new, old = facts(capsys.readouterr().out)
    assert (new["model"], new["parent"]) == (str(second), str(first))
    assert (new["inputs.annotations"], new["settings"]) == ("a" * 64, "c" * 64)
    assert (new["software.keras"], new["software.tfx"]) == ("3.12", "1.16.0")
    assert (new["blessing.outcome"], new["blessing.loss.upper"]) == ("pushed", "0.01")
    assert new["blessing.files"] == "as blessed"
    assert (old["model"], old["parent"]) == (str(first), "-")
    (first / "saved_model.pb").write_text("another")
    assert cli.main(["lineage", str(first)]) == 0
    assert facts(capsys.readouterr().out)[0]["blessing.files"] == "changed since they were blessed"


def test_a_keras_file_of_the_pipeline_has_its_lineage_beside_it(tmp_path, capsys):
    (tmp_path / "model.keras").touch()
    names = {"classes": ["x"], "annotators": ["ann"], "lineage": LINEAGE, "format_version": 1}
    (tmp_path / "model.names.json").write_text(json.dumps(names))
    assert cli.main(["lineage", str(tmp_path / "model.keras")]) == 0
    assert facts(capsys.readouterr().out)[0]["code_version"] == "d" * 32


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere", "does not exist. Give the folder of an exported version"),
        ("", "holds versions. Give one of them, such as "),
        ("7", "has no lineage, which crowdzoo run and crowdzoo train write."),
    ],
)
def test_what_has_no_lineage_is_said(tmp_path, refusal_of, place, said):
    version(tmp_path / "7", "first", None)
    assert said in refusal_of("lineage", str(tmp_path / place), code=3)


@pytest.fixture
def trained(tmp_path):
    """A version trained on two files that are there, with its origin."""
    inputs = {}
    for key, name in {"annotations": "answers.csv", "instances": "instances.csv"}.items():
        (tmp_path / name).write_text(f"task,{key}\n")
        inputs[key] = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    model = version(tmp_path / "7", "first", {**LINEAGE, "inputs": inputs})
    before = fingerprint(model)
    paths = {"annotations": str(tmp_path / "answers.csv"), "instances": "s3://crowd/instances.csv"}
    write_origin(model, {"sha256": inputs, "reading": paths})
    assert fingerprint(model) == before, "names are not what makes a model another one"
    return model


def test_the_files_are_named_and_a_file_is_recognised_by_its_content(trained, tmp_path, write, capsys):
    assert cli.main(["lineage", str(trained)]) == 0
    (printed,) = facts(capsys.readouterr().out)
    assert printed["files.annotations"] == str(tmp_path / "answers.csv")
    assert printed["files.instances"] == "s3://crowd/instances.csv"
    copy = write("copy", (tmp_path / "instances.csv").read_bytes())
    assert cli.main(["lineage", str(trained), "--verify", str(copy)]) == 0
    assert capsys.readouterr().out == f"{copy}: is the input instances of {trained}\n"


@pytest.mark.parametrize("name", ["answers.csv", "other.csv", "missing.csv"])
def test_a_file_that_is_none_of_the_inputs_has_an_exit_code_of_its_own(trained, tmp_path, refusal_of, name):
    if name != "missing.csv":
        (tmp_path / name).write_text("task,annotations\n1\n")
    said = refusal_of("lineage", str(trained), "--verify", str(tmp_path / name), code=3)
    reasons = {"answers.csv": "its content changed since", "other.csv": "none of its inputs has that content"}
    assert reasons.get(name, "does not exist") in said
    assert ("s3://crowd/instances.csv" in said) == (name in reasons)


def test_no_file_is_recognised_where_the_lineage_has_no_inputs(tmp_path, capsys):
    model = version(tmp_path / "7", "first", None)
    card = {"classes": ["x"], "training": {"method": "crowd-layer"}, "software": {}}
    (model / "assets.extra" / "model_card.json").write_text(json.dumps(card))
    assert cli.main(["lineage", str(model), "--verify", str(model / "saved_model.pb")]) == DataError.exit_code
    message = "which only crowdzoo run records. That of the annotations, by crowdzoo train, is of the table"
    assert message in capsys.readouterr().err


def test_the_commit_says_whether_files_differ_from_it(tmp_path, write, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    config = write("pets.yaml", "name: pets\n")

    def git(*words):
        names = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        return subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert commit_of(config) is None, "no checkout"
    git("init", "-q")
    assert commit_of(config) is None, "no commit"
    git("add", "pets.yaml")
    git("commit", "-q", "-m", "x")
    commit = git("rev-parse", "HEAD").strip()
    assert commit_of(config) == commit
    (tmp_path / "output.csv").touch()
    assert commit_of(config) == commit, "outputs are no code"
    assert commit_of(tmp_path / "output.csv") == f"{commit}, changed", "a configuration that Git does not know"
    config.write_text("name: cats\n")
    assert commit_of(config) == f"{commit}, changed"
    monkeypatch.setenv("PATH", "")
    assert commit_of(config) is None, "no git"


def test_commit_and_mlflow_run_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CROWDZOO_COMMIT", "abc, changed")
    monkeypatch.setenv("MLFLOW_RUN_ID", "run1")
    write_origin(tmp_path, {"sha256": {"annotations": "a"}, "reading": {"dataset": "labelme"}})
    origin = read_origin(tmp_path)
    assert origin["files"] == {"dataset": "labelme"}
    assert (origin["commit"], origin["mlflow"]) == ("abc, changed", {"run": "run1"})
