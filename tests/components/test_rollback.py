"""Versions that are taken back, vetoes, and what a kill in between leaves."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from known_models import model_folder, weights_of

from crowdzoo.components import rollback
from crowdzoo.components.rollback import describe_versions, lift_veto, take_back, veto_of, vetoes_of
from crowdzoo.components.serving_folder import baseline_of, fingerprint, push_version
from crowdzoo.errors import DataError, ServingError
from crowdzoo.files.version_folders import complete_versions


def write_model(folder, weights, lineage=None, **blessing):
    card = {"classes": ["x"], "software": {}, "format_version": 1, **({"lineage": lineage} if lineage else {})}
    return model_folder(folder, weights, model_card=card, **({"blessing": blessing} if blessing else {}))


def origin(data, settings="s1"):
    return {"inputs": {"annotations": data}, "settings": settings}


@pytest.fixture
def served(tmp_path):
    for number in (3, 4, 5):
        write_model(tmp_path / "served" / str(number), f"weights {number}", origin(f"data {number}"))
    return tmp_path / "served"


def newest(folder):
    return complete_versions(folder)[-1].name


def test_the_version_before_the_newest_is_served_again_and_nothing_is_lost(served):
    vetoes, now = take_back(served, reason="worse on cats")
    assert now == served / "4"
    assert newest(served) == "4"
    assert weights_of(served / "withdrawn" / "5") == "weights 5"
    (veto,) = vetoes
    assert vetoes_of(served) == vetoes
    assert (veto.version, veto.reason, veto.settings) == (5, "worse on cats", "s1")
    assert "worse on cats" in str(veto)


def test_a_vetoed_model_is_recognized_by_its_files_or_by_its_data_and_settings(served, tmp_path):
    take_back(served)
    same_files = write_model(tmp_path / "same", "weights 5", origin("data 5"))
    trained_again = write_model(tmp_path / "again", "other weights", origin("data 5"))
    other_data = write_model(tmp_path / "data", "other weights", origin("data 6"))
    other_settings = write_model(tmp_path / "settings", "other weights", origin("data 5", "s2"))
    without_card = write_model(tmp_path / "unknown", "other weights")
    assert fingerprint(same_files) == vetoes_of(served)[0].fingerprint
    assert veto_of(same_files, served) == veto_of(trained_again, served) == vetoes_of(served)[0]
    assert [veto_of(model, served) for model in (other_data, other_settings, without_card)] == [None] * 3


def test_a_new_version_gets_a_number_that_no_withdrawn_one_has(served, tmp_path):
    write_model(served / "9999999998", "later than now")
    take_back(served, to=3)
    assert push_version(write_model(tmp_path / "new", "new"), served).name == "9999999999"


def test_the_baseline_of_a_candidate_is_the_version_that_was_gone_back_to(served, tmp_path):
    take_back(served, to=3)
    assert baseline_of(write_model(tmp_path / "new", "new"), served) == served / "3"


def test_a_lifted_veto_puts_the_version_back(served):
    take_back(served, to=3)
    assert lift_veto(served, 5) == served / "5"
    assert newest(served) == "5"
    assert [veto.version for veto in vetoes_of(served)] == [4]
    with pytest.raises(ServingError, match=r"version 5 was not taken back\. Versions that were: 4\."):
        lift_veto(served, 5)


@contextlib.contextmanager
def someone_else_first(action):
    """Has another process do something right before this one gets the lock."""
    lock = rollback.lock_folder

    @contextlib.contextmanager
    def lock_later(folder):
        rollback.lock_folder = lock
        action()
        with lock(folder) as locks:
            yield locks

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollback, "lock_folder", lock_later)
        yield


def test_a_version_that_is_pushed_while_a_rollback_waits_is_taken_back_too(served):
    with someone_else_first(lambda: write_model(served / "6", "weights 6")):
        assert take_back(served, to=4)[1] == served / "4"
    assert newest(served) == "4"
    assert {veto.version for veto in vetoes_of(served)} == {5, 6}


def test_a_version_that_is_taken_back_while_a_rollback_to_it_waits_is_not_served(served):
    with (
        someone_else_first(lambda: take_back(served, to=3)),
        pytest.raises(ServingError, match="has no version 4; its "),
    ):
        take_back(served)
    assert newest(served) == "3"
    assert {veto.version for veto in vetoes_of(served)} == {4, 5}


def test_a_veto_that_is_recorded_while_another_one_is_lifted_stays(served):
    take_back(served)
    with someone_else_first(lambda: take_back(served)):
        lift_veto(served, 5)
    assert {veto.version for veto in vetoes_of(served)} == {4}


def test_what_cannot_be_gone_back_to_is_refused_and_nothing_changes(served, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ServingError, match=r"has no version 9; its versions are 3, 4, 5"):
        take_back(served, to=9)
    write_model(tmp_path / "alone" / "1", "weights")
    with pytest.raises(ServingError, match="is the only version"):
        take_back(tmp_path / "alone")
    with pytest.raises(ServingError, match="holds no served version"):
        take_back(tmp_path / "nowhere")
    assert [path for path in sorted(tmp_path.rglob("*")) if "alone" not in path.parts] == before


def test_a_broken_file_of_vetoes_is_named(served):
    take_back(served)
    (served / "withdrawn" / "vetoes.json").write_text('{"vetoes": [{"version": 1}]}')
    with pytest.raises(DataError, match=r"vetoes\.json: not a list of vetoes"):
        vetoes_of(served)


KILLED = """
import os, signal, sys
from crowdzoo.components import rollback
moves = 0
rename = os.rename

def rename_or_die(*paths):
    global moves
    moves += 1
    if moves > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*paths)

rollback.os.rename = rename_or_die
rollback.take_back(sys.argv[1], to=3)
"""


@pytest.mark.parametrize("moves", [0, 1])
def test_a_kill_between_two_moves_leaves_a_served_version_and_the_same_call_completes_it(served, moves):
    killed = subprocess.run([sys.executable, "-c", KILLED, served, str(moves)])
    assert killed.returncode == -signal.SIGKILL
    assert newest(served) == "5", "the served version is moved last"
    assert {veto.version for veto in vetoes_of(served)} == {4, 5}, "nothing is moved without its veto"
    take_back(served, to=3)
    assert [path.name for path in complete_versions(served)] == ["3"]
    assert {veto.version for veto in vetoes_of(served)} == {4, 5}
    assert sorted(path.name for path in (served / "withdrawn").iterdir()) == ["4", "5", "vetoes.json"]


def test_versions_are_described(served, tmp_path):
    write_model(served / "7", "weights 7", metric="accuracy", outcome="pushed", candidate={"accuracy": 0.9125})
    (served / "8").mkdir()  # without a saved_model.pb
    os.utime(served / "7", (1_700_000_000, 1_700_000_000))
    rows = describe_versions(served)
    assert [row[:2] for row in rows] == [(8, "incomplete"), (7, "served"), (5, "older"), (4, "older"), (3, "older")]
    assert rows[1][2:] == ("2023-11-14 22:13", "pushed", "accuracy 0.9125", "")
    take_back(served, to=5)
    rows = describe_versions(served)
    assert [row[:2] for row in rows] == [(8, "incomplete"), (7, "withdrawn"), (5, "served"), (4, "older"), (3, "older")]
    assert rows[1][4] == "accuracy 0.9125"
    assert rows[1][5].startswith("version 7 was taken back on ")
