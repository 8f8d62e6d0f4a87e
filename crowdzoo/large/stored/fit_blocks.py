"""fit_blocks: EM over stored blocks, with the steps that also run on Beam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import MAX_TABLES
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.runs import begun, finished_run, next_run
from crowdzoo.large.forms.tally import Tally
from crowdzoo.large.stored.stored_blocks import StoredBlocks

__all__ = ["Fitted", "fit_blocks"]

Array = NDArray[np.float64]
Add = Callable[[Tally, Block, Array | None], Array | None]  # to a tally, a block with its states; gives new states


@dataclass(frozen=True, eq=False)
class Fitted:
    """The best start.

    Attributes:
        run: with the parameters as the local engine has them.
        rows: what belongs to the annotators, as `Method` has it, [R, ...].
        common: what belongs to none of them.
        states: of the tasks, [N], mapped from a file; None where the method has none.
    """

    run: Run[Any]
    rows: Array
    common: Array
    states: Array | None


def fit_blocks(method: Method, blocks: StoredBlocks, folder: Path) -> Fitted:
    """Runs all starts of a method, and keeps the best one.

    Args:
        method: its steps.
        blocks: all blocks.
        folder: for the states of tasks, 16 bytes a task, where the method has them.
    """
    fitted = [_Start(method, blocks, folder, start).fit() for start in range(method.starts)]
    return max(fitted, key=lambda each: each.run.history[-1] if each.run.history else 0.0)


class _Start:
    def __init__(self, method: Method, blocks: StoredBlocks, folder: Path, start: int):
        self.method, self.blocks, self.start = method, blocks, start
        self.states = self.new_states = None
        if method.has_state:
            self.states, self.new_states = (
                np.memmap(folder / f"states-{number}.bin", np.float64, "w+", shape=(blocks.num_tasks,))
                for number in range(2)
            )
            self.states[:] = method.first_state

    def fit(self) -> Fitted:
        method = self.method
        total = self._total(lambda total, block, state: method.first(total, block, self.start, None, None))
        rows, common = method.maximise(total, None, None)
        run = begun(method, common)
        while not run.done:
            params, counting = method.prepared(rows, run.params), len(run.history) < method.max_iter

            def expect(
                total: Tally, block: Block, state: Array | None, params: Any = params, counting: bool = counting
            ) -> Array | None:
                return method.expect(total, block, params, state, counting)

            total = self._total(expect)
            after = next_run(method, run, total, method.penalty(rows))
            if not after.done:
                rows = method.maximise(total, rows if method.needs_rows else None, run.params)[0]
                self.states, self.new_states = self.new_states, self.states
            run = after
        return Fitted(finished_run(method, run, rows), rows, run.params, self.states)

    def _total(self, add: Add) -> Tally:
        """What all blocks add, on all cores; new states of their tasks go to `new_states`."""
        method = self.method

        def work(places: Sequence[int]) -> Tally:
            total = method.zero(method.num_annotators)
            for _, block in self.blocks.ahead(places):
                tasks = slice(block.tasks[0], block.tasks[-1] + 1)
                new = add(total, block, None if self.states is None else np.asarray(self.states[tasks]))
                if self.new_states is not None and new is not None:
                    self.new_states[tasks] = new
            return total

        size = method.row_bytes * max(method.num_annotators, 1)
        first, *others = in_threads(work, range(len(self.blocks)), max(1, min(num_threads(), MAX_TABLES // size)))
        for other in others:
            first += other
        return first
