"""What annot_mix.py and coupled_confusions.py share: methods newer than the five papers, on the sets of recipe.py."""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import recipe
from deep_methods import FOLDS, Data
from intervals import Runs, mean_interval
from stack import stack

from crowdzoo.report.tables import print_table

__all__ = ["Rows", "read", "run", "tables"]

# row -> what trains it on data, by a seed, and gives a network: instances to logits
Rows = dict[str, Callable[[Data, int], Any]]
AGAINST = ("CCEM", recipe.RECIPE, "CL MW", "DL-EM (AggNet)", "DL-MV")


def read(path: Path) -> dict[str, Any]:
    """The saved runs: set -> row -> runs."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _work(data: Data, train: Callable[[Data, int], Any], seed: int) -> dict[str, Any]:
    """One training: accuracy on the test tasks."""
    import keras
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
    keras.utils.clear_session()
    started = time.process_time()
    said = train(data, seed).predict(data.x_test, verbose=0).argmax(axis=1)
    seconds = round(time.process_time() - started, 1)
    return {"seed": seed, "test": float((said == data.gold_test).mean()), "cpu_seconds": seconds, "stack": stack()}


def _measure(path: Path, rows: Rows) -> None:
    """The runs that the results do not have, row by row."""
    for row, train in rows.items():
        for name, others in recipe.complete(recipe.read()).items():
            for seed in [run["seed"] for run in others["gold"]]:
                saved = read(path)
                runs = saved.setdefault(name, {}).setdefault(row, [])
                if any(run["seed"] == seed for run in runs):
                    continue
                runs.append(_work(recipe.SETS[name](seed), train, seed))
                path.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
                print(f"{name}, {row}, {seed}: {runs[-1]['test']:.4f}, {runs[-1]['cpu_seconds']} s", flush=True)


def tables(
    results: dict[str, Any], rows: Rows, title: str
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Rows against those of recipe.py, over all sets; and by set. A row stands there when every run is there.

    Args:
        results: what `read` gives.
        rows: the method's.
        title: its name.
    """
    others = recipe.complete(recipe.read())
    number = {name: len(found["gold"]) for name, found in others.items()}
    done = [row for row in rows if all(len(results.get(name, {}).get(row, [])) == n for name, n in number.items())]
    if not done:
        return
    by_set, lines = [], []
    for row in done:
        ours = {name: [run["test"] for run in results[name][row]] for name in others}
        by_set.append((row, *(f"{100 * np.mean(each):.1f}" for each in ours.values())))
        mean = np.mean([100 * np.mean(each) for each in ours.values()])
        for other in AGAINST:
            runs = []
            for name, found in others.items():
                theirs = [run["test"] for run in found[other]]
                gains = [100 * (a - b) for a, b in zip(ours[name], theirs, strict=True)]
                runs.append(Runs(gains, overlap=1 / (FOLDS - 1) if name in recipe.REAL else 0.0))
            average, half = mean_interval(runs)
            won = sum(float(np.mean(np.asarray(each.values, float))) > 0 for each in runs)
            lines.append((
                row, other, f"{mean:.1f}", f"{recipe.average(others, other, 'test'):.1f}",
                f"{average:+.1f} ± {half:.1f}", f"{won} of {len(runs)}",
            ))  # fmt: skip
    for other in AGAINST:
        means = (100 * np.mean([run["test"] for run in found[other]]) for found in others.values())
        by_set.append((other, *(f"{mean:.1f}" for mean in means)))
    header = ("trained by", "against", "its mean", "the other's mean", "difference, paired", "sets won")
    yield f"{title} against each: accuracy on test tasks, {len(others)} sets", header, lines
    yield f"{title} by set: accuracy on test tasks", ("trained by", *others), by_set


def run(path: Path, rows: Rows, title: str, doc: str | None) -> None:
    """The command line: computes the runs that the file does not have, and prints its tables."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    if not parser.parse_args().only_print:
        _measure(path, rows)
    for name, header, lines in tables(read(path), rows, title):
        print_table(name, header, lines)
        print()
