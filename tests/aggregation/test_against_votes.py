"""Results far from the votes say so, and how far."""

import re

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation, MajorityVote, SequenceAggregation, VotesWarning, create
from crowdzoo.aggregation.result import notes_against_votes
from crowdzoo.aggregation.sentences.sequence_aggregation import notes_against_tags
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.datasets import generated_ner
from crowdzoo.sequences import allowed_tags
from crowdzoo.testing.aggregators import simulated_crowd


def ten_tasks():
    """Tasks 0 to 9 by annotators 0 to 2, who all say class 1 of tasks 7 to 9 and 0 of the others."""
    task_ids, annotator_ids = (column.ravel() for column in np.indices((10, 3)))
    return Annotations.from_arrays(task_ids, annotator_ids, np.where(task_ids < 7, "cat", "dog"))


def test_no_note_up_to_a_fifth_of_the_tasks():
    annotations = ten_tasks()
    votes = np.repeat([0, 1], [7, 3])
    assert notes_against_votes(annotations, votes) == ()
    two_others = votes.copy()
    two_others[:2] = 1
    assert notes_against_votes(annotations, two_others) == ()
    two_others[2] = 1
    (note,) = notes_against_votes(annotations, two_others)
    assert "on 30% of the annotated tasks (3 of 10)" in note


@pytest.mark.parametrize("shuffled", [False, True])
def test_every_task_is_compared_also_where_the_table_of_votes_is_made_in_parts(shuffled):
    rng = np.random.default_rng(0)
    num_tasks, num_classes = 30_000, 5  # 150,000 cells
    tasks = np.sort(rng.integers(num_tasks, size=100_000))
    annotators, said = np.arange(len(tasks)), rng.integers(num_classes, size=len(tasks))
    order = rng.permutation(len(tasks)) if shuffled else slice(None)
    names = {"tasks": range(num_tasks), "classes": range(num_classes)}
    annotations = Annotations.from_arrays(tasks[order], annotators[order], said[order], **names)
    labels = rng.integers(num_classes, size=num_tasks)
    votes = np.zeros((num_tasks, num_classes), int)
    np.add.at(votes, (tasks, said), 1)
    different = int((votes[np.arange(num_tasks), labels] < votes.max(axis=1)).sum())
    annotated = int((votes.sum(axis=1) > 0).sum())
    (note,) = notes_against_votes(annotations, labels)
    assert f"({different:,} of {annotated:,})" in note


def test_a_class_that_votes_name_and_no_task_has():
    notes = notes_against_votes(ten_tasks(), np.zeros(10, np.int64))
    assert len(notes) == 2
    assert re.search(r"'dog' is the label of no task.* 30\.0% of the annotations", notes[1])


def test_a_rare_class_may_be_empty():
    labels = np.zeros(300, np.int64)
    labels[:2] = 1  # 0.7 % of the annotations
    annotations = Annotations.from_arrays(np.repeat(np.arange(100), 3), np.tile(np.arange(3), 100), labels)
    assert notes_against_votes(annotations, np.zeros(100, np.int64)) == ()
    labels[3] = 1  # 1 %: two of three of task 0, and one of task 1
    annotations = Annotations.from_arrays(np.repeat(np.arange(100), 3), np.tile(np.arange(3), 100), labels)
    (note,) = notes_against_votes(annotations, np.zeros(100, np.int64))
    assert "1.0%" in note


def test_tied_votes_and_tasks_without_votes_are_no_difference():
    annotations = Annotations.from_arrays([0, 0, 1], [0, 1, 0], [0, 1, 0], tasks=np.arange(9))
    for labels in ([0, 0], [1, 0]):
        assert not notes_against_votes(annotations, np.array([*labels, *[1] * 7]))


def test_the_result_warns_keeps_and_stores_its_notes(tmp_path):
    annotations, _ = simulated_crowd(60, seed=1)
    labels = (MajorityVote().fit(annotations).labels + 1) % 3
    with pytest.warns(VotesWarning, match=r"on \d+% of the annotated tasks"):
        result = Aggregation.of("dawid-skene", annotations, np.eye(3)[labels], labels)
    assert len(result.notes) == 1
    assert Aggregation.from_parquet(result.to_parquet(tmp_path / "result")).notes == result.notes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
@pytest.mark.parametrize("method", ["hmm-crowd", "bsc-seq"])
def test_sentences_without_the_spans_that_annotators_marked_say_so(method, tmp_path):
    """Priors that outweigh all data: no tag is more likely for what annotators say."""
    with pytest.warns(VotesWarning, match=f"{method}: .*No span is of type"):
        result = create(method, kind="sequence", prior=1e9, words=0.0).fit(generated_ner(40, 6))
    assert result.notes[-1].endswith("of the annotators' spans are, as 3 more such types.")
    assert SequenceAggregation.from_parquet(result.to_parquet(tmp_path / "result")).notes == result.notes


def test_a_rare_type_may_be_the_type_of_no_span():
    """One span in 100 counts, one in 200.5 does not; a single one never does."""

    def notes(others, rare):
        labels = np.repeat([1, 2], [others, rare])
        tasks, zeros = np.arange(len(labels)), np.zeros(len(labels), np.int64)
        crowd = Annotations(
            "sequence", tasks, zeros, labels, tasks, np.arange(1), np.array(allowed_tags(["A", "B"])), positions=zeros
        )
        return notes_against_tags(SequenceTable.of(crowd, "notes"), np.ones(len(labels), np.int64))

    (note,) = notes(198, 2)
    assert "of type 'B', although 1.0%" in note
    assert notes(199, 1) == notes(399, 2) == ()
