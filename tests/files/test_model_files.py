"""Files of models that are damaged, tampered with or made to do harm."""

import json
import zipfile

import h5py
import keras
import pytest

import crowdzoo
from crowdzoo.errors import DataError
from crowdzoo.files.model_files import check_keras_file, read_model_card, read_model_names


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.keras"
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="d")]).save(path)
    return path


def rewritten(saved, path, parts, compression=zipfile.ZIP_STORED):
    """The archive with some parts replaced, or left out where None."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w", compression) as new:
        for name in old.namelist():
            content = parts.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
        for name in parts.keys() - set(old.namelist()):
            new.writestr(name, parts[name])
    return path


def weights_with(saved, tmp_path, change):
    """Bytes of the weights after a change."""
    path = tmp_path / "w.h5"
    with zipfile.ZipFile(saved) as archive:
        path.write_bytes(archive.read("model.weights.h5"))
    with h5py.File(path, "a") as file:
        change(file)
    return path.read_bytes()


def test_a_sound_file_loads(saved):
    check_keras_file(saved)
    assert crowdzoo.load_model(saved).count_params() == 3


def test_damaged_files_are_named_with_a_way_out(saved, tmp_path):
    content, config = saved.read_bytes(), zipfile.ZipFile(saved).read("config.json")
    path = tmp_path / "bad.keras"
    damaged = {
        "cut off": content[: len(content) // 2],
        "empty": b"",
        "no archive": b"PK\x03\x04" + b"x" * 100,
        "weights that are none": {"model.weights.h5": b"\x89HDF\r\n\x1a\n" + b"\0" * 50},
        "no config": {"config.json": None},
        "config that is no JSON": {"config.json": config[:-20]},
        "config of something else": {"config.json": b"[1, 2]"},
        "an unknown class": {"config.json": config.replace(b"Dense", b"Sense")},
        "another number of units": {"config.json": config.replace(b'"units": 1', b'"units": 7')},
    }
    for what, change in damaged.items():
        if isinstance(change, bytes):
            path.write_bytes(change)
        else:
            rewritten(saved, path, change)
        with pytest.raises(DataError, match=r"bad\.keras") as caught:
            crowdzoo.load_model(path)
        assert len(str(caught.value)) < 3000, what


@pytest.mark.slow
def test_archives_that_unpack_to_far_more_than_their_size_are_refused_unread(saved, tmp_path):
    path = tmp_path / "bomb.keras"
    for name in ("config.json", "assets/x"):
        rewritten(saved, path, {name: b" " * (200 << 20)}, zipfile.ZIP_DEFLATED)
        with pytest.raises(DataError, match=r"bomb\.keras: .*unpacks to"):
            crowdzoo.load_model(path)


def test_weights_that_unpack_or_point_elsewhere_are_refused(saved, tmp_path):
    def huge(file):
        file.create_dataset("huge", (1 << 30,), "f4", chunks=(1 << 20,), compression="gzip")

    def linked(file):
        file["there"] = h5py.ExternalLink("other.h5", "/x")

    def outside(file):
        file.create_dataset("out", (8,), "u1", external=[(b"secret.txt", 0, 8)])

    for change, message in ((huge, "the weights unpack to"), (linked, "link to elsewhere"), (outside, "another file")):
        path = rewritten(saved, tmp_path / "w.keras", {"model.weights.h5": weights_with(saved, tmp_path, change)})
        with pytest.raises(DataError, match=message):
            check_keras_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "JSON"),
        (b"[]", "not contain a JSON object"),
        (b'{"classes": ["a"]}', "'annotators' should be a list of names"),
        (b'{"classes": "ab", "annotators": []}', "'classes' should be a list of names"),
        (b'{"classes": ["a", 1], "annotators": []}', "'classes' should be a list of names"),
        (b'{"classes": null, "annotators": ["x"], "encoder": 3}', "'encoder' should be a JSON object"),
        (b"\xff", "UTF-8"),
    ],
)
def test_names_beside_a_model_are_checked(content, message, tmp_path):
    path = tmp_path / "m.names.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"m\.names\.json.*{message}"):
        read_model_names(path)


def test_sound_names_and_cards_come_back(tmp_path):
    names = {"classes": ["a", "b"], "annotators": ["x"], "text_ids": {"words": []}}
    (tmp_path / "n.json").write_text(json.dumps(names))
    assert read_model_names(tmp_path / "n.json") == names
    assert read_model_card(tmp_path / "n.json") == names
    (tmp_path / "c.json").write_text("3")
    with pytest.raises(DataError, match="not a model card"):
        read_model_card(tmp_path / "c.json")


def test_a_part_that_leads_out_of_the_archive_is_refused(saved, tmp_path):
    path = rewritten(saved, tmp_path / "out.keras", {"../evil": b"x"})
    with pytest.raises(DataError, match=r"'\.\./evil' that points outside"):
        check_keras_file(path)


@pytest.mark.parametrize("key", ["classes", "annotators", "features"])
def test_half_a_character_is_no_name_of_a_model(tmp_path, key):
    path = tmp_path / "model.names.json"
    path.write_text(json.dumps({"classes": ["a"], "annotators": ["b"], key: ["\ud800"]}))
    with pytest.raises(DataError, match=f"names.json: '{key}' should be a list of names"):
        read_model_names(path)
