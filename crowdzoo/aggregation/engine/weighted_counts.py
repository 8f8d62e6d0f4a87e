"""weighted_counts: one pass of EM in which an annotation may count for less than one."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.params import Params


def weighted_counts(
    block: Block, weights: NDArray[np.float64], params: Params, given: NDArray[np.float64] | None = None
) -> tuple[Counts, NDArray[np.float64]]:
    """Posteriors of a block's tasks, and what they add to the counts; with weights of one as `add_counts`.

    An annotation of weight w has w times its log probability in the posterior, and adds w times the posterior to the
    counts of its annotator. Tasks count once.

    Args:
        block: T tasks, A annotations.
        weights: of each annotation in the order of the block, positive, [A].
        params: of R annotators and K classes.
        given: posteriors [T, K], instead of those that follow from the parameters.

    Returns:
        The counts, and the posteriors [T, K]. `log_likelihood` is the weighted one; 0 with `given`.
    """
    num_annotators, num_classes = params.num_annotators, params.num_classes
    block.check_codes(num_annotators, num_classes)
    counts = Counts.zero(num_annotators, num_classes)
    posteriors = np.empty((len(block.tasks), num_classes)) if given is None else block.clamped(given)
    tables = params.log_table, params.log_class_prior, given is None
    counts.log_likelihood = _pass(*block.columns, weights, *tables, posteriors, counts.table, counts.classes)
    counts.num_annotations = len(block)
    return counts, posteriors


@compiled()
def _pass(starts, annotators, labels, gold, weights, log_table, log_prior, expects, posteriors, counts, classes):  # type: ignore[no-untyped-def]  # for Numba
    num_classes = len(log_prior)
    evidence = 0.0
    for task in range(len(starts) - 1):
        first, last = starts[task], starts[task + 1]
        known = gold[task] if len(gold) else -1
        shares = posteriors[task]
        if expects:
            shares[:] = log_prior
            for row in range(first, last):
                logs = log_table[annotators[row], labels[row]]
                for k in range(num_classes):
                    shares[k] += weights[row] * logs[k]
            if known >= 0:
                evidence += shares[known]
                shares[:] = 0.0
                shares[known] = 1.0
            else:
                peak = shares.max()
                total = 0.0
                for k in range(num_classes):
                    shares[k] = np.exp(shares[k] - peak)
                    total += shares[k]
                for k in range(num_classes):
                    shares[k] /= total
                evidence += peak + np.log(total)
        if last > first or known >= 0:
            for k in range(num_classes):
                classes[k] += shares[k]
        for row in range(first, last):
            cell = counts[annotators[row], labels[row]]
            for k in range(num_classes):
                cell[k] += weights[row] * shares[k]
    return evidence
