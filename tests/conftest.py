"""Fixtures that more than one folder of tests needs."""

import gc
import json
import os
import sys
import warnings

import pytest
from hypothesis import settings

LONG = 5.0  # CPU-seconds beyond which a test has to be marked slow

settings.register_profile("no times", deadline=None)  # or a test fails where the machine has other work
settings.register_profile("quick", settings.get_profile("no times"), max_examples=40)


def _cpu_seconds():
    """CPU time of this process and of those it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def is_quick(config):
    """Whether this is `make test`."""
    return "not slow" in config.option.markexpr


def pytest_configure(config):
    settings.load_profile("quick" if is_quick(config) else "no times")


def pytest_collection_finish(session):
    """TensorFlow does not optimize graphs in `make test`, where most of them run once; in `make test-all` it does."""
    if is_quick(session.config) and "tensorflow" in sys.modules:
        sys.modules["tensorflow"].config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.cpu_seconds = _cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Notes the CPU time on each report, which pytest-xdist sends on from its workers."""
    report = yield
    now = _cpu_seconds()
    report.cpu_seconds = now - item.cpu_seconds
    report.slow = item.get_closest_marker("slow") is not None
    item.cpu_seconds = now
    return report


def pytest_terminal_summary(terminalreporter):
    """The ten slowest tests, and those over five CPU-seconds that are not marked `slow`."""
    spent, slow = {}, set()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "cpu_seconds"):
                spent[report.nodeid] = spent.get(report.nodeid, 0.0) + report.cpu_seconds
                if report.slow:
                    slow.add(report.nodeid)
    slowest = sorted(spent, key=spent.__getitem__, reverse=True)
    too_long = [name for name in slowest if spent[name] > LONG and name not in slow]
    for title, names in (
        ("slowest ten, in CPU-seconds", slowest[:10]),
        (f"over {LONG:g} CPU-seconds and not marked slow", too_long),
    ):
        if names:
            terminalreporter.section(title)
            for name in names:
                terminalreporter.line(f"{spent[name]:7.2f}  {name}")


@pytest.fixture(autouse=True, scope="module")
def _earlier_objects_aside():
    """pyarrow walks over all objects at each error: with those of a thousand tests before, that is a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The test's own, empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(tmp_path):
    """Writes a file: text or bytes as they are, lists and dictionaries as JSON (.jsonl: a line an entry)."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, (list, dict)):
            lines = name.endswith(".jsonl")
            content = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def eager():
    """TensorFlow traces no graph, as it pays for a handful of small steps; the other backends work as ever."""
    import keras

    if keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def xla():
    """XLA is really used. Keras may do without and only warns, as after a test that made TensorFlow deterministic."""
    import keras

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Model doesn't support `jit_compile=True`")
        if keras.backend.backend() != "tensorflow":
            yield
            return
        from tensorflow.python.framework import config  # TensorFlow has no public way back

        before = config.is_op_determinism_enabled()
        config.disable_op_determinism()
        yield
        if before:
            config.enable_op_determinism()


@pytest.fixture
def nothing_registered(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr("crowdzoo.plugins._registered", {})


@pytest.fixture
def failing_method(nothing_registered):
    """The name of an aggregator that suits no data."""
    import crowdzoo

    @crowdzoo.register("aggregator", "for-two-classes")
    class Failing(crowdzoo.aggregation.Aggregator):
        def fit(self, annotations):
            raise crowdzoo.DataError("for two classes, got 3 classes")

    return "for-two-classes"


@pytest.fixture
def answer_for_models(monkeypatch):
    """Takes a function that says in a model's place what it says of the tasks that it has not seen."""
    return lambda answers: monkeypatch.setattr("crowdzoo.comparison.deep.train_and_predict", answers)


@pytest.fixture
def refusal_of(capsys):
    """What a command that ends with an exit code, 4 unless another is given, says on standard error."""
    from command_line import run

    def said(*words, code=4):
        assert run(*words) == code
        return capsys.readouterr().err

    return said
