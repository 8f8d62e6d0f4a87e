"""`crowdzoo lineage` on versions whose files are written by hand."""

import json

import pytest

from crowdzoo.commands import main as cli
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
        ("7", "nothing says what it comes from. crowdzoo run and crowdzoo train write that."),
    ],
)
def test_what_has_no_lineage_is_said(tmp_path, capsys, place, said):
    version(tmp_path / "7", "first", None)
    assert cli.main(["lineage", str(tmp_path / place)]) == DataError.exit_code
    assert said in capsys.readouterr().err
