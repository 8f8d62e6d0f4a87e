"""Tagged documents as their number grows: how well the sequence methods hold.

    CROWDZOO_THREADS=1 python benchmarks/sequence_growth.py                   # everything, half an hour
    python benchmarks/sequence_growth.py --sizes 1000 --rows bsc-seq          # only these are run again
    python benchmarks/sequence_growth.py --print                              # the table of the saved results

Documents of `generated_abstracts()`, 150 annotators: more documents, more of each annotator. F1 is of whole spans; of
tokens it counts the tokens of spans by type. "votes 0" is the models as the papers have them, with fixed pseudo-counts.
No method sees a true tag. The default of `votes` was chosen on these crowds, as the least weight that holds.
"""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.aggregation import ConvergenceWarning, create
from crowdzoo.datasets.generated_abstracts import generated_abstracts
from crowdzoo.report.tables import print_table
from crowdzoo.sequences import CrowdSequences, span_scores

RESULTS = Path(__file__).parent / "results" / "sequence_growth.json"
SIZES = (100, 300, 1000, 3000, 10_000)
NUM_ANNOTATORS = 150
PICO = ("PARTICIPANTS", "INTERVENTIONS", "OUTCOMES")
CROWDS = {"one type": ("PARTICIPANTS",), "three types": PICO}
# row -> name of the method and its settings
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "span-majority-vote, share 0.3": ("span-majority-vote", {"share": 0.3}),
    "dawid-skene": ("dawid-skene", {}),
    "hmm-crowd, votes 0": ("hmm-crowd", {"votes": 0}),
    "hmm-crowd": ("hmm-crowd", {}),
    "bsc-seq, no words, votes 0": ("bsc-seq", {"words": 0, "votes": 0}),
    "bsc-seq, no words": ("bsc-seq", {"words": 0}),
    "bsc-seq, votes 0": ("bsc-seq", {"votes": 0}),
    "bsc-seq": ("bsc-seq", {}),
}


def token_f1(crowd: CrowdSequences, labels: np.ndarray) -> float:
    """F1 of the tokens inside spans, by type, in percent."""
    assert crowd.gold is not None
    types = np.array([0 if name == "O" else 1 + crowd.tag_set.types.index(name[2:]) for name in crowd.classes])
    gold, found = types[np.concatenate(crowd.gold)], types[labels]
    right = ((gold == found) & (gold > 0)).sum()
    return float(200 * right / max((gold > 0).sum() + (found > 0).sum(), 1))


def measure(crowd: CrowdSequences, row: str) -> dict[str, Any]:
    """F1 of spans and of tokens in percent, and how the fit ended."""
    name, settings = ROWS[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = create(name, kind="sequence", **settings).fit(crowd)
    return {
        "f1": round(100 * span_scores(crowd.gold_tags(), found.tags()).f1, 2),
        "token_f1": round(token_f1(crowd, found.labels), 2),
        "iterations": found.num_iterations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowds", nargs="+", default=list(CROWDS), choices=list(CROWDS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--print", action="store_true", help="only print the saved results")
    options = parser.parse_args()
    table = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"crowds": {}}
    for name in [] if options.print else options.crowds:
        for size in options.sizes:
            crowd = generated_abstracts(size, NUM_ANNOTATORS, types=CROWDS[name])
            for row in options.rows:
                found = measure(crowd, row)
                table["crowds"].setdefault(name, {}).setdefault(row, {})[str(size)] = found
                print(f"{name:12} {size:6,} {row:30} {found}", flush=True)
                table["made with"] = {"python": platform.python_version(), "numpy": version("numpy")}
                RESULTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    for name, rows in table["crowds"].items():
        sizes = sorted({int(size) for found in rows.values() for size in found})
        cells = {row: [rows[row].get(str(size)) for size in sizes] for row in ROWS if row in rows}
        print_table(
            f"{name}: F1 of spans / of tokens, by number of documents",
            ["method", *(f"{size:,}" for size in sizes)],
            [[row, *("" if f is None else f"{f['f1']:.1f} / {f['token_f1']:.1f}" for f in found)]
             for row, found in cells.items()],
        )  # fmt: skip
        print()


if __name__ == "__main__":
    main()
