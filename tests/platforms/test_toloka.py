"""Results of a pool of Toloka."""

import pytest

from crowdzoo.errors import DataError

HEAD = ["INPUT:image", "OUTPUT:result", "GOLDEN:result", "HINT:text", "ASSIGNMENT:link", "ASSIGNMENT:task_id",
        "ASSIGNMENT:assignment_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]  # fmt: skip


def row(task, worker, label, status="APPROVED", golden=""):
    return [f"https://example.org/{task}.jpg", label, golden, "", "https://example.org/t/1", task, "a1", worker, status]


def pool(*rows, head=HEAD):
    return "\n".join("\t".join(cells) for cells in (head, *rows)) + "\n"


def test_a_response_is_a_row_and_blank_lines_between_suites_do_not_count(write, rows_of):
    path = write("pool.tsv", pool(row("t1", "w1", "OK"), [], row("t2", "w1", "BAD"), [""], row("t2", "w2", "OK")))
    assert rows_of(path, "toloka") == [("t1", "w1", "OK"), ("t2", "w1", "BAD"), ("t2", "w2", "OK")]


def test_answers_to_control_tasks_count_and_golden_is_gold(write, rows_of):
    path = write("pool.tsv", pool(row("t1", "w1", "OK", golden="BAD")))
    assert rows_of(path, "toloka") == [("t1", "w1", "OK")]


def test_assignments_that_are_not_done_or_not_accepted_are_left_out(write, rows_of):
    path = write("pool.tsv", pool(
        row("t1", "w1", "OK"), row("t1", "w2", "OK", "REJECTED"), row("t1", "w3", "", "SKIPPED"),
        row("t1", "w4", "", "EXPIRED"), row("t1", "w5", "OK", "SUBMITTED"), row("t2", "w1", ""),
    ))  # fmt: skip
    counts = (
        "rejected assignments: 1; skipped assignments: 1; expired assignments: 1; "
        "assignments without an answer to 'result': 1"
    )
    with pytest.warns(UserWarning, match=counts):
        assert rows_of(path, "toloka") == [("t1", "w1", "OK"), ("t1", "w5", "OK")]


def test_without_ids_a_task_is_what_was_shown(write, rows_of):
    head = ["INPUT:left", "INPUT:right", "OUTPUT:better", "ASSIGNMENT:worker_id"]
    path = write("pool.tsv", pool(["a.jpg", "b.jpg", "left", "w1"], head=head))
    assert rows_of(path, "toloka") == [("a.jpg | b.jpg", "w1", "left")]


def test_a_list_is_several_labels(write, rows_of):
    path = write("pool.tsv", pool(row("t1", "w1", '"[""OK"", ""BAD""]"')))
    with pytest.raises(DataError, match="'w1' has labelled task 't1' before, in row 2"):
        rows_of(path, "toloka")


def test_aggregated_results_name_no_annotators(write, rows_of):
    path = write("pool.tsv", pool(["a.jpg", "OK", "93%"], head=["INPUT:image", "OUTPUT:result", "CONFIDENCE:result"]))
    with pytest.raises(DataError, match=r"does not look like an export of Toloka.*Download results"):
        rows_of(path, "toloka")
