"""Several models in one server, by TF Serving's `models.config`."""

import shutil
import time

import numpy as np
import pytest
from running_server import rest, serving, wait_until

from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, ServingError
from crowdzoo.serving import Client, Server
from crowdzoo.serving.model_settings import ModelSettings, VersionPolicy, read_model_settings
from crowdzoo.serving.model_store import SETTLE_SECONDS, ModelStore
from crowdzoo.serving.version_labels import set_labels


def config(folder, *models):
    """A file of models, each its fields in text format."""
    file = folder / "models.config"
    listed = "".join(f"  config {{ {one} }}\n" for one in models)
    file.write_text(f"model_config_list {{\n{listed}}}\n")
    return file


@pytest.fixture(scope="module")
def folders(tmp_path_factory, pets, export_version, export_other):
    """`pets` with versions 1 and 2, `others` with version 5, and nothing in `empty`."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(pets.folder, folder / "pets")
    export_other(folder / "others" / "5")
    (folder / "empty").mkdir()
    time.sleep(SETTLE_SECONDS)  # all files are at rest, so that every server begins with the newest versions
    return folder


PETS = 'name: "pets" base_path: "pets" model_platform: "tensorflow"'
BOTH = PETS + " model_version_policy { all {} } version_labels { key: 'stable' value: 1 }"
OTHERS = 'name: "others" base_path: "others"'


@pytest.fixture(scope="module")
def both(folders):
    with serving(config=config(folders, BOTH, OTHERS)) as running:
        yield running


def get(server, path):
    return rest(server, f"/v1/models/{path}")


def test_each_model_answers_under_its_name(both, pets, instances):
    assert both.models == {"pets": [2, 1], "others": [5]}
    for url in (both.url, both.grpc_url):
        with Client(url, model="pets") as client:
            got = client.predict(instances)["probabilities"]
        np.testing.assert_allclose(got, pets.models[2].predict(instances, verbose=0), atol=1e-6)
        with Client(url, model="others") as client:
            assert client.metadata()["version"] == 5
            assert client.predict(np.zeros((2, 5), "float32"))["probabilities"].shape == (2, 3)


def version_of(server, place):
    answer = get(server, place)
    return int(answer.json()["model_version_status"][0]["version"]) if answer.status_code == 200 else answer.status_code


def test_labels_are_followed_while_the_server_runs(folders, tmp_path, caplog):
    shutil.copytree(folders / "pets", tmp_path / "pets")
    file = config(tmp_path, PETS + " version_labels { key: 'stable' value: 1 }", OTHERS)
    shutil.copytree(folders / "others", tmp_path / "others")
    with serving(config=file, poll_seconds=0.1) as running:
        assert version_of(running, "pets/labels/stable") == 1
        assert version_of(running, "pets/labels/canary") == 404
        set_labels(file, tmp_path / "pets", ["canary=newest"])
        wait_until(lambda: version_of(running, "pets/labels/canary") == 2)
        set_labels(file, tmp_path / "pets", ["stable=canary", "canary="])
        wait_until(lambda: version_of(running, "pets/labels/stable") == 2)
        assert version_of(running, "pets/labels/canary") == 404
        wait_until(lambda: running.models["pets"] == [2])  # version 1 has no label any more
        file.write_text("model_config_list { config { nam")
        time.sleep(0.5)
        assert version_of(running, "pets/labels/stable") == 2
        assert "models.config is not followed" in caplog.text
        # a label whose version is not there yet stays where it is until that version answers
        (tmp_path / "pets" / "7").mkdir()
        config(tmp_path, PETS + " version_labels { key: 'stable' value: 7 }", OTHERS)
        time.sleep(0.5)
        assert version_of(running, "pets/labels/stable") == 2
        shutil.copytree(folders / "pets" / "1", tmp_path / "pets" / "7", dirs_exist_ok=True)
        wait_until(lambda: version_of(running, "pets/labels/stable") == 7)


def test_an_unknown_model_is_told_the_names_there_are(both, instances):
    reason = "model 'cats' is not served here; the models are 'pets', 'others'"
    answer = get(both, "cats")
    assert (answer.status_code, answer.json()["error"]) == (404, reason)
    with Client(both.grpc_url, model="cats") as client, pytest.raises(ServingError, match=f"NOT_FOUND: {reason}"):
        client.predict(instances)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ('base_path: "x"', "config 2 (''): name: '' cannot be in a URL"),
        ('name: "a/b" base_path: "x"', "config 2 ('a/b'): name: 'a/b' cannot be in a URL"),
        ('name: "a"', "base_path is empty"),
        ('name: "a" base_path: "gs://bucket/a"', "gs:// paths are not supported here"),
        ('name: "a" base_path: "x\\000"', "NUL"),
        ('name: "a" base_path: "x" model_platform: "torch"', "model_platform 'torch' is not served here"),
        ('name: "a" base_path: "x" logging_config {}', "logging_config is not followed"),
        ('name: "a" base_path: "x" model_version_policy { specific {} }', "'specific' names no versions"),
        ('name: "a" base_path: "x" model_version_policy { specific { versions: -1 } }', "version -1 is not a number"),
        ('name: "a" base_path: "x" version_labels { key: "l" value: -7 }', "version -7 is not a number"),
        ('name: "a" base_path: "x" version_labels { key: "a b" value: 1 }', "version label: 'a b' cannot be"),
        ('name: "pets" base_path: "x"', "config 2 ('pets'): an earlier model has this name"),
        ('nam: "a"', 'models.config, line 3, column 12: not a ModelServerConfig in text format: Message type "'),
        (
            'name: "a" base_path: 7',
            "line 3, column 33: not a ModelServerConfig in text format: Expected string but found: '7'.",
        ),
    ],
)
def test_a_config_that_cannot_be_served_is_refused_by_name(tmp_path, fields, says):
    with pytest.raises(ConfigError) as caught:
        read_model_settings(config(tmp_path, PETS, fields))
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "models.config"))


def test_settings_of_a_config_are_those_of_tf_serving(tmp_path):
    file = config(
        tmp_path,
        'name: "a" base_path: "/models/a"',
        'name: "b" base_path: "b" model_version_policy { latest { num_versions: 2 } }',
        'name: "c" base_path: "c" model_version_policy { specific { versions: 4 versions: 2 } }',
        BOTH,
    )
    a, b, c, pets = read_model_settings(file)
    assert (str(a.folder), b.folder) == ("/models/a", tmp_path / "b")
    assert [one.policy for one in (a, b, c, pets)] == [
        VersionPolicy(1), VersionPolicy(2), VersionPolicy(None, frozenset({2, 4})), VersionPolicy(None),
    ]  # fmt: skip
    assert pets.labels == {"stable": 1}


def test_a_folder_or_a_config_is_served_not_both_and_not_neither(folders, capsys):
    with pytest.raises(ServingError, match="give one of model_dir"):
        Server()
    with pytest.raises(ServingError, match="give one of model_dir"):
        Server(folders / "pets", config=folders / "models.config")
    for more in ({"name": "pets"}, {"labels": {"stable": 1}}):
        with pytest.raises(ServingError, match="leave out name and labels"):
            Server(config=folders / "models.config", **more)
    assert main(["serve", str(folders / "pets"), "--config", str(folders / "models.config")]) != 0
    assert "give one of" in capsys.readouterr().err


@pytest.fixture
def versions(tmp_path, pets):
    """A folder with versions 1, 2 and 3 that are at rest."""
    for number, source in ((1, "1"), (2, "2"), (3, "1")):
        shutil.copytree(pets.folder / source, tmp_path / "pets" / str(number))
    time.sleep(0.15)
    return tmp_path / "pets"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (VersionPolicy(), [3]),
        (VersionPolicy(2), [3, 2]),
        (VersionPolicy(9), [3, 2, 1]),
        (VersionPolicy(None), [3, 2, 1]),
        (VersionPolicy(None, frozenset({1, 2, 7})), [2, 1]),
    ],
)
def test_a_policy_says_which_versions_are_served(versions, policy, expected):
    store = ModelStore(ModelSettings("pets", versions, policy=policy), poll_seconds=0.1)
    assert store.refresh()
    assert [one.version for one in store.statuses() if one.state == "AVAILABLE"] == expected
    assert store.get().version == expected[0]
