import json
import os
import subprocess
import sys

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene
from crowdzoo.aggregation.engine.instructions import VECTORISED
from crowdzoo.aggregation.engine.kernels import normalised_logs

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
