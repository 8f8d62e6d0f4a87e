"""The page docs/papers/conal.md: Chu, Ma and Wang (AAAI 2021) beside ours. See papers.py."""

import math
import statistics
from typing import Any

import numpy as np
from cells import Cell, Claim, Page, Table, paragraph, per_cent, saved
from deep_methods import CONAL_PAPER, RESULTS, SIMULATED
from intervals import bootstrap, unpacked
from papers import grid, shown

__all__ = ["RESULTS", "render", "start_error", "tables"]

# Chu, Ma, Wang, AAAI 2021, tables 1 and 2: standard deviations of five runs, of `CONAL_PAPER`
SPREADS = {
    "music": {
        "DL-MV": 0.41, "CL MW": 0.53, "DoctorNet": 0.47, "Anno-Reg": 0.36, "Max-MIG": 0.33, "DL-GLAD": 0.37,
        "DL-WC": 0.24, "DL-EM (AggNet)": 0.41, "CoNAL": 0.42, "CoNAL 0": 0.31, "CoNAL 1e-4": 0.25, "CoNAL 1e-6": 0.37,
    },
    "labelme": {
        "DL-MV": 0.34, "CL MW": 0.52, "DoctorNet": 0.43, "Anno-Reg": 0.48, "Max-MIG": 0.61, "DL-GLAD": 0.34,
        "DL-WC": 0.33, "DL-EM (AggNet)": 0.27, "CoNAL": 0.55, "CoNAL 0": 0.38, "CoNAL 1e-4": 0.41, "CoNAL 1e-6": 0.47,
    },
}  # fmt: skip
OPEN_COUNTRY = {"CoNAL": 67.21, "Max-MIG": 54.19}
STRENGTHS = ("CoNAL 0", "CoNAL 1e-4", "CoNAL 1e-6")  # table 2; 1e-5 is the CoNAL of table 1
SHOWN = ("gold", "DL-MV", "DL-EM (AggNet)", "CL MW", "CoNAL", "CoNAL, scale 1")  # on simulated crowds

HEAD = """# Learning from Crowds by Modeling Common Confusions (CoNAL)

Z. Chu, J. Ma, H. Wang: Learning from Crowds by Modeling Common Confusions. AAAI 2021, arXiv:2012.13052. The layer is
`crowdzoo.layers.CoNAL`.
"""
MORE = "conal.json"  # of conal.py: what is not in tables 1 and 2
SCRIPTS = """`benchmarks/reproduce/deep_methods.py` and `conal.py` of that folder measure them again, and
[methods](../methods-results.md) has all our rows of tables 1 and 2."""
OVERVIEW = (
    ("figure 1", "confusions that many annotators of LabelMe and Music share", "no", "[here](#figure-1)"),
    (
        "figures of the simulated crowds",
        "accuracy by share and by strength of the common noise, on Gaussian classes and on CIFAR-10",
        "no, plots only",
        "Gaussian classes [below](#simulated-crowds); CIFAR-10 not run",
    ),
    (
        "table 1",
        "accuracy of nine methods on LabelMe and Music",
        "yes",
        "[Music](#table-1-music), [LabelMe](#table-1-labelme)",
    ),
    ("table 2", "the strength of the regularizer", "yes", "[Music](#table-2-music), [LabelMe](#table-2-labelme)"),
    ("accuracy of one class", "open country, of CoNAL and Max-MIG", "yes", "[here](#accuracy-of-open-country-labelme)"),
    (
        "learnt confusions",
        "the common matrix and those of annotators",
        "no",
        "[simulated crowds](#learnt-confusions-of-simulated-crowds)",
    ),
    ("appendix", "EM instead of gradients; theorem 1", "text not at hand", "[EM as a test](#what-is-not-here)"),
)
PROTOCOL = (
    ("Music", "124 features, 700 and 300 songs; batch normalization, 128 ReLU, dropout", "the same"),
    (
        "LabelMe",
        "VGG16 features, 10,000 augmented photographs, 500 for validation, 1,188 test",
        "512 descriptors of our own, 750 and 250 photographs",
    ),
    (
        "training",
        "Adam .01, made again in each epoch, one batch of 1,024; 100 (LabelMe) or 200 (Music) epochs",
        "*music-conal*: Adam .01, one batch, 200 epochs; otherwise Adam .001, batches of 64, 100 epochs (LabelMe 60)",
    ),
    (
        "epoch",
        "the best on 500 validation photographs; on Music the best on the test set",
        "*best*: the best on the test set; *last*: fixed beforehand",
    ),
    (
        "mixing",
        "text: two softmax outputs; code: two linear maps, one softmax",
        "as in the code; as in the text [below](#mixing-probabilities)",
    ),
    ("start", "matrices 2 I", "the same (`scale=2`); our default is `scale=1`"),
    ("strength of the regularizer", ".00001, of a grid", "the same"),
    ("runs", "5", "5 seeds, or draws of simulated crowds; learnt confusions 3"),
    (
        "figure 1, single classes, mixing, learnt confusions",
        "text, figure 1 and plots",
        "fixed beforehand in `benchmarks/reproduce/conal.py`, whose rows are in `benchmarks/results/conal.json`",
    ),
)
NOTE = """"Saved as" names set, row and figure in `benchmarks/results/reproduce_deep.json`. What counts is the
authors' training (*music-conal*) where it was run, and the authors' choice of the epoch (Music: *best*), otherwise
*last*. In table 1 the order is judged against DL-MV of the same training."""
MUSIC = """The published figures are above what these features can give: the same network trained on the true labels
has {last} after the last epoch and {best} at its best epoch on the test set; the paper has 84.06 for CoNAL and 81.46
for the crowd layer, without them. Features and songs are those that the authors distribute."""
LABELME = """The paper's VGG16 features and its 1,188 test photographs are not available. With other features and
photographs equal numbers would be chance, so only the order is judged."""
TABLE_2 = """The order is judged against CoNAL with the strength .00001 of table 1, by one training. The strengths
differ by less than the seeds here, so an order that holds or fails says little."""
CLASS_WHY = """The class that annotators confuse most. Features and photographs are not the paper's. Beside the two
methods, the same network has"""
SIMULATED_TEXT = """The paper's figures are plots without numbers, and it does not say how far its classes are apart,
nor whether a strength of .7 is the probability of an error or of a right answer. Here *common* and *own* are the
probabilities that an annotation of that kind is wrong, *share* is that of common noise, and own .3 and .7 were both
run. Six Gaussian classes, 30 annotators, three annotations a task; accuracy after the last epoch in per cent, mean ±
standard deviation of 5 draws."""
FIGURE_1 = """The share of all annotators who at least once said the second class of a task of the first. The figure is
in no source at hand; the four shares that are known of it, 61.0, 44.1, 63.6 and 38.6 %, are these, the first two of
LabelMe's {labelme} annotators and the others of Music's {music}. (26 of LabelMe's also said forest of open country, so
which of the two the figure has is not sure.) *Rank* is that among all confusions of the set."""
MIXING_TEXT = """The layer can mix the two label distributions, as the text of the paper has it
(`mixing="probabilities"`), or the linear maps before one softmax, as its code has (`mixing="logits"`, our default).
Accuracy in per cent, after the last epoch and at the best epoch on the test set; start 2 I, as by the authors. On Music
*logits* is the row CoNAL of table 1 once more: two trainings of the same seeds, .3 points apart in the mean and up to
1.7 for a seed, so smaller differences mean nothing."""
LEARNT_TEXT = """Own strength .3, common strength .6, share .7: a crowd that the table above lacks. Accuracy in per cent
after the last epoch, 3 draws. *L1* is the mean over rows of the sum of absolute differences from the true confusion (0
to 2); *class* the share of rows, in per cent, whose most frequent wrong label is the true one (chance: 20). *Whole* is
the confusion of an annotator over all their tasks, and *ω* the correlation of learnt and true ω over annotators. Before
the training L1 is {common:.2f} (common) and {own:.2f} (own) with the authors' start 2 I."""
ABSENT = (
    "CIFAR-10: the photographs are not available here.",
    "The EM form of the appendix as it is printed: its text is in no source at hand, only that the authors reject EM "
    "as sensitive to its start. EM that follows from the model (hidden are the truth of a task, and which of the two "
    "confusions an annotation follows) is a test, `tests/layers/test_conal.py`: with known p and ω it finds both "
    "confusions, and where it ends the likelihood of the layer has a maximum. No network was trained inside of it.",
    "Theorem 1 as a test on data that satisfy it: its statement is in no source at hand.",
)
# parts of the protocol in conal.py -> what is said where they have no rows yet


def tables(results: dict[str, Any]) -> list[Table]:
    """The paper's tables with our figures."""
    gold = results["music-conal"]["gold"]["runs"]
    music = MUSIC.format(last=shown(per_cent(gold, "last"), 2), best=shown(per_cent(gold, "best"), 2))
    rows = [row for row in CONAL_PAPER["music"] if row not in STRENGTHS]
    strengths = ("CoNAL", *STRENGTHS)
    found = []
    for number, names, reference, method in ((1, rows, "DL-MV", "CoNAL"), (2, strengths, "CoNAL", "CoNAL 0")):
        for name, title in (("music", "Music"), ("labelme", "LabelMe")):
            cells = tuple(_cell(results, name, row, number == 1) for row in names)
            why = music if name == "music" else LABELME
            if number == 2:
                why = f"{why} {TABLE_2}"
            found.append(
                Table(
                    f"Table {number}, {title}", "Accuracy in per cent.", cells, reference, method, why,
                    same_data=name == "music", uncounted=("CoNAL",) if number == 2 else (),
                )
            )  # fmt: skip
    rows_of = saved(MORE)["classes"]
    cells = tuple(
        Cell(row, value, (per_cent(rows_of[row]["runs"], "opencountry"),), f"{MORE}: classes, {row}, opencountry")
        for row, value in OPEN_COUNTRY.items()
    )
    title, unit = "Accuracy of open country, LabelMe", "Accuracy in per cent."
    why = " ".join([CLASS_WHY, f"{shown(per_cent(rows_of['DL-MV']['runs'], 'opencountry'))} by majority votes."])
    return [*found, Table(title, unit, cells, "Max-MIG", "CoNAL", why, same_data=False)]


def _cell(results: dict[str, Any], name: str, row: str, authors: bool) -> Cell:
    """A figure of the tables, by the authors' training where it was run and asked for."""
    there, figure = name, "last"
    if name == "music":
        there, figure = ("music-conal" if authors and row in results["music-conal"] else "music"), "best"
    runs, floor = (per_cent(results[there][each]["runs"], figure) for each in (row, "DL-MV"))
    against = (floor,) if authors and row != "DL-MV" else ()
    return Cell(
        row, CONAL_PAPER[name][row], (runs,), f"{there}, {row}, {figure}", SPREADS[name][row], against=against
    )  # fmt: skip


def _simulated(results: dict[str, Any]) -> str:
    rows = []
    for name in (each for each in SIMULATED if each in results):
        found = [results[name].get(row) for row in SHOWN]
        pattern, _, rest = name.partition(", ")
        rows.append([rest, pattern, *("" if each is None else shown(per_cent(each["runs"], "last")) for each in found)])
    return grid(["crowd", "common noise", *SHOWN], rows)


def _claims(results: dict[str, Any]) -> list[Claim]:
    """Claims of words and pictures."""

    def last(name: str, row: str) -> float:
        return statistics.mean(per_cent(results[name][row]["runs"], "last"))

    found = []
    for name, title in (("music", "Music"), ("labelme", "LabelMe")):
        others = {row: last(name, row) for row in CONAL_PAPER[name] if not row.startswith("CoNAL")}
        best = max(others, key=lambda row: others[row])
        ours = last(name, "CoNAL")
        text = f"last: CoNAL {ours:.1f}, {best} {others[best]:.1f}"
        if name == "music":
            theirs = {row: last("music-conal", row) for row in ("CoNAL", "CL MW")}
            text += f"; by the authors' training CoNAL {theirs['CoNAL']:.1f}, CL MW {theirs['CL MW']:.1f}"
            peak = {row: statistics.mean(_cell(results, name, row, True).found[0]) for row in CONAL_PAPER[name]}
            other = max((row for row in peak if not row.startswith("CoNAL")), key=lambda row: peak[row])
            text += f"; at the best epoch, as in table 1, CoNAL {peak['CoNAL']:.1f}, {other} {peak[other]:.1f}"
        found.append(Claim(f"CoNAL is above all other methods of table 1 on {title}", ours > others[best], text))
        without = last(name, "CoNAL 0")
        hits = (np.array([unpacked(run["hits"]) for run in results[name][row]["runs"]]) for row in ("CoNAL", "CoNAL 0"))
        gain, low, high = (100 * each for each in bootstrap(*hits))
        text = f"last: {ours:.1f} with, {without:.1f} without ({gain:+.1f} [{low:+.1f}, {high:+.1f}])"
        found.append(Claim(f"The regularizer helps on {title}", low > 0, text))
    for pattern in ("asymmetric", "symmetric"):
        names = [name for name in SIMULATED if name.startswith(pattern) and "share 0.0" not in name and name in results]
        both = [name for name in names if {"CoNAL", "CL MW"} <= set(results[name])]
        ahead = sum(last(name, "CoNAL") > last(name, "CL MW") for name in both)
        words = f"With {pattern} common noise CoNAL is above the crowd layer (our reading; the plots are not at hand)"
        found.append(Claim(words, ahead == len(both), f"on {ahead} of {len(both)} simulated crowds"))
    shares = [100 * run["share"] for runs in _figure_1().values() for run in runs if "confusion" in run]
    text = ", ".join(f"{share:.1f} %" for share in shares)
    found.append(
        Claim("Many annotators of LabelMe and Music share confusions (a third or more)", min(shares) > 100 / 3, text)
    )
    found.append(_learnt_claim())
    return found


def _figure_1() -> dict[str, list[dict[str, Any]]]:
    return {name: one["runs"] for name, one in saved(MORE)["figure 1"].items()}


def _shared() -> str:
    """Figure 1."""
    rows = []
    for name, title in (("labelme", "LabelMe"), ("music", "Music")):
        runs = _figure_1()[name]
        most = [run["share"] for run in runs if "most frequent" in run]
        rows += [
            [title, run["confusion"], f"{run['annotators']} of {run['of']}", f"{100 * run['share']:.1f}",
             1 + sum(share > run["share"] for share in most)]
            for run in runs if "confusion" in run
        ]  # fmt: skip
    text = FIGURE_1.format(**{name: runs[0]["of"] for name, runs in _figure_1().items()})
    return "\n".join([
        "## Figure 1\n", paragraph(text), grid(["set", "class, and what was said", "annotators", "%", "rank"], rows)
    ])  # fmt: skip


def _crowds() -> dict[str, dict[str, Any]]:
    """Simulated crowds of conal.py."""
    return {name: rows for name, rows in saved(MORE).items() if name.startswith(("asymmetric", "symmetric"))}


def _learnt() -> str:
    """Learnt confusions beside the true ones."""
    rows = []
    for crowd, found in _crowds().items():
        for row, one in found.items():
            runs = one["runs"]
            figures: list[Any] = [shown(per_cent(runs, "last"))]
            for name in ("common", "own", "whole") if "own: L1" in runs[0] else ():
                figures.append(shown([run[f"{name}: L1"] for run in runs], 2))
                figures.append(f"{statistics.mean(per_cent(runs, f'{name}: other class')):.0f}")
            omega = shown([run["omega correlation"] for run in runs], 2) if "own: L1" in runs[0] else ""
            rows.append([crowd.partition(",")[0], row, *figures, *[""] * (7 - len(figures)), omega])
    header = ["common noise", "row", "accuracy"]
    header += [f"{name}: {figure}" for name in ("common", "own", "whole") for figure in ("L1", "class")]
    return "\n".join([
        "## Learnt confusions of simulated crowds\n",
        paragraph(LEARNT_TEXT.format(common=start_error(2.0, 0.6), own=start_error(2.0, 0.3))),
        grid([*header, "ω"], rows),
    ])  # fmt: skip


def start_error(scale: float, strength: float, classes: int = 6) -> float:
    """L1 error of a row of softmax(scale I) where the truth has one wrong label with that probability."""
    other = 1 / (math.exp(scale) + classes - 1)
    return abs(math.exp(scale) * other - (1 - strength)) + abs(other - strength) + (classes - 2) * other


def _learnt_claim() -> Claim:
    """Whether the authors' CoNAL finds the common and the own confusion; the bar was set before the run."""
    means = {
        f"{name}, {crowd.partition(',')[0]}": statistics.mean(per_cent(rows["CoNAL"]["runs"], f"{name}: other class"))
        for crowd, rows in _crowds().items()
        for name in ("common", "own")
    }
    text = "; ".join(f"{name} {value:.0f} %" for name, value in means.items())
    words = "Learnt common and own confusions are like the true ones (the right wrong class in nine of ten rows)"
    return Claim(words, min(means.values()) >= 90, text)


def _mixing() -> str:
    """Probabilities mixed, beside logits."""
    more, rows = saved(MORE), []
    parts = {name: dict(more[name]) for name in more if name.startswith("mixing")}
    parts["mixing, labelme"] = {"logits": more["classes"]["CoNAL"], **parts["mixing, labelme"]}
    for name, found in parts.items():
        for row, one in found.items():
            figures = [shown(per_cent(one["runs"], figure), 2) for figure in ("last", "best")]
            rows.append([name.removeprefix("mixing, "), row, *figures, len(one["runs"])])
    head = grid(["set and training", "mixing", "last", "best", "runs"], rows)
    return "\n".join(["## Mixing probabilities\n", paragraph(MIXING_TEXT), head])


def render(results: dict[str, Any]) -> str:
    """The whole page."""
    rows = [(f"{name}: {row}", one) for name, lines in results.items() for row, one in lines.items()]
    return Page(
        HEAD, "conal", SCRIPTS, OVERVIEW, PROTOCOL, NOTE, tables(results), _claims(results),
        "\n".join([
            _shared(), "## Simulated crowds\n", paragraph(SIMULATED_TEXT), _simulated(results), _learnt(), _mixing(),
        ]),
        ABSENT,
        "Each row has its own stack.",
        {
            RESULTS.name: {name: one["stack"] for name, one in rows},
            MORE: {
                f"{part}: {row}": one["stack"] for part, found in saved(MORE).items() for row, one in found.items()
            },
        },
    ).markdown()  # fmt: skip
