"""Choosing a deep method by hidden annotations (`crowdzoo train --method auto`) against always taking the same one.

    python benchmarks/reproduce/deep_choice.py              # the runs that the saved results do not have
    python benchmarks/reproduce/deep_choice.py --rounds 1   # only the first round
    python benchmarks/reproduce/deep_choice.py --print      # the saved results, no training

**Protocol**, fixed before the first run on these sets.

- Sets, features, splits and draws are those of recipe.py, which had no part in the choice of the criterion. That was
  tried on one draw of CoNAL's generator with another seed: nothing was changed after it.
- Each candidate of `crowdzoo.training.candidates` is trained on all training tasks with the default settings, the seed
  is the round. `choose_method` with the same settings chooses a method and a number of epochs, which is then trained on
  all training tasks, too.
- Figure: accuracy on the test tasks after the last epoch. Regret of a rule in a run: accuracy of the best candidate
  less that of the rule. The choice also picks the length, so its regret may be below zero.
- Interval: 95 %, `mean_interval` over the sets, fifths with Nadeau and Bengio's term.
- Rounds are run over all sets, one after the other; when to stop is decided by the clock.

Results go to benchmarks/results/deep_choice.json, each run with its stack; the table to docs/methods.md.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from deep_methods import FOLDS
from intervals import Runs, mean_interval
from recipe import DRAWS, REAL, SETS
from stack import stack

from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parents[1] / "results" / "deep_choice.json"
PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
START, END = "<!-- auto -->", "<!-- end -->"
CHOICE = "auto"


def run(data: Any, seed: int) -> dict[str, Any]:
    """Test accuracy of each candidate and of the choice."""
    import keras
    import tensorflow as tf

    from crowdzoo.aggregation import create
    from crowdzoo.models import TrainingSettings, choose_method
    from crowdzoo.training.candidates import CANDIDATES, check_candidates, title_of
    from crowdzoo.training.instance_training import train

    tf.config.experimental.enable_op_determinism()

    def accuracy(settings: Any) -> float:
        keras.utils.clear_session()
        given: dict[str, Any] = {"annotations": data.annotations, "tasks": data.annotations.tasks}
        if settings.method == "aggregated":
            given = {"label_distribution": create("robust").fit(data.annotations).posteriors}
        model, _ = train(settings, data.x, **given)
        return float((model.predict(data.x_test, verbose=0).argmax(axis=1) == data.gold_test).mean())

    plain = TrainingSettings(seed=seed)
    tests = {title_of(each): accuracy(each) for each in check_candidates(plain, CANDIDATES)}
    started = time.process_time()
    choice = choose_method(plain, data.x, data.annotations, tasks=data.annotations.tasks)
    seconds = time.process_time() - started
    return {
        "seed": seed, "test": tests | {CHOICE: accuracy(choice.settings)}, "chosen": title_of(choice.settings),
        "epochs": choice.settings.epochs, "hidden": choice.num_hidden,
        "scores": {title_of(each.settings): round(each.score, 5) for each in choice.candidates},
        "choosing_cpu_seconds": round(seconds, 1), "stack": stack(),
    }  # fmt: skip


def measure(rounds: int) -> None:
    """The runs that the results do not have, round by round."""
    for number in range(rounds):
        for name, make in SETS.items():
            saved = read()
            done = saved.setdefault(name, [])
            if number >= (FOLDS if name in REAL else DRAWS) or any(each["seed"] == number for each in done):
                continue
            done.append(run(make(number), number))
            RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
            print(f"round {number}, {name}: {done[-1]['chosen']}, {done[-1]['test']}", flush=True)


def read() -> dict[str, list[dict[str, Any]]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}


def regrets(results: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, list[float]]]:
    """Rule -> set -> regret of each run, in points of accuracy."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, runs in results.items():
        for each in runs:
            best = max(value for rule, value in each["test"].items() if rule != CHOICE)
            for rule, value in each["test"].items():
                found.setdefault(rule, {}).setdefault(name, []).append(100 * (best - value))
    return found


def rows(results: dict[str, list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """A line a rule, the least regret first: mean over the sets with its interval, the worst set, accuracy."""
    lines = []
    for rule, of_sets in regrets(results).items():
        means = {name: float(np.mean(values)) for name, values in of_sets.items()}
        worst = max(means, key=means.__getitem__)
        # one run has no spread of its own
        spread = [
            Runs(values, overlap=1 / (FOLDS - 1) if name in REAL else 0.0)
            for name, values in of_sets.items() if len(values) > 1
        ]  # fmt: skip
        half = f" ± {mean_interval(spread)[1]:.1f}" if len(spread) == len(of_sets) else ""
        accuracy = np.mean([np.mean([100 * each["test"][rule] for each in runs]) for runs in results.values()])
        mean = float(np.mean(list(means.values())))
        lines.append((mean, (rule, f"{mean:.2f}{half}", f"{means[worst]:.1f} ({worst})", f"{accuracy:.1f}")))
    return [line for _, line in sorted(lines)]


def written(page: str, results: dict[str, list[dict[str, Any]]]) -> str:
    """The page with the table of rules between its marks."""
    before, rest = page.split(START)
    header = "| rule | mean regret, points | worst set | mean accuracy |\n|---|---|---|---|"
    lines = [f"| {' | '.join(row)} |" for row in rows(results)]
    return "\n".join([f"{before}{START}", header, *lines, END + rest.split(END, 1)[1]])


def tables(results: dict[str, list[dict[str, Any]]]) -> None:
    number = {name: len(runs) for name, runs in results.items()}
    print_table(
        f"Rules for choosing a deep method, {len(results)} sets, {sum(number.values())} runs",
        ("rule", "mean regret, points", "worst set", "mean accuracy"), rows(results),
    )  # fmt: skip
    print()
    first = next(iter(results.values()))[0]["test"]
    by_set = [
        (name, str(len(runs)), *(f"{100 * np.mean([each['test'][rule] for each in runs]):.1f}" for rule in first))
        for name, runs in results.items()
    ]
    print_table("Test accuracy by set", ("set", "runs", *first), by_set)
    print()
    chosen = [
        (name, ", ".join(f"{each['chosen']} ({each['epochs']})" for each in runs)) for name, runs in results.items()
    ]
    print_table("Chosen (epochs)", ("set", "method"), chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=FOLDS)
    parser.add_argument("--print", action="store_true", help="only the saved results")
    arguments = parser.parse_args()
    if not arguments.print:
        measure(arguments.rounds)
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")
    tables(read())


if __name__ == "__main__":
    main()
