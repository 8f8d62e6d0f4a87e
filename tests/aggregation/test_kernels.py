import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene
from crowdzoo.aggregation.engine import vector
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.confusions import Params, block_posteriors, normalised_logs
from crowdzoo.aggregation.engine.instructions import VECTORISED

TINY = np.finfo(np.float64).tiny


@pytest.mark.parametrize("count", [0.0, 5e-324, TINY / 2])
def test_a_row_whose_counts_are_next_to_nothing_is_uniform_and_never_nan(count):
    counts = np.zeros((1, 2, 2))  # [annotator, said, true]
    counts[0, :, 0] = 3.0, 1.0
    counts[0, 0, 1] = count
    found = np.exp(normalised_logs(counts, np.zeros((2, 2))))
    np.testing.assert_allclose(found[0], [[0.75, 0.5], [0.25, 0.5]], rtol=1e-14)


def test_a_row_of_the_smallest_normal_counts_is_normalised():
    counts = np.zeros((1, 2, 2))
    counts[0, :, 0] = 3.0, 1.0
    counts[0, 0, 1] = 2 * TINY
    found = np.exp(normalised_logs(counts, np.zeros((2, 2))))
    np.testing.assert_allclose(found[0], [[0.75, 1.0], [0.25, 0.0]], rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("num_tasks", [2, 400])
@pytest.mark.parametrize("shape", [(20_000, 3), (2, 130)], ids=["large table", "many classes"])
def test_an_e_step_is_bayes_rule_also_with_large_tables(shape, num_tasks):
    rng = np.random.default_rng(0)
    (num_annotators, num_classes), size = shape, 3 * num_tasks
    tasks = np.sort(rng.integers(num_tasks, size=size))
    annotators, said = rng.integers(num_annotators, size=size), rng.integers(num_classes, size=size)
    confusions = rng.dirichlet(np.ones(num_classes), (num_annotators, num_classes))
    prior = rng.dirichlet(np.ones(num_classes))
    joint = np.tile(prior, (num_tasks, 1))
    np.multiply.at(joint, tasks, confusions[annotators, :, said])
    block = Block(tasks, annotators, said, np.arange(num_tasks))
    found = block_posteriors(block, Params.from_probabilities(confusions, prior))
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)


BROKEN = """
import json, sys, warnings
import llvmlite.ir
def gone(*args): raise AttributeError("VectorType is gone")
llvmlite.ir.VectorType = gone
warnings.simplefilter("ignore")
from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene
from crowdzoo.aggregation.engine.instructions import VECTORISED
tasks, annotators, labels = json.load(sys.stdin)
result = DawidSkene().fit(Annotations.from_arrays(tasks, annotators, labels))
print(json.dumps([VECTORISED, result.posteriors.tolist()]))
"""


def test_instructions_that_compute_something_else_are_not_used(monkeypatch):
    monkeypatch.setattr(vector, "trial", lambda numbers: 9.0)
    spec = importlib.util.find_spec("crowdzoo.aggregation.engine.instructions")
    again = importlib.util.module_from_spec(spec)
    with pytest.warns(UserWarning, match="a trial of them gave a wrong number"):
        spec.loader.exec_module(again)
    assert not again.VECTORISED
    numbers, codes = np.arange(4.0), np.array([1], np.int32)
    begin, end = np.uint64(0), np.uint64(1)
    again.add_rows(numbers, begin, np.arange(8.0), codes, np.array([0], np.uint8), begin, end, begin, 16, 2)
    assert numbers.tolist() == [4.0, 6.0, 2.0, 3.0]  # row 1 of annotator 1 of [2, 2, 2] begins at 4


@pytest.mark.slow  # everything is compiled again
def test_plain_loops_do_the_same_where_llvm_refuses_vector_instructions(tmp_path):
    rng = np.random.default_rng(0)
    tasks, annotators = (ids.ravel().tolist() for ids in np.indices((60, 5)))
    labels = np.where(rng.random(300) < 0.7, np.array(tasks) % 3, rng.integers(0, 3, 300)).tolist()
    process = subprocess.run(
        [sys.executable, "-c", BROKEN],
        input=json.dumps([tasks, annotators, labels]),
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
    )
    vectorised, posteriors = json.loads(process.stdout)
    expected = DawidSkene().fit(Annotations.from_arrays(tasks, annotators, labels)).posteriors
    assert VECTORISED
    assert not vectorised
    np.testing.assert_allclose(posteriors, expected, atol=1e-9)
