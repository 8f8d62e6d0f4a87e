"""fit_blocks: EM over stored blocks, with the steps that also run on Beam."""

import operator
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.counts import MAX_TABLES
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.large.forms.base import Form, Tally, fitted
from crowdzoo.large.stored.stored_blocks import StoredBlocks


def fit_blocks(form: Form, blocks: StoredBlocks, folder: Path) -> tuple[Run[Any], NDArray[np.float64] | None]:
    """Runs all starts of a method, on all cores, and keeps the best one.

    Args:
        form: its steps.
        blocks: all blocks.
        folder: for the states of tasks, 16 bytes a task, where the method has them.

    Returns:
        The best start; and the states of all tasks that go with its parameters, [N], mapped from a file, or None.
    """
    states: list[NDArray[np.float64]] = []  # before the last pass, and after it
    if form.first_state is not None:
        shape = (blocks.num_tasks,)
        states = [np.memmap(folder / f"states-{number}.bin", np.float64, "w+", shape=shape) for number in range(2)]
        states[1][:] = form.first_state
    table = 8 * max(form.num_annotators, 1) * form.num_classes**2
    threads = max(1, min(num_threads(), MAX_TABLES // table))

    def expected(start: int, run: Run[Any]) -> Tally:
        prepared = None if run.params is None else form.prepared(run.params)
        states.reverse()
        before, after = states or (None, None)

        def count(places: Sequence[int]) -> Tally:
            total = form.zero()
            for _, block in blocks.ahead(places):
                tasks = slice(block.tasks[0], block.tasks[-1] + 1)
                if run.params is None:
                    new = form.first(total, block, start, None)
                else:
                    state = None if before is None else np.asarray(before[tasks])
                    new = form.expect(total, block, prepared, state, len(run.history) < form.max_iter)
                if after is not None:
                    after[tasks] = new
            return total

        return reduce(operator.iadd, in_threads(count, range(len(blocks)), threads))

    return fitted(form, expected), states[0] if states else None
