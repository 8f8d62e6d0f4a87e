"""Tagged sentences out of many annotators' ones: how well every method finds the true spans, and what it costs.

    CROWDZOO_THREADS=1 python benchmarks/sequence_aggregation.py            # everything, about a minute
    python benchmarks/sequence_aggregation.py --sets generated --rows bsc-seq   # only these are run again
    python benchmarks/sequence_aggregation.py --print                       # the tables of the saved results

Two sets. "ner" is the released part of the news of Rodrigues, Pereira and Ribeiro (2,845 different sentences, 47
workers of Mechanical Turk, 4.96 a sentence), read below CROWDZOO_DATA (see `crowdzoo.datasets.data_folder`) and left
out where that has none. "generated" is `generated_ner()` with its 20 annotators, who err in whole spans because they
were made to.

Precision, recall and F1 are those of whole spans, as conlleval counts, in percent; "tokens" is the share of tokens with
the right tag. No method sees a true tag. Every method has its own settings as they come, and those of the sequence
models were fixed before they met these sets; other weights of words are shown as well. Methods for classes take tokens
as tasks: "each" gives every token its own label, as the literature does; "valid" takes the best path that keeps BIO,
which is what crowdzoo does unless told otherwise. Seconds are of one fit, after a smaller one that compiled the code.

Left out of the methods for classes: ebcc (minutes to hours for 202,000 annotations).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
from load_ner_amt import FOLDER, load_ner_amt
from needed import need

from crowdzoo.aggregation import ConvergenceWarning, create
from crowdzoo.aggregation.engine.loops import num_threads
from crowdzoo.datasets import data_folder
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.errors import CrowdzooError
from crowdzoo.report.tables import print_table
from crowdzoo.sequences import CrowdSequences, SpanScores, span_scores

RESULTS = Path(__file__).parent / "results" / "sequence_aggregation.json"
BY_TOKEN = ("majority-vote", "wawa", "dawid-skene", "one-coin", "glad", "mace", "ibcc")
# row -> name of the method and its settings
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{name}, {how}": (name, {"decoding": how}) for name in BY_TOKEN for how in ("each", "valid")},
    "span-majority-vote": ("span-majority-vote", {}),
    "span-majority-vote, share 0.3": ("span-majority-vote", {"share": 0.3}),
    "hmm-crowd, no words": ("hmm-crowd", {"words": 0}),
    "hmm-crowd": ("hmm-crowd", {}),
    "hmm-crowd, words 1": ("hmm-crowd", {"words": 1}),
    "bsc-seq, no words": ("bsc-seq", {"words": 0}),
    "bsc-seq": ("bsc-seq", {}),
    "bsc-seq, words 1": ("bsc-seq", {"words": 1}),
}
SETS: dict[str, Callable[[], CrowdSequences]] = {
    "ner": lambda: load_ner_amt().crowd,
    "generated": generated_ner,
}
# Rodrigues, Pereira and Ribeiro 2014: majority vote on all 5,985 sentences, whose answers are not to be had
PUBLISHED = {"precision": 79.12, "recall": 58.50, "f1": 67.27}


def figures(scores: SpanScores) -> dict[str, float]:
    """What is kept of scores, in percent."""
    return {
        "tokens": round(100 * scores.token_accuracy, 2),
        "precision": round(100 * scores.precision, 2),
        "recall": round(100 * scores.recall, 2),
        "f1": round(100 * scores.f1, 2),
    }


def measure(crowd: CrowdSequences, row: str) -> dict[str, Any]:
    """One row: figures, seconds and how the fit ended."""
    name, settings = ROWS[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        create(name, kind="sequence", **settings).fit(crowd.select(range(50)))
        begin = time.perf_counter()
        result = create(name, kind="sequence", **settings).fit(crowd)
        seconds = time.perf_counter() - begin
    return {
        **figures(span_scores(crowd.gold_tags(), result.tags())),
        "seconds": round(seconds, 3),
        "iterations": result.num_iterations,
        "converged": result.converged,
    }


def run(table: dict[str, Any], sets: list[str], rows: list[str]) -> None:
    """Measures and saves, row by row."""
    for name in sets:
        if name == "ner" and not (data_folder() / FOLDER).is_dir():
            print(f"CROWDZOO_DATA has no {FOLDER}: left out")
            continue
        crowd = SETS[name]()
        saved = table.setdefault("sets", {}).setdefault(name, {})
        saved["size"] = {
            "sentences": len(crowd),
            "tokens": int(crowd.starts[-1]),
            "annotators": crowd.annotations.num_annotators,
            "per_sentence": round(float(crowd.annotations.redundancy.mean()), 2),
            "spans": sum(len(spans) for spans in crowd.gold_spans()),
        }
        for row in rows:
            try:
                figures_of_row = measure(crowd, row)
            except CrowdzooError as error:
                figures_of_row = {"error": str(error).splitlines()[0]}
            saved.setdefault("rows", {})[row] = figures_of_row
            print(f"{name:10} {row:30} {figures_of_row}", flush=True)
        order = dict.fromkeys([*ROWS, *saved["rows"]])  # rows of methods that left stay
        saved["rows"] = {row: saved["rows"][row] for row in order if row in saved["rows"]}
    if "ner" in sets and (data_folder() / FOLDER).is_dir():
        ner = load_ner_amt()
        table["published majority vote"] = {
            "published": PUBLISHED,
            "measured": figures(span_scores(ner.published.gold_tags(), ner.majority)),
        }
    table["made with"] = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
        "machine": platform.machine(),
        "threads": num_threads(),
    }
    RESULTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def tables(table: dict[str, Any]) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Title, header and rows of one table for each set."""
    header = ["method", "tokens", "P", "R", "F1", "seconds"]
    names = ("tokens", "precision", "recall", "f1")
    for name, saved in table.get("sets", {}).items():
        size = saved["size"]
        who = f"{size['annotators']} annotators, {size['per_sentence']} a sentence"
        title = f"{name}: {size['sentences']:,} sentences, {who}"
        rows = [
            [row, row_figures["error"], "", "", "", ""]
            if "error" in row_figures
            else [row, *(f"{row_figures[figure]:.1f}" for figure in names), f"{row_figures['seconds']:.2f}"]
            for row, row_figures in saved["rows"].items()
        ]
        if name == "ner" and "published majority vote" in table:
            measured = table["published majority vote"]["measured"]
            published = [f"{measured[figure]:.1f}" for figure in names]
            rows.append(["published majority vote, on all 5,985 sentences", *published, ""])
        yield title, header, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--print", action="store_true", help="only print the saved results")
    options = parser.parse_args()
    table = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if not options.print:
        run(table, options.sets, options.rows)
    for title, header, rows in tables(table):
        print_table(title, header, rows)
        print()


if __name__ == "__main__":
    need(FOLDER, flag="--sets", values=("ner",))
    main()
