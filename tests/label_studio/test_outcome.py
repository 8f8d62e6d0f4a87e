"""What a round makes of answers: tasks to ask again, sure and disputed ones, and the next questions."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MultiLabel, Robust, create
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.errors import ConfigError
from crowdzoo.label_studio.outcome import Outcome
from crowdzoo.label_studio.pushing import annotator_view, push, tasks_view
from crowdzoo.quality.settled import settlement
from crowdzoo.reading.platforms.label_config import read_label_config

CONFIG = """<View><Text name="text" value="$text"/><Choices name="kind" toName="text">
<Choice value="cat"/><Choice value="dog"/><Choice value="cow"/></Choices></View>"""
RATING = """<View><Text name="text" value="$text"/><Rating name="stars" toName="text"/></View>"""
(CONTROL,) = read_label_config(CONFIG)


def outcome_of(rows, number, annotators, **settings):
    """The outcome of (task, annotator, label) in codes, of so many tasks."""
    tasks, who, labels = np.array(rows).T
    crowd = Annotations(
        kind="classification", task_ids=tasks, annotator_ids=who, labels=labels, tasks=np.arange(number) + 100,
        annotators=np.array([f"{name}@example.com" for name in annotators], object),
        classes=np.array(["cat", "dog", "cow"], object),
    )  # fmt: skip
    return Outcome(control=CONTROL, crowd=crowd, aggregation=Robust().fit(crowd), **settings)


@pytest.fixture(scope="module")
def outcome():
    """Sixty tasks: three agree on forty, two contradict each other on nineteen, and the last has no answer."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    rows = [(task, who, truth[task]) for task in range(40) for who in range(3)]
    rows += [(task, who, (truth[task] + who) % 3) for task in range(40, 59) for who in (0, 1)]
    return outcome_of(rows, 60, "abcd")


def test_contradictions_are_disputed_and_asked_again_and_unanimous_tasks_are_sure(outcome):
    assert outcome.numbers(outcome.disputed) == list(range(140, 159))
    assert outcome.numbers(outcome.ask_again) == list(range(140, 159))
    assert outcome.numbers(outcome.sure) == list(range(100, 140))
    assert not outcome.is_done  # there is a task without an answer, too


def test_questions_are_about_tasks_to_ask_again_and_go_to_whom_has_not_answered_them(outcome):
    chosen = outcome.questions
    assert sorted(outcome.aggregation.tasks[chosen.tasks].tolist()) == list(range(140, 159))
    asked = {name[0] for name in outcome.aggregation.annotators[chosen.annotators].tolist()}
    assert asked <= {"c", "d"}


def test_nobody_is_asked_where_everybody_has_answered():
    rows = [(task, who, (task + who * (task > 9)) % 3) for task in range(20) for who in range(2)]
    outcome = outcome_of(rows, 20, "ab")
    assert outcome.ask_again.any()
    assert len(outcome.questions.tasks) == 0
    assert outcome.is_done


def test_each_answered_task_has_its_class_and_probability(outcome):
    result = outcome.aggregation
    assert [task for task, _, _ in outcome.answers] == list(range(100, 159))
    for place, (_, [item], score) in enumerate(outcome.answers):
        assert item["value"] == {"choices": [result.classes[result.labels[place]]]}
        assert score == pytest.approx(result.posteriors[place].max(), abs=0.0051)


def test_annotators_who_copy_each_other_are_asked_as_one():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 80)
    answers = np.where(rng.random((6, 80)) < 0.5, truth, rng.integers(0, 3, (6, 80)))
    # all answer the last fifty tasks, and only a and b the others; g and h copy f
    rows = [(task, who, answers[min(who, 5), task]) for task in range(80) for who in range(2 if task < 30 else 8)]
    outcome = outcome_of(rows, 80, "abcdefgh")
    asked = {name[0] for name in outcome.aggregation.annotators[outcome.questions.annotators].tolist()}
    assert "f" in asked
    assert not asked & {"g", "h"}
    assert outcome.sure.tolist() == (settlement(outcome.crowd, outcome.aggregation).settled >= 0.95).tolist()


def test_gold_is_not_asked_about():
    rows = [(task, who, (task + who) % 3) for task in range(20) for who in range(2)]
    gold = np.full(20, -1)
    gold[:5] = 0
    outcome = outcome_of(rows, 20, "abc", gold=gold)
    assert not outcome.ask_again[:5].any()
    assert outcome.sure[:5].all()


def test_several_labels_are_asked_about_until_each_is_sure():
    rows = [(task, who, task % 3) for task in range(30) for who in range(4)]
    rows += [(task, who, who % 3) for task in range(30, 36) for who in range(3)]
    outcome = outcome_of(rows, 36, "abcd")
    several = Outcome(
        control=CONTROL, crowd=outcome.crowd, aggregation=MultiLabel("majority-vote").fit(outcome.crowd)
    )  # fmt: skip
    assert several.numbers(several.ask_again) == list(range(130, 136))
    assert {name[0] for name in several.aggregation.annotators[several.questions.annotators].tolist()} == {"d"}


def test_views_use_filters_that_the_pages_of_label_studio_know():
    # with another operator its Data Manager does not open: "No matching type for union", in a browser
    known = {"equal", "not_equal", "less", "greater", "less_or_equal", "greater_or_equal", "in", "not_in", "empty",
             "contains", "not_contains", "regex"}  # fmt: skip
    tasks = [{"id": 1, "annotations": [{"id": 9}, {"id": 7}]}, {"id": 2, "annotations": []}]
    for view in (tasks_view(tasks), tasks_view([]), annotator_view(3)):
        assert {item["operator"] for item in view["filters"]["items"]} <= known
        assert all(item["value"] not in ("", None) for item in view["filters"]["items"])
    assert [item["value"] for item in tasks_view(tasks)["filters"]["items"]] == ["7", 2]


def test_ratings_and_sentences_have_questions_and_pairs_have_none():
    rng = np.random.default_rng(0)
    ratings = np.where(rng.random((20, 5)) < 0.6, rng.normal(size=(20, 1)) + rng.normal(0, 0.3, (20, 5)), np.nan)
    crowd = Annotations.from_dense(ratings, kind="regression", annotators=list("abcde"))
    (control,) = read_label_config(RATING)
    outcome = Outcome(control=control, crowd=crowd, aggregation=create("rating-em", kind="regression").fit(crowd))
    assert outcome.has_questions
    asked = outcome.questions
    assert len(asked.tasks) == outcome.ask_again.sum()
    assert np.isnan(ratings[asked.tasks, asked.annotators]).all()

    rows = [(task, who, place, int(place == task % 2)) for task in range(4) for who in range(3) for place in range(2)]
    task, who, place, label = np.array([row for row in rows if row[0] < 3 or row[1] == 0]).T  # one answer to the last
    table = Annotations("sequence", task, who, label, tasks=np.arange(4), annotators=np.arange(3), positions=place,
                        classes=np.array(["O", "B-PER", "I-PER"], object))  # fmt: skip
    crowd = CrowdSequences([["one", "two"]] * 4, table)
    outcome = Outcome(control=control, crowd=crowd, aggregation=create("bsc-seq", kind="sequence").fit(crowd))
    assert outcome.has_questions
    assert outcome.sure[:3].all()
    assert not outcome.sure[3]
    asked = [*zip(outcome.questions.tasks.tolist(), outcome.questions.annotators.tolist(), strict=True)]
    assert asked in ([(3, 1)], [(3, 2)])
    by_votes = create("span-majority-vote", kind="sequence").fit(crowd)
    outcome = Outcome(control=control, crowd=crowd, aggregation=by_votes)
    assert not outcome.has_questions
    with pytest.raises(ConfigError, match="sequence labels by span-majority-vote; leave next out"):
        push(None, outcome, {"next"})

    pairs = Annotations.from_arrays([0, 1], ["a", "b"], ["left"] * 2, right=[1, 2], kind="preference")
    scores = create("bradley-terry", kind="preference").fit(pairs)
    assert not Outcome(control=control, crowd=pairs, aggregation=scores).has_questions
