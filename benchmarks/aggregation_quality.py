"""Accuracy of every aggregator on real crowds, beside crowd-kit's and published figures, with what each run costs.

Reads the raw data sets below CROWDZOO_DATA (see `crowdzoo.datasets.data_folder`); sets that are not there are left out:

    python benchmarks/aggregation_quality.py                         # everything; about half an hour
    python benchmarks/aggregation_quality.py --methods glad --sets rte web    # only these are run again
    python benchmarks/aggregation_quality.py --no-crowd-kit          # crowd-kit's figures stay as they were
    python benchmarks/aggregation_quality.py --thinned               # only the part with fewer annotations a task
    python benchmarks/aggregation_quality.py --more                  # only the other crowds
    python benchmarks/aggregation_quality.py --render                # runs nothing, writes the page

writes results/aggregation_quality.json and, from it, docs/aggregation-results.md.

Accuracies are those expected if ties are broken at random. Where an annotator answered a task twice, the first counts.
"""

import argparse
import csv
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
from intervals import over_tasks

from crowdzoo import Annotations
from crowdzoo.aggregation import METHODS, ConvergenceWarning, DawidSkene, VotesWarning
from crowdzoo.aggregation.engine.labels import tied_classes
from crowdzoo.datasets import data_folder
from crowdzoo.errors import CrowdzooError
from crowdzoo.testing.aggregators import simulated_crowd

RESULTS = Path(__file__).parent / "results" / "aggregation_quality.json"
PAGE = Path(__file__).parents[1] / "docs" / "aggregation-results.md"
SETS = ("bluebird", "dog", "rte", "trec", "web", "d_sentiment", "face", "music", "labelme")
MORE_SETS = ("CF", "ZenCrowd_in", "fact_eval", "temporal", "wsd", "llm-judges")
LONG = ("ebcc", "mmce")  # too long for the largest of the other crowds
SIDES = ("ours", "crowd-kit")
WHO = {"ours": "**crowdzoo**", "crowd-kit": "crowd-kit"}
BASELINE = "dawid-skene"  # what the paired differences are taken from
REPEATS = 3
SHORT = 5.0  # a run shorter than this many seconds is repeated, and the first does not count

SOURCES = {
    "Li": "the notebooks published with Li, Rubinstein and Cohn, ICML 2019 (EBCC, iBCC) and WWW 2019 (BWA)",
    "sets": "the papers that the sets come from",
    "crowd-kit paper": "Ustalov, Pavlichenko and Tseitlin, JOSS 2024",
    "MMCE": "MMCE in table 2 of Platanios et al., Learning from Imperfect Annotations, 2020 (mean of 50 runs)",
    "Snorkel": "Snorkel in the same table",
    "MeTaL": "MeTaL in the same table",
}
THINNED = ("bluebird", "rte", "dog", "d_sentiment")  # every task has ten annotations or more
REDUNDANCIES = (2, 3, 5, 10)
DRAWS = 10

# method -> source -> set -> accuracy
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "majority-vote": {
        "sets": {"bluebird": 0.7593, "dog": 0.8222, "rte": 0.8969, "trec": 0.6514, "web": 0.7307},
        "crowd-kit paper": {"d_sentiment": 0.932},
    },
    "wawa": {"crowd-kit paper": {"d_sentiment": 0.951}},
    "dawid-skene": {"crowd-kit paper": {"d_sentiment": 0.960}},
    "glad": {"crowd-kit paper": {"d_sentiment": 0.948}},
    "mace": {"crowd-kit paper": {"d_sentiment": 0.950}},
    "kos": {"crowd-kit paper": {"d_sentiment": 0.933}},
    "mmsr": {"crowd-kit paper": {"d_sentiment": 0.937}},
    "mmce": {"MMCE": {"bluebird": 0.796, "rte": 0.927}},
    "label-model": {"Snorkel": {"bluebird": 0.760, "rte": 0.900}, "MeTaL": {"bluebird": 0.890, "rte": 0.780}},
    "ibcc": {
        "Li": {
            "bluebird": 0.8889,
            "dog": 0.8389,
            "rte": 0.9275,
            "trec": 0.7055,
            "web": 0.7508,
            "d_sentiment": 0.9600,
            "face": 0.6404,
            "music": 0.7900,
        }
    },
    "ebcc": {
        "Li": {
            "bluebird": 0.8611,
            "dog": 0.8401,
            "rte": 0.9313,
            "trec": 0.7037,
            "web": 0.7686,
            "d_sentiment": 0.9610,
            "face": 0.6353,
            "music": 0.7871,
        }
    },
    "bwa": {
        "Li": {
            "bluebird": 0.7593,
            "dog": 0.8315,
            "rte": 0.9275,
            "trec": 0.6044,
            "web": 0.8225,
            "d_sentiment": 0.9560,
            "face": 0.6182,
            "music": 0.7857,
        }
    },
}

VARIANTS: dict[str, Any] = {
    "as it comes": DawidSkene(),
    "tol=1e-6": DawidSkene(tol=1e-6, max_iter=1000),
    "diagonal=0": DawidSkene(diagonal=0.0),
    "diagonal=2": DawidSkene(diagonal=2.0),
    "maximum likelihood (prior=0, diagonal=0)": DawidSkene(prior=0.0, diagonal=0.0),
    "prior=1, diagonal=0": DawidSkene(prior=1.0, diagonal=0.0),
    "best of 10 starts": DawidSkene(num_starts=10),
}

# === The sets ===


def truth_inference(folder: Path) -> tuple[Annotations, np.ndarray]:
    """Columns item,worker,label and item,truth."""
    labels = next(path for path in (folder / "label.csv", folder / "label.csv.gz") if path.exists())
    rows = np.loadtxt(labels, np.int64, delimiter=",", skiprows=1)
    annotations = Annotations.from_arrays(*rows.T, on_duplicate="first")
    truth = np.loadtxt(folder / "truth.csv", np.int64, delimiter=",", skiprows=1)
    return annotations, codes(annotations, dict(truth))


def music(folder: Path) -> tuple[Annotations, np.ndarray]:
    with open(folder / "mturk_answers.csv", newline=None) as file:  # lines end in a bare carriage return
        rows = list(csv.DictReader(file.read().splitlines()))
    columns = ([row[name] for row in rows] for name in ("Input.song", "WorkerID", "Answer.pred_label"))
    annotations = Annotations.from_arrays(*columns)
    return annotations, codes(annotations, {row["Input.song"]: row["Input.true_label"] for row in rows})


def labelme(folder: Path) -> tuple[Annotations, np.ndarray]:
    answers = np.loadtxt(folder / "clasda" / "answers.txt", np.int64)
    annotations = Annotations.from_dense(answers[:, (answers >= 0).any(axis=0)])
    return annotations, np.loadtxt(folder / "clasda" / "labels_train.txt", np.int64)


def snow(path: Path) -> tuple[Annotations, np.ndarray]:
    """A table of Snow et al. 2008, one row an annotation."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    columns = ([row[name] for row in rows] for name in ("orig_id", "!amt_worker_ids", "response"))
    annotations = Annotations.from_arrays(*columns, on_duplicate="first")
    return annotations, codes(annotations, {row["orig_id"]: row["gold"] for row in rows})


def llm_judges(folder: Path) -> tuple[Annotations, np.ndarray]:
    """Grades of relevance by language models; the gold of NIST's assessors."""
    annotations = Annotations.read(folder / "annotations.csv")
    with open(folder / "gold.csv", newline="") as file:
        return annotations, codes(annotations, {row["task"]: row["gold"] for row in csv.DictReader(file)})


def codes(annotations: Annotations, truth: dict) -> np.ndarray:
    """Gold class codes, -1 where unknown, in the order of the tasks."""
    code = {str(name): code for code, name in enumerate(annotations.classes.tolist())}
    names = {str(task): str(name) for task, name in truth.items()}
    return np.array([code.get(names.get(str(task), ""), -1) for task in annotations.tasks.tolist()])


def real_sets(names: tuple[str, ...] = SETS) -> Iterator[tuple[str, Annotations, np.ndarray]]:
    """Name, annotations and gold codes [N] of the sets that are there."""
    readers: dict[str, tuple[str, Callable[[Path], tuple[Annotations, np.ndarray]]]] = {
        "music": ("music-genre-amt", music),
        "labelme": ("labelme-amt", labelme),
        "face": ("truth-inference/s4_Face-Sentiment-Identification", truth_inference),
        "temporal": ("snow2008/all_collected_data/temp.standardized.tsv", snow),
        "wsd": ("snow2008/all_collected_data/wsd.standardized.tsv", snow),
        "llm-judges": ("llm-judges", llm_judges),
    }
    for name in names:
        place, reader = readers.get(name, (f"truth-inference/{name}", truth_inference))
        if (data_folder() / place).exists():
            yield name, *reader(data_folder() / place)


# === Runs ===


def chances(posteriors: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """For each task of known class, the chance that a random one of its most probable classes is right."""
    known = np.flatnonzero(gold >= 0)
    tied = tied_classes(posteriors[known])
    return tied[np.arange(known.size), gold[known]] / tied.sum(axis=1)


def expected_accuracy(posteriors: np.ndarray, gold: np.ndarray) -> float:
    """As `Aggregation.expected_accuracy`, for anybody's posteriors [N, K]."""
    return float(chances(posteriors, gold).mean())


def brier_score(posteriors: np.ndarray, gold: np.ndarray) -> float:
    """Mean over tasks of known class of the squared distance between posterior and truth, 0 to 2."""
    known = np.flatnonzero(gold >= 0)
    truth = np.eye(posteriors.shape[1])[gold[known]]
    return float(((posteriors[known] - truth) ** 2).sum(axis=1).mean())


def timed(aggregator: Any, annotations: Annotations) -> tuple[Any, float, float]:
    """The result, and seconds by the clock and of processors; medians of `REPEATS` after a first run, if short.

    A small crowd goes first, for which everything is compiled.
    """
    aggregator.fit(simulated_crowd(num_classes=annotations.num_classes)[0])
    took: list[tuple[float, float]] = []
    for repeat in range(REPEATS + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        result = aggregator.fit(annotations)
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
        if repeat == 0 and took[0][0] > SHORT:
            break
    times = took[1:] or took
    return result, *(statistics.median(column) for column in zip(*times, strict=True))


def run_ours(aggregator: Any, annotations: Annotations, gold: np.ndarray) -> tuple[dict, np.ndarray | None]:
    """What goes into the table, and each known task's chance of being right."""
    try:
        result, seconds, cpu = timed(aggregator, annotations)
    except CrowdzooError as error:
        return {"error": str(error)}, None
    row = {
        "accuracy": round(result.expected_accuracy(gold), 4),
        "brier": round(brier_score(result.posteriors, gold), 4),
        "iterations": result.num_iterations,
        "converged": bool(result.converged),
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu, 4),
    }
    return row, chances(result.posteriors, gold)


def run_theirs(method: str, annotations: Annotations, gold: np.ndarray) -> dict:
    from peers import run_crowdkit

    found = run_crowdkit(method, annotations)
    if "error" in found:
        return {"error": found["error"]}
    row = {name: round(found[name], 4) for name in ("seconds", "cpu_seconds")}
    return {"accuracy": round(expected_accuracy(found["posteriors"], gold), 4), **row}


def against(chance: np.ndarray, baseline: np.ndarray) -> dict[str, float]:
    """Mean difference over the tasks of one set, and its standard error (tasks taken as drawn at random)."""
    difference = chance - baseline
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return {"difference": round(float(difference.mean()), 5), "error": round(float(error), 5)}


def about() -> dict[str, Any]:
    packages = {name: version(name) for name in ("numpy", "numba", "crowd-kit", "pandas", "scikit-learn")}
    machine = {"machine": platform.machine(), "cores": os.cpu_count()}
    return {"python": platform.python_version(), **packages, **machine}


def measure(table: dict, sets: tuple[str, ...], methods: tuple[str, ...], with_crowdkit: bool) -> Iterator[dict]:
    """Runs and fills `table`; yields it after each set."""
    sys.path.insert(0, str(Path(__file__).parent))
    from peers import CROWDKIT

    warnings.simplefilter("ignore", ConvergenceWarning)  # the table marks what did not converge with *
    warnings.simplefilter("ignore", VotesWarning)
    table["about"] = about()
    table["published"] = {"sources": SOURCES, "figures": PUBLISHED}
    for name, annotations, gold in real_sets(sets):
        row = table.setdefault("sets", {}).setdefault(name, {})
        row["tasks"], row["annotators"] = annotations.num_tasks, annotations.num_annotators
        row["classes"], row["annotations"] = annotations.num_classes, len(annotations)
        row["known"] = int((gold >= 0).sum())
        known = row.setdefault("methods", {})
        baseline = chances(METHODS[BASELINE]().fit(annotations).posteriors, gold)
        for method in methods:
            cell = known.setdefault(method, {})
            if method in METHODS:
                cell["ours"], chance = run_ours(METHODS[method](), annotations, gold)
                if chance is not None:
                    cell["ours"]["against"] = against(chance, baseline)
            if with_crowdkit and method in CROWDKIT:
                cell["crowd-kit"] = run_theirs(method, annotations, gold)
            print(f"{name:12} {method:18}", *(_short(cell.get(side, {})) for side in SIDES), sep="  ", flush=True)
        if BASELINE in methods:
            row["variants"] = {}
            for title, aggregator in VARIANTS.items():
                row["variants"][title], _ = run_ours(aggregator, annotations, gold)
        row["methods"] = {method: known[method] for method in (*METHODS, *CROWDKIT) if known.get(method)}
        yield table


def measure_thinned(table: dict, methods: tuple[str, ...]) -> None:
    """Fills `table["thinned"]`: set -> redundancy -> method -> mean accuracy over draws, all on the same draws."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, annotations, gold in real_sets(THINNED):
        for redundancy in REDUNDANCIES:
            draws = [annotations.restrict(redundancy=redundancy, seed=seed) for seed in range(DRAWS)]
            row = table.setdefault("thinned", {}).setdefault(name, {}).setdefault(str(redundancy), {})
            for method in methods:
                try:
                    found = [METHODS[method]().fit(draw).expected_accuracy(gold) for draw in draws]
                except CrowdzooError:  # of two classes only: the main table says so
                    continue
                row[method] = round(statistics.mean(found), 4)
            print(f"{name:12} {redundancy:3}", row, flush=True)


def measure_more(table: dict, methods: tuple[str, ...]) -> None:
    """Fills `table["more"]`: set -> its sizes, and method -> accuracy and mean probability of the answers."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", VotesWarning)
    for name, annotations, gold in real_sets(MORE_SETS):
        known = gold >= 0
        row = table.setdefault("more", {}).setdefault(name, {"methods": {}})
        row |= {"tasks": annotations.num_tasks, "annotators": annotations.num_annotators, "known": int(known.sum())}
        row |= {"classes": annotations.num_classes, "annotations": len(annotations)}
        for method in methods:
            try:
                result = METHODS[method]().fit(annotations)
            except CrowdzooError:  # of two classes only: the main table says so
                continue
            row["methods"][method] = {
                "accuracy": round(result.expected_accuracy(gold), 4),
                "probability": round(float(result.posteriors[known].max(axis=1).mean()), 4),
            }
            print(f"{name:12} {method:24}", row["methods"][method], flush=True)


def _short(cell: dict) -> str:
    if "error" in cell:
        return cell["error"][:70]
    return f"{cell['accuracy']:.4f} {cell['seconds']:9.4f} s" if cell else "-"


# === The page ===


def ranks(accuracies: np.ndarray) -> np.ndarray:
    """Rank of each row within each column, 1 = highest, equals share the mean of theirs, [methods, sets]."""
    higher = (accuracies[None] > accuracies[:, None]).sum(axis=1)
    equal = (accuracies[None] == accuracies[:, None]).sum(axis=1)
    return higher + (equal + 1) / 2


def render(table: dict) -> str:
    """The whole page, from what `measure` found."""
    sets, published = table["sets"], table["published"]
    methods = list(dict.fromkeys(method for row in sets.values() for method in row["methods"]))
    numbers = {
        method: [row["methods"].get(method, {}).get("ours", {}).get("accuracy") for row in sets.values()]
        for method in methods
    }
    complete = {method: values for method, values in numbers.items() if None not in values}
    rank = dict(zip(complete, ranks(np.array(list(complete.values()))).mean(axis=1), strict=True))
    parts = [
        HEAD,
        ACCURACY.format(sources="\n".join(f"- *{name}*: {text}." for name, text in published["sources"].items())),
        _markdown(["method", "by", *sets, "mean", "mean rank"], list(_accuracies(table, methods, rank))),
        "\n".join(dict.fromkeys(_refusals(table, methods))),
        VOTES,
        _markdown(
            ["method", "worst set, points", "which", "mean", "deviation", "sets more than 1 below", "sets"],
            _against_votes(sets, methods),
        ),
        *_more(table),
        PAIRED.format(baseline=BASELINE),
        _markdown(["method", "mean difference, points", "sets better / equal / worse"], _paired(table, rank)),
        BRIER,
        _markdown(["method", *sets, "mean"], list(_brier(table, methods))),
        *_thinned(table),
        DAWID_SKENE,
        _markdown(
            ["variant", *sets, "mean"],
            [
                [title, *map(_cell, cells), f"{np.mean([cell['accuracy'] for cell in cells]):.4f}"]
                for title in next(iter(sets.values()))["variants"]
                for cells in [[row["variants"][title] for row in sets.values()]]
            ],
        ),
        SECONDS,
        _markdown(["method", "by", *sets, "sum"], list(_seconds(table, methods))),
        MEASURED.format(about=", ".join(f"{name} {value}" for name, value in table["about"].items())),
        _markdown(
            ["", *sets],
            [[label, *(f"{row[key]:,}" for row in sets.values())] for label, key in SIZES.items()],
        ),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


SIZES = {
    "tasks": "tasks",
    "annotators": "annotators",
    "classes": "classes",
    "annotations": "annotations",
    "tasks of known class": "known",
}

HEAD = """\
# Aggregation methods: results

This page compares the methods of `crowdzoo.aggregation` on nine real crowds, and the quick ones on six more.
[Which method?](aggregation.md) says which one to take for which case.

- On these nine crowds methods with a confusion matrix for each annotator are the best: `hierarchical-dawid-skene` has
  the highest mean, `dawid-skene` one that is near it, and neither is worse than majority vote on any set ([worst
  sets](#against-majority-vote-worst-set-first), [differences](#against-dawid-skene)).
- On the six other crowds it is the other way round: `dawid-skene` loses up to 17 points, `hierarchical-dawid-skene`
  up to 6, and methods with one number per annotator are ahead ([other crowds](#other-crowds)).
- `robust` was trained on these crowds too, so its rows are too favourable. [Another
  table](aggregation.md#in-short) shows it, with every method, on 62 crowds by families left out.
- **Nine crowds are few.** On thirteen other crowds, which are not part of these tables and were measured elsewhere,
  majority vote had .797 on average and Dawid-Skene .778; it was more than .01 below majority vote on 7 of the 13.
  Compare with majority vote on tasks whose class you know.
- On these crowds majority vote is several points worse. Methods that learn one number per annotator are in between.
- With two or three annotations per task a better method is worth several points ([fewer
  annotations](#fewer-annotations-per-task)).
- If you use probabilities, for example as labels to train on, choose a method with a low Brier score
  ([probabilities](#probabilities)).
"""

ACCURACY = """\
## Accuracy

Share of right answers for the tasks whose true class is known, as expected if ties are broken at random. *crowd-kit*
is crowd-kit's class with its own settings, run here on the same table. The other rows are as published:

{sources}

`*`: stopped by its limit of iterations. The mean is over all sets, the rank among the methods that answer all sets.
"""

VOTES = """\
## Against majority-vote, worst set first

Difference of the accuracies to majority vote, in points: on the set where the method loses most or gains least, the
mean and the standard deviation over the sets that it answers, and on how many sets it is more than a point below. The
safest method is first.
"""

MORE = """\
## Other crowds

Six crowds that are in none of the other tables, among them 33 language models that grade the relevance of passages.
Accuracy; difference to majority vote in points, worst set and mean; and how far the mean probability of the answers is
from the accuracy, mean over the sets. `kos` answers no set of more than two classes; `ebcc` and `mmce` take too long.
"""

PAIRED = """\
## Against {baseline}

Difference of the accuracies, averaged over the sets, with its 95 % interval for other tasks of the same sets (paired:
both answer the same tasks). The interval says nothing about other sets, so look at the last column as well.
"""

BRIER = """\
## Probabilities

Brier score of the posteriors: squared distance to the truth, averaged over tasks. Lower is better; 0 is certain and
right, 2 is certain and wrong.
"""

SECONDS = """\
## Seconds

Processor time of one fit. Ours is measured after a first run that compiles, crowd-kit's includes its prediction. Runs
of less than 5 s are medians of three. Other jobs were running on the machine, so small differences mean nothing.
"""

FEWER = """\
## Fewer annotations per task

Accuracy on the sets with ten annotations per task or more, thinned at random to 2, 3, 5 or 10: means of {draws}
draws, the same for all methods. On *{first}* the sum of sensitivity and specificity is less than 1 for 9 of 39
annotators, so they are worse than chance. *the others* are the mean of {others}. The row of mmce was measured with
`class_prior="uniform"`, its earlier default.
"""

DAWID_SKENE = """\
## Variants of Dawid-Skene
"""

MEASURED = """\
## How it was measured

Every method of `crowdzoo.aggregation.METHODS` ran with its default settings on real crowds whose true classes are
known for some or all tasks. No method sees a true class. Versions: {about}.

Some settings were chosen on these sets, so their figures are too favourable: the smoothed class prior of one-coin,
the eight clusters of worker-clustering, the mean messages and ten rounds of kos, and the prior of 0.01 of
Dawid-Skene. The diagonal of Dawid-Skene, the prior of ibcc and the learned class priors of mace and mmce were chosen
on generated crowds. dependent-dawid-skene had its form changed twice after a look at these sets
(benchmarks/reproduce/dependence.py says how). The settings of glad, ebcc and bwa are those of their authors, as are the
other settings of mace, mmce and ibcc.

`python benchmarks/aggregation_quality.py --render` makes this page from
`benchmarks/results/aggregation_quality.json`; do not edit it.
"""


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---" if name in ("", "by") else "---:" for name in head], *rows]
    lines[1][0] = "---"
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(cell: dict) -> str:
    if "accuracy" not in cell:
        return "–"
    return f"{cell['accuracy']:.4f}" + ("" if cell.get("converged", True) else "*")


def _accuracies(table: dict, methods: list[str], rank: dict[str, float]) -> Iterator[list[str]]:
    sets = table["sets"]
    for method in methods:
        for side in SIDES:
            cells = [row["methods"].get(method, {}).get(side, {}) for row in sets.values()]
            if not any(cells):
                continue
            values = [cell.get("accuracy") for cell in cells]
            mean = "–" if None in values else f"{np.mean(values):.4f}"
            place = f"{rank[method]:.1f}" if side == "ours" and method in rank else ""
            yield [method, WHO[side], *map(_cell, cells), mean, place]
        for source, figures in table["published"]["figures"].get(method, {}).items():
            shown = [f"{figures[name]:.4g}" if name in figures else "" for name in sets]
            if any(shown):
                yield [method, f"*{source}*", *shown, "", ""]


def _refusals(table: dict, methods: list[str]) -> Iterator[str]:
    """Why there is no figure, in the words of the software; what differs only by the set is said once."""
    for method in methods:
        for side in SIDES:
            said: dict[str, list[str]] = {}
            for name, row in table["sets"].items():
                error = row["methods"].get(method, {}).get(side, {}).get("error")
                if error:
                    said.setdefault(error, []).append(name)
            for error, names in said.items():
                yield f"- {method}, {side}, {', '.join(names)}: `{error}`"


def _against_votes(sets: dict, methods: list[str]) -> list[list[str]]:
    """Rows of the differences to majority vote, by their worst set."""
    found = []
    for method in methods:
        cells = {name: row["methods"].get(method, {}).get("ours", {}) for name, row in sets.items()}
        points = {
            name: 100 * (cell["accuracy"] - sets[name]["methods"]["majority-vote"]["ours"]["accuracy"])
            for name, cell in cells.items()
            if "accuracy" in cell
        }
        if method == "majority-vote" or not points:
            continue
        worst = min(points, key=points.__getitem__)
        values = np.array(list(points.values())).round(2)
        below = str((values < -1).sum())
        figures = [f"{points[worst]:+.2f}", worst, f"{values.mean():+.2f}", f"{values.std(ddof=1):.2f}", below]
        found.append((points[worst], [method, *figures, str(len(values))]))
    return [row for _, row in sorted(found, key=lambda pair: -pair[0])]


def _more(table: dict) -> Iterator[str]:
    """The other crowds, the method with the best worst set first."""
    found = table.get("more")
    if not found:
        return
    rows = []
    for method in METHODS:
        cells = {name: row["methods"][method] for name, row in found.items() if method in row["methods"]}
        if len(cells) < len(found):
            continue
        points = [
            100 * (cell["accuracy"] - found[name]["methods"]["majority-vote"]["accuracy"])
            for name, cell in cells.items()
        ]
        gaps = [abs(cell["probability"] - cell["accuracy"]) for cell in cells.values()]
        accuracies = [f"{cell['accuracy']:.4f}" for cell in cells.values()]
        figures = [f"{min(points):+.2f}", f"{np.mean(points):+.2f}", f"{np.mean(gaps):.3f}"]
        rows.append((min(points), [method, *accuracies, *figures]))
    yield MORE
    head = ["method", *found, "worst, points", "mean, points", "probability − accuracy"]
    yield _markdown(head, [row for _, row in sorted(rows, key=lambda pair: -pair[0])])
    sizes = [[label, *(f"{row[key]:,}" for row in found.values())] for label, key in SIZES.items()]
    yield _markdown(["", *found], sizes)


def _paired(table: dict, rank: dict[str, float]) -> list[list[str]]:
    rows = []
    for method in sorted(rank, key=rank.__getitem__):
        if method == BASELINE:
            continue
        found = [row["methods"][method]["ours"]["against"] for row in table["sets"].values()]
        difference = np.array([each["difference"] for each in found])
        mean, half = over_tasks(difference, [each["error"] for each in found])
        counts = ((difference > 0).sum(), (difference == 0).sum(), (difference < 0).sum())
        text = f"{100 * mean:+.2f} ± {100 * half:.2f}"
        rows.append((mean, [method, text, " / ".join(map(str, counts))]))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _thinned(table: dict) -> Iterator[str]:
    found = table.get("thinned")
    if not found:
        return
    methods = list(dict.fromkeys(method for row in found.values() for cells in row.values() for method in cells))
    first, *others = found
    head = ["method", *(f"{first}, {r}" for r in REDUNDANCIES), *(f"the others, {r}" for r in REDUNDANCIES)]
    rows = []
    for method in methods:
        cells = [found[first][str(r)].get(method) for r in REDUNDANCIES]
        for r in REDUNDANCIES:
            values = [found[name][str(r)].get(method) for name in others]
            cells.append(None if None in values else statistics.mean(values))
        rows.append([method, *("–" if cell is None else f"{cell:.4f}" for cell in cells)])
    yield FEWER.format(draws=DRAWS, first=first, others=", ".join(others))
    yield _markdown(head, rows)


def _mean(values: list[float]) -> Fraction:
    """Mean of the decimal numbers as they are saved: exact, so that a tie rounds alike on every machine."""
    return statistics.mean(Fraction(str(value)) for value in values)


def _brier(table: dict, methods: list[str]) -> Iterator[list[str]]:
    for method in methods:
        values = [row["methods"].get(method, {}).get("ours", {}).get("brier") for row in table["sets"].values()]
        mean = "–" if None in values else f"{float(round(_mean(values), 3)):.3f}"
        yield [method, *("–" if value is None else f"{value:.3f}" for value in values), mean]


def _seconds(table: dict, methods: list[str]) -> Iterator[list[str]]:
    for method in methods:
        for side in SIDES:
            cells = [row["methods"].get(method, {}).get(side, {}) for row in table["sets"].values()]
            values = [cell.get("cpu_seconds") for cell in cells]
            if not any(cells):
                continue
            total = "–" if None in values else _three(sum(values))
            shown = ["–" if value is None else _three(value) for value in values]
            yield [method, WHO[side], *shown, total]


def _three(seconds: float) -> str:
    """At most three digits, at most four places."""
    places = 4 if seconds < 0.1 else 3 if seconds < 1 else 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:.{places}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="+", default=tuple(METHODS), help="keys of METHODS, or of peers.CROWDKIT")
    parser.add_argument("--no-crowd-kit", action="store_true", help="do not run crowd-kit")
    parser.add_argument("--no-save", action="store_true", help="print only")
    parser.add_argument("--thinned", action="store_true", help="only the part with fewer annotations a task")
    parser.add_argument("--more", action="store_true", help="only the other crowds")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page from the saved results")
    options = parser.parse_args()
    table = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    ours = tuple(method for method in options.methods if method in METHODS)
    if options.thinned or options.more:
        if options.thinned:
            measure_thinned(table, ours)
        else:
            measure_more(table, tuple(method for method in ours if method not in LONG))
        if not options.no_save:
            RESULTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    elif not options.render:
        for found in measure(table, tuple(options.sets), tuple(options.methods), not options.no_crowd_kit):
            if not options.no_save:  # after each set: an interruption loses little
                RESULTS.parent.mkdir(exist_ok=True)
                RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    page = render(table)
    print(page)
    if not options.no_save:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
