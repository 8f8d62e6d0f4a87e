"""The page docs/papers/rodrigues.md: Rodrigues and Pereira (AAAI 2018) beside ours. See papers.py."""

import statistics
from pathlib import Path
from typing import Any

import numpy as np
from cells import SAVED, Cell, Claim, Page, Table, paragraph, per_cent, saved
from intervals import Runs, mean_interval
from papers import grid, shown

__all__ = ["RESULTS", "plot", "render", "tables"]

RESULTS = SAVED / "movie_reviews.json"
DEEP, NER, LABELME = "reproduce_deep.json", "reproduce_ner.json", "labelme_accuracy.json"
MORE = "crowd_layer.json"  # of crowd_layer.py
THIRTY = "thirty runs"  # its part on LabelMe
CRF = "crf_ma.json"  # of crf_ma.py
PICTURE = Path(__file__).parents[2] / "docs" / "papers" / "rodrigues.svg"
MATRICES = PICTURE.with_name("rodrigues-matrices.svg")
# The notebooks of the authors' repository (fmpr/CrowdLayer), accuracy of each stored run
NOTEBOOK_LABELME = {
    "gold": (91.2, 89.4), "DL-MV": (77.2, 76.4), "DL-DS": (81.2, 81.0), "DL-EM": (82.8, 82.7), "DL-DN": (80.98,),
    "DL-WDN": (81.73,), "CL (MW)": (83.9, 82.2),
}  # fmt: skip
NOTEBOOK_PETS = {"gold": 84.1, "DL-MV": 70.2, "DL-DS": 77.2, "DL-EM": 80.5, "CL (MW)": 81.2}
# the same notebook: P(says yes | yes) and P(says no | no) of its five annotators; see crowd_layer.py
SENSITIVITIES = (0.705, 0.796, 0.499, 0.195, 0.898)
SPECIFICITIES = (0.591, 0.898, 0.497, 0.899, 0.900)
NOTEBOOK_RATINGS = {"gold": 45.3, "DL-MEAN": 30.1, "CL (B)": 40.0}
NOTEBOOK_NER = {
    "gold": (70.28, 72.45, 71.35), "DL-MV": (64.48, 44.54, 52.68), "CL (MW)": (65.21, 59.27, 62.10),
}  # fmt: skip
# the paper's name of a row -> ours in the saved results
OURS_LABELME = {
    "gold": "gold", "DL-MV": "DL-MV", "DL-DS": "DL-DS", "DL-EM": "DL-EM (AggNet)", "DL-DN": "DoctorNet",
    "DL-WDN": "WDN", "CL (MW)": "CL MW",
}  # fmt: skip
OURS_RATINGS = {"gold": "gold", "DL-MEAN": "mean", "CL (B)": "CL (B)"}
OURS_NER = {"gold": "gold", "DL-MV": "DL-MV", "CL (MW)": "CL MW"}

THEIRS = "authors' notebook"

HEAD = """# Deep Learning from Crowds (the crowd layer)

F. Rodrigues, F. C. Pereira: Deep Learning from Crowds. AAAI 2018, arXiv:1709.01779. The layer is
`crowdzoo.layers.CrowdsourcedLayer`; the EM that it is compared with is `DeepEM`, for ratings `RatingEM`.
"""
SCRIPTS = """`deep_methods.py`, `crowd_layer.py`, `movie_reviews.py`, `ner.py`, `crf_ma.py` of that folder and
`benchmarks/labelme_accuracy.py` measure them again. [Methods](../methods-results.md), [ratings](../ratings.md) and
[sentences](../sequences.md) have all rows of the tables."""
OVERVIEW = (
    (
        "table, images",
        "Dogs vs. Cats with five simulated annotators, LabelMe; 30 runs",
        "notebooks only, one run each",
        "[LabelMe](#labelme); [other photographs](#dogs-vs-cats) for Dogs vs. Cats",
    ),
    (
        "table, MovieReviews",
        "error and R² of ratings, S, B and S+B among the rows; 30 runs",
        "a notebook only, R²",
        "[here](#moviereviews)",
    ),
    ("table, CoNLL-2003", "precision, recall, F1 of entities", "a notebook only", "[here](#conll-2003)"),
    (
        "figure, Dogs vs. Cats",
        "learnt weights against true sensitivity and specificity",
        "no",
        "[here](#learnt-sensitivity-and-specificity)",
    ),
    (
        "figure, LabelMe",
        "learnt matrices against true confusions",
        "no",
        "[here](#learnt-matrices-of-labelmes-annotators)",
    ),
    ("figure, MovieReviews", "learnt biases against true ones", "no", "[correlation](#claims-in-words-and-pictures)"),
    ("in the text", "identity start against identity regularizer", "no", "[here](#start-or-regularizer)"),
    ("in the text", "an E-step after each epoch, or less often", "no", "[here](#schedules-of-em)"),
    ("in the text", "training time against CRF-MA", "no", "[here](#crf-ma)"),
)
PROTOCOL = (
    (
        "LabelMe",
        "VGG16 features, 10,000 augmented photographs, 1,188 test; Dense 128, dropout .5, Adam .001, 50 epochs, "
        "batches of 64",
        "512 descriptors of our own, 750 and 250 photographs, 60 epochs; otherwise the same network",
    ),
    (
        "Dogs vs. Cats",
        "12,500 and 12,500 photographs; five simulated annotators; convolutions, 30 epochs, batches of 16",
        "LabelMe's 750 and 250: nature or not; the same annotators, epochs and batches; LabelMe's network",
    ),
    (
        "MovieReviews",
        "GloVe, convolutions, 100 epochs; ratings standardised by gold",
        "bag of words (TF-IDF), 64 ReLU, 40 epochs; ratings standardised by themselves; the same test split",
    ),
    (
        "CoNLL-2003",
        "5,985 sentences, GloVe, Conv 512 × 5, GRU 50; crowd layer: 5 epochs on majority tags, then 30",
        "the 2,845 sentences that are available, no GloVe; otherwise the same; the same 3,250 test sentences",
    ),
    ("epoch", "the last", "the last"),
    (
        "runs",
        "30 in the paper, 1 in a notebook",
        "30 seeds; CoNLL-2003 and rows without a published figure 5, starts and schedules 3",
    ),
    (
        "LabelMe, simulated annotators, starts, schedules",
        "text and pictures",
        "fixed beforehand in `benchmarks/reproduce/crowd_layer.py`; rows in `benchmarks/results/crowd_layer.json`",
    ),
)
NOTE = """**The column *authors' notebook* is not the paper's table.** The figures of 30 runs are in no source at
hand (its text is, without the digits of the tables). The column has the stored outputs of the authors' notebooks:
one run each; LabelMe's notebook is stored in two versions, whose mean and standard deviation are shown. So a mark
says little about the published means."""
LABELME_WHY = """The paper's features and test photographs are not available. With other ones equal numbers would be
chance, so only the order against training on majority votes is judged. All runs have the same test photographs: the
deviations say how much weights and order matter, and nothing about other photographs."""
PETS_WHY = """The photographs are not available here. Ours are LabelMe's: nature (coast, forest, mountain, open country)
or what people built, answered by five simulated annotators with the sensitivities and specificities of the authors'
code. So only the order against DL-MV is judged. Between the two, deep EM is above the crowd layer here ({em:.1f} and
{cl:.1f}), and below it in the notebook (80.5 and 81.2)."""
RATINGS_WHY = """Test reviews and ratings are the paper's, the inputs are not: bags of words for GloVe and
convolutions. On them every row is better than in the notebook, and training on means by most; so the lead of CL (B)
is smaller (here {ours:+.1f}, in the notebook {theirs:+.1f})."""
NER_WHY = """Half of the training sentences and no GloVe vectors, but words that are unknown have a vector that is
trained, and words have their shape: also training on the true tags is better than in the notebook. The lead of CL
(MW) over DL-MV in F1 is {ours:+.1f} here and {theirs:+.1f} there."""
FIVE_TEXT = """What `annotator_confusions()` says of the five simulated annotators, mean ± standard deviation of {runs}
runs, beside what is true. The third is a coin, and the fourth says no nearly always. The order is right,
but every learnt sensitivity is above the true one, most those of annotators 4 and 2.

![Learnt against true values](rodrigues.svg)"""
START_TEXT = """LabelMe, crowd layer MW, accuracy in per cent after the last epoch. *Matrices* is the
correlation of learnt and true confusions over all cells of the rows with ten labels or more, *told apart* the same
after the mean row of each class has been taken away: whether annotators differ as they truly do."""
MATRICES_TEXT = """The six annotators of LabelMe with the most labels, by the first run of the identity start: shares of
labels by the true class (above), and what `annotator_confusions()` says (below). Rows are true classes, columns what
was said; rows without a label are left empty.

![True and learnt matrices](rodrigues-matrices.svg)"""
SCHEDULE_TEXT = "Deep EM on LabelMe, accuracy in per cent; 60 epochs."
CRF_TEXT = """The baseline that the paper names (Rodrigues, Pereira and Ribeiro, Machine Learning 95, 2014): a
linear-chain CRF, and EM over which annotator of a sentence is the reliable one. Its text is in no source at hand, so
features, start and prior are ours (`benchmarks/reproduce/crf_ma.py`). Spans in per cent; sentences as in the table
above. Nothing in the rows of the CRF is random. *CRF, BSC* learns from the tags of BSC-seq, an aggregation method that
the paper does not have. Without word vectors these features are better than the network's, so rows compare with rows of
their own kind: CRF-MA is {ahead:+.1f} above the CRF on majority votes, CL (MW) {network:+.1f} above the network on
them."""
ABSENT = (
    "Dogs vs. Cats itself.",
    "Weighted Doctor Net for ratings by the paper's own weights: what they are is in no source at hand. The rows "
    "[above](#rows-without-a-published-figure-at-hand) have equal weights, weights by the number of ratings, and "
    "weights learnt as by Guan et al. (AAAI 2018): the weighted mean of the heads is fitted to the mean rating of each "
    "review.",
    "30 runs of CoNLL-2003, whose rows have five.",
    "The numbers of the paper's own tables: someone has to read them off the publication.",
)
STACK = "Each row has its own stack; `labelme_accuracy.json` has one for the file."


def tables(results: dict[str, Any]) -> list[Table]:
    """The paper's tables with our figures."""
    labelme, ner, ratings = saved(MORE)[THIRTY], saved(NER), results["bag of words"]
    images = tuple(
        Cell(
            row, round(statistics.mean(runs), 2), (per_cent(labelme[OURS_LABELME[row]]["runs"], "last"),),
            f"{MORE}: {THIRTY}, {OURS_LABELME[row]}, last", round(statistics.stdev(runs), 2) if len(runs) > 1 else 0.0,
        )
        for row, runs in NOTEBOOK_LABELME.items()
    )  # fmt: skip
    reviews = tuple(
        Cell(
            row, value, (per_cent(ratings[OURS_RATINGS[row]].values(), "R2"),),
            f"{RESULTS.name}: bag of words, {OURS_RATINGS[row]}, R2",
        )
        for row, value in NOTEBOOK_RATINGS.items()
    )  # fmt: skip
    names = tuple(
        Cell(
            row, value, (per_cent(ner[OURS_NER[row]]["runs"], figure),), f"{NER}: {OURS_NER[row]}, {figure}",
            column=figure,
        )
        for row, values in NOTEBOOK_NER.items()
        for figure, value in zip(("precision", "recall", "f1"), values, strict=True)
    )  # fmt: skip
    five = saved(MORE)["five annotators"]
    pets = tuple(
        Cell(
            row, value, (per_cent(five[OURS_LABELME[row]]["runs"], "last"),),
            f"{MORE}: five annotators, {OURS_LABELME[row]}, last",
        )
        for row, value in NOTEBOOK_PETS.items()
    )  # fmt: skip
    pets_why = PETS_WHY.format(em=_mean(pets[3]), cl=_mean(pets[4]))
    ours = [_mean(cell) for cell in (*reviews[1:], names[5], names[8])]
    theirs = NOTEBOOK_RATINGS["CL (B)"] - NOTEBOOK_RATINGS["DL-MEAN"]
    why = RATINGS_WHY.format(ours=ours[1] - ours[0], theirs=theirs)
    why_ner = NER_WHY.format(ours=ours[3] - ours[2], theirs=NOTEBOOK_NER["CL (MW)"][2] - NOTEBOOK_NER["DL-MV"][2])
    return [
        Table("LabelMe", "Accuracy in per cent.", images, "DL-MV", "CL (MW)", LABELME_WHY, False, theirs=THEIRS),
        Table("Dogs vs. Cats", "Accuracy in per cent.", pets, "DL-MV", "CL (MW)", pets_why, False, theirs=THEIRS),
        Table("MovieReviews", "R² in hundredths.", reviews, "DL-MEAN", "CL (B)", why, False, theirs=THEIRS),
        Table("CoNLL-2003", "Per cent, of spans.", names, "DL-MV", "CL (MW)", why_ner, False, theirs=THEIRS),
    ]


def _mean(cell: Cell) -> float:
    return statistics.mean(cell.found[0])


def _ahead(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, float]:
    """Mean paired difference and half of its 95 % interval."""
    return mean_interval([Runs([a - b for a, b in zip(one, other, strict=True)])])


def _beats(words: str, rows: dict[str, Any], figure: str, method: str, others: tuple[str, ...]) -> Claim:
    """Whether a method is above each of others, paired by seed, with an interval above zero."""
    ours = per_cent(rows[method]["runs"], figure)
    found = {row: _ahead(ours, per_cent(rows[row]["runs"], figure)) for row in others}
    text = "; ".join(f"{row} {mean:+.1f} ± {half:.1f}" for row, (mean, half) in found.items())
    return Claim(words, all(mean > half for mean, half in found.values()), f"difference to {text}")


def _claims(results: dict[str, Any]) -> list[Claim]:
    """Claims of words and pictures."""
    ratings = results["bag of words"]
    scores = {row: statistics.mean(per_cent(ratings[row].values(), "R2")) for row in ("CL (B)", "CL (S)", "CL (S+B)")}
    learnt = statistics.mean(cell["bias correlation"] for cell in ratings["CL (B)"].values())
    return [
        _beats(
            "The crowd layer is above DL-MV, DL-DS and DL-EM on LabelMe", saved(MORE)[THIRTY], "last", "CL MW",
            ("DL-MV", "DL-DS", "DL-EM (AggNet)"),
        ),
        Claim(
            "B is the best form for ratings", scores["CL (B)"] == max(scores.values()),
            "R² in hundredths: " + ", ".join(f"{row} {value:.1f}" for row, value in scores.items()),
        ),
        Claim(
            "Learnt biases correlate strongly with the true ones (above .9)", learnt > 0.9,
            f"{learnt:.2f}, annotators with 20 ratings or more",
        ),
        _beats(
            "The crowd layer is clearly above DL-MV, DL-DS and DL-EM on CoNLL-2003", saved(NER), "f1", "CL MW",
            ("DL-MV", "DL-DS", "DL-EM"),
        ),
        *_against_crf_ma(),
        *_more_claims(),
    ]  # fmt: skip


def _against_crf_ma() -> list[Claim]:
    """Claims of crf_ma.py; their bars were set before the run."""
    layer, chain = saved(NER)["CL MW"], saved(CRF)["CoNLL-2003"]["CRF-MA"]["runs"][0]
    ours, theirs = per_cent(layer["runs"], "f1"), 100 * chain["f1"]
    seconds = layer["cpu_seconds_a_training"], chain["cpu seconds"]
    return [
        Claim(
            "It is on a par with CRF-MA (mean F1 at most one standard deviation of its seeds below)",
            statistics.mean(ours) >= theirs - statistics.stdev(ours), f"F1 {shown(ours)} and {theirs:.1f}",
        ),
        Claim(
            "It trains at least ten times as fast as CRF-MA", seconds[1] >= 10 * seconds[0],
            f"{seconds[0]:.0f} and {seconds[1]:.0f} CPU seconds, ours both",
        ),
    ]  # fmt: skip


def _more_claims() -> list[Claim]:
    """Claims of crowd_layer.py; their bars were set before the run."""
    five = saved(MORE)["five annotators"]["CL MW"]["runs"]
    each = [statistics.mean(run[name] for run in five) for name in ("sensitivity", "specificity")]
    words = (
        "Learnt weights correlate with the true sensitivities and specificities of simulated annotators (above .9)",
        "Learnt matrices resemble the true confusions of LabelMe's annotators (above .9; told apart above .5)",
        "An identity start is better than a random start with an identity regularizer",
    )
    rows = saved(MORE)["identity"]
    runs = rows["identity start"]["runs"]
    alike = [statistics.mean(run[name] for run in runs) for name in ("matrices", "told apart")]
    return [
        Claim(words[0], min(each) > 0.9, f"{each[0]:.2f} and {each[1]:.2f}, five annotators"),
        Claim(
            words[1], alike[0] > 0.9 and alike[1] > 0.5, f"correlation {alike[0]:.2f}; told apart {alike[1]:.2f}",
        ),
        _beats(words[2], rows, "last", "identity start", tuple(row for row in rows if "lambda" in row)),
    ]  # fmt: skip


def _five() -> str:
    """Learnt sensitivity and specificity beside the true ones."""
    runs = saved(MORE)["five annotators"]["CL MW"]["runs"]
    rows = []
    for name, true in (("sensitivity", SENSITIVITIES), ("specificity", SPECIFICITIES)):
        learnt = [shown([run[f"learnt {name}"][r] for run in runs], 2) for r in range(len(true))]
        rows += [[name, "true", *(f"{value:.3f}" for value in true)], ["", "learnt", *learnt]]
    head = ["", "", *(f"annotator {r + 1}" for r in range(len(SENSITIVITIES)))]
    return "\n".join([
        "## Learnt sensitivity and specificity\n", FIVE_TEXT.format(runs=len(runs)), "", grid(head, rows)
    ])  # fmt: skip


def _starts() -> str:
    """Starts, learnt matrices, and schedules."""
    more = saved(MORE)
    starts = [
        [row, len(one["runs"]), shown(per_cent(one["runs"], "last")), *(
            shown([run[name] for run in one["runs"]], 2) for name in ("matrices", "told apart")
        )]
        for row, one in more["identity"].items()
    ]  # fmt: skip
    schedules = [
        [
            "every epoch" if row == "every 1" else f"{row} epochs",
            len(one["runs"]),
            *(shown(per_cent(one["runs"], name)) for name in ("last", "best")),
        ]
        for row, one in more["EM schedules"].items()
    ]
    return "\n".join([
        "## Start or regularizer\n", paragraph(START_TEXT),
        grid(["start", "runs", "accuracy", "matrices", "told apart"], starts),
        "## Learnt matrices of LabelMe's annotators\n", MATRICES_TEXT, "",
        "## Schedules of EM\n", paragraph(SCHEDULE_TEXT), grid(["E-step", "runs", "last", "best (oracle)"], schedules),
    ])  # fmt: skip


def _crf_ma() -> str:
    """CRF-MA beside the rows of the network."""
    chains, ner = saved(CRF)["CoNLL-2003"], saved(NER)
    rows = [(row, one["runs"], one["runs"][0]["cpu seconds"]) for row, one in chains.items()]
    rows += [(row, ner[row]["runs"], ner[row]["cpu_seconds_a_training"]) for row in ("gold", "DL-MV", "CL MW")]
    figures = ("precision", "recall", "f1", "own_f1")
    lines = [
        [row, len(runs), *(shown(per_cent(runs, figure)) for figure in figures), f"{seconds:.0f}"]
        for row, runs, seconds in rows
    ]
    head = ["row", "runs", "precision", "recall", "F1", "F1, training sentences", "CPU s a training"]
    f1 = {row: statistics.mean(per_cent(runs, "f1")) for row, runs, _ in rows}
    text = CRF_TEXT.format(ahead=f1["CRF-MA"] - f1["CRF, MV"], network=f1["CL MW"] - f1["DL-MV"])
    return "\n".join(["## CRF-MA\n", paragraph(text), grid(head, lines)])


def plot(results: dict[str, Any]) -> None:
    """Learnt against true sensitivity and specificity of the five annotators; a dot a run."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "crowdzoo", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    runs = saved(MORE)["five annotators"]["CL MW"]["runs"]
    figure, panels = plt.subplots(1, 2, figsize=(7, 3.5), sharex=True, sharey=True)
    for panel, name, true in zip(panels, ("sensitivity", "specificity"), (SENSITIVITIES, SPECIFICITIES), strict=True):
        for run in runs:
            panel.plot(true, run[f"learnt {name}"], "o", color="tab:blue", alpha=0.5)
        panel.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        panel.set(title=name, xlabel="true", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    panels[0].set_ylabel("learnt")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)
    _plot_matrices(saved(MORE)["pictured matrices"]["identity start"]["runs"])


def _plot_matrices(annotators: list[dict[str, Any]]) -> None:
    """True confusions above, learnt ones below."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, len(annotators), figsize=(1.5 * len(annotators), 3.6), layout="constrained")
    for number, one in enumerate(annotators):
        counts = np.array(one["labels by gold"], float)
        totals = counts.sum(axis=1, keepdims=True)
        true = np.where(totals > 0, counts / np.maximum(totals, 1), np.nan)
        for panel, matrix in zip(panels[:, number], (true, one["learnt"]), strict=True):
            panel.imshow(matrix, vmin=0, vmax=1, cmap="Blues")
            panel.set(xticks=[], yticks=[])
        panels[0, number].set_title(f"{int(counts.sum())} labels", fontsize=9)
    for panel, name in zip(panels[:, 0], ("true", "learnt"), strict=True):
        panel.set_ylabel(name)
    figure.savefig(MATRICES, metadata={"Date": None})
    plt.close(figure)


def _others(results: dict[str, Any]) -> str:
    """Rows of the paper, and of ours, without a figure to compare with."""
    deep, ner, labelme = saved(DEEP)["labelme"], saved(NER), saved(LABELME)["shipped_split"]["comparison"]["accuracies"]
    lines = [["LabelMe, accuracy", row, shown(per_cent(deep[row]["runs"], "last"), 2)] for row in ("CL VW", "CL VW+B")]
    lines += [
        ["LabelMe, accuracy, settings of `make demo`", row, shown([100 * value for value in values], 2)]
        for row, values in labelme.items()
    ]
    nets = ("Doctor Net", "Doctor Net by ratings", "weighted Doctor Net")
    for part, rows in (
        ("bag of words", ("CL (S)", "CL (S+B)", "deep EM", *nets)), ("text", ("gold", "mean", "CL (B)")),
    ):  # fmt: skip
        for row in rows:
            cells = results[part][row].values()
            lines.append([f"MovieReviews, {part}, R² in hundredths", row, shown(per_cent(cells, "R2"), 2)])
    lines += [
        ["CoNLL-2003, F1", row, shown(per_cent(ner[row]["runs"], "f1"), 2)]
        for row in ("DL-DS", "DL-EM", "DL-DN", "DL-WDN", "CL VW", "CL VW+B")
    ]
    text = """The paper has these rows, or experiments like them, but their figures are not at hand. *Text* is a
    convolutional network on fifths of the training reviews, whose texts are available."""
    return "\n".join([
        "## Rows without a published figure at hand\n", paragraph(text), grid(["experiment", "row", "ours"], lines)
    ])  # fmt: skip


def render(results: dict[str, Any]) -> str:
    """The whole page."""
    deep, ner = saved(DEEP)["labelme"], saved(NER)
    used = ("CL VW", "CL VW+B")
    stacks_of: dict[str, dict[str, Any]] = {
        DEEP: {f"labelme: {row}": deep[row]["stack"] for row in used},
        LABELME: {"all": saved(LABELME)["versions"]},
        RESULTS.name: {
            f"{part}: {row}": next(iter(seeds.values()))["stack"]
            for part in ("bag of words", "text")
            for row, seeds in results[part].items()
        },
        NER: {row: one["stack"] for row, one in ner.items()},
        **{
            name: {f"{part}: {row}": one["stack"] for part, found in saved(name).items() for row, one in found.items()}
            for name in (MORE, CRF)
        },
    }
    return Page(
        HEAD, "rodrigues", SCRIPTS, OVERVIEW, PROTOCOL, NOTE, tables(results), _claims(results),
        "\n".join([_five(), _starts(), _crf_ma(), _others(results)]),
        ABSENT,
        STACK, stacks_of,
    ).markdown()  # fmt: skip
