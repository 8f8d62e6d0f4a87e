"""crowd-kit's aggregators on our annotations: what they answer, in what time, or why not.

`CROWDKIT[method](n_iter)` makes crowd-kit's class for one of our methods' names, `crowdkit_frame(annotations)` the
table that it takes, and `run_crowdkit` runs it in a process of its own with a time limit:

    python benchmarks/peers.py rte            # all of them on one of the real sets of aggregation_quality.py
"""

import math
import multiprocessing
import resource
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo import Annotations

if TYPE_CHECKING:
    import pandas as pd

TIME_LIMIT = 300  # seconds of processor time for a run: a busy machine does not count against it
REPEATS = 3  # after a first run that is shorter than SHORT seconds, so many are timed, and the medians count
SHORT = 5.0


def _maker(name: str, **settings: Any) -> Callable[[int | None], Any]:
    """Makes that class of crowd-kit, with its own number of iterations where none is given."""

    def make(n_iter: int | None = None) -> Any:
        import crowdkit.aggregation

        given = {} if n_iter is None else {"n_iter": n_iter}
        return getattr(crowdkit.aggregation, name)(**settings, **given)

    return make


# our name of the method -> its class in crowd-kit; `n_iter=None` is crowd-kit's default
CROWDKIT: dict[str, Callable[[int | None], Any]] = {
    "majority-vote": _maker("MajorityVote"),
    "wawa": _maker("Wawa"),
    "zero-based-skill": _maker("ZeroBasedSkill"),
    "dawid-skene": _maker("DawidSkene"),
    "one-coin": _maker("OneCoinDawidSkene"),
    "glad": _maker("GLAD"),
    "mace": _maker("MACE"),
    "mmsr": _maker("MMSR"),
    "kos": _maker("KOS"),
}


def crowdkit_frame(annotations: Annotations) -> "pd.DataFrame":
    """Columns task, worker, label, all integer codes; one row an annotation."""
    import pandas as pd

    columns = (annotations.task_ids, annotations.annotator_ids, annotations.labels)
    return pd.DataFrame(dict(zip(("task", "worker", "label"), map(np.asarray, columns), strict=True)))


def crowdkit_posteriors(aggregator: Any, frame: "pd.DataFrame", num_tasks: int, num_classes: int) -> np.ndarray:
    """Fits, and gives class probabilities [N, K]; M-MSR's scores, and KOS's labels as certainties, stand for them.

    A task that the aggregator says nothing of has uniform probabilities.
    """
    if hasattr(aggregator, "fit_predict_proba"):
        table = aggregator.fit_predict_proba(frame)
    elif hasattr(aggregator, "fit_predict_score"):
        table = aggregator.fit_predict_score(frame)
    else:
        import pandas as pd

        table = pd.get_dummies(aggregator.fit_predict(frame)).astype(float)
    filled = table.reindex(index=range(num_tasks), columns=range(num_classes))
    posteriors = filled.to_numpy(np.float64)
    posteriors[:, [k not in table.columns for k in range(num_classes)]] = 0.0
    posteriors[~np.isin(np.arange(num_tasks), table.index)] = 1 / num_classes
    if not np.isfinite(posteriors).all():
        rows = (~np.isfinite(posteriors).all(axis=1)).sum()
        raise ArithmeticError(f"not a number in the answers for {rows} of {num_tasks} tasks")
    return posteriors


def run_crowdkit(
    method: str, annotations: Annotations, n_iter: int | None = None, *, seconds: int = TIME_LIMIT
) -> dict[str, Any]:
    """Runs one of `CROWDKIT` in a fresh process.

    Args:
        method: a key of `CROWDKIT`.
        annotations: N tasks, K classes.
        n_iter: iterations; crowd-kit's default if None.
        seconds: limit of the process's processor time.

    Returns:
        `posteriors` [N, K], `seconds` by the clock and `cpu_seconds` of fit and predict (medians if short),
        `iterations` (where crowd-kit keeps a history), and `peak_bytes` (resident, of the process; `base_bytes` before
        the fit); or `error`, crowd-kit's own words.
    """
    context = multiprocessing.get_context("spawn")  # a fork could inherit a lock that a thread of ours holds
    receiver, sender = context.Pipe(duplex=False)
    arrays = (annotations.task_ids, annotations.annotator_ids, annotations.labels)
    sizes = (annotations.num_tasks, annotations.num_classes)
    process = context.Process(target=_child, args=(sender, method, n_iter, arrays, sizes, seconds), daemon=True)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            return {"error": f"not finished in {seconds} s of processor time"}
        return {"error": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()
        receiver.close()


def _child(
    sender: Any, method: str, n_iter: int | None, arrays: tuple, sizes: tuple[int, int], seconds: int = TIME_LIMIT
) -> None:
    import warnings

    import pandas as pd

    warnings.simplefilter("ignore")
    frame = pd.DataFrame(dict(zip(("task", "worker", "label"), arrays, strict=True)))
    CROWDKIT[method](n_iter)  # imports crowd-kit, which is not timed
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, resource.RLIM_INFINITY))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    try:
        took: list[tuple[float, float]] = []
        for repeat in range(REPEATS + 1):
            aggregator = CROWDKIT[method](n_iter)
            wall, cpu = time.perf_counter(), time.process_time()
            posteriors = crowdkit_posteriors(aggregator, frame, *sizes)
            took.append((time.perf_counter() - wall, time.process_time() - cpu))
            if repeat == 0 and took[0][0] > SHORT:
                break
        wall, cpu = (statistics.median(column) for column in zip(*(took[1:] or took), strict=True))
        result = {"posteriors": posteriors, "seconds": wall, "cpu_seconds": cpu}
        history = getattr(aggregator, "loss_history_", None)
        if history:
            result["iterations"] = len(history)
    except Exception as error:  # whatever crowd-kit says goes into the table
        last = traceback.format_exception_only(type(error), error)[-1].strip().splitlines()[0]
        result = {"error": last}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sender.send({**result, "peak_bytes": peak, "base_bytes": base})


def main() -> None:
    from aggregation_quality import expected_accuracy, real_sets

    for name, annotations, gold in real_sets(tuple(sys.argv[1:])):
        for method in CROWDKIT:
            result = run_crowdkit(method, annotations)
            if "error" in result:
                print(f"{name:12} {method:16} {result['error']}", flush=True)
            else:
                accuracy = expected_accuracy(result["posteriors"], gold)
                print(f"{name:12} {method:16} {accuracy:.4f} {result['seconds']:8.3f} s", flush=True)


if __name__ == "__main__":
    main()
