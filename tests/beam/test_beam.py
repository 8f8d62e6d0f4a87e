import functools
from typing import ClassVar

import numpy as np
import pytest
from large_runs import KilledError, assert_same, make_pipeline, pipelines_but

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, MajorityVote, OneCoinDawidSkene
from crowdzoo.aggregation.engine.block import Block, blocks_of
from crowdzoo.testing.aggregators import simulated_crowd

beam = pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")

import stores  # noqa: E402, F401, `store:/` is a scheme then
from apache_beam import coders  # noqa: E402
from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402
from apache_beam.runners.portability.fn_api_runner import FnApiRunner  # noqa: E402
from apache_beam.runners.runner import PipelineResult, PipelineState  # noqa: E402
from apache_beam.testing.util import assert_that  # noqa: E402

import crowdzoo.large.beam as on_beam  # noqa: E402
from crowdzoo.large.beam import coding, files  # noqa: E402


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else str(value)


def crowd(num_annotators=9, num_classes=4):
    """60 tasks of which some are known, and two without annotations."""
    annotations, truth = simulated_crowd(redundancy=3, seed=1)
    longer = Annotations.from_arrays(
        annotations.task_ids, annotations.annotator_ids, annotations.labels, tasks=range(62),
        annotators=range(num_annotators), classes=range(num_classes),
    )  # fmt: skip
    return longer, np.where(np.arange(62) % 10 == 0, np.resize(truth, 62), -1)


@pytest.mark.slow
def test_not_converged_on_beam_is_said(tmp_path):
    annotations, _ = crowd()
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        result = on_beam.aggregate(
            annotations, DawidSkene(max_iter=2), make_pipeline=make_pipeline, folder=str(tmp_path / "more" / "")
        )
    assert result.num_iterations == 2
    assert not result.converged


# === What crosses ===

OURS = (coding.ValueCoder, coders.VarIntCoder, coders.StrUtf8Coder, coders.BytesCoder)
AROUND = (coders.TupleCoder, coders.IterableCoder)


def strangers(pipeline):
    """Names and coders of the PCollections whose elements are not values, integers, text or bytes, or tuples of these.

    Reshuffle is Beam's, and has a coder that could pickle for the timestamps that it adds, here always None.
    """
    proto, context = pipeline.to_runner_api(return_context=True)
    assert proto.components.pcollections
    for pcoll in proto.components.pcollections.values():
        todo = [context.coders.get_by_id(pcoll.coder_id)]
        while todo:
            coder = todo.pop()
            if isinstance(coder, AROUND):
                todo += coder._get_component_coders()
            elif isinstance(coder, coders.NullableCoder | coders.coders.PaneInfoCoder):
                assert "/ReshufflePerKey/" in pcoll.unique_name
            elif not isinstance(coder, OURS):
                yield pcoll.unique_name, coder


def test_what_would_be_pickled_is_found():
    for hint in (object, dict, np.ndarray, tuple[int, object]):
        pipeline = make_pipeline()
        _ = pipeline | beam.Create([1]) | "Bad" >> beam.Map(lambda one: one).with_output_types(hint)
        assert [name.split(".")[0].split("/")[-1].lstrip("0123456789") for name, _ in strangers(pipeline)] == ["Bad"]


class _Recorded(beam.Pipeline):
    """Looks at its own graph before it runs."""

    found: ClassVar[list] = []

    def run(self, *args, **kwargs):
        self.found.append((list(strangers(self)), self.to_runner_api().ByteSize()))
        return super().run(*args, **kwargs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
@pytest.mark.parametrize("aggregator", [DawidSkene(tol=1.0, diagonal=0), OneCoinDawidSkene(tol=1.0)], ids=name_of)
def test_no_graph_holds_what_it_begins_from_and_nothing_that_crosses_is_pickled(tmp_path, aggregator):
    annotations, _ = crowd(num_annotators=1000)
    _Recorded.found.clear()
    initial = aggregator.fit(annotations)
    if aggregator.title == "Dawid-Skene":
        initial = np.random.default_rng(0).dirichlet(np.ones(4), size=(1000, 4))  # 128 KB that do not pack
    result = on_beam.aggregate(
        annotations,
        aggregator,
        initial=initial,
        make_pipeline=lambda: _Recorded(options=PipelineOptions(["--runner=FnApiRunner"])),
        folder=str(tmp_path),
        max_annotations=100,
        iterations_per_pipeline=1,
    )
    assert_same(result, aggregator.fit(annotations, initial=initial))
    unknown, sizes = zip(*_Recorded.found, strict=True)
    assert len(sizes) >= 2
    assert not any(unknown)
    assert max(sizes) < 100_000


# === Checkpoints ===


def fit_blocks(blocks, aggregator, folder, make=make_pipeline, steps=3):
    """Nine annotators and four classes."""
    return on_beam.fit(
        blocks if callable(blocks) else lambda pipeline: pipeline | beam.Create(blocks),
        aggregator, 9, 4, make_pipeline=make, folder=str(folder), iterations_per_pipeline=steps,
    )  # fmt: skip


def fit_in_steps(annotations, folder, make, aggregator, **options):
    return on_beam.aggregate(
        annotations, aggregator, make_pipeline=make, folder=str(folder), iterations_per_pipeline=2, **options
    )


def test_a_killed_fit_goes_on_from_its_checkpoint(tmp_path):
    annotations, aggregator = crowd()[0], DawidSkene(tol=2e-4)
    expected = aggregator.fit(annotations)
    assert expected.num_iterations > 4  # more than two pipelines of two
    with pytest.raises(KilledError):
        fit_in_steps(annotations, tmp_path, pipelines_but(3), aggregator, max_annotations=60)
    names = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("block-"))
    assert names == ["checkpoint-000002.manifest"]
    rest = pipelines_but()
    assert_same(fit_in_steps(annotations, tmp_path, rest, aggregator, max_annotations=60), expected)
    assert len(rest.made) == -(-(expected.num_iterations + 1) // 2) - 2  # the last one finds the posteriors, too
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_fit_of_blocks_goes_on_and_reads_them_once(tmp_path, killed):
    annotations, _ = crowd()
    read = []

    def fit(make):
        def read_blocks(pipeline):
            read.append(None)
            return pipeline | beam.Create(blocks_of(annotations, None, 60))

        return fit_blocks(read_blocks, DawidSkene(tol=2e-4), tmp_path, make, 2)

    with pytest.raises(KilledError):
        fit(pipelines_but(killed + 1))
    expected = DawidSkene(tol=2e-4).fit(annotations)
    np.testing.assert_allclose(fit(make_pipeline).history, expected.history)
    assert len(read) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def waited(monkeypatch):
    """Seconds that were waited for retries; nothing is waited for."""
    found = []
    monkeypatch.setattr("crowdzoo.large.beam.driver.time.sleep", found.append)
    return found


@pytest.mark.slow
def test_a_pipeline_that_fails_is_run_again_from_the_last_checkpoint(tmp_path, caplog, waited):
    annotations, _ = crowd()
    aggregator = DawidSkene(tol=2e-4)
    expected = aggregator.fit(annotations)
    pipelines = -(-(expected.num_iterations + 1) // 2)
    make = pipelines_but(1, 3, 4)  # the first try of the first, two of the second
    assert_same(fit_in_steps(annotations, tmp_path, make, aggregator, retries=2), expected)
    assert len(make.made) == pipelines + 3
    assert waited == [1, 1, 2]
    said = [record.getMessage() for record in caplog.records if record.name == "crowdzoo.large.beam.driver"]
    assert said[1:] == [
        f"A pipeline on Beam failed (KilledError: pipeline {number}). It is run again from checkpoint 1, "
        f"in {seconds} s (retry {retry} of 2)."
        for number, seconds, retry in ((3, 1, 1), (4, 2, 2))
    ]
    assert said[0].startswith("A pipeline on Beam failed (KilledError: pipeline 1).")


def test_after_the_last_retry_the_runners_own_error_is_raised(tmp_path, waited):
    make = pipelines_but(2, 3, 4)
    with pytest.raises(KilledError, match="pipeline 4"):
        fit_in_steps(crowd()[0], tmp_path, make, DawidSkene(tol=2e-4), retries=2)
    assert len(make.made) == 4
    assert (tmp_path / "checkpoint-000001.manifest").exists()


class _Endless(FnApiRunner):
    """As a cluster that waits for a worker that will never come; `cancelled` counts."""

    def __init__(self, cancelled):
        super().__init__()
        self.cancelled = cancelled

    def run_pipeline(self, pipeline, options):
        cancelled = self.cancelled

        class Result(PipelineResult):
            def wait_until_finish(self, duration=None):
                assert duration == 1500
                return self.state

            def cancel(self):
                cancelled.append(None)
                raise ConnectionError("it does not answer")

        return Result(PipelineState.RUNNING)


@pytest.mark.slow
def test_a_pipeline_that_does_not_end_is_cancelled_and_run_again(tmp_path, caplog, waited):
    annotations, _ = crowd()
    cancelled, made = [], []

    def make():
        made.append(None)
        return beam.Pipeline(runner=_Endless(cancelled) if len(made) == 1 else FnApiRunner())

    aggregator = DawidSkene(tol=2e-4)
    found = fit_in_steps(annotations, tmp_path, make, aggregator, retries=1, timeout=1.5)
    assert_same(found, aggregator.fit(annotations))
    assert (len(cancelled), waited) == (1, [1])
    assert "(TimeoutError: it has not ended after 1.5 s)" in caplog.text


def test_bad_data_are_not_tried_again(tmp_path, waited):
    def make():
        raise DataError("votes.csv, row 3: no label")

    with pytest.raises(DataError, match="row 3"):
        fit_in_steps(crowd()[0], tmp_path, make, DawidSkene(), retries=5)
    assert waited == []


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    annotations, gold = crowd()
    with pytest.raises(KilledError):
        fit_in_steps(annotations, tmp_path, pipelines_but(2), DawidSkene())
    left = sorted(tmp_path.iterdir())
    for changed in (
        {"aggregator": DawidSkene(prior=0.5)},
        {"aggregator": OneCoinDawidSkene()},
        {"annotations": simulated_crowd()[0]},
        {"gold": gold},
        {"initial": np.full((9, 4, 4), 0.25)},
    ):
        arguments = {"annotations": annotations, "aggregator": DawidSkene(), "gold": None, **changed}
        with pytest.raises(ConfigError, match="checkpoint of other data or settings"):
            on_beam.aggregate(**arguments, make_pipeline=make_pipeline, folder=str(tmp_path))
        assert sorted(tmp_path.iterdir()) == left, "and it is still there"


@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize("order", [1, -1], ids=["forwards", "backwards"])
def test_a_kill_in_the_midst_of_cleaning_leaves_a_whole_checkpoint_or_none(tmp_path, monkeypatch, order, at_the_end):
    """Whatever file was the last to go, and in whatever order a file system removes them."""
    delete = files.FileSystems.delete
    for limit in range(20):
        folder = files.Folder(str(tmp_path / str(limit)))
        given = [folder.given(folder.block(block)) for block in (0, 1, 2)]
        beside = [folder.block(0), folder.posteriors(folder.block(0)), folder.manifest(1) + ".0123"]
        for path in (*given, folder.manifest(0), folder.manifest(1), *beside, folder.manifest(0) + ".0123"):
            files.write_value(path, path)
        gone = []

        def delete_some(paths, gone=gone, limit=limit):
            for path in paths[::order]:
                if len(gone) == limit:
                    raise KilledError
                delete([path])
                gone.append(path)

        killed = False
        with monkeypatch.context() as patch:
            patch.setattr(files.FileSystems, "delete", delete_some)
            try:
                folder.clean() if at_the_end else folder.clean("checkpoint-", but=1)
            except KilledError:
                killed = True
        last = folder.last()
        assert last in ((-1, 0, 1) if at_the_end else (1,))
        assert all(files.read_value(path) == path for path in given if last == 0)
        if not killed:
            break
        folder.clean() if at_the_end else folder.clean("checkpoint-", but=1)
    assert limit >= 5
    left = [] if at_the_end else [folder.manifest(1), *beside]
    assert sorted(map(str, (tmp_path / str(limit)).iterdir())) == sorted(left)


def test_a_file_is_written_again_where_renaming_does_not_replace(tmp_path):
    """As on HDFS; a runner may do again what a worker has done."""
    path = f"store:/{tmp_path}/value.bin"
    for number in range(3):
        files.write_value(path, number)
        assert files.read_value(path) == number
    assert [path.name for path in tmp_path.iterdir()] == ["value.bin"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_several_blocks_may_be_empty(tmp_path):
    annotations, aggregator = crowd()[0], DawidSkene(max_iter=2)
    expected = aggregator.fit(annotations)
    empty = [Block([], [], [])] * 2
    for blocks in ([*empty, *blocks_of(annotations, None, 100), *empty], empty):
        run = fit_blocks(blocks, aggregator, tmp_path)
        if len(blocks) > 2:
            np.testing.assert_allclose(run.history, expected.history)
    assert list(tmp_path.iterdir()) == []
    assert np.isfinite(run.history).all()


@pytest.mark.slow
@pytest.mark.parametrize("aggregator", [DawidSkene(tol=0.01), MajorityVote()], ids=name_of)
def test_fit_takes_blocks_from_anywhere_and_gives_the_run_which_gives_posteriors(tmp_path, aggregator):
    annotations, gold = crowd()
    expected = aggregator.fit(annotations, gold=gold)
    run = fit_blocks(blocks_of(annotations, gold, 50), aggregator, tmp_path)
    np.testing.assert_allclose(run.history, expected.history)
    assert run.converged
    np.testing.assert_allclose(run.params.confusions, expected.confusions)

    def check(found):
        assert sorted(task for block in found for task in block.tasks) == list(range(62))
        for block in found:
            np.testing.assert_allclose(block.posteriors, expected.posteriors[block.tasks], atol=1e-6)
            np.testing.assert_array_equal(block.labels, expected.labels[block.tasks])

    with make_pipeline() as pipeline:
        blocks = pipeline | beam.Create(blocks_of(annotations, gold, 40))
        assert_that(blocks | on_beam.Posteriors(aggregator, run, 9, 4), check)


@pytest.mark.parametrize("scheme", ["", "store:/"], ids=["a disk", "elsewhere"])
def test_a_block_that_is_cut_short_is_an_error(tmp_path, scheme):
    """Elsewhere files are not mapped."""
    path, block = tmp_path / "block.bin", blocks_of(crowd()[0])[0]
    files.write_value(f"{scheme}{path}", block)
    np.testing.assert_array_equal(files.read_block(f"{scheme}{path}").labels, block.labels)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged"):
        files.read_block(f"{scheme}{path}")


# === Engines ===

ENGINES = {
    "many threads": ["--direct_running_mode=multi_threading", "--direct_num_workers=2"],
    "many processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    "job service": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
}


every_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.mark.slow
@every_engine
def test_workers_of_other_kinds_fit_the_same(tmp_path, engine):
    annotations, gold = crowd()
    aggregator = DawidSkene(tol=0.05, num_starts=2)
    make = functools.partial(make_pipeline, *ENGINES[engine])
    run = fit_blocks(blocks_of(annotations, gold, 60), aggregator, tmp_path, make)
    expected = aggregator.fit(annotations, gold=gold)
    np.testing.assert_allclose(run.history, expected.history)
    np.testing.assert_allclose(run.params.confusions, expected.confusions, atol=1e-6)


# === What is refused ===


def test_what_beam_cannot_do_is_refused(tmp_path):
    annotations, _ = crowd()
    common = {"make_pipeline": make_pipeline, "folder": str(tmp_path)}
    with pytest.raises(DataError, match="posteriors"):
        on_beam.aggregate(annotations, OneCoinDawidSkene(), initial=np.full((9, 4, 4), 0.25), **common)
    with pytest.raises(ConfigError, match="threads_per_worker"):
        on_beam.aggregate(annotations, DawidSkene(), threads_per_worker=0, **common)
    with pytest.raises(ConfigError, match="takes no `initial`"):
        on_beam.aggregate(annotations, MajorityVote(), initial=np.full((9, 4, 4), 0.25), **common)
    for name in ("a[1]", "a*", "a?"):
        with pytest.raises(ConfigError, match=r"not have \*, \? or \["):
            on_beam.aggregate(annotations, DawidSkene(), make_pipeline=make_pipeline, folder=str(tmp_path / name))
    with pytest.raises(ConfigError, match="str does not run on Beam"):
        on_beam.aggregate(annotations, "dawid-skene", **common)
    with pytest.raises(ConfigError, match="iterations_per_pipeline"):
        on_beam.aggregate(annotations, DawidSkene(), iterations_per_pipeline=0, **common)
