import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import Block, ConvergenceWarning, DawidSkene, MajorityVote
from crowdzoo.aggregation.block import blocks_of
from crowdzoo.testing.aggregators import simulated_crowd

beam = pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")

from apache_beam.coders import registry  # noqa: E402
from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402
from apache_beam.testing.util import assert_that  # noqa: E402

from crowdzoo.aggregation import beam as on_beam  # noqa: E402


def make_pipeline():
    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))


def crowd():
    """60 tasks of which some are known, and two without annotations; in seven blocks and one."""
    annotations, truth = simulated_crowd(redundancy=3, seed=1)
    longer = Annotations.from_arrays(
        annotations.task_ids,
        annotations.annotator_ids,
        annotations.labels,
        tasks=range(62),
        annotators=range(9),
        classes=range(4),
    )
    return longer, np.where(np.arange(62) % 10 == 0, np.resize(truth, 62), -1)


def assert_same(left, right):
    np.testing.assert_allclose(left.posteriors, right.posteriors, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(left.labels, right.labels)
    np.testing.assert_allclose(left.confusions, right.confusions, rtol=0, atol=1e-6)
    np.testing.assert_allclose(left.class_prior, right.class_prior, rtol=0, atol=1e-6)
    np.testing.assert_allclose(left.history, right.history, rtol=1e-9)
    assert left.log_likelihood == (None if right.log_likelihood is None else pytest.approx(right.log_likelihood))
    for name in ("converged", "num_iterations", "method"):
        assert getattr(left, name) == getattr(right, name)
    for name in ("tasks", "annotators", "classes", "annotations_per_task", "annotations_per_annotator"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


AGGREGATORS = {
    "majority vote": MajorityVote(),
    "hard majority vote": MajorityVote(voting="hard", ties="random", seed=4),
    "dawid-skene": DawidSkene(tol=1e-3),
    "three starts": DawidSkene(num_starts=3, seed=2, tol=1e-3, prior=0.1, diagonal=0.5),
}


@pytest.mark.parametrize("aggregator", AGGREGATORS.values(), ids=AGGREGATORS)
def test_beam_equals_the_local_engine(tmp_path, aggregator):
    annotations, gold = crowd()
    expected = aggregator.fit(annotations, gold=gold)
    result = on_beam.aggregate(
        annotations,
        aggregator,
        gold=gold,
        make_pipeline=make_pipeline,
        folder=str(tmp_path / "new"),
        max_annotations=30,
    )
    assert_same(result, expected)
    assert list((tmp_path / "new").iterdir()) == []


def test_one_block_equals_many_on_beam(tmp_path):
    annotations, _ = crowd()
    results = [
        on_beam.aggregate(
            annotations,
            DawidSkene(tol=0.01),
            make_pipeline=make_pipeline,
            folder=str(tmp_path),
            max_annotations=most,
            iterations_per_pipeline=per_pipeline,
        )
        for most, per_pipeline in ((None, 8), (10, 3))
    ]
    assert_same(*results)


@pytest.mark.parametrize("kind", ["confusions", "aggregation"])
def test_warm_start_on_beam_equals_the_local_one(tmp_path, kind):
    annotations, _ = crowd()
    first = DawidSkene(tol=1e-2).fit(annotations)
    initial = first if kind == "aggregation" else first.confusions
    aggregator = DawidSkene(num_starts=2, tol=0.01)
    result = on_beam.aggregate(
        annotations, aggregator, initial=initial, make_pipeline=make_pipeline, folder=str(tmp_path)
    )
    assert_same(result, aggregator.fit(annotations, initial=initial))


def test_no_annotations_on_beam(tmp_path):
    annotations = Annotations.from_arrays([], [], [], tasks=[], annotators=[], classes=["cat", "dog"])
    for aggregator in (MajorityVote(), DawidSkene()):
        result = on_beam.aggregate(annotations, aggregator, make_pipeline=make_pipeline, folder=str(tmp_path))
        assert result.posteriors.shape == (0, 2)


def test_not_converged_on_beam_is_said(tmp_path):
    annotations, _ = crowd()
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        result = on_beam.aggregate(
            annotations, DawidSkene(max_iter=2), make_pipeline=make_pipeline, folder=str(tmp_path)
        )
    assert result.num_iterations == 2
    assert not result.converged


# === The transforms ===


def collected(pcoll, check):
    assert_that(pcoll, check, label=f"Check{id(check)}")


def test_dawid_skene_transform_gives_posteriors_and_the_run():
    annotations, gold = crowd()
    settings = {"max_iter": 6, "num_starts": 2, "seed": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = DawidSkene(**settings).fit(annotations, gold=gold)

    def check_posteriors(blocks):
        assert sorted(task for block in blocks for task in block.tasks) == list(range(62))
        for block in blocks:
            np.testing.assert_allclose(block.posteriors, expected.posteriors[block.tasks], atol=1e-6)
            np.testing.assert_array_equal(block.labels, expected.labels[block.tasks])

    def check_run(runs):
        (run,) = runs
        np.testing.assert_allclose(run.history, expected.history)
        np.testing.assert_allclose(run.params.confusions, expected.confusions, atol=1e-6)
        assert run.converged == expected.converged

    with make_pipeline() as pipeline:
        blocks = pipeline | beam.Create(list(blocks_of(annotations, gold, 40)))
        found = blocks | on_beam.DawidSkene(annotations.num_annotators, annotations.num_classes, **settings)
        collected(found["posteriors"], check_posteriors)
        collected(found["run"], check_run)


def test_a_converged_run_passes_through_the_rest_of_the_graph():
    annotations = Annotations.from_arrays([0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4, [0, 0, 0, 1, 1, 1, 1, 1])

    def check(runs):  # the fixed point that test_dawid_skene.py finds by hand: two E-steps out of nine see it
        (run,) = runs
        assert run.converged
        assert len(run.history) == 2
        np.testing.assert_allclose(run.params.class_prior, [3 / 8, 5 / 8])

    with make_pipeline() as pipeline:
        blocks = pipeline | beam.Create(list(blocks_of(annotations, None, 2)))
        collected((blocks | on_beam.DawidSkene(2, 2, max_iter=8, prior=0))["run"], check)


def test_majority_vote_transform_gives_posteriors_and_params():
    annotations, _ = crowd()
    expected = MajorityVote(voting="hard", ties="lowest").fit(annotations)

    def check_posteriors(blocks):
        assert sorted(task for block in blocks for task in block.tasks) == list(range(62))
        for block in blocks:
            np.testing.assert_allclose(block.posteriors, expected.posteriors[block.tasks], atol=1e-6)
            np.testing.assert_array_equal(block.labels, expected.labels[block.tasks])

    def check_params(params):
        np.testing.assert_allclose(params[0].confusions, expected.confusions, atol=1e-6)

    with make_pipeline() as pipeline:
        blocks = pipeline | beam.Create(list(blocks_of(annotations, None, 40)))
        found = blocks | on_beam.MajorityVote(9, 4, voting="hard", ties="lowest")
        collected(found["posteriors"], check_posteriors)
        collected(found["params"], check_params)


def test_counts_add_up_in_any_sharding():
    annotations, _ = crowd()
    elements = [on_beam._votes(block, (0, 1), 5, 9, 4) for block in blocks_of(annotations, None, 20)]
    elements[0] = (None, elements[0][1])
    combine = on_beam._Sum(2)
    totals = []
    for shards in (
        [elements],
        [elements[:2], elements[2:]],
        [[element] for element in reversed(elements)],
        [[], elements],
    ):
        accumulators = []
        for shard in shards:
            accumulator = combine.create_accumulator()
            for element in shard:
                accumulator = combine.add_input(accumulator, element)
            accumulators.append(accumulator)
        totals.append(combine.extract_output(combine.merge_accumulators(accumulators)))
    assert totals[0][1].num_annotations == len(annotations)
    assert totals[0][0].num_annotations == sum(element[0].num_annotations for element in elements[1:])
    for total in totals[1:]:
        for left, right in zip(total, totals[0], strict=True):
            np.testing.assert_allclose(left.confusions, right.confusions)
            np.testing.assert_allclose(left.classes, right.classes)


def test_what_crosses_workers_survives_its_coder():
    annotations, gold = crowd()
    block = blocks_of(annotations, gold)[0]
    counts = on_beam._votes(block, (0,), 0, 9, 4)
    runs = on_beam._begin_runs(DawidSkene(), None, counts)
    posteriors = on_beam._run_posteriors(0, block, runs[0])
    for value in (block, counts, runs, posteriors):
        coder = registry.get_coder(type(value))
        copy = coder.decode(coder.encode(value))
        assert pickle.dumps(copy) == pickle.dumps(pickle.loads(pickle.dumps(copy)))
        left, right = (item[0] if isinstance(item, tuple) else item for item in (value, copy))
        for name, array in vars(left).items():
            if isinstance(array, np.ndarray):
                np.testing.assert_array_equal(array, getattr(right, name))
    assert isinstance(block, Block)


# === Checkpoints ===


class KilledError(Exception):
    """What stands for a crash between two pipelines."""


def pipelines_until(limit):
    """A maker of pipelines that crashes after so many."""
    made = []

    def make():
        if len(made) == limit:
            raise KilledError
        made.append(None)
        return make_pipeline()

    make.made = made
    return make


def fit_in_steps(annotations, folder, make, aggregator):
    return on_beam.aggregate(annotations, aggregator, make_pipeline=make, folder=str(folder), iterations_per_pipeline=2)


def test_a_killed_fit_goes_on_from_its_checkpoint(tmp_path):
    annotations, _ = crowd()
    aggregator = DawidSkene(tol=5e-4)
    expected = aggregator.fit(annotations)
    assert expected.num_iterations > 4  # more than two pipelines of two
    whole = pipelines_until(None)
    fit_in_steps(annotations, tmp_path / "whole", whole, aggregator)
    with pytest.raises(KilledError):
        fit_in_steps(annotations, tmp_path / "killed", pipelines_until(2), aggregator)
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == ["runs-000001.npz", "runs-000002.npz"]
    rest = pipelines_until(None)
    assert_same(fit_in_steps(annotations, tmp_path / "killed", rest, aggregator), expected)
    assert len(rest.made) == len(whole.made) - 2
    assert list((tmp_path / "killed").iterdir()) == []


@pytest.mark.parametrize("other", ["settings", "data", "gold"])
def test_a_checkpoint_of_something_else_is_refused(tmp_path, other):
    annotations, gold = crowd()
    with pytest.raises(KilledError):
        fit_in_steps(annotations, tmp_path, pipelines_until(1), DawidSkene())
    arguments = {"annotations": annotations, "aggregator": DawidSkene(), "gold": None}
    changed = {"settings": ("aggregator", DawidSkene(prior=0.5)), "data": ("annotations", simulated_crowd()[0])}
    name, value = changed.get(other, ("gold", gold))
    arguments[name] = value
    with pytest.raises(ConfigError, match="checkpoint of other data or settings"):
        on_beam.aggregate(**arguments, make_pipeline=make_pipeline, folder=str(tmp_path))


def test_half_written_files_are_not_read(tmp_path):
    annotations, _ = crowd()
    (tmp_path / "runs-000001.npz.0123").write_bytes(b"half")
    (tmp_path / "posteriors-0.npz.0123").write_bytes(b"half")
    aggregator = DawidSkene(tol=0.1)
    result = on_beam.aggregate(annotations, aggregator, make_pipeline=make_pipeline, folder=str(tmp_path))
    assert_same(result, aggregator.fit(annotations))


# === What is refused ===


def test_what_beam_cannot_do_is_refused(tmp_path):
    annotations, _ = crowd()
    common = {"make_pipeline": make_pipeline, "folder": str(tmp_path)}
    with pytest.raises(DataError, match="confusions"):
        on_beam.aggregate(annotations, DawidSkene(), initial=np.full((62, 4), 0.25), **common)
    with pytest.raises(ConfigError, match="takes no `initial`"):
        on_beam.aggregate(annotations, MajorityVote(), initial=np.full((9, 4, 4), 0.25), **common)
    with pytest.raises(ConfigError, match="str does not run on Beam"):
        on_beam.aggregate(annotations, "dawid-skene", **common)
    with pytest.raises(ConfigError, match="iterations_per_pipeline"):
        on_beam.aggregate(annotations, DawidSkene(), iterations_per_pipeline=0, **common)


def test_the_local_engine_does_not_import_beam():
    code = "import sys, crowdzoo.aggregation; print({'apache_beam', 'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
