"""Ways of training, each trained with several seeds and scored on held-out tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np


def trials(
    rows: Iterable[str], seeds: Sequence[int], metric: str, score: Callable[[str, int], float]
) -> dict[str, list[float]]:
    """Scores of each row, one number a seed; prints a line for each training.

    Args:
        rows: names of the ways of training.
        seeds: of the trainings.
        metric: name of the score.
        score: trains a row with a seed, and scores it.
    """
    scores: dict[str, list[float]] = {row: [] for row in rows}
    for seed in seeds:
        for row, own in scores.items():
            own.append(score(row, seed))
            print(f"  seed {seed}, {row}: {metric} {own[-1]:.3f}", flush=True)
    return scores


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over the seeds, as a cell of a table."""
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def against(scores: Mapping[str, Sequence[float]], row: str, baseline: str) -> str:
    """How much better a row is than the baseline, as a cell of a table; empty for the baseline itself."""
    return f"{np.mean(scores[row]) - np.mean(scores[baseline]):+.3f}" if row != baseline else ""
