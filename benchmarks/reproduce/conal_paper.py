"""The page docs/papers/conal.md: Chu, Ma and Wang (AAAI 2021) beside ours. See papers.py."""

import statistics
from typing import Any

from cells import Cell, Claim, Page, Table, paragraph, per_cent
from deep_methods import CONAL_PAPER, RESULTS, SIMULATED
from papers import grid, shown

__all__ = ["RESULTS", "render", "tables"]

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
SCRIPTS = """`benchmarks/reproduce/deep_methods.py` measures them again, and [methods](../methods-results.md) has all
our rows."""
OVERVIEW = (
    ("figure 1", "confusions that annotators of LabelMe share", "no", "not run"),
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
    ("accuracy of one class", "open country, of CoNAL and Max-MIG", "yes", "not run"),
    ("learnt confusions", "the common matrix and those of annotators", "no", "not run"),
    ("appendix", "EM instead of gradients; theorem 1", "has none", "not run"),
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
        "*music-conal*: Adam .01, one batch, 200 epochs; otherwise Adam .001, batches of 64, 100 epochs",
    ),
    (
        "epoch",
        "the best on 500 validation photographs; on Music the best on the test set",
        "*best*: the best on the test set; *last*: fixed beforehand",
    ),
    ("mixing", "text: two softmax outputs; code: two linear maps, one softmax", "as in the code"),
    ("start", "matrices 2 I", "the same (`scale=2`); our default is `scale=1`"),
    ("strength of the regularizer", ".00001, of a grid", "the same"),
    ("runs", "5", "5 seeds; simulated crowds: 3 draws"),
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
NOT_RUN = "The saved results have no accuracies of single classes."
SIMULATED_TEXT = """The paper's figures are plots without numbers, and it does not say how far its classes are apart,
nor whether a strength of .7 is the probability of an error or of a right answer. Here *common* and *own* are the
probabilities that an annotation of that kind is wrong, *share* is that of common noise, and own .3 and .7 were both
run. Six Gaussian classes, 30 annotators, three annotations a task; accuracy after the last epoch in per cent, mean ±
standard deviation of 3 draws."""
ABSENT = (
    "Figure 1, accuracies of single classes, and the learnt matrices against the true ones of the simulated crowds.",
    "Rows that mix probabilities, as in the text of the paper; its tables are by the code, which mixes logits.",
    "Share .7 with strength .6; CIFAR-10.",
    "The EM form of the appendix, and theorem 1 as a test on data that satisfy it.",
)
OLD = """Rows that were saved with versions only, and whose crowd layer is trained by gradients, were computed before
a correction of Adam's step on TensorFlow and will be recomputed."""


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
    cells = tuple(Cell(row, value) for row, value in OPEN_COUNTRY.items())
    return [
        *found,
        Table("Accuracy of open country, LabelMe", "Accuracy in per cent.", cells, "Max-MIG", "CoNAL", NOT_RUN),
    ]


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
        found.append(Claim(f"CoNAL is above all other methods of table 1 on {title}", ours > others[best], text))
        without = last(name, "CoNAL 0")
        text = f"last: {ours:.1f} with, {without:.1f} without"
        found.append(Claim(f"The regularizer helps on {title}", ours > without, text))
    for pattern in ("asymmetric", "symmetric"):
        names = [name for name in SIMULATED if name.startswith(pattern) and "share 0.0" not in name and name in results]
        both = [name for name in names if {"CoNAL", "CL MW"} <= set(results[name])]
        ahead = sum(last(name, "CoNAL") > last(name, "CL MW") for name in both)
        words = f"With {pattern} common noise CoNAL is above the crowd layer (our reading; the plots are not at hand)"
        found.append(Claim(words, ahead == len(both), f"on {ahead} of {len(both)} simulated crowds"))
    found.append(Claim("Learnt common and own confusions are like the true ones", None, "not saved"))
    return found


def render(results: dict[str, Any]) -> str:
    """The whole page."""
    rows = [(f"{name}: {row}", one) for name, lines in results.items() for row, one in lines.items()]
    old = any("stack" not in one for _, one in rows)
    return Page(
        HEAD, "conal", SCRIPTS, OVERVIEW, PROTOCOL, NOTE, tables(results), _claims(results),
        "\n".join(["## Simulated crowds\n", paragraph(SIMULATED_TEXT), _simulated(results)]),
        ABSENT, "Each row has its own stack. " + (OLD if old else ""),
        {RESULTS.name: {name: one.get("stack") or one["versions"] for name, one in rows}},
    ).markdown()  # fmt: skip
