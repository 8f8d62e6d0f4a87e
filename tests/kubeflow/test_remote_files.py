import gzip
import time
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.components.drift_validator import fetch_baseline
from crowdzoo.components.input_files import content_hashes, own_copies
from crowdzoo.components.remote_files import fetch, remote_files, upload
from crowdzoo.components.remote_serving import push_remote_version, remote_baseline, remote_versions
from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.components.trainer import PipelineCheckpoint
from crowdzoo.errors import DataError, PipelineError

pytestmark = pytest.mark.xdist_group("engines")


def put(client, **files):
    for key, content in files.items():
        client.put_object(Bucket="crowd", Key=key, Body=content)


def model(folder, content):
    """A folder that looks like a SavedModel."""
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(content)
    (folder / "variables" / "variables.index").write_bytes(b"index")
    return folder


def test_a_file_is_fetched_as_it_is_also_where_its_name_says_that_it_is_packed(client, tmp_path):
    packed = gzip.compress(b"task,annotator,label\n")
    put(client, **{"files/a.csv.gz": packed})
    fetch("s3://crowd/files/a.csv.gz", tmp_path / "deep" / "a.csv.gz")
    assert (tmp_path / "deep" / "a.csv.gz").read_bytes() == packed


def test_a_folder_is_fetched_with_what_is_below_it_and_nothing_beside_it(client, tmp_path):
    put(client, **{"photos/1.png": b"1", "photos/more/2.png": b"2", "photos2/3.png": b"3"})
    fetch("s3://crowd/photos/", tmp_path / "photos")
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"photos/1.png", "photos/more/2.png"}


def test_the_last_file_of_an_upload_is_written_last(client, tmp_path, monkeypatch):
    made = model(tmp_path / "model", b"x")
    (made / "z.txt").write_bytes(b"z")
    upload(made, "s3://crowd/uploaded/1", last="saved_model.pb")
    listed = client.list_objects_v2(Bucket="crowd", Prefix="uploaded/1/")["Contents"]
    newest = max(listed, key=lambda each: each["LastModified"])
    assert len(listed) == 3
    assert newest["LastModified"] == next(e for e in listed if e["Key"].endswith("saved_model.pb"))["LastModified"]
    with pytest.raises(PipelineError, match=r"s3://nobucket/1/variables/variables.index: cannot be written"):
        upload(model(tmp_path / "other", b"y"), "s3://nobucket/1", last="saved_model.pb")


def test_versions_are_the_folders_with_a_number_and_a_model_oldest_first(client):
    put(client, **{
        "versions/10/saved_model.pb": b"", "versions/9/saved_model.pb": b"", "versions/11/variables/index": b"",
        "versions/latest/saved_model.pb": b"", "versions/8/deep/saved_model.pb": b"",
    })  # fmt: skip
    assert remote_versions("s3://crowd/versions/") == ["s3://crowd/versions/9", "s3://crowd/versions/10"]
    assert remote_versions("s3://crowd/noversions") == []


@pytest.mark.slow
def test_a_push_is_a_new_version_above_all_others_and_complete(client, tmp_path):
    made = model(tmp_path / "model", b"first")
    future = int(time.time()) + 10**6
    put(client, **{f"pushes/{future}/variables/index": b"left by a push that was killed"})
    version = push_remote_version(made, "s3://crowd/pushes")
    assert version == f"s3://crowd/pushes/{future + 1}"
    assert remote_versions("s3://crowd/pushes") == [version]
    fetch(version, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy") == fingerprint(made)
    assert push_remote_version(made, "s3://crowd/pushes") == version, "the newest version is not pushed again"
    assert len(remote_files("s3://crowd/pushes/**")) == 3


@pytest.mark.slow
def test_the_baseline_is_the_newest_version_of_another_model(client, tmp_path):
    first, second = model(tmp_path / "first", b"1"), model(tmp_path / "second", b"2")
    assert remote_baseline(first, "s3://crowd/baselines", tmp_path / "none") is None
    old = push_remote_version(first, "s3://crowd/baselines")
    push_remote_version(second, "s3://crowd/baselines")
    found = remote_baseline(second, "s3://crowd/baselines", tmp_path / "found")
    assert found is not None
    assert found.endswith(old.rsplit("/", 1)[1])
    assert fingerprint(found) == fingerprint(first)


def test_versions_in_a_store_without_statistics_are_passed_over(client, tmp_path):
    put(client, **{
        "drift/1/saved_model.pb": b"", "drift/1/assets.extra/drift/source.txt": b"s1",
        "drift/2/saved_model.pb": b"", "drift/2/assets.extra/drift/source.txt": b"s2",
        "drift/3/saved_model.pb": b"",
    })  # fmt: skip
    before = fetch_baseline("s3://crowd/drift", "s2", str(tmp_path))
    assert before is not None
    assert (before / "source.txt").read_text() == "s1"


def test_inputs_at_uris_are_copied_checked_and_removed(client, tmp_path):
    put(client, **{"inputs/a.csv": b"task,annotator,label\nt,a,cat\n"})
    files = {"annotations": "s3://crowd/inputs/a.csv"}
    with own_copies(files, None, tmp_path) as copies:
        (tmp_path / "same.csv").write_bytes(b"task,annotator,label\nt,a,cat\n")
        assert Path(copies["annotations"]).read_bytes() == (tmp_path / "same.csv").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["same.csv"]
    with own_copies(files, content_hashes({"annotations": tmp_path / "same.csv"}), tmp_path):
        pass
    with (
        pytest.raises(DataError, match=r"s3://crowd/inputs/a.csv: its content changed"),
        own_copies(files, {"annotations": "0" * 64}, tmp_path),
    ):
        pass


def test_a_checkpoint_is_kept_in_the_store_and_removed_from_it(client):
    """That a training goes on from it is told in components/test_trainer.py."""
    first, later = (PipelineCheckpoint("s3://crowd/runs/checkpoint", np.zeros((4, 2)), {}) for _ in range(2))
    first.on_begin({"epochs": 4})
    first.folder.mkdir(parents=True)
    for name in ("checkpoint.json", "phase-0.npz"):
        (first.folder / name).write_text(name)
        first.on_write(first.folder / name)
    later.on_begin({"epochs": 4})
    assert {path.name: path.read_text() for path in later.folder.iterdir()} == {
        name: name for name in ("checkpoint.json", "phase-0.npz")
    }
    later.remove()
    assert not remote_files("s3://crowd/runs/checkpoint/**")
