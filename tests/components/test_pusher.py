import json

import pytest
from google.protobuf import json_format
from known_models import model_folder, weights_of

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.pusher import PusherExecutor
from crowdzoo.components.rollback import lift_veto, take_back
from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.components.tfx_internals import standard_artifacts


@pytest.fixture
def model(tmp_path):
    artifact = standard_artifacts.Model()
    artifact.uri = str(tmp_path / "model")
    model_folder(tmp_path / "model" / "Format-Serving")
    return artifact


def push(tmp_path, model, blessed=True, evaluated=None):
    blessing = standard_artifacts.ModelBlessing()
    if evaluated:
        blessing.set_string_custom_property("evaluated", json.dumps(evaluated))
    blessing.set_int_custom_property("blessed", int(blessed))
    pushed = standard_artifacts.PushedModel()
    pushed.uri = str(tmp_path / "pushed")
    destination = tfx.PushDestination(
        filesystem=tfx.PushDestination.Filesystem(base_directory=str(tmp_path / "serving"))
    )
    PusherExecutor().Do(
        {"model": [model], "model_blessing": [blessing]},
        {"pushed_model": [pushed]},
        {"push_destination": json_format.MessageToJson(destination)},
    )
    return pushed


def visible(tmp_path):
    folder = tmp_path / "serving"
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.exists() else []


def test_a_blessed_model_is_pushed_whole(tmp_path, model):
    pushed = push(tmp_path, model)
    (version,) = visible(tmp_path)
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_destination") == str(tmp_path / "serving" / version)
    assert pushed.get_string_custom_property("pushed_version") == version
    for folder in (tmp_path / "serving" / version, tmp_path / "pushed"):
        assert (folder / "saved_model.pb").read_text() == "graph"
        assert weights_of(folder) == "weights"


def test_a_version_has_the_figures_of_its_blessing_and_is_still_the_same_model(tmp_path, model):
    push(tmp_path, model, evaluated={"outcome": "pushed", "loss": {"upper": 0.01}})
    (version,) = visible(tmp_path)
    blessing = json.loads((tmp_path / "serving" / version / "assets.extra" / "blessing.json").read_text())
    own = fingerprint(f"{model.uri}/Format-Serving")
    assert blessing == {"model": own, "outcome": "pushed", "loss": {"upper": 0.01}, "format_version": 1}
    assert fingerprint(tmp_path / "serving" / version) == own
    push(tmp_path, model, evaluated={"outcome": "undecided"})
    assert visible(tmp_path) == [version], "the newest version is not pushed again, whatever its blessing says now"


def test_a_model_without_blessing_is_not_pushed(tmp_path, model):
    pushed = push(tmp_path, model, blessed=False)
    assert visible(tmp_path) == []
    assert pushed.get_int_custom_property("pushed") == 0


def test_a_model_that_was_taken_back_is_not_pushed_until_its_veto_is_lifted(tmp_path, model):
    model_folder(tmp_path / "serving" / "1", "an earlier model")
    push(tmp_path, model)
    (vetoes, _) = take_back(tmp_path / "serving", reason="worse on cats")
    pushed = push(tmp_path, model)
    assert visible(tmp_path) == ["1", "withdrawn"]
    assert pushed.get_int_custom_property("pushed") == 0
    assert pushed.get_string_custom_property("veto") == str(vetoes[0])
    version = lift_veto(tmp_path / "serving", vetoes[0].version)
    pushed = push(tmp_path, model)
    assert pushed.get_string_custom_property("pushed_destination") == str(version)
