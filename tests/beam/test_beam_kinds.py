"""Ratings and sentences on Beam, and robust: what the local methods find, however blocks are cut."""

import operator
import re
from functools import reduce

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import (
    BayesianSequenceCombination,
    Block,
    ConvergenceWarning,
    HierarchicalDawidSkene,
    HMMCrowd,
    MajorityVote,
    OrdinalThresholds,
    RatingEM,
    RatingMean,
    RatingMedian,
    Robust,
    SpanMajorityVote,
    TokenAggregation,
)
from crowdzoo.datasets import generated_ner
from crowdzoo.large.forms.base import Found
from crowdzoo.large.forms.job import form_of, job_of
from crowdzoo.large.forms.runs import begun, finished_run, next_start
from crowdzoo.sequences import CrowdSequences
from crowdzoo.testing.aggregators import simulated_crowd

beam = pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")

from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402

import crowdzoo.large.beam as on_beam  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


def make_pipeline():
    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))


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


def sentences():
    """40 sentences, then one that nobody tagged; five annotators, and one who tagged nothing."""
    found = generated_ner(40, 5, redundancy=3, seed=2)
    crowd = found.annotations
    longer = Annotations(
        "sequence",
        crowd.task_ids,
        crowd.annotator_ids,
        crowd.labels,
        np.arange(41),
        np.arange(6),
        crowd.classes,
        positions=crowd.positions,
    )
    return CrowdSequences([*found.tokens, ["It", "rained", "in", "Lisbon", "."]], longer)


def assert_same(found, expected):
    assert type(found) is type(expected)
    names = ("posteriors", "confusions", "transitions", "first", "estimates", "standard_errors", "biases", "precisions")
    for name in (*names, "reliability", "log_likelihood", "history"):
        one, other = getattr(found, name, None), getattr(expected, name, None)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-6, err_msg=name)
    for name in ("labels", "tasks", "annotators", "starts", "annotations_per_task", "annotators_per_task"):
        np.testing.assert_array_equal(getattr(found, name, 0), getattr(expected, name, 0))
    for name in ("method", "notes", "converged", "num_iterations"):
        assert getattr(found, name) == getattr(expected, name)


def by_blocks(aggregator, data, most, gold=None):
    """What Beam computes, added up here: blocks, then an M-step, and so on."""
    job = job_of(aggregator, data, gold)
    method, blocks = job.method, job.blocks(most)
    assert len(blocks) > 1

    def total(add):
        tallies = [method.zero(method.num_annotators) for _ in blocks]
        for tally, block in zip(tallies, blocks, strict=True):
            add(tally, block)
        return reduce(operator.add, tallies)

    rows, common = method.maximise(total(lambda tally, block: method.first(tally, block, 0, None, None)), None, None)
    run, steps = begun(method, common), 0
    while not run.done:
        params, steps = method.prepared(rows, run.params), steps + 1
        sums = total(lambda tally, block, params=params: method.expect(tally, block, params, None, True))
        run, rows = next_start(method, run, sums, lambda rows=rows: rows, method.penalty(rows))
    assert steps <= method.num_steps
    params, means = method.prepared(rows, run.params), method.means(rows, run.params)
    answers = [method.answers(block, params, means, None) for block in blocks]
    places, posteriors, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    assert places.tolist() == list(range(job.num_answers))
    likelihood = sum(method.last_likelihood(block, means) for block in blocks)
    return job.result(finished_run(method, run, rows), Found(posteriors, labels, np.zeros(len(labels)), likelihood))


RATINGS = {
    "mean": RatingMean(),
    "mean without the outermost": RatingMean(trim=0.25),
    "median": RatingMedian(),
    "em": RatingEM(),
    "level of those who follow": RatingEM(level="following"),
    "no biases": RatingEM(bias=False),
    "one precision": RatingEM(precision=False),
    "all follow": RatingEM(unrelated=0.0),
    "a shape and a scale": RatingEM(shape=3.0, low=-20, high=20, tol=1e-8),
}


@pytest.mark.parametrize("most", [5, 37])
@pytest.mark.parametrize("name", RATINGS)
def test_sums_over_blocks_of_ratings_give_what_the_whole_table_gives(name, most):
    assert_same(by_blocks(RATINGS[name], ratings(), most), RATINGS[name].fit(ratings()))


def test_ratings_far_from_zero_lose_no_digits_to_their_level():
    far = by_blocks(RatingEM(), ratings(1e9), 37)
    assert_same(far, RatingEM().fit(ratings(1e9)))
    np.testing.assert_allclose(far.estimates - 1e9, RatingEM().fit(ratings(0.0)).estimates, atol=1e-5)


SENTENCES = {
    "bsc-seq": BayesianSequenceCombination(),
    "hmm-crowd": HMMCrowd(),
    "hmm-crowd without words and votes": HMMCrowd(words=0.0, votes=0.0),
}


@pytest.mark.parametrize("most", [1, 200])
@pytest.mark.parametrize("name", SENTENCES)
def test_sums_over_blocks_of_sentences_give_what_the_whole_table_gives(name, most):
    crowd = sentences()
    assert_same(by_blocks(SENTENCES[name], crowd, most), SENTENCES[name].fit(crowd))
    plain = crowd.annotations.select_tasks(np.arange(40))  # no words
    assert_same(by_blocks(SENTENCES[name], plain, most), SENTENCES[name].fit(plain))


# === The runner ===

ON_BEAM = {
    "mean": (RatingMean(trim=0.25), ratings, 50),
    "em": (RatingEM(tol=1e-2), ratings, 50),
    "bsc-seq": (BayesianSequenceCombination(tol=2e-2), sentences, 300),
    "token votes": (TokenAggregation("majority-vote"), sentences, 300),
    "hmm-crowd": (HMMCrowd(tol=2e-2), sentences, 300),
    "median": (RatingMedian(), ratings, 50),
    "tokens": (TokenAggregation("dawid-skene", settings={"tol": 1e-2}), sentences, 300),
}
LATER = ("em", "token votes", "hmm-crowd", "median", "tokens")  # the killed fit below has rating EM


@pytest.mark.parametrize(
    ("name", "in_shards"),
    [
        *(pytest.param(name, False, marks=pytest.mark.slow if name in LATER else ()) for name in ON_BEAM),
        *(pytest.param(name, True, marks=pytest.mark.slow) for name in ("bsc-seq", "hmm-crowd", "tokens", "em")),
    ],
)
def test_beam_finds_what_the_local_method_finds(tmp_path, name, in_shards):
    aggregator, make, most = ON_BEAM[name]
    data = make()
    method = job_of(aggregator, data).method
    result = on_beam.aggregate(
        data,
        aggregator,
        make_pipeline=make_pipeline,
        folder=str(tmp_path),
        max_annotations=most,
        iterations_per_pipeline=2,
        max_shard_bytes=2 * method.row_bytes if in_shards else 2**26,
    )
    assert_same(result, aggregator.fit(data))
    assert list(tmp_path.iterdir()) == []


class KilledError(Exception):
    """What stands for a crash between two pipelines."""


def killed_after(number):
    """Makes so many pipelines, then crashes."""
    left = iter(range(number))

    def make():
        if next(left, None) is None:
            raise KilledError
        return make_pipeline()

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    ("aggregator", "make", "other"),
    [
        (RatingEM(tol=2e-3), ratings, RatingEM(tol=2e-3, bias=False)),
        (BayesianSequenceCombination(tol=2e-3), sentences, BayesianSequenceCombination(tol=2e-3, scheme="IOBES")),
    ],
    ids=["ratings", "sentences"],
)
def test_a_killed_fit_goes_on_from_its_checkpoint_and_another_does_not(tmp_path, aggregator, make, other):
    data, expected = make(), aggregator.fit(make())
    assert 2 < expected.num_iterations < 12
    common = {"folder": str(tmp_path), "max_annotations": 150, "iterations_per_pipeline": 2}
    with pytest.raises(KilledError):
        on_beam.aggregate(data, aggregator, make_pipeline=killed_after(1), **common)
    with pytest.raises(ConfigError, match="checkpoint of other data or settings"):
        on_beam.aggregate(data, other, make_pipeline=make_pipeline, **common)
    steps = expected.num_iterations + (expected.method == "bsc-seq") - 2
    found = on_beam.aggregate(data, aggregator, make_pipeline=killed_after(-(-steps // 2)), **common)
    assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_blocks_of_a_pcollection_give_the_beliefs_that_the_table_gives(tmp_path):
    table = ratings(100.0)
    blocks = job_of(RatingMean(), table).blocks(60)
    shifted = [
        Block.of_ratings(block.tasks[block.index], block.annotator_ids, block.labels + 98.0, block.tasks)
        for block in blocks
    ]
    crowd = sentences()
    model = job_of(HMMCrowd(max_iter=2), crowd).method.model
    cases = (
        (RatingEM(max_iter=3), shifted, 7, 0, {}),
        (HMMCrowd(max_iter=2), job_of(HMMCrowd(), crowd).blocks(300), 6, model.num_classes,
         {"tag_set": model.tag_set, "num_words": model.num_words}),
    )  # fmt: skip
    for aggregator, blocks, annotators, classes, about in cases:
        run = on_beam.fit(
            lambda pipeline, blocks=blocks: pipeline | beam.Create(blocks),
            aggregator,
            annotators,
            classes,
            make_pipeline=make_pipeline,
            folder=str(tmp_path / aggregator.kind),
            **about,
        )
        expected = aggregator.fit(table if aggregator.kind == "regression" else crowd)
        np.testing.assert_allclose(run.history, expected.history, rtol=1e-9)
        if aggregator.kind == "regression":
            crowd_of, annotators = run.params.crowd, run.params.annotators
            np.testing.assert_allclose(annotators.precision / crowd_of.unit**2, expected.precisions, rtol=1e-6)
        else:
            first, after, confusions, _ = model.means(run.params)
            np.testing.assert_allclose(confusions, expected.confusions, atol=1e-6)
            np.testing.assert_allclose(after, expected.transitions, atol=1e-6)
            np.testing.assert_allclose(first, expected.first, atol=1e-6)


# === Robust, and hierarchical Dawid-Skene, which is a part of it ===


def classes():
    """60 tasks, and one that nobody labelled; eight annotators, and one who labelled nothing."""
    crowd, truth = simulated_crowd(redundancy=4, seed=5)
    longer = Annotations.from_arrays(
        *(crowd.task_ids, crowd.annotator_ids, crowd.labels), tasks=range(61), annotators=range(9), classes=range(3)
    )
    return longer, np.where(np.arange(61) % 10 == 3, np.resize(truth, 61), -1)


@pytest.mark.parametrize("most", [5, 100])
def test_sums_over_blocks_give_what_hierarchical_dawid_skene_gives(most):
    crowd, _ = classes()
    aggregator = HierarchicalDawidSkene()
    expected = aggregator.fit(crowd)
    assert 3 < expected.num_iterations < 500
    assert_same(by_blocks(aggregator, crowd, most), expected)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("most", [5, 100])
def test_sums_over_blocks_give_what_robust_gives(most, known):
    crowd, gold = classes()
    given = gold if known else None
    expected = Robust().fit(crowd, given)
    found = by_blocks(Robust(), crowd, most, given)
    assert_same(found, expected)
    np.testing.assert_allclose(found.confusions, expected.confusions, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_robust_on_beam_is_the_local_one(tmp_path, known):
    crowd, gold = classes()
    given = gold if known else None
    result = on_beam.aggregate(
        crowd, Robust(), gold=given, make_pipeline=make_pipeline, folder=str(tmp_path), max_annotations=100
    )
    assert_same(result, Robust().fit(crowd, given))
    np.testing.assert_allclose(result.class_prior, Robust().fit(crowd, given).class_prior, atol=1e-6)
    assert list(tmp_path.iterdir()) == []


# === What is refused, and what needs no runner ===


def never():
    raise AssertionError("no pipeline is made")


def test_equal_ratings_need_no_pipeline(tmp_path):
    same = Annotations.from_arrays([0, 0, 1], [0, 1, 0], [3.3, 3.3, 3.3], kind="regression")
    result = on_beam.aggregate(same, RatingEM(), make_pipeline=never, folder=str(tmp_path / "new"))
    assert_same(result, RatingEM().fit(same))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("aggregator", "make", "more", "message"),
    [
        (OrdinalThresholds(), ratings, {}, "OrdinalThresholds does not run on Beam: use one of RatingEM, RatingMean,"),
        (SpanMajorityVote(), sentences, {}, "SpanMajorityVote does not run on Beam: use one of BayesianSequenceComb"),
        (TokenAggregation("mace"), sentences, {}, "MACE does not run on Beam: use one of DawidSkene"),
        (RatingEM(), ratings, {"gold": np.zeros(80)}, "RatingEM takes no `gold`"),
        (HMMCrowd(), sentences, {"initial": np.zeros(3)}, "HMMCrowd takes no `initial`"),
        (RatingEM(low=10), ratings, {}, "10"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(tmp_path, aggregator, make, more, message):
    with pytest.raises((ConfigError, DataError), match=re.escape(message)):
        on_beam.aggregate(make(), aggregator, make_pipeline=never, folder=str(tmp_path / "new"), **more)
    assert not (tmp_path / "new").exists()


def test_blocks_alone_need_to_know_their_tags_and_tokens_are_tasks():
    with pytest.raises(ConfigError, match="HMMCrowd needs tag_set"):
        form_of(HMMCrowd(), 3, 3)
    with pytest.raises(ConfigError, match="Give its method for classes, MajorityVote"):
        form_of(TokenAggregation("majority-vote"), 3, 3)


@pytest.mark.parametrize(
    ("aggregator", "make", "name"),
    [(RatingEM(), ratings, "annotator"), (RatingMean(), ratings, "annotator"), (HMMCrowd(), sentences, "annotator")],
    ids=["em", "mean", "hmm-crowd"],
)
def test_codes_beyond_the_numbers_given_are_refused_by_the_worker(aggregator, make, name):
    job = job_of(aggregator, make())
    few = form_of(aggregator, 2, 0) if aggregator.kind == "regression" else type(job.method)(job.method.model, 2)
    with pytest.raises(DataError, match=rf"has {name} [45], but there are 2"):
        few.first(few.zero(2), job.blocks(10**6)[0], 0, None, None)


def test_ratings_of_a_block_are_finite_and_one_for_each_annotation():
    for bad in ([1.0, np.nan], [1.0]):
        with pytest.raises(DataError, match="one finite rating for each of its 2 annotations"):
            Block.of_ratings([0, 1], [0, 0], bad)


def test_no_ratings_at_all_are_refused_by_the_worker():
    method = form_of(RatingEM(), 2, 0)
    with pytest.raises(DataError, match="at least one rating"):
        method.maximise(method.zero(2), None, None)


def test_which_methods_run_on_beam():
    classes = MajorityVote(), HierarchicalDawidSkene(), Robust()
    for runs in (
        *classes,
        RatingMean(),
        RatingMedian(),
        RatingEM(),
        HMMCrowd(),
        TokenAggregation("ibcc"),
        TokenAggregation("robust"),
    ):
        assert on_beam.runs_on_beam(runs)
    for stays in (OrdinalThresholds(), SpanMajorityVote(), TokenAggregation("mace")):
        assert not on_beam.runs_on_beam(stays)


@pytest.mark.slow
def test_too_few_iterations_are_said_as_by_the_local_method(tmp_path):
    for aggregator, make in ((RatingEM(max_iter=2), ratings), (HMMCrowd(max_iter=1), sentences)):
        with pytest.warns(ConvergenceWarning) as local:
            expected = aggregator.fit(make())
        with pytest.warns(ConvergenceWarning) as found:
            result = on_beam.aggregate(make(), aggregator, make_pipeline=make_pipeline, folder=str(tmp_path))
        assert str(found[0].message) == str(local[0].message)
        assert_same(result, expected)
