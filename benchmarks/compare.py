"""How good the choice of `crowdzoo.compare` is without gold, on the real crowds of `real_crowds.py`.

    python benchmarks/compare.py            # about an hour on two busy cores; needs CROWDZOO_DATA

Each crowd is compared twice, with gold and without it; seed 0. `robust` is left out, whose weights were learnt from
these crowds. The score is accuracy less that of majority vote, on the tasks with gold:

- of the method that is first without gold;
- of each method for all crowds, and of the best in hindsight.

Crowds of one source are one family: means are of families. The result goes to benchmarks/results/compare.json.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
import baselines  # noqa: F401 - registers the aggregators of examples/baselines
from needed import need
from real_crowds import CROWDS, family_mean, read

from crowdzoo import compare
from crowdzoo.report.tables import print_table

RESULT = Path(__file__).with_name("results") / "compare.json"
METHODS = ("wawa", "one-coin", "dawid-skene", "hierarchical-dawid-skene", "glad", "mace", "bwa")
MOST = 100_000  # annotations of a crowd


def measured(annotations, gold):
    """Of one crowd, method -> accuracy less majority vote's; and that of the first without gold."""
    with_gold = compare(annotations, gold=gold, methods=METHODS).frame.set_index("method")
    hidden = compare(annotations, methods=METHODS).frame.set_index("method")
    gains = with_gold["against_baseline"].dropna().to_dict()
    return {**gains, "first without gold": gains[hidden.index[0]], "best in hindsight": max(gains.values())}


def summary(crowds):
    """Rows of the table: mean of families, mean of crowds, how many are more than .01 below, the worst."""
    names = dict.fromkeys(name for crowd_row in crowds.values() for name in crowd_row["gains"])
    rows = []
    for name in names:
        gains = {crowd: crowd_row["gains"][name] for crowd, crowd_row in crowds.items() if name in crowd_row["gains"]}
        every, mean = np.array(list(gains.values())), family_mean(gains)
        rows.append((name, f"{mean:+.3f}", f"{every.mean():+.3f}", f"{(every < -0.01).sum()}", f"{every.min():+.3f}"))
    return sorted(rows, key=lambda row: -float(row[1]))


def main():
    crowds = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for crowd, annotations, gold in read():
        if crowd.name in crowds or len(annotations) > MOST or (annotations.redundancy > 1).sum() < 20:
            continue
        crowds[crowd.name] = {"family": crowd.family, "gains": measured(annotations, gold)}
        print(crowd.name, {name: round(value, 3) for name, value in crowds[crowd.name]["gains"].items()}, flush=True)
        RESULT.write_text(json.dumps(crowds, indent=1) + "\n", encoding="utf-8")
    header = ("method", "families", "crowds", "below .01", "worst")
    print_table(f"{len(crowds)} crowds, accuracy less majority vote's", header, summary(crowds))


if __name__ == "__main__":
    need(*(crowd.place for crowd in CROWDS.values()), some=True)
    main()
