"""What `next_answers` asks about labels of each kind, against what follows by hand."""

from dataclasses import replace

import numpy as np
import pytest

import crowdzoo
from crowdzoo import Annotations, DataError, next_answers
from crowdzoo.aggregation import AnnotatorBradleyTerry, BradleyTerry, RatingEM, RatingMean, create
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.kinds import kind_of


def ratings(seed=0, tasks=30):
    """One precise, one vague annotator, and one who is between; the last five tasks have one rating."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 2, tasks)
    said = truth[:, None] + rng.normal(size=(tasks, 4)) * [0.1, 3.0, 0.7, 0.7]
    said[-5:, :3] = np.nan
    said[:, 0][::2] = np.nan
    return Annotations.from_dense(said, kind="regression", annotators=["sharp", "vague", "third", "last"])


def test_ratings_reduce_standard_errors_as_inverse_variances_add():
    crowd = ratings()
    result = RatingEM().fit(crowd)
    questions = kind_of("regression").questions
    skills = questions.skills(result, slice(None))
    gain = questions.gains(result, skills, crowd)(np.array([28]), np.array([[0, 1]]))
    noise = np.var(result.estimates) * (1 - skills[:2]) / skills[:2]
    error = result.standard_errors[28]
    expected = error - np.sqrt(1 / (1 / error**2 + 1 / noise))
    np.testing.assert_allclose(gain[0], expected, rtol=1e-9)
    found = next_answers(crowd, 5, result=result)
    assert {*found.tasks.tolist()} == set(range(25, 30))  # tasks with one rating
    assert {*crowd.annotators[found.annotators]} == {"sharp"}
    assert "vague" not in crowd.annotators[next_answers(crowd, 40, result=RatingMean().fit(crowd)).annotators[:5]]


def test_nobody_without_an_account_is_asked_unless_you_say_so():
    crowd = replace(ratings(), annotators=np.array(["not-logged-in-12ab", "vague", "not-logged-in", "last"], object))
    assert {*next_answers(crowd, 20).annotators.tolist()} <= {1, 3}
    assert {*next_answers(crowd, 5, annotators=[0]).annotators.tolist()} == {0}
    nobody = replace(crowd, annotators=np.array([f"not-logged-in-{code}" for code in range(4)], object))
    with pytest.raises(DataError, match=r"no annotator has an account.*annotators=CODES"):
        next_answers(nobody, 5)


def test_sure_ratings_have_a_small_error_and_two_ratings():
    crowd = ratings()
    result = RatingEM().fit(crowd)
    sure = kind_of("regression").questions.find_sure(result, 0.9, crowd)
    assert not sure[25:].any()
    share = result.standard_errors**2 / np.var(result.estimates)
    np.testing.assert_array_equal(sure[:25], share[:25] <= 0.1)


def preferences(seed=3, tasks=7):
    rng = np.random.default_rng(seed)
    scores = np.linspace(-1, 1, tasks)
    rows = {(*rng.permutation(tasks)[:2].tolist(), int(rng.integers(3))) for _ in range(60)}
    left, right, who = np.array(sorted(rows)).T
    wins = rng.random(len(rows)) < 1 / (1 + np.exp(scores[right] - scores[left]))
    names = np.array([f"t{task}" for task in range(tasks + 1)])
    return Annotations.from_arrays(
        names[left], np.array(["ann", "bob", "cem"])[who], np.where(wins, "left", "right"), right=names[right],
        kind="preference", tasks=names,
    )  # fmt: skip


def test_pairs_reduce_the_sum_of_standard_errors_as_a_fresh_inverse_says():
    """The first order of a rank-one update against inverting the information with the answer added."""
    crowd = preferences()
    result = BradleyTerry().fit(crowd)
    found = next_answers(crowd, 1, result=result)
    left, right = crowd.task_ids, crowd.right_ids

    def errors(*more):
        information = 0.25 * np.eye(8)
        for i, j in [*zip(left, right, strict=True), *more]:
            p = 1 / (1 + np.exp(result.scores[j] - result.scores[i]))
            d = np.zeros(8)
            d[i], d[j] = 1, -1
            information += p * (1 - p) * np.outer(d, d)
        return np.sqrt(np.diag(np.linalg.inv(information))).sum()

    gains = {(i, j): errors() - errors((i, j)) for i in range(8) for j in range(i + 1, 8)}
    best = tuple(sorted((int(found.tasks[0]), int(found.rights[0]))))
    assert 7 in best  # the task that nobody compared
    assert gains[best] > 0.9 * max(gains.values())
    assert found.gains[0] == pytest.approx(gains[best], rel=0.35)  # to first order


def test_a_batch_of_pairs_does_not_ask_about_one_task_only_and_repeats_no_answer():
    crowd = preferences()
    result = AnnotatorBradleyTerry().fit(crowd)
    found = next_answers(crowd, 15, result=result)
    sides = np.concatenate([found.tasks, found.rights])
    assert np.bincount(sides, minlength=8)[7] <= 7
    pairs = [frozenset(pair) for pair in zip(found.tasks.tolist(), found.rights.tolist(), strict=True)]
    assert len({*pairs}) == 15
    before = {
        (frozenset((left, right)), who)
        for left, right, who in zip(crowd.task_ids.tolist(), crowd.right_ids.tolist(), crowd.annotator_ids.tolist(),
                                    strict=True)
    }  # fmt: skip
    assert not before & {*zip(pairs, found.annotators.tolist(), strict=True)}
    assert (np.diff(found.gains) <= 1e-12).all()


def test_a_pair_that_everybody_has_compared_is_not_asked_again():
    left, right, who = [0, 0, 1, 1, 2], [1, 1, 2, 2, 0], [0, 1, 0, 1, 0]
    crowd = Annotations.from_arrays(left, who, ["left"] * 5, right=right, kind="preference")
    found = next_answers(crowd, 9, result=BradleyTerry().fit(crowd), sure=1.0)
    assert {frozenset((int(i), int(j))) for i, j in zip(found.tasks, found.rights, strict=True)} == {frozenset((0, 2))}
    assert found.annotators.tolist() == [1]


def test_groups_that_no_comparison_links_stay_apart_and_new_tasks_join():
    left, right = [0, 1, 0, 3, 4, 3], [1, 2, 2, 4, 5, 5]
    crowd = Annotations.from_arrays(left, [0] * 6, ["left"] * 6, right=right, kind="preference", annotators=[0, 1, 2],
                                    tasks=range(7))  # fmt: skip
    found = next_answers(crowd, 30, result=BradleyTerry().fit(crowd), sure=1.0)
    pairs = {tuple(sorted(pair)) for pair in zip(found.tasks.tolist(), found.rights.tolist(), strict=True)}
    assert pairs == {*zip(left, right, strict=True)} | {(task, 6) for task in range(6)}


def test_who_compares_at_random_is_not_asked():
    crowd = preferences()
    result = AnnotatorBradleyTerry().fit(crowd)
    result = replace(result, slopes=np.array([0.0, 1.0, 1.2]))
    assert {*next_answers(crowd, 6, result=result).annotators.tolist()} <= {1, 2}


def sentences():
    """Six sentences of three tokens; two annotators agree on the first three, the third contradicts on the fourth."""
    tags = {"O": 0, "B": 1, "I": 2}
    answers = {
        (0, 0): "OBI", (0, 1): "OBI", (1, 0): "BIO", (1, 1): "BIO", (2, 0): "OOO", (2, 1): "OOO",
        (3, 0): "BII", (3, 2): "OOO", (4, 0): "OOB", (4, 1): "OOB", (5, 0): "OBO", (5, 1): "OBO",
    }  # fmt: skip
    rows = [(task, who, place, tags[tag]) for (task, who), text in answers.items() for place, tag in enumerate(text)]
    task, who, place, label = np.array(rows).T
    crowd = Annotations(
        "sequence", task, who, label, tasks=np.arange(6), annotators=np.arange(3), positions=place,
        classes=np.array(["O", "B-PER", "I-PER"], object),
    )  # fmt: skip
    return CrowdSequences([["one", "two", "three"]] * 6, crowd)


def test_sentences_count_by_the_sum_of_what_their_tokens_tell():
    crowd = sentences()
    result = create("bsc-seq", kind="sequence").fit(crowd)
    found = next_answers(crowd, 1, result=result)
    assert (found.tasks.tolist(), found.annotators.tolist()) == ([3], [1])
    gain = sum(
        crowdzoo.quality.information_gain(posterior, result.confusions[1])
        for posterior in result.posteriors[9:12]
        if posterior.max() < 0.999
    )
    assert found.gains[0] == pytest.approx(gain)


def test_answers_of_sentences_are_whole_sentences():
    crowd = sentences()
    tasks, who, codes = kind_of("sequence").questions.answers(crowd)
    assert [*zip(tasks.tolist(), who.tolist(), strict=True)] == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 2), (4, 0), (4, 1), (5, 0), (5, 1)
    ]  # fmt: skip
    assert codes[0] == codes[1] != codes[2]
    assert codes[7] == codes[4]


def test_a_method_that_does_not_know_annotators_is_refused():
    crowd = sentences()
    with pytest.raises(DataError, match=r"span-majority-vote does not model annotators\. Use bsc-seq"):
        next_answers(crowd, result=create("span-majority-vote", kind="sequence").fit(crowd))
