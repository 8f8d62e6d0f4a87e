"""The page docs/papers/lia.md: tables of "Learning from Imperfect Annotations" beside ours. See papers.py."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cells import SAVED, paragraph, saved
from lia import (
    DRAWS,
    EM_ALONE,
    MEDICAL,
    PUBLISHED,
    PUBLISHED_EM_ALONE,
    PUBLISHED_SETS,
    REDUNDANCIES,
    RESULTS,
    TITLES,
)
from papers import MARKS, counted, grid, shown, verdict, wrapped
from stack import told

__all__ = ["RESULTS", "needed", "plot", "render"]

MORE = "lia_annotators.json"  # of lia_annotators.py
PICTURE = Path(__file__).parents[2] / "docs" / "papers" / "lia.svg"

THEIRS, OURS = "authors' protocol", "ours"
# published row -> its name in the paper, and lines of (protocol, our row, which label); the first that there is counts
Line = tuple[str, str, str]
LINES: dict[str, tuple[str, tuple[Line, ...]]] = {
    "majority": (
        "MAJ",
        ((OURS, "majority", "posterior"), ("mean of probabilities", "majority, probabilities", "posterior")),
    ),
    "MAJ*-E": ("MAJ\\*-E", ((THEIRS, "MAJ*-E", "h"),)),
    "MAJ*": ("MAJ\\*", ((THEIRS, "MAJ*", "h"),)),
    "MMCE": (
        "MMCE",
        (
            (THEIRS, "MMCE, ridge per label", "posterior"),
            ("γ = .25, one iteration", "MMCE, gamma .25", "posterior"),
            (OURS, "MMCE", "posterior"),
        ),
    ),
    "MMCE*-E": ("MMCE\\*-E", ((THEIRS, "MMCE*-E", "h"),)),
    "MMCE*": ("MMCE\\*", ((THEIRS, "MMCE*", "h"),)),
    "Snorkel": ("Snorkel", ()),
    "label model": ("MeTaL", (("our label model", "label model", "posterior"),)),
    "LIA-E": ("LIA-E", ((THEIRS, "LIA-E, 2 rounds", "h"), (OURS, "LIA-E", "posterior"))),
    "LIA": (
        "LIA",
        (
            (THEIRS, "LIA, 2 rounds", "h"),
            ("10 rounds of 1,000", "LIA, 10 rounds", "h"),
            (OURS, "LIA", "posterior"),
            ("ours, ridge 0.1", "LIA, ridge 0.1", "posterior"),
            ("ours, product form", "LIA product", "posterior"),
            ("ours, L = 4", "LIA, L = 4", "posterior"),
            ("authors' rounds, probabilities", "LIA, 2 rounds, confidence", "h"),
            ("ours, probabilities", "LIA, confidence", "posterior"),
        ),
    ),
    "LIA-ML": ("LIA-ML", ((OURS, "LIA-ML", "posterior"),)),
}
# which the paper does not compare with
UNPUBLISHED = ("Dawid-Skene", "Dawid-Skene, probabilities", "Dawid-Skene, confidence", "iBCC")

PROTOCOL = (
    (
        "LIA, LIA-E",
        "text: 10 rounds of EM of 1,000 steps, then 1,000 of the marginal likelihood; last code: 2 rounds",
        "2 rounds of 1,000, then 1,000",
        "5 rounds of 200, then 200",
    ),
    ("label of a task", "the network's (h)", "h", "posterior, given task and annotations"),
    ("step", "AMSGrad .001 (last code: Adam .0001), 1,024 or 512 annotations", "AMSGrad .001, all tasks", "the same"),
    (
        "MMCE",
        "γ = .25, 5 rounds; each annotation adds the ridge of its annotator and of its task",
        "γ = .25 × labels of an annotator, 5 rounds, equal class probabilities",
        "γ by cross-validation, EM to convergence",
    ),
    ("MAJ\\*, MMCE\\*", "aggregate, then train h for 1,000 steps", "the same", "–"),
    ("features", "ResNet-101 (Blue Birds), BERT (RTE, medical), GloVe", "VGG16, hashed words, GloVe", "the same"),
    ("word similarity", "answers are probabilities", "yes or no, above the middle of the scale", "the same"),
    ("runs", "50", "5 (medical: 3), fewer where a line says so", "the same"),
)

HEAD = """# Learning from Imperfect Annotations (LIA)

E. A. Platanios, M. Al-Shedivat, E. Xing, T. Mitchell: Learning from Imperfect Annotations. arXiv:2004.03473, 2020. The
layer is `crowdzoo.layers.LIA`, the aggregation method that it is compared with `crowdzoo.aggregation.MMCE`.

{counts}

{by_set}
`benchmarks/reproduce/papers.py lia` (`make reproduce PAPER=lia`) writes this page from the saved results;
`benchmarks/reproduce/lia.py` and `lia_annotators.py` of that folder measure them again.

Marks: ✓ reproduced (the published mean is within one standard deviation of our draws), ~ order only (it is not, but
the row is on the same side of majority vote as in the paper, or equal to it, on the same draws), ✗ not reproduced, – no
row here. They stand at the line that counts: the authors' protocol where there is one, otherwise ours. All figures are
accuracies in per cent, mean ± standard deviation over five draws of the annotations (medical: three); the paper's are
means of 50 runs.

## Protocol

All rows were computed on {stack}.

{protocol}
The *MMCE* line "γ = .25, one iteration" is the published strength with the ridge counted once for each annotator, as in
the paper of MMCE, and one iteration after the first M-step.

The form of Q: equations 4, 7 and 9 of the paper divide by the sum over the said labels. With D = exp(d) and C = exp(c)
that is our `form="additive"` for any L, and what the authors' code has. `form="product"` is a variant of ours.
"""

ADDED = """Two annotators are added to five annotations a task: one answers every task by gold, the other against it. In
a vote they cancel each other. *Right* and *wrong* are the mean diagonals of their confusion matrices as the method
learnt them, *told apart* the draws in which the one is the highest and the other the lowest of all annotators. The bar
of the claim, set before the run, is all draws of both sets by LIA, ours: {holds}.
"""
PICTURED = """What LIA, ours, learnt of Blue Birds with all annotations. Of two classes each annotator's competence is
two numbers, and each task's difficulty, too: they add up to the log-odds of the right answer if the truth
is *no* (across) or *yes* (up). Means are taken away. The mean of an annotator's two numbers has a
correlation of {annotators:.2f} with the share of tasks that the annotator has right; that of a task's
numbers of {tasks:.2f} with the share of annotators who are right. The two numbers of a task have a
correlation of {line:.2f}: what was learnt of a task is mostly how readily annotators say yes of it,
whatever the truth, and less how hard it is.

![Competences of annotators and difficulties of tasks](lia.svg)
"""

WHY = """## What differs, and why

- **MMCE.** The authors' code adds the ridge of an annotator and of a task with every annotation, so it is stronger by
  the number of labels than in the paper of MMCE. By that protocol six of the eleven published figures on the first
  three sets come out. They are not what MMCE can do: with the published strength counted once, or with ours, it is far
  better on Blue Birds with twenty and more annotations a task. With two annotations a task ours gives all or nearly all
  tasks of a set one label (see the spread of 0.0; `Aggregation.notes` says so): a cross-validated ridge and an
  estimated class prior need more.
- **MAJ\\*, MMCE\\*.** On Blue Birds and word similarity h learns the labels of the first step nearly as they are, with
  features or with embeddings, so these rows stay near MAJ and MMCE; in the paper, too, on Blue Birds. On RTE with two
  annotations MMCE\\* is far below MMCE: from few words h does not learn these labels.
- **LIA with few annotations.** With two annotations a task the network has to carry the labels, and ours sees weaker
  features (VGG16 for ResNet-101, words for BERT).
- **Table 3, the marginal step.** In the paper it helps (RTE with ten annotations: 69.6 without it, 93.1 with it). Here
  it is the other way round: after two rounds of EM word similarity and RTE with ten annotations are where the paper's
  whole LIA is, or above, and 1,000 marginal steps take them below majority vote. The step size is the paper's; the last
  version of the authors' code has a tenth of it. On Blue Birds, by the authors' rounds, it costs 3.1 points with five
  annotations and gains 2.2 with all. On the medical sets it changes accuracy by -1.7 to +2.4 points.
- **Four latent values** (L = 4 in equation 1) are worse than one on Blue Birds, from five annotations a task on: with
  twenty 79.4, by one 90.6. They have more to fit, and there are 108 tasks.
- **LIA-E.** The paper's stays near majority vote on Blue Birds; ours does not. So it is the confusion that depends on
  the task that helps there, more than the features.
- **Label model.** It is our own implementation of the family that Snorkel and MeTaL belong to, compared with MeTaL.
- **Medical relations.** The paper's accuracies are 3 to 46 per cent on questions of yes or no, by a definition that it
  does not give, and sentences differ. Only the order can be compared, and majority vote, by whose side it is judged,
  counts as not reproduced. Our networks have the authors' rounds on these sets, so there is one protocol.
- **Dawid-Skene.** The paper does not compare with it. With ten annotations a task it is about as good as LIA,
  published or ours, on Blue Birds and RTE, and on RTE with five, too.

## What is not here

- The plots of the paper: they are in no source at hand. The authors' code plots accuracy over redundancy, which is
  table 2, and the rank of annotators' accuracies.
- LIA by the 10 rounds of the paper's text (11,000 steps a draw), and LIA-E by the authors' protocol on RTE: too long
  for the machine at hand. `benchmarks/reproduce/lia.py` computes what is missing.
- How answers that are probabilities enter the steps of the paper's EM: at hand is only that it starts from their mean
  (equation 8). On word similarity "Dawid-Skene, probabilities" has that start and no more. In "Dawid-Skene, confidence"
  and the rows of LIA with probabilities an answer also counts in every step, as evidence about the label that the
  annotator has in mind, which is our own (`confidence=True`).
- Snorkel. Our label model, of the same family, stands beside MeTaL.
"""

SAVED_LABELS = """How many annotations a task a row needs for the accuracy of majority vote on all of them (the paper:
"significant reductions in the required annotation redundancy"), on the line between the measured r. The published LIA
saves 88, 80 and 42 per cent of the annotations, by its own majority vote. Dawid-Skene, which sees no features and which
the paper does not compare with, saves about as many on Blue Birds and RTE. On word similarity the mean of the
annotators' probabilities has, with all ten, the published accuracy of LIA (96.3).
"""


def render(results: dict[str, Any]) -> str:
    """The whole page."""
    sets: dict[str, Any] = results["sets"]
    tables, verdicts = [], {}
    for name in PUBLISHED:
        cells = list(_lines(name, sets[name]))
        verdicts[name] = [each for _, _, _, marks in cells for each in marks if each]
        header = ["row", "by", *(f"r={r}" for r in REDUNDANCIES[name])]
        rows = [(row, by, *_marked(values, marks)) for row, by, values, marks in cells]
        tables += [f"### {TITLES[name]}\n", grid(header, rows)]
    third, without = _table_3(sets)
    every = [each for found in verdicts.values() for each in found] + without
    by_set = grid(
        ["figures of", "all", *MARKS.values()],
        (
            (name, len(found), *(found.count(mark) for mark in MARKS))
            for name, found in [
                *((f"table 2, {TITLES[name]}", each) for name, each in verdicts.items()),
                ("table 3", without),
            ]
        ),
    )
    protocol = grid(["", "paper and authors' code", "*authors' protocol* here", "*ours*"], PROTOCOL)
    return "\n".join([
        HEAD.format(counts=counted(every), by_set=by_set, stack=told(), protocol=protocol),
        "## Table 1: the sets\n",
        _table_1(results["described"]),
        "## Table 2: accuracy by the number of annotations a task, r\n",
        *tables,
        "## Table 3: LIA without the marginal step\n",
        third,
        "## Labels saved\n",
        SAVED_LABELS,
        _saved(sets),
        *_annotators(),
        WHY,
    ])  # fmt: skip


def _more() -> dict[str, Any]:
    """Rows of lia_annotators.py, those that are there."""
    return saved(MORE) if (SAVED / MORE).exists() else {}


def _annotators() -> Iterator[str]:
    """Annotators who are always right or wrong, and the picture, where their rows are there."""
    parts = {part: rows for part, rows in _more().items() if part.startswith("added")}
    if parts:
        lines, claim = [], []
        for part, rows in parts.items():
            name = part.removeprefix("added, ")
            for row, one in rows.items():
                runs = one["runs"]
                without = _draws(saved(RESULTS.name)["sets"][name].get(row, {}), 5, "posterior")[: len(runs)]
                accuracy = shown([100 * run["accuracy"] for run in runs])
                learnt = [shown([run[figure] for run in runs if figure in run], 2) for figure in ("right", "wrong")]
                apart = [run["told apart"] for run in runs if "told apart" in run]
                number = f"{sum(apart):.0f} of {len(apart)}" if apart else ""
                lines.append([TITLES[name], row, shown(without), accuracy, *learnt, number])
            if "LIA" in rows:
                claim.append(all(run["told apart"] for run in rows["LIA"]["runs"]))
        yield "## Annotators who are always right, or always wrong\n"
        yield paragraph(ADDED.format(holds="not run on both" if len(claim) < 2 else "✓" if all(claim) else "✗"))
        header = ["set", "row", "without the two", "with them", "right", "wrong", "told apart"]
        yield grid(header, lines)
    if "picture" in _more():
        yield "## Competences and difficulties\n"
        runs = _more()["picture"]["bluebirds"]["runs"]
        first, second = (run["correlation"] for run in runs)
        line = statistics.correlation(*zip(*runs[1]["log-odds of right"], strict=True))
        yield paragraph(PICTURED.partition("\n\n")[0].format(annotators=first, tasks=second, line=line))
        yield PICTURED.partition("\n\n")[2]


def plot(results: dict[str, Any]) -> None:
    """Competences and difficulties of Blue Birds."""
    if "picture" not in _more():
        return
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "crowdzoo", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for panel, run in zip(panels, _more()["picture"]["bluebirds"]["runs"], strict=True):
        across, up = zip(*run["log-odds of right"], strict=True)
        points = panel.scatter(across, up, c=run["share right"], vmin=0, vmax=1, cmap="RdYlBu", edgecolor="grey", s=28)
        panel.set(title=f"{run['kind']}s", xlabel="no: log-odds of right", ylabel="yes: log-odds of right")
    figure.colorbar(points, ax=panels, label="share right")
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)


def _draws(cell: dict[str, Any], redundancy: int, figure: str) -> list[float]:
    """Per cent, one a draw."""
    draws = cell.get("draws", {}).get(str(redundancy), {}).values()
    return [100 * draw[figure] for draw in draws if figure in draw]


def _lines(name: str, rows: dict[str, Any]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Name in the paper, by what, cells and verdicts (empty but at the line that counts) of a set's table."""
    redundancies = REDUNDANCIES[name]
    votes = _votes(rows, redundancies)
    for row, (title, lines) in LINES.items():
        published = PUBLISHED[name].get(row)
        if published is None:
            continue
        there = [line for line in lines if line[1] in rows]
        found = [[_draws(rows[mine], r, figure) for r in redundancies] for _, mine, figure in there]
        theirs, ours = _judged(name, published, votes, found, baseline=row == "majority")
        yield f"**{title}**", "paper", [f"{value:.1f}" for value in published], theirs
        for (by, _, _), each, marks in zip(there, found, ours, strict=True):
            yield "", by + _fewer(name, each), [shown(values) for values in each], marks
    none = [""] * len(redundancies)
    for row in (row for row in UNPUBLISHED if row in rows):
        yield f"**{row}**", "not in the paper", [shown(_draws(rows[row], r, "posterior")) for r in redundancies], none


def _votes(rows: dict[str, Any], redundancies: tuple[int, ...]) -> list[list[float]]:
    """Accuracies of majority vote, for each r those of the draws."""
    return [_draws(rows["majority"], r, "posterior") for r in redundancies]


def _judged(
    name: str,
    published: tuple[float, ...],
    votes: list[list[float]],
    lines: list[list[list[float]]],
    baseline: bool = False,
) -> tuple[list[str], list[list[str]]]:
    """Verdicts at the published line (only "missing") and at ours; a figure has one, at the first line that has it."""
    theirs, ours = [""] * len(published), [[""] * len(published) for _ in lines]
    for column, (value, maj, vote) in enumerate(zip(published, PUBLISHED[name]["majority"], votes, strict=True)):
        number = next((number for number, line in enumerate(lines) if line[column]), None)
        if number is None:
            theirs[column] = "missing"
            continue
        found = lines[number][column]
        same_draws = statistics.mean(vote[: len(found)])  # a row may have fewer than majority vote
        order = None if baseline else _same_side(value - maj, round(statistics.mean(found) - same_draws, 9))
        if name in MEDICAL:  # of which only the order can be compared
            ours[number][column] = "order" if order else "not"
        else:
            ours[number][column] = verdict(value, found, order)
    return theirs, ours


def _same_side(published: float, found: float) -> bool:
    """Whether two differences from majority vote have the same sign; equal to it counts as both."""
    return published * found >= 0


def _fewer(name: str, line: list[list[float]]) -> str:
    """Says so where a line, or some of its figures, have fewer draws than the protocol."""
    numbers = {r: len(values) for r, values in zip(REDUNDANCIES[name], line, strict=True) if values}
    if {*numbers.values()} <= {DRAWS[name]}:
        return ""
    if len({*numbers.values()}) == 1:
        return f" ({numbers.popitem()[1]} draws)"
    fewer = {r: number for r, number in numbers.items() if number != DRAWS[name]}
    return " (" + "; ".join(f"r={r}: {number} draws" for r, number in fewer.items()) + ")"


def _marked(values: list[str], marks: list[str]) -> list[str]:
    return [f"{value} {MARKS[mark]}".strip() if mark else value for value, mark in zip(values, marks, strict=True)]


def _table_1(described: dict[str, list[float]]) -> str:
    header = ["set", "by", "tasks", "annotators", "annotations a task", "mean accuracy of annotators"]
    rows = []
    for name, ours in described.items():
        rows += [(TITLES[name], "paper", *PUBLISHED_SETS[name]), ("", "here", *ours)]
    note = (
        "Accuracies are means over annotators, on the tasks that have gold. On word similarity ours are after the cut "
        "into yes and no; of the medical sets, see the notes below."
    )
    return f"{grid(header, rows)}\n{wrapped(note)}\n"


def _table_3(sets: dict[str, Any]) -> tuple[str, list[str]]:
    """The table, and its verdicts."""
    header = ["set", "by", *(f"r={r}" for r in REDUNDANCIES["bluebirds"])]
    rows: list[list[str]] = []
    verdicts = []
    for name, published in PUBLISHED_EM_ALONE.items():
        redundancies = REDUNDANCIES[name]
        empty = [""] * (len(header) - 2 - len(redundancies))
        found = [
            (by, [_draws(sets[name].get(row, {}), r, figure + EM_ALONE) for r in redundancies])
            for by, row, figure in ((THEIRS, "LIA, 2 rounds", "h"), (OURS, "LIA", "posterior"))
        ]
        found = [(by, values) for by, values in found if any(values)]
        theirs, ours = _judged(name, published, _votes(sets[name], redundancies), [values for _, values in found])
        rows.append([f"**{TITLES[name]}**", "paper", *_marked([f"{value:.1f}" for value in published], theirs), *empty])
        for (by, values), marks in zip(found, ours, strict=True):
            rows.append(["", by + _fewer(name, values), *_marked([shown(each) for each in values], marks), *empty])
        verdicts += [mark for marks in (theirs, *ours) for mark in marks if mark]
    return grid(header, rows), verdicts


def needed(redundancies: Sequence[int], accuracies: Sequence[float], level: float) -> float | None:
    """Annotations a task for an accuracy, on the lines between neighbouring points (of the logarithm of r).

    Args:
        redundancies: r, rising.
        accuracies: one for each.
        level: the accuracy that is asked for.

    Returns:
        The lowest r that has it, the first one where that is enough; None where none is.
    """
    for number, (r, accuracy) in enumerate(zip(redundancies, accuracies, strict=True)):
        if accuracy >= level:
            if number == 0:
                return float(r)
            before, less = accuracies[number - 1], redundancies[number - 1]
            return float(less * (r / less) ** ((level - before) / (accuracy - before)))
    return None


SAVING: tuple[tuple[str, str, str], ...] = (  # rows of the table of labels saved: title, row, which label
    ("LIA, authors' protocol", "LIA, 2 rounds", "h"),
    ("LIA, ours", "LIA", "posterior"),
    ("LIA, ridge 0.1", "LIA, ridge 0.1", "posterior"),
    ("MeTaL: our label model", "label model", "posterior"),
    ("Dawid-Skene", "Dawid-Skene", "posterior"),
    ("mean of probabilities", "majority, probabilities", "posterior"),
)


def _saved(sets: dict[str, Any]) -> str:
    header = ["row", *(f"{TITLES[name]}: r" for name in PUBLISHED if name not in MEDICAL)]
    names = [name for name in PUBLISHED if name not in MEDICAL]
    levels = {
        name: statistics.mean(_draws(sets[name]["majority"], REDUNDANCIES[name][-1], "posterior")) for name in names
    }
    rows = [
        ["majority vote, all annotations", *(f"{levels[name]:.1f} at r={REDUNDANCIES[name][-1]}" for name in names)]
    ]
    theirs = [_needs(name, list(PUBLISHED[name]["LIA"]), PUBLISHED[name]["majority"][-1]) for name in names]
    rows.append(["LIA, published, for its own majority vote", *theirs])
    for title, row, figure in SAVING:
        found = [[_draws(sets[name].get(row, {}), r, figure) for r in REDUNDANCIES[name]] for name in names]
        cells = [
            _needs(name, [statistics.mean(each) for each in draws], levels[name]) if all(draws) else ""
            for name, draws in zip(names, found, strict=True)
        ]
        rows.append([title, *cells])
    return grid(header, rows)


def _needs(name: str, accuracies: list[float], level: float) -> str:
    """What a row needs, and the share of annotations that it saves."""
    redundancies = REDUNDANCIES[name]
    least = needed(redundancies, accuracies, level)
    if least is None:
        return f"more than {redundancies[-1]}"
    words = f"at most {redundancies[0]}" if least == redundancies[0] else f"{least:.1f}"
    return f"{words} ({100 * (1 - least / redundancies[-1]):.0f} % saved)"
