"""Any driver gives the local answer: sums over blocks, and Beam."""

import operator
import re
from functools import reduce

import numpy as np
import pytest
from large_runs import assert_same, make_pipeline

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import (
    GLAD,
    Block,
    CrowdBT,
    DawidSkene,
    HMMCrowd,
    MajorityVote,
    OneCoinDawidSkene,
    RatingEM,
    RatingMean,
    RatingMedian,
    Robust,
    SpanMajorityVote,
)
from crowdzoo.aggregation.engine.run import Run, best_of
from crowdzoo.datasets import generated_ner
from crowdzoo.large.forms import BlockPosteriors, form_of, job_of
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
slow = pytest.mark.slow


def classes(num_classes=5):
    """Ties, annotators with one label and without, tasks with one and with none, and a class that nobody names."""
    crowd, truth = simulated_crowd(90, 9, num_classes - (num_classes > 2), redundancy=4, seed=5)
    keep = (crowd.task_ids % 7 != 0) & ((crowd.task_ids % 5 != 1) | (crowd.annotator_ids % 2 == 0))
    task, annotator, label = (column[keep] for column in (crowd.task_ids + 1, crowd.annotator_ids, crowd.labels))
    more = np.array([[3, 10, 0], [40, 11, 1], [95, 12, 1], [95, 3, 0]])  # of one label each; 95 is a tie
    columns = (np.append(one, more[:, place]) for place, one in enumerate((task, annotator, label)))
    names = {"tasks": range(100), "annotators": range(14), "classes": range(num_classes)}
    return Annotations.from_arrays(*columns, **names), np.where(np.arange(100) % 10 == 3, np.resize(truth, 100), -1)


def ratings(offset=5.0):
    """80 tasks, one of them without ratings; seven annotators, of whom one says the same always and one nothing."""
    rng = np.random.default_rng(3)
    tasks, annotators = np.nonzero(rng.random((80, 7)) < 0.6)
    kept = (annotators != 6) & (tasks != 40)
    tasks, annotators = rng.permutation(np.stack([tasks, annotators])[:, kept].T).T
    truth, bias, spread = rng.normal(offset, 2, 80), rng.normal(0, 1, 7), rng.uniform(0.2, 1.5, 7)
    given = truth[tasks] + bias[annotators] + rng.normal(0, 1, len(tasks)) * spread[annotators]
    given[annotators == 5] = offset + 1
    return Annotations.from_arrays(tasks, annotators, given, kind="regression", tasks=range(80), annotators=range(7))


def crowd_of(aggregator):
    """A crowd for it, and known classes."""
    if aggregator.kind != "classification":
        return ratings() if aggregator.kind == "regression" else generated_ner(40, 5, redundancy=3, seed=2), None
    return classes(getattr(aggregator, "max_classes", 5))


def by_blocks(aggregator, crowd, most, gold=None):
    """What Beam computes, added up here: blocks, then an M-step, and so on."""
    job = job_of(aggregator, crowd, gold)
    form, blocks = job.form, job.blocks(most)
    assert len(blocks) > 1

    def expected(start, run):
        totals = [form.zero() for _ in blocks]
        for total, block in zip(totals, blocks, strict=True):
            if run.params is None:
                form.first(total, block, start, None)
            else:
                form.expect(total, block, form.prepared(run.params))
        return reduce(operator.add, totals)

    runs = []
    for start in range(form.starts):
        run = Run(None)
        while not run.done:
            run = form.next_run(run, expected(start, run))
        runs.append(run)
    run = best_of(runs)
    answer = form.answers(run.params)
    parts = [answer(block) for block in blocks]
    columns = [[getattr(part, name) for part in parts] for name in ("tasks", "posteriors", "labels")]
    tasks, posteriors, labels = map(np.concatenate, columns)
    assert tasks.tolist() == list(range(crowd.num_tasks))
    return job.result(run, BlockPosteriors(tasks, posteriors, labels))


SUMS = {"robust": Robust(), "mean without the outermost": RatingMean(trim=0.25), "median": RatingMedian()}


@pytest.mark.parametrize("most", [pytest.param(5, marks=slow), 200])
@pytest.mark.parametrize("aggregator", SUMS.values(), ids=SUMS)
def test_sums_over_blocks_give_what_the_whole_table_gives(aggregator, most):
    crowd, gold = crowd_of(aggregator)
    assert_same(by_blocks(aggregator, crowd, most), aggregator.fit(crowd))
    if aggregator == Robust():
        assert_same(by_blocks(aggregator, crowd, most, gold), aggregator.fit(crowd, gold))


def test_ratings_far_from_zero_lose_no_digits_to_their_level():
    far = RatingEM().fit(ratings(1e9))
    np.testing.assert_allclose(far.estimates - 1e9, RatingEM().fit(ratings(0.0)).estimates, atol=1e-5)


def test_several_answers_of_an_annotator_count_where_the_local_method_counts_them():
    columns = [0, 0, 0, 1, 2], [0, 0, 1, 1, 1], [0, 1, 1, 0, 1]
    crowd = Annotations.from_arrays(*columns, on_duplicate="all")
    for method in (MajorityVote(), DawidSkene()):
        assert_same(by_blocks(method, crowd, 2), method.fit(crowd), atol=1e-9)


ENGINE = {
    "majority vote": MajorityVote(),
    "hard majority vote": MajorityVote(voting="hard", ties="random", seed=4),
    "dawid-skene": DawidSkene(tol=5e-3),
    "three starts": DawidSkene(num_starts=3, seed=2, tol=5e-3, prior=0.1, diagonal=0.5),
    "few iterations": DawidSkene(max_iter=2, tol=0.0),
    "one-coin": OneCoinDawidSkene(tol=1e-3, class_prior="estimated"),
}


ON_BEAM = ENGINE | {"robust": Robust(), "mean": RatingMean(trim=0.25), "median": RatingMedian()}
QUICK = ("dawid-skene", "few iterations")  # the others in `make test-all`


def on_beam(crowd, aggregator, folder, make_pipeline=make_pipeline, **options):
    """Several blocks, and several pipelines."""
    pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")
    from crowdzoo.large.beam import aggregate

    most = {"classification": 60, "regression": 50}[aggregator.kind]
    settings = {"max_annotations": most, "iterations_per_pipeline": 2, **options}
    found = aggregate(crowd, aggregator, make_pipeline=make_pipeline, folder=str(folder), **settings)
    assert list(folder.iterdir()) == []
    return found


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else slow) for name in ON_BEAM])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_beam_gives_what_the_local_method_gives(tmp_path, name):
    aggregator = ON_BEAM[name]
    crowd, gold = crowd_of(aggregator)
    known = {} if gold is None else {"gold": gold}
    assert_same(on_beam(crowd, aggregator, tmp_path, **known), aggregator.fit(crowd, **known))


WARM = {
    "confusions": (DawidSkene(tol=0.01), "confusions"),
    "posteriors": (DawidSkene(tol=0.01), "posteriors"),
    "an aggregation": (OneCoinDawidSkene(tol=0.01), None),
}


@slow
@pytest.mark.parametrize("case", WARM)
def test_beam_begins_where_the_local_method_begins(tmp_path, case):
    aggregator, part = WARM[case]
    crowd, gold = classes()
    earlier = DawidSkene(tol=1e-2) if part else aggregator
    first = earlier.fit(crowd, gold=np.where(np.arange(100) % 7 == 0, 1, -1))
    options = {"gold": gold, "initial": getattr(first, part) if part else first}
    expected = aggregator.fit(crowd, **options)
    assert not np.allclose(expected.history[0], aggregator.fit(crowd, gold=gold).history[0], rtol=1e-6)
    assert_same(on_beam(crowd, aggregator, tmp_path, **options), expected)


def never():
    raise AssertionError("no pipeline is made")


@pytest.mark.parametrize(
    ("aggregator", "more", "message"),
    [
        (SpanMajorityVote(), {}, "SpanMajorityVote does not run on Beam. No method for kind 'sequence' does; fit it"),
        (HMMCrowd(), {}, "HMMCrowd does not run on Beam. No method for kind 'sequence' does; fit it without Beam"),
        (RatingEM(), {}, "RatingEM does not run on Beam. Use one of RatingMean, RatingMedian, or fit it without Beam"),
        (GLAD(), {}, "GLAD does not run on Beam. Use one of DawidSkene"),
        (CrowdBT(), {}, "CrowdBT does not run on Beam. No method for kind 'preference' does; fit it without Beam"),
        (DawidSkene(confidence=True), {}, "DawidSkene does not run on Beam with confidence=True"),
        (DawidSkene(start="one-coin"), {}, "does not run on Beam with start='one-coin'; set it to 'votes', or pass"),
        (RatingMean(), {"gold": np.zeros(80)}, "RatingMean takes no `gold`"),
        (RatingMedian(), {"initial": np.zeros(3)}, "RatingMedian takes no `initial`"),
        (RatingMean(low=10), {}, "10"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_before_anything_runs(tmp_path, aggregator, more, message):
    from crowdzoo.large.beam import aggregate, runs_on_beam

    crowd = crowd_of(aggregator)[0]
    with pytest.raises((ConfigError, DataError), match=re.escape(message)):
        aggregate(crowd, aggregator, make_pipeline=never, folder=str(tmp_path / "new"), **more)
    assert not (tmp_path / "new").exists()
    assert runs_on_beam(aggregator) == (bool(more) or aggregator == RatingMean(low=10))


def test_codes_beyond_the_numbers_given_are_refused_by_the_worker():
    job = job_of(RatingMean(), ratings())
    few = form_of(RatingMean(), 2, 0)
    with pytest.raises(DataError, match=r"has annotator [45], but there are 2"):
        few.first(few.zero(), job.blocks(10**6)[0], 0, None)


def test_ratings_of_a_block_are_finite_and_one_for_each_annotation():
    for bad in ([1.0, np.nan], [1.0]):
        with pytest.raises(DataError, match="one finite rating for each of its 2 annotations"):
            Block.of_ratings([0, 1], [0, 0], bad)
