"""Results of Amazon Mechanical Turk."""

import csv
import io
import json
import re

import pytest
from refusals import bad_row

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.reading.platforms.export import Export

HEAD = ("HITId", "HITTypeId", "Title", "AssignmentId", "WorkerId", "AssignmentStatus", "Input.image_url")


def batch(*rows, answers=("Answer.category",), head=HEAD):
    """CSV of a batch; a row is task, worker, status and the answers."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)  # as MTurk writes it
    writer.writerow((*head, *answers, "Approve", "Reject"))
    for hit, worker, status, *said in rows:
        said = [*said, *[""] * (len(answers) + 2 - len(said))]
        writer.writerow((hit, "T", "Sort images", "A", worker, status, f"https://example.org/{hit}.jpg", *said))
    return text.getvalue()


def test_an_assignment_is_a_row(write, rows_of):
    path = write("batch.csv", batch(("H1", "W1", "Approved", "cat"), ("H1", "W2", "Submitted", "dog")))
    assert rows_of(path, "mturk") == [("H1", "W1", "cat"), ("H1", "W2", "dog")]


def test_rejected_assignments_are_left_out_and_counted(write, rows_of):
    path = write("batch.csv", batch(
        ("H1", "W1", "Rejected", "cat"), ("H1", "W2", "Submitted", "dog", "", "too fast"),
        ("H1", "W3", "Approved", "dog", "X", ""), ("H1", "W4", "Approved", ""),
    ))  # fmt: skip
    with pytest.warns(UserWarning, match="rejected assignments: 2; .* an answer to 'category': 1"):
        assert rows_of(path, "mturk") == [("H1", "W3", "dog")]


def test_radio_buttons_are_one_column_an_option(write, rows_of):
    answers = ("Answer.category.cat", "Answer.category.dog", "Answer.category.U.S. dog")
    path = write("batch.csv", batch(
        ("H1", "W1", "Approved", "true", "false", "false"), ("H1", "W2", "Approved", "false", "false", "TRUE"),
        answers=answers,
    ))  # fmt: skip
    assert rows_of(path, "mturk") == [("H1", "W1", "cat"), ("H1", "W2", "U.S. dog")]


def test_a_single_checkbox_is_true_or_false(write, rows_of):
    path = write("batch.csv", batch(
        ("H1", "W1", "Approved", "true"), ("H1", "W2", "Approved", "false"), answers=("Answer.adult.on",)
    ))  # fmt: skip
    assert rows_of(path, "mturk") == [("H1", "W1", "true"), ("H1", "W2", "false")]


@pytest.mark.parametrize(
    ("form", "label"),
    [
        ([{"category": {"label": "cat"}}], "cat"),
        ([{"category": {"cat": True, "dog": False}}], "cat"),
        ([{"category": {"labels": ["cat"]}}], "cat"),
        ([{"category": "cat"}], "cat"),
        ({"category": {"on": False}}, "false"),
        ([{"category": 3}], 3),
    ],
)
def test_answers_of_a_form_are_json_in_one_column(write, rows_of, form, label):
    path = write("batch.csv", batch(("H1", "W1", "Approved", json.dumps(form)), answers=("Answer.taskAnswers",)))
    assert rows_of(path, "mturk") == [("H1", "W1", label)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (batch(("H1", "W1", "Approved", "{"), answers=("Answer.taskAnswers",)), "row 2, column .*: '{' is not JSON"),
        (batch(("H1", "W1", "Approved", "cat")) + '"H2","T"\r\n', "row 3.*has 2 values where the header has 10"),
        (batch(("H1", "W1", "Approved", "cat")) + '"H2', "row 3: cannot be parsed: unexpected end"),
        (batch(("H1", "W1", "Approved", "cat")).encode().replace(b"\"cat", b"\"c\xfft"), "row 2.*is not UTF-8"),
        (batch(("H1", "W1", "Approved", "cat"), answers=("WorkerId",)), "column 'WorkerId' is there 2 times"),
        (batch(), "holds no entries of Amazon Mechanical Turk"),
        ("", "the first line, which names the columns, is empty"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_its_row(write, rows_of, content, says):
    with pytest.raises(DataError, match=f"batch.csv.*{says}"):
        rows_of(write("batch.csv", content), "mturk")


def photographs(folder, *names):
    image = pytest.importorskip("PIL.Image")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (8, 8)).save(folder / name)


@pytest.mark.parametrize("names", [["1.jpg", "2.png", "3.jpg"], ["cats/1.jpg", "cats/2.png", "dogs/3.jpg"]])
def test_a_folder_of_photographs_fits_a_batch_by_the_names_of_the_images(write, tmp_path, names):
    photographs(tmp_path / "photos", *names)
    said = (("H1", "W1", "cat"), ("H1", "W2", "dog"), ("H2", "W1", "dog"), ("H3", "W3", "dog"))
    text = batch(*((hit, worker, "Approved", label) for hit, worker, label in said))
    urls = {
        "H1": "https://b.org/photos/1.jpg?v=2",
        "H2": "https://b.org/photos/2.png",
        "H3": "https://b.org/photos/1.jpg?v=3",
    }
    for hit, url in urls.items():  # two HITs of one photograph are one task
        text = text.replace(f"https://example.org/{hit}.jpg", url)
    path = write("batch.csv", text)
    found = kind_of("classification").training.read(path, tmp_path / "photos", platform="mturk")
    crowd = found.annotations
    tasks = [crowd.tasks[task] for task in crowd.task_ids]
    assert [str(task) for task in tasks] == ["1", "1", "2", "1"]
    assert [path.name for path in found.x] == ["1.jpg", "2.png", "3.jpg"]
    assert crowd.num_tasks == 3


def test_two_images_of_one_file_name_are_not_one_task(write):
    """They were once, without a word: `cats/1.jpg` and `dogs/1.jpg` were both the photograph `1`."""
    text = batch(*((hit, who, "Approved", "cat") for hit in ("H1", "H2", "H3") for who in ("W1", "W2")))
    for hit, url in {"H1": "s3://b/cats/1.jpg?a", "H2": "s3://b/dogs/1.jpg", "H3": "s3://b/3.jpg"}.items():
        text = text.replace(f"https://example.org/{hit}.jpg", url)
    path = write("batch.csv", text)
    with pytest.raises(DataError) as error:
        Annotations.read(path, platform="mturk", image=True)
    assert [row.row for row in error.value.rows] == [4, 5]
    assert bad_row(4, "Input.image_url", "s3://b/dogs/1.jpg")(error.value)
    assert error.value.rows[0].reason.startswith("has the file name of 's3://b/cats/1.jpg?a'")
    with pytest.warns(UserWarning, match="2 rows were left out"):
        found = Annotations.read(path, platform="mturk", image=True, on_bad_rows="reject")
    assert found.tasks.tolist() == [1, 3]
    assert found.redundancy.tolist() == [2, 2]
    assert Annotations.read(path, platform="mturk").num_tasks == 3


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        ("HITId", "does not look like an export of Amazon Mechanical Turk: it has no column 'HITId'. In Manage"),
        ("WorkerId", "does not look like an export of Amazon Mechanical Turk: it has no column 'WorkerId'. In Manage"),
        ("Answer.category", "has no answers: it has no column whose name begins with 'Answer.'. In Manage"),
        ("Input.image_url", "does not name the images of the tasks: it has no column whose name begins with 'Input.'."),
    ],
)
def test_a_column_that_the_file_lacks_is_named(write, left_out, says):
    header, row = csv.reader(io.StringIO(batch(("H1", "W1", "Approved", "cat"))))
    place = header.index(left_out)
    path = write("batch.csv", "\n".join(",".join(cells[:place] + cells[place + 1 :]) for cells in (header, row)) + "\n")
    with pytest.raises(DataError, match=re.escape(f"{path}: {says}")):
        Annotations.read(path, platform="mturk", image=True)


def test_gold_that_names_the_photographs_goes_with_their_names(write, tmp_path, capsys):
    """Without `--image` it matched nothing, and that was not said."""
    write("batch.csv", batch(*((hit, who, "Approved", "cat") for hit in ("H1", "H2") for who in ("W1", "W2"))))
    gold = write("gold.csv", "task,gold\nH1,cat\n7,cat\n")
    words = ["aggregate", str(tmp_path / "batch.csv"), "--platform", "mturk", "--gold", str(gold), "--out"]
    assert main([*words, str(tmp_path / "a"), "--image", "Input.image_url"]) == 0
    assert "1.0000 (on 1 task with gold" in capsys.readouterr().out
    write("gold.csv", "task,gold\nH1.jpg,cat\nH2.jpg,cat\n")
    assert main([*words, str(tmp_path / "b")]) == 3
    assert "look like 'H1.jpg', those of the annotations like 'H1'." in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
    assert main(["aggregate", str(gold), "--image", "x", "--out", str(tmp_path / "b")]) == 4
    assert "--image belongs to an export of a labelling platform" in capsys.readouterr().err


ITEMS = """HITId,WorkerId,Input.url1,Input.url2,Input.topic,Answer.X1,Answer.X2,Reject
H1,w1,a/u1.jpg,u2.jpg,pets,cat,dog,
H1,w2,a/u1.jpg,u2.jpg,pets,cat,cat,
H2,w1,u3.jpg,u4.jpg,cars,dog,dog,
H2,w3,u3.jpg,u4.jpg,cars,cat,cat,x
"""


def test_each_item_of_a_hit_is_a_task(write, rows_of):
    file = write("batch.csv", ITEMS)
    rows = [("w1", "cat"), ("w1", "dog"), ("w2", "cat"), ("w2", "cat"), ("w1", "dog"), ("w1", "dog")]
    for options, tasks in (
        ({}, ["H1/1", "H1/2", "H1/1", "H1/2", "H2/1", "H2/2"]),
        ({"image": "url"}, ["u1", "u2", "u1", "u2", "u3", "u4"]),
    ):
        with pytest.warns(UserWarning, match="left out: rejected assignments: 1"):
            found = Annotations.read(file, platform="mturk", field="X*", **options)
        labels = zip(found.annotators[found.annotator_ids], found.classes[found.labels], strict=True)
        assert found.tasks[found.task_ids].tolist() == tasks
        assert list(labels) == rows
    records = [*Export(file, "mturk", field="X*").records()]
    assert [record.data for record in records[:2]] == [
        {"topic": "pets", "url": "a/u1.jpg"}, {"topic": "pets", "url": "u2.jpg"}
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"If they are items of a task: field='X\*'"):
        Annotations.read(file, platform="mturk")


def test_an_empty_object_is_no_answer(write, rows_of):
    path = write("batch.csv", batch(("H1", "W1", "Approved", "cat"), ("H1", "W2", "Approved", "{}")))
    with pytest.warns(UserWarning, match="assignments without an answer to 'category': 1"):
        assert rows_of(path, "mturk") == [("H1", "W1", "cat")]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_header_that_repeats_in_joined_batches_is_a_bad_row(write, rows_of, mark):
    one, two = batch(("H1", "W1", "Approved", "cat")), batch(("H2", "W1", "Approved", "dog"))
    path = write("batch.csv", mark + one + mark + two)
    with pytest.raises(DataError, match=r"row 3: .* repeats the names of the columns"):
        rows_of(path, "mturk")
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert rows_of(path, "mturk", on_bad_rows="reject") == [("H1", "W1", "cat"), ("H2", "W1", "dog")]
