import pytest

from crowdzoo.errors import ServingError
from crowdzoo.files.version_folders import (
    MAX_VERSION,
    complete_versions,
    newest_version,
    next_version,
    version_folders,
    version_number,
)


def model(folder):
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    return folder


def test_versions_are_ordered_by_number_and_incomplete_or_hidden_ones_do_not_count(tmp_path):
    for name in ("10", "9", ".pushing", "notes"):
        model(tmp_path / name)
    (tmp_path / "11").mkdir()
    assert [path.name for path in complete_versions(tmp_path)] == ["9", "10"]
    assert complete_versions(tmp_path / "not there") == []
    assert newest_version(tmp_path) == newest_version(tmp_path / "10") == tmp_path / "10"
    assert next_version(tmp_path) == 12, "an incomplete version has its number"
    assert next_version(tmp_path / "not there") == 1


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ServingError, match="holds no model"):
        newest_version(tmp_path)
    with pytest.raises(ServingError, match="the folder does not exist"):
        newest_version(tmp_path / "not there")
    for name, reason in (("model.keras", r"Run `crowdzoo export .*model\.keras FOLDER`"), ("model.txt", "a file, not")):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ServingError, match=reason):
            newest_version(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("7", 7), ("0" * 30 + "7", 7), ("0", 0), (str(MAX_VERSION), MAX_VERSION), (str(MAX_VERSION + 1), None),
        ("9" * 5000, None), ("-1", None), ("٣", None), ("x", None), ("", None),
    ],
)  # fmt: skip
def test_a_version_is_a_number_of_64_bits_in_plain_digits(name, number):
    assert version_number(name) == number


def test_two_names_of_one_version_and_numbers_that_are_none_are_told_apart(tmp_path):
    for name in ("7", "007", "٣", str(2**63), "12"):
        model(tmp_path / name)
    (tmp_path / "13").write_text("a file")
    found, refused = version_folders(tmp_path)
    assert found == {7: tmp_path / "7", 12: tmp_path / "12"}
    assert sorted(refused) == sorted(["007", "٣", str(2**63)])
