"""What was pulled of a project, in a file."""

import contextlib
import sqlite3
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from crowdzoo.commands import label_studio
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.label_studio import LabelStudioError, Project
from crowdzoo.label_studio.store import Store


def task(number, *answers, **more):
    return {"id": number, "data": {"text": "a"}, "total_annotations": len(answers), "annotations": [*answers], **more}


def answer(number, label="cat", **more):
    return {"id": number, "completed_by": 1, "result": [label], "parent_prediction": None, **more}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pulled.sqlite"


def test_changes_are_counted(path):
    store = Store(path)
    assert store.put([task(1, answer(1), answer(2)), task(5)]) == {"new tasks": 2, "new answers": 2}
    assert store.put([task(1, answer(1), answer(2), is_labeled=True, predictions=[1]), task(5)]) == {}
    assert store.put([task(1, answer(2, "dog"), answer(3))]) == {
        "new answers": 1, "changed answers": 1, "deleted answers": 1
    }  # fmt: skip
    assert store.put([task(5, data={"text": "b"})]) == {"changed tasks": 1}
    assert store.totals() == (2, 2)
    assert store.totals(2, 9) == (1, 0)
    assert store.delete([1]) == {"deleted tasks": 1, "deleted answers": 2}
    store.close()
    store = Store(path)
    assert store.ids() == [5]
    store.close()


def test_what_an_answer_was_made_of_is_kept_when_the_prediction_goes(path):
    store = Store(path)
    store.put([task(1, answer(1, parent_prediction=7))])
    assert store.put([task(1, answer(1))]) == {}
    assert next(store.tasks())["annotations"][0]["parent_prediction"] == 7
    store.close()


def test_a_block_that_is_interrupted_leaves_nothing(path):
    store = Store(path)
    with contextlib.suppress(KeyboardInterrupt), store:
        store.put([task(1)])
        store.set_facts(last=1)
        raise KeyboardInterrupt
    assert (store.ids(), store.fact("last")) == ([], None)
    store.close()


@pytest.mark.parametrize("content", [b"not a database, but a text that is long enough" * 10, None])
def test_other_files_and_those_of_later_releases_are_refused(path, content):
    if content is None:
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 99")
        database.close()
    else:
        path.write_bytes(content)
    with pytest.raises(DataError, match="Update crowdzoo" if content is None else "Remove the file"):
        Store(path)


def test_without_a_token_the_command_says_where_to_get_one(tmp_path, monkeypatch, refusal_of):
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    words = ["label-studio", "http://127.0.0.1:9", "--project", "1", "--out", str(tmp_path / "out")]
    assert "export LABEL_STUDIO_API_KEY=TOKEN" in refusal_of(*words)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="token is missing"):
        Project("http://127.0.0.1:9", 1)


@pytest.mark.parametrize(
    ("more", "reason"),
    [(["--push", "views,tasks"], "predictions, views, next"), (["--dry-run"], "add --push")],
)
def test_options_that_cannot_be_are_refused_before_anything_is_asked(tmp_path, monkeypatch, capsys, more, reason):
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "abc")
    assert main(["label-studio", "http://127.0.0.1:9", "--project", "1", "--out", str(tmp_path / "out"), *more]) == 4
    assert reason in capsys.readouterr().err


def test_a_folder_of_something_else_is_not_written_to(tmp_path, monkeypatch, refusal_of):
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "abc")
    (tmp_path / "thesis.txt").write_text("mine")
    assert "is not empty" in refusal_of("label-studio", "http://127.0.0.1:9", "--project", "1", "--out", str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_belongs_to_a_project_once_something_was_pulled(tmp_path):
    for number in (99, 1):  # the first was a mistake, and nothing was pulled
        Project("http://127.0.0.1:9", number, "token", folder=tmp_path).close()
    with Project("http://127.0.0.1:9", 1, "token", folder=tmp_path) as project:
        project.store.put([task(7)])
    with pytest.raises(ConfigError, match=r"project 1\. Name another folder"):
        Project("http://127.0.0.1:9", 2, "token", folder=tmp_path)


def test_what_a_round_could_not_send_is_sent_by_the_next_one(tmp_path, monkeypatch, capsys):
    rounds = iter([True, True, False])  # whether something changed
    pushed, is_done = [], iter([False, True])

    def pull(project):
        project.settings = {
            "title": "t",
            "label_config": "<View><Text name='t' value='$t'/><TextArea name='c' toName='t'/></View>",
        }
        with project.store:
            project.store.set_facts(changed=next(rounds))
        return Counter()

    def results(arguments, *_):
        (arguments.out / "report.html").write_text("<head></head>")
        return SimpleNamespace(is_done=next(is_done, True))

    def push(*_):
        pushed.append(len(pushed))
        if len(pushed) == 2:
            raise LabelStudioError("gone")
        return []

    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "abc")
    monkeypatch.setattr(Project, "pull", pull)
    monkeypatch.setattr(label_studio, "_results", results)
    monkeypatch.setattr(label_studio.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(sys.modules["crowdzoo.label_studio.pushing"], "push", push)
    words = ["label-studio", "http://127.0.0.1:9", "--project", "1", "--out", str(tmp_path / "out")]
    assert main([*words, "--every", "1", "--push", "predictions"]) == 0
    assert len(pushed) == 3
    assert "gone The next round tries again." in capsys.readouterr().err
