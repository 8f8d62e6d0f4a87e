"""Labels of versions in models.config, and the commands that write them."""

import signal
import subprocess
import sys

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError
from crowdzoo.serving.model_settings import read_model_settings
from crowdzoo.serving.version_labels import read_labels, set_labels


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (3, 4, 5):
        (tmp_path / "served" / "pets" / str(number)).mkdir(parents=True)
        (tmp_path / "served" / "pets" / str(number) / "saved_model.pb").write_text(str(number))
    return tmp_path


def test_a_canary_is_named_promoted_and_served_as_the_file_says(here):
    assert set_labels("models.config", "served/pets", ["stable=4", "canary=newest"]) == {"canary": 5, "stable": 4}
    (model,) = read_model_settings("models.config")
    assert (model.name, model.folder, model.labels) == ("pets", here / "served" / "pets", {"canary": 5, "stable": 4})
    assert model.policy.only == {4, 5}
    assert set_labels("models.config", "served/pets", ["stable=canary", "canary="]) == {"stable": 5}
    (model,) = read_model_settings("models.config")
    assert model.policy.only == {5}


def test_other_models_of_the_file_keep_their_settings(here):
    (here / "models.config").write_text(
        "model_config_list {"
        '  config { name: "cats" base_path: "/models/cats" version_labels { key: "stable" value: 1 } }'
        '  config { name: "dogs" base_path: "served/pets" model_platform: "tensorflow" } }'
    )
    set_labels("models.config", "served/pets", ["stable=4"])
    cats, dogs = read_model_settings("models.config")
    assert (cats.name, cats.labels, cats.policy.only) == ("cats", {"stable": 1}, None)
    assert (dogs.name, dogs.labels) == ("dogs", {"stable": 4})


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("stable=6", "unknown version or label '6': choose one of 3, 4, 5, newest"),
        ("stable=canry", "unknown version or label 'canry'"),
        ("stable", "'stable': is not LABEL=VERSION"),
        ("a/b=3", "version label: 'a/b' cannot be in a URL"),
        ("stable=", "no version would have a label"),
    ],
)
def test_a_wrong_assignment_is_refused_and_no_file_is_made(here, assignment, message):
    with pytest.raises(ConfigError, match=message):
        set_labels("models.config", "served/pets", [assignment])
    assert not (here / "models.config").exists()


def test_a_folder_that_the_file_does_not_serve_is_refused(here):
    (here / "models.config").write_text('model_config_list { config { name: "cats" base_path: "/models/cats" } }')
    with pytest.raises(ConfigError, match="no model has the base_path served/pets; it has /models/cats"):
        read_labels("models.config", "served/pets")


def test_the_commands_tell_one_story(here, capsys):
    def run(*words):
        code = cli.main([*words])
        return code, capsys.readouterr()

    assert run("promote", "served/pets", "stable=4", "canary=newest", "--config", "models.config")[0] == 0
    code, printed = run("rollback", "served/pets", "--reason", "worse on cats", "--config", "models.config")
    assert code == 0
    assert "models.config: canary is version 4 now" in printed.out
    assert "served/pets/4: the newest version now" in printed.out
    assert read_labels("models.config", "served/pets") == {"canary": 4, "stable": 4}
    _, printed = run("versions", "served/pets", "--config", "models.config")
    rows = [line.split() for line in printed.out.splitlines()[3:]]
    assert [row[:2] for row in rows] == [["5", "withdrawn"], ["4", "served"], ["3", "not"]]
    assert rows[0][-3:] == ["worse", "on", "cats"]
    assert "canary, stable" in printed.out
    assert run("rollback", "served/pets", "--undo", "5")[0] == 0
    assert run("promote", "served/pets", "canary=5", "--config", "models.config")[1].out == (
        "canary: version 5\nstable: version 4\n"
    )
    code, printed = run("rollback", "served/pets", "--undo", "5", "--to", "3")
    assert code == ConfigError.exit_code
    assert "Leave --to out." in printed.err


KILLED = """
import os, signal
from crowdzoo.files import writing
from crowdzoo.serving.version_labels import set_labels

writing._replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
set_labels("models.config", "served/pets", ["stable=canary", "canary="])
"""


def test_a_kill_during_promotion_leaves_the_labels_as_they_were(here):
    set_labels("models.config", "served/pets", ["stable=4", "canary=newest"])
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=here, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert read_labels("models.config", "served/pets") == {"canary": 5, "stable": 4}
    assert set_labels("models.config", "served/pets", ["stable=canary", "canary="]) == {"stable": 5}
    assert sorted(path.name for path in here.iterdir()) == ["models.config", "served"], "nothing half-written stays"
