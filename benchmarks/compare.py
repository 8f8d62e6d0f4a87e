"""How good the choice of `crowdzoo.compare` is without gold, on the real crowds of `real_crowds.py`.

    python benchmarks/compare.py            # about an hour on two busy cores; needs CROWDZOO_DATA
    python benchmarks/compare.py --page     # prints the table of what is saved

Each crowd is compared twice, with gold and without it; seed 0. `robust` is left out, whose weights were learnt from
these crowds. The score is accuracy less that of majority vote, on the tasks with gold:

- of the method that is first without gold;
- of each method for all crowds, and of the best in hindsight.

Crowds of one source are one family: means are of families. The result goes to benchmarks/results/compare.json.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
import baselines  # noqa: F401 - registers the aggregators of examples/baselines
from needed import need
from real_crowds import CROWDS, family_mean, real_sets
from rows import grid, read, run

from crowdzoo import compare

RESULTS = Path(__file__).with_name("results") / "compare.json"
METHODS = ("wawa", "one-coin", "dawid-skene", "hierarchical-dawid-skene", "glad", "mace", "bwa")
MOST = 100_000  # annotations of a crowd


def measured(name):
    """Of one crowd, method -> accuracy less majority vote's; and that of the first without gold."""
    [(_, annotations, gold)] = real_sets((name,))
    if len(annotations) > MOST or (annotations.redundancy > 1).sum() < 20:
        return
    with_gold = compare(annotations, gold=gold, methods=METHODS).frame.set_index("method")
    hidden = compare(annotations, methods=METHODS).frame.set_index("method")
    gains = with_gold["against_baseline"].dropna().to_dict()
    yield {**gains, "first without gold": gains[hidden.index[0]], "best in hindsight": max(gains.values())}


def show_table():
    """Mean of families, mean of crowds, how many are more than .01 below, the worst."""
    crowds = {crowd: row["runs"][0] for crowd, row in read(RESULTS)["crowds"].items()}
    rows = []
    for name in dict.fromkeys(name for gains in crowds.values() for name in gains):
        gains = {crowd: row[name] for crowd, row in crowds.items() if name in row}
        every, mean = np.array(list(gains.values())), family_mean(gains)
        rows.append((name, f"{mean:+.3f}", f"{every.mean():+.3f}", f"{(every < -0.01).sum()}", f"{every.min():+.3f}"))
    rows.sort(key=lambda row: -float(row[1]))
    print(grid((f"method, {len(crowds)} crowds", "families", "crowds", "below .01", "worst"), rows))


PARTS = {"crowds": {name: partial(measured, name) for name in CROWDS}}

if __name__ == "__main__":
    need(*(crowd.place for crowd in CROWDS.values()), some=True)
    run(RESULTS, PARTS, __doc__, show_table, keras=False)
