"""What is served while versions come, go and break."""

import logging
import os
import shutil
import time

import numpy as np
import pytest
from running_server import wait_until
from slow_cases import quick

from crowdzoo.errors import ServingError
from crowdzoo.serving import model_store
from crowdzoo.serving.model_settings import ModelSettings
from crowdzoo.serving.model_store import ModelStore
from crowdzoo.serving.request_error import RequestError


@pytest.fixture
def folder(tmp_path, pets):
    """A served folder with version 1."""
    shutil.copytree(pets.folder / "1", tmp_path / "pets" / "1")
    return tmp_path / "pets"


@pytest.fixture
def settings(folder):
    return ModelSettings("pets", folder, {"stable": 1})


@pytest.fixture
def store(settings):
    """A store that is not started, so it never looks by itself; it takes files as complete once they are 0.1 s old."""
    made = ModelStore(settings, poll_seconds=0.1)
    settle()
    made.refresh()
    return made


def settle():
    time.sleep(0.15)


def put(source, target):
    """Copies as the pipeline's Pusher does: complete at once."""
    hidden = target.with_name(".pushing")
    shutil.copytree(source, hidden)
    hidden.rename(target)
    settle()


def answer(model, instances):
    return model.signature("")({"instances": instances})["probabilities"]


def state(store, version):
    return next((one.state, one.error) for one in store.statuses() if one.version == version)


def test_the_highest_number_is_served_not_the_last_name(folder, pets, store, instances):
    put(pets.folder / "2", folder / "9")
    put(pets.folder / "1", folder / "10")
    store.refresh()
    assert store.get().version == 10
    np.testing.assert_allclose(answer(store.get(), instances), pets.models[1].predict(instances, verbose=0), atol=1e-6)


def test_a_new_version_takes_over_and_requests_under_way_finish_on_the_old(folder, pets, settings, store, instances):
    settings.labels.clear()
    under_way = store.get()
    put(pets.folder / "2", folder / "2")
    store.refresh()
    assert store.get().version == 2
    np.testing.assert_allclose(answer(store.get(), instances), pets.models[2].predict(instances, verbose=0), atol=1e-6)
    np.testing.assert_allclose(answer(under_way, instances), pets.models[1].predict(instances, verbose=0), atol=1e-6)
    assert state(store, 1) == ("END", "")
    with pytest.raises(RequestError, match="does not serve version 1, only 2"):
        store.get(version=1)


@pytest.mark.parametrize("damage", quick("graph", slow=["variables", "warm-up"]))
def test_a_version_that_does_not_load_is_logged_and_the_old_one_stays(folder, pets, store, caplog, damage):
    broken = folder.parent / "broken"
    shutil.copytree(pets.folder / "2", broken)
    if damage == "graph":
        (broken / "saved_model.pb").write_bytes(b"no protobuf")
    elif damage == "variables":
        data = broken / "variables" / "variables.data-00000-of-00001"
        data.write_bytes(data.read_bytes()[:40])
    else:
        (broken / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"no records, only some text")
    put(broken, folder / "2")
    with caplog.at_level(logging.ERROR, logger="crowdzoo.serving"):
        store.refresh()
        store.refresh()
    assert store.get().version == 1
    assert state(store, 2)[0] == "END"
    assert state(store, 2)[1]
    errors = [record for record in caplog.records if "cannot be loaded" in record.message]
    assert len(errors) == 1, "a broken version is tried once, until its files change"

    shutil.rmtree(folder / "2")
    put(pets.folder / "2", folder / "2")
    store.refresh()
    assert store.get().version == 2
    assert state(store, 2) == ("AVAILABLE", "")


@pytest.mark.parametrize(
    "missing", quick("saved_model.pb", "variables/variables.index", slow=["variables/variables.data-00000-of-00001"])
)
def test_a_half_written_version_is_not_touched_until_it_is_complete(folder, pets, store, caplog, missing):
    half = folder / "2"
    shutil.copytree(pets.folder / "2", half)
    (half / missing).unlink()
    settle()
    with caplog.at_level(logging.ERROR, logger="crowdzoo.serving"):
        store.refresh()
    assert store.get().version == 1
    assert state(store, 2) == ("START", f"waits for {missing.replace('00000-of-00001', '*')}, which does not exist yet")
    assert not caplog.records
    shutil.copy(pets.folder / "2" / missing, half / missing)
    settle()
    store.refresh()
    assert store.get().version == 2


@pytest.mark.slow
def test_a_version_whose_files_still_change_waits(folder, pets, settings):
    store = ModelStore(settings, poll_seconds=1.0)
    time.sleep(1.0)
    shutil.copytree(pets.folder / "2", folder / "2")
    os.utime(folder / "2" / "saved_model.pb", (0, 0))  # a copy that keeps old times is no proof of age
    store.refresh()
    assert store.get().version == 1
    time.sleep(1.0)
    store.refresh()
    assert store.get().version == 2


def test_an_emptied_folder_leaves_what_is_served(folder, store, instances):
    shutil.rmtree(folder)
    store.refresh()
    assert store.get().version == 1
    assert answer(store.get(), instances).shape == (6, 3)


def test_the_folder_is_followed_in_the_background(folder, pets):
    store = ModelStore(ModelSettings("pets", folder), poll_seconds=0.1)
    store.start()
    put(pets.folder / "2", folder / "2")
    wait_until(lambda: store.get().version == 2)
    store.stop()


def test_starting_without_a_folder_or_a_version_says_why(tmp_path, pets):
    def start(folder):
        ModelStore(ModelSettings("pets", folder), poll_seconds=0.1).start()

    with pytest.raises(ServingError, match="nowhere: the folder does not exist"):
        start(tmp_path / "nowhere")
    with pytest.raises(ServingError, match=r"Run `crowdzoo export .*m\.keras FOLDER`"):
        start(tmp_path / "m.keras")
    with pytest.raises(ServingError, match=r"holds no complete model.*crowdzoo export.*--wait"):
        start(tmp_path)
    with pytest.raises(ServingError, match=r"is one version of a model\. Serve the folder above it"):
        start(pets.folder / "1")
    (tmp_path / "3").mkdir()
    with pytest.raises(ServingError, match=r"\n  version 3: waits for saved_model\.pb"):
        start(tmp_path)
    (tmp_path / "3" / "variables").mkdir()
    (tmp_path / "3" / "variables" / "variables.index").write_bytes(b"")
    (tmp_path / "3" / "variables" / "variables.data-00000-of-00001").write_bytes(b"")
    (tmp_path / "3" / "saved_model.pb").write_bytes(b"no protobuf")
    with pytest.raises(ServingError, match="no version can be loaded\n  version 3: "):
        start(tmp_path)


def test_waiting_starts_without_a_version_and_serves_the_first(tmp_path, pets):
    store = ModelStore(ModelSettings("pets", tmp_path / "later"), poll_seconds=0.1)
    store.start(wait=True)
    with pytest.raises(RequestError, match="has no version yet") as caught:
        store.get()
    assert caught.value.http_status == 503
    (tmp_path / "later").mkdir()
    put(pets.folder / "1", tmp_path / "later" / "1")
    wait_until(lambda: store.statuses() and state(store, 1)[0] == "AVAILABLE")
    store.stop()
    assert store.get().version == 1


@pytest.mark.slow
def test_a_version_that_did_not_load_is_tried_again_after_a_while(folder, pets, store, monkeypatch):
    def fails(path, version, limits):
        raise MemoryError

    put(pets.folder / "2", folder / "2")
    with monkeypatch.context() as patched:
        patched.setattr(model_store, "LoadedModel", fails)
        store.refresh()
    monkeypatch.setattr(model_store, "RETRY_SECONDS", 0.0)
    store.refresh()
    assert store.get().version == 2


@pytest.mark.slow
@pytest.mark.parametrize(("what", "lines"), [("the folder", 1), ("the version", 2)])
def test_what_vanishes_or_cannot_be_read_is_logged_once_and_said_in_the_status(
    folder, pets, store, caplog, what, lines
):
    put(pets.folder / "2", folder / "2")
    store.refresh()
    broken = [folder] if what == "the folder" else [folder / "1" / "assets", folder / "2" / "assets"]
    for path in broken:
        path.rename(path.with_name("aside"))
        path.symlink_to(path)  # os.walk and Path.stat refuse a link to itself, for root too
    store.refresh()
    store.refresh()
    assert store.get().version == 2
    state_of, error = state(store, 2)
    assert state_of == "AVAILABLE"
    assert "cannot be read (Too many levels of symbolic links)" in error
    assert str(folder) not in error
    assert len([record for record in caplog.records if "cannot be read" in record.message]) == lines  # one a version
    for path in broken:
        path.unlink()
        path.with_name("aside").rename(path)
    store.refresh()
    assert state(store, 2) == ("AVAILABLE", "")


@pytest.mark.slow
def test_a_version_whose_folder_is_gone_leaves_the_status_unless_it_is_served(folder, pets, settings, store, caplog):
    settings.labels.clear()
    put(pets.folder / "2", folder / "2")
    store.refresh()
    shutil.rmtree(folder / "1")
    store.refresh()
    assert [one.version for one in store.statuses()] == [2]
    with pytest.raises(RequestError, match="has no version 1"):
        store.statuses(version=1)
    shutil.rmtree(folder / "2")
    store.refresh()
    assert state(store, 2) == ("AVAILABLE", "its folder is gone; it is served from memory")
    assert sum("is gone" in record.message for record in caplog.records) == 1


def test_a_file_that_does_not_answer_leaves_the_version_out(folder, pets, store, monkeypatch):
    put(pets.folder / "2", folder / "2")
    os.mkfifo(folder / "2" / "assets" / "names")
    settle()
    store.refresh()
    assert store.get().version == 1
    assert state(store, 2) == ("END", "OSError: assets/names is not a regular file")


def test_an_answer_over_the_network_names_no_place_on_this_machine(tmp_path):
    served = tmp_path / "my models" / "7"
    text = f"{served}/variables/x.index: cannot be read by /usr/lib/python3/site.py; see {served}"
    assert model_store.without_paths(text, served) == "variables/x.index: cannot be read by site.py; see 7"
