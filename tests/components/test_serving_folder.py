import shutil

from known_models import model_folder

from crowdzoo.components.serving_folder import baseline_of, fingerprint


def test_a_copy_has_the_same_fingerprint_and_any_change_another(tmp_path):
    first = model_folder(tmp_path / "a")
    shutil.copytree(first, tmp_path / "b")
    assert fingerprint(first) == fingerprint(tmp_path / "b")
    (tmp_path / "b" / "variables" / "data").rename(tmp_path / "b" / "variables" / "other")
    assert fingerprint(first) != fingerprint(tmp_path / "b")
    assert fingerprint(first) != fingerprint(model_folder(tmp_path / "c", "other weights"))


def test_the_baseline_is_the_newest_version_that_is_not_the_candidate(tmp_path):
    serving = tmp_path / "serving"
    candidate = model_folder(tmp_path / "candidate", "new")
    assert baseline_of(candidate, serving) is None
    old = model_folder(serving / "1", "old")
    assert baseline_of(candidate, serving) == old
    shutil.copytree(candidate, serving / "2")  # pushed: its baseline stays what it was
    assert baseline_of(candidate, serving) == old
    newer = model_folder(serving / "3", "newer")
    assert baseline_of(candidate, serving) == newer
