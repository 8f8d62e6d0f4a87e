"""Threads: calls within calls, interruption, and both sides of every threshold that cuts work into parts."""

import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import Future

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import METHODS, ConvergenceWarning, create
from crowdzoo.aggregation.engine import loops
from crowdzoo.aggregation.engine.loops import in_threads
from crowdzoo.testing.aggregators import simulated_crowd


def finished(function):
    """What `function` returns; fails where it does not end. The thread is a daemon, so that the tests go on."""
    future = Future()

    def run():
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(timeout=120)


def test_a_call_within_a_call_ends_and_has_the_same_parts():
    outer = finished(lambda: in_threads(lambda part: in_threads(list, part, 2), range(12), 2))
    assert outer == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]


def test_a_failure_in_a_part_is_raised_and_the_threads_work_on():
    def fail(part):
        raise ValueError(f"part {part[0]}")

    with pytest.raises(ValueError, match="part 0"):
        in_threads(fail, range(4), 2)
    assert in_threads(sum, range(4), 2) == [1, 5]


INTERRUPTED = """
import signal

from crowdzoo.aggregation.engine.loops import in_threads

def endless(part):
    if 0 in part:  # one line only: two threads that print at once can write their lines as one
        print("at work", flush=True)
    while True:
        in_threads(len, range(4), 2)

# a shell starts its background jobs with SIGINT ignored, and `make test` is one of them
signal.signal(signal.SIGINT, signal.default_int_handler)
in_threads(endless, range(2), 2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a process there")
def test_an_interrupt_ends_the_process():
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"at work\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (1, -signal.SIGINT)
    assert b"KeyboardInterrupt" in errors


# === Both sides of every threshold ===


VOTES_AND_TABLES = ("majority-vote", "dawid-skene", "ibcc")
RIGHT_OR_WRONG = ("one-coin", "glad", "mace")
CHAINS = ("hmm-crowd", "bsc-seq")
READERS = {
    "engine.block.MAX_ANNOTATIONS": (*VOTES_AND_TABLES, *RIGHT_OR_WRONG, "robust", "hierarchical-dawid-skene"),
    "engine.block.MAX_CELLS": (*VOTES_AND_TABLES, *RIGHT_OR_WRONG),
    "engine.confusions.MAX_TABLES": VOTES_AND_TABLES,
    "engine.confusions.NORMALISED": ("dawid-skene",),
    "engine.confusions.PART": VOTES_AND_TABLES,
    "engine.dirichlet.CELLS": ("ibcc", "ebcc", "mace", *CHAINS),
    "engine.markov_chain.TOKENS": CHAINS,
}
"""Every threshold below which work is one piece, and the methods that read it."""

FEW = {"ebcc": {"num_starts": 3, "max_iter": 3}}
RUNS = [(threshold, method) for threshold, methods in READERS.items() for method in methods]


def sentences():
    """20 sentences of 3 tokens, each tagged by 3 of 5 annotators."""
    rng = np.random.default_rng(0)
    task_ids, positions = np.divmod(np.arange(60), 3)
    truth = rng.integers(2, size=60)
    who = (task_ids[:, None] + np.arange(3)) % 5
    labels = np.where(rng.random((60, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    return Annotations(
        "sequence",
        *(np.asarray(column, np.int64).ravel() for column in (np.repeat(task_ids, 3), who, labels)),
        np.arange(20),
        np.arange(5),
        np.array(["O", "B-X", "I-X"], object),
        positions=np.repeat(positions, 3),
    )


def posteriors(method, monkeypatch, num_threads):
    monkeypatch.setenv("CROWDZOO_THREADS", str(num_threads))
    if method in METHODS:
        annotations = simulated_crowd(60, 8, 3)[0]
        aggregator = create(method, **FEW.get(method, {}))
    else:
        annotations, aggregator = sentences(), create(method, kind="sequence")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return finished(lambda: aggregator.fit(annotations)).posteriors


@pytest.fixture
def dealt(monkeypatch):
    """How many pieces of work each call of `in_threads` had, and in how many parts they went."""
    calls, deal = [], loops._parts

    def counted(items, number):
        parts = deal(items, number)
        calls.append((len(items), len(parts)))
        return parts

    monkeypatch.setattr(loops, "_parts", counted)
    return calls


@pytest.mark.parametrize(("threshold", "method"), RUNS, ids=[f"{name}-{method}" for name, method in RUNS])
def test_both_sides_of_a_threshold_give_the_same(threshold, method, monkeypatch, dealt):
    whole = posteriors(method, monkeypatch, 1)
    most = 7 if threshold == "engine.confusions.MAX_TABLES" else 2**62
    others = {"engine.block.MIN_ANNOTATIONS": 2**61, "engine.block.MAX_ANNOTATIONS": most}  # the threshold decides
    calls = []
    for value in (1, 2**62):
        dealt.clear()
        for name, number in {**others, threshold: value}.items():
            monkeypatch.setattr(f"crowdzoo.aggregation.{name}", number)
        np.testing.assert_allclose(posteriors(method, monkeypatch, 2), whole, rtol=0, atol=1e-9)
        calls.append(tuple(dealt))
    if threshold != "engine.confusions.PART":  # which cuts work within one thread
        assert calls[0] != calls[1]  # else a whole was compared with a whole
