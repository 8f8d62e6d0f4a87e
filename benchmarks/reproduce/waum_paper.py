"""The page docs/papers/waum.md: Lefort, Charlier, Joly and Salmon (TMLR 2024) beside ours. See papers.py."""

import statistics
from collections.abc import Sequence
from typing import Any

from cells import SAVED, Cell, Claim, Page, Table, paragraph, per_cent, saved
from intervals import Runs, mean_interval
from lia import TITLES
from papers import grid, shown
from stack import recorded

__all__ = ["RESULTS", "render", "tables"]

RESULTS = SAVED / "waum.json"
# CIFAR-10H, ResNet-18: accuracy, its standard deviation, expected calibration error
CIFAR = {
    "majority vote": (69.533, 0.84, 0.175),
    "naive soft": (72.149, 2.74, 0.132),
    "Dawid-Skene": (70.268, 0.93, 0.173),
    "Dawid-Skene, spammers left out": (70.053, 0.81, 0.174),
    "GLAD": (66.569, 8.48, 0.173),
    "WAUM": (72.747, 1.93, 0.124),
}
LABELME = ("WAUM", "DL-MV", "vote shares", "DL-DS", "DL-DS soft", "DL-GLAD")  # rows of reproduce_deep.json
SETS = {"labelme": "LabelMe", "music": "Music"}  # of waum_variants.py
CROWDS = ("neighbours", "small classifiers", "three classifiers")  # ours, of three circles

HEAD = """# Ambiguous tasks by weighted areas under the margin (WAUM)

T. Lefort, B. Charlier, A. Joly, J. Salmon: Identify Ambiguous Tasks Combining Crowdsourced Labels by Weighting Areas
Under the Margin. TMLR 2024, arXiv:2209.15380. The layer is `crowdzoo.layers.WAUM`, the ranking of tasks
`crowdzoo.quality.waum`.
"""
MORE = "waum_variants.json"
SCRIPTS = """`benchmarks/reproduce/waum.py` and `waum_variants.py` of that folder measure them again, and
[methods](../methods-results.md) has all our rows of the first."""
OVERVIEW = (
    ("CIFAR-10H", "accuracy and calibration error of six ways to train", "yes", "not run"),
    ("three circles (slides)", "test accuracy of five ways to train, one run", "yes", "[here](#three-circles)"),
    ("LabelMe and Music", "accuracy and calibration error with and without WAUM", "no", "Music [below](#music)"),
    (
        "worst images",
        "the tasks of lowest WAUM of CIFAR-10H and LabelMe",
        "no, pictures",
        "[LabelMe](#the-worst-photographs-of-labelme)",
    ),
    (
        "one network a worker",
        "WAUM by a network for each worker, and by one for all (stacked)",
        "no",
        "[here](#variants)",
    ),
    ("consensus, trust", "labels by consensus of p; trust s = 1 and s = c", "no", "[here](#variants)"),
    ("redundancy", "fewer labels a task", "no", "[other sets](#fewer-labels-a-task)"),
)
PROTOCOL = (
    (
        "circles",
        "3 × 250 tasks, network 30-20-20, α = .1; how the workers were simulated is not said",
        "the same; three crowds of our own, 1,000 new test points a class",
    ),
    ("margin", "of the two largest probabilities (top-2)", "the same; Pleiss' margin beside it"),
    ("scores", "recorded during training, dropout on", "recorded after each epoch, dropout off"),
    ("trust", "Dawid-Skene's ability × the network's belief after the last epoch", "the same"),
    ("Music", "features and settings are not at hand", "CoNAL's features and network, 100 epochs, 50 for margins"),
    ("α", "a grid from .01 to .1 and more", "0, .01, .05, .1, .2; none is chosen"),
    ("runs", "circles 1", "5 seeds, each with data, crowd and weights of its own"),
    (
        "variants, worst photographs, redundancy",
        "not at hand",
        "fixed beforehand in `benchmarks/reproduce/waum_variants.py`; rows in `benchmarks/results/waum_variants.json`",
    ),
)
NOTE = """"Saved as" names part and row of `benchmarks/results/waum.json`. Accuracies and calibration errors are in
per cent, mean ± standard deviation."""
NOT_RUN = """What each worker said is available for 500 of the images only, without their pictures; so WAUM on them
is not possible here. The published lead of WAUM over naive soft labels, .6 points, is within the published
deviations."""
CIRCLES = """The source does not say how its workers were simulated. Ours are made up: three crowds, in the order
{crowds}. A mark stands for all three: the order holds only if it does in each."""
MUSIC = """The paper's figures for Music are in no source at hand. Majority votes are right for {all:.1f} % of the
700 tasks; of those that are ranked worst they should be right less often."""
VARIANTS = """Rankings of LabelMe's 1,000 photographs and Music's 700 songs. *Finds* is the probability, in per cent,
that a task whose majority vote is wrong is ranked below one whose vote is right (50 is chance). *Trust 1* is the plain
mean of the margins, *trust c* has one skill an annotator by Dawid-Skene. *Consensus* is our reading of a consensus of
p: the margin of the most probable class of Dawid-Skene's posterior. *One network an annotator* has one seed. *Pruned*
is the accuracy on test tasks after training without the tenth that is ranked worst, in per cent, of 3 seeds."""
READING = """On LabelMe, with two or three labels a task, WAUM finds wrong votes far better than what the votes alone
say. On Music, with four, Dawid-Skene's posterior finds them as well without any network. Which trust is taken hardly
matters. With a network for each annotator, who has 43 photographs or 67 songs on average, WAUM finds fewer. Training
without the worst tenth changes accuracy by {labelme} on LabelMe and by {music} on Music (three seeds)."""
GALLERY = """![Sixteen photographs with their classes and labels](waum.jpg)

The 16 photographs with the lowest WAUM (mean of 5 seeds), the lowest first. Below each: its class by gold and its WAUM,
and what annotators said. On {apart} of them no two annotators agree, and on {unsaid} nobody said the class of gold.
Photographs: LabelMe (B. C. Russell, A. Torralba, K. P. Murphy, W. T. Freeman, IJCV 77, 2008; A. Oliva, A. Torralba,
IJCV 42(3), 2001), as published by T. Lefort, B. Charlier, A. Joly, J. Salmon (Computo, 2024), CC BY 4.0; made smaller,
with text below.
"""
REDUNDANCY = """The paper thins its labels from 10 to 2. LabelMe has at most three labels a task and Music seven, so
the protocol has sets with ten: RTE, Blue Birds (of 39), and three circles of our own with ten answers a task. *Finds*
as above, of the votes that are left; 3 draws. On the circles WAUM finds more wrong votes than vote entropy. On RTE and
Blue Birds, whose features say little of the class, it finds fewer."""
ABSENT = (
    "CIFAR-10H: its photographs are not at hand. The tables of LabelMe and Music with WAUM: their figures are in no "
    "source at hand.",
    "What the paper calls consensus of p is in no source at hand; the row has our reading.",
)
STACK = "Each table of `waum.json` and each row of the other files has its own stack."


def _circles(results: dict[str, Any], row: str) -> tuple[tuple[float, ...], ...]:
    """Accuracy in per cent, one group a crowd."""
    return tuple(_accuracy(results["circles"][f"3 circles, {crowd}"]["rows"][row]) for crowd in CROWDS)


def _accuracy(row: dict[str, Any], figure: str = "accuracy") -> tuple[float, ...]:
    return tuple(100 * value for value in row[figure])


def tables(results: dict[str, Any]) -> list[Table]:
    """The paper's tables with our figures."""
    cifar = [Cell(row, figures[0], spread=figures[1], column="accuracy") for row, figures in CIFAR.items()]
    cifar += [Cell(row, round(100 * figures[2], 1), column="ECE") for row, figures in CIFAR.items()]
    circles = tuple(
        Cell(row, round(100 * value, 1), _circles(results, row), f"circles, {row}")
        for row, value in results["printed"].items()
    )
    why = CIRCLES.format(crowds=", ".join(CROWDS))
    return [
        Table("CIFAR-10H", "ResNet-18, per cent.", tuple(cifar), "majority vote", "WAUM", NOT_RUN),
        Table("Three circles", "Accuracy in per cent.", circles, "majority vote", "WAUM", why, same_data=False),
    ]


def _music(results: dict[str, Any]) -> str:
    ranking, training = results["ranking"], results["training"]["rows"]
    shares = [name for name in next(iter(ranking["rows"].values())) if name.startswith("worst")]
    worst = [
        [name, "majority is right, %", *(shown(_accuracy(row, share)) for share in shares)]
        for name, row in ranking["rows"].items()
    ]
    trained = [
        [name, f"{len(row['accuracy'])} seeds", shown(_accuracy(row)), shown(_accuracy(row, "ece"))]
        for name, row in training.items()
    ]
    return "\n".join([
        "## Music\n",
        paragraph(MUSIC.format(all=100 * ranking["all tasks"])),
        grid(["ranked by", "figure", *shares], worst),
        grid(["trained on", "runs", "accuracy", "ECE"], trained).rstrip("\n"),
        "",
    ])  # fmt: skip


def _difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Mean paired difference and the ends of its 95 % interval."""
    mean, half = mean_interval([Runs([a - b for a, b in zip(one, other, strict=True)])])
    return mean, mean - half, mean + half


def _claims(results: dict[str, Any]) -> list[Claim]:
    """Claims of words and pictures."""
    ranking, training = results["ranking"]["rows"], results["training"]["rows"]
    by_waum, by_entropy = (_accuracy(ranking[row], "worst 10%") for row in ("WAUM, top-2 margin", "vote entropy"))
    means = statistics.mean(by_waum), statistics.mean(by_entropy)
    found = [
        Claim(
            "WAUM finds bad tasks (Music): of the tenth that it ranks worst votes are right less often than of vote "
            "entropy's",
            means[0] < means[1],
            f"{means[0]:.1f} % and {means[1]:.1f} %",
        )
    ]
    pruned = {name: row for name, row in training.items() if name.startswith("WAUM") and name != "WAUM, alpha 0"}
    for figure, sign, words, unit in (
        ("accuracy", 1, "accuracy", "accuracy"), ("ece", -1, "calibration", "calibration error"),
    ):  # fmt: skip
        each = {
            name.removeprefix("WAUM, "): _difference(
                _accuracy(row, figure), _accuracy(training["WAUM, alpha 0"], figure)
            )
            for name, row in pruned.items()
        }
        better = [name for name, (_, low, high) in each.items() if (low > 0 if sign > 0 else high < 0)]
        text = "; ".join(f"{name} {mean:+.1f} [{low:+.1f}, {high:+.1f}]" for name, (mean, low, high) in each.items())
        found.append(
            Claim(
                f"Leaving bad tasks out helps {words} on Music (an interval beyond zero)",
                bool(better),
                f"change of {unit}: {text}",
            )
        )
    best = max(statistics.mean(_accuracy(row)) for row in pruned.values())
    others = {
        name: statistics.mean(_accuracy(training[name])) for name in ("majority vote", "naive soft", "Dawid-Skene")
    }
    text = f"WAUM, α by gold, {best:.1f}; " + ", ".join(f"{name} {value:.1f}" for name, value in others.items())
    found.append(Claim("WAUM is above aggregated labels on Music", best > max(others.values()), text))
    deep = saved("reproduce_deep.json")["labelme"]
    ours = {row: statistics.mean(per_cent(deep[row]["runs"], "last")) for row in LABELME}
    text = ", ".join(f"{name} {value:.1f}" for name, value in ours.items()) + " (`reproduce_deep.json`, last)"
    above = ours["WAUM"] > max(value for name, value in ours.items() if name != "WAUM")
    found.append(Claim("WAUM is above aggregated labels on LabelMe", above, text))
    ahead = [
        crowd
        for number, crowd in enumerate(CROWDS)
        if statistics.mean(_circles(results, "WAUM")[number])
        > max(statistics.mean(_circles(results, row)[number]) for row in results["printed"] if row != "WAUM")
    ]
    text = f"in {len(ahead)} of {len(CROWDS)} crowds" + (f" ({', '.join(ahead)})" if ahead else "")
    found.append(Claim("WAUM is above all others on three circles", len(ahead) == len(CROWDS), text))
    return [*found, *_more_claims()]


def _finds(more: dict[str, Any], row: str) -> dict[str, float]:
    """How well a ranking finds wrong votes: set -> mean in per cent, of the sets where it was run."""
    return {
        name: statistics.mean(per_cent(more[f"ranking, {name}"][row]["runs"], "finds wrong votes"))
        for name in SETS
        if row in more[f"ranking, {name}"]
    }


def _more_claims() -> list[Claim]:
    """Claims of waum_variants.py; their bars were set before the run."""
    more = saved(MORE)
    ranking = more["ranking, labelme"]
    means = [statistics.mean(per_cent(ranking[row]["runs"], "worst 10%")) for row in ("WAUM", "vote entropy")]
    worst = more["gallery"]["labelme"]["runs"]
    wrong = _unsaid(worst)
    stacked, alone = _finds(more, "WAUM"), _finds(more, "one network an annotator")
    text = "; ".join(f"{SETS[name]} {stacked[name]:.1f} and {alone[name]:.1f} %" for name in alone)
    return [
        Claim(
            "WAUM finds bad tasks (LabelMe), as on Music", means[0] < means[1], f"{means[0]:.1f} % and {means[1]:.1f} %"
        ),
        Claim(
            "With few labels a worker, one network for all finds wrong votes better than one a worker",
            all(stacked[name] > alone[name] for name in SETS),
            text,
        ),
        Claim(
            "Photographs of lowest WAUM are ambiguous or mislabelled (of half of the 16 nobody said the true class)",
            wrong >= len(worst) / 2,
            f"{wrong} of {len(worst)} (on {_apart(worst)} no two annotators agree)",
        ),
    ]


def _unsaid(photographs: list[dict[str, Any]]) -> int:
    """Of how many photographs nobody said the class of gold."""
    return sum(one["gold"] not in one["said"].split(", ") for one in photographs)


def _apart(photographs: list[dict[str, Any]]) -> int:
    """On how many photographs no two annotators agree."""
    labels = [one["said"].split(", ") for one in photographs]
    return sum(len(set(each)) == len(each) for each in labels)


def _variants() -> str:
    """Rankings, and training without the worst."""
    more, rows = saved(MORE), []
    for name, title in SETS.items():
        trained = {row: one["runs"] for row, one in more.get(f"pruned, {name}", {}).items()}
        for row, one in more[f"ranking, {name}"].items():
            runs = one["runs"]
            figures = [shown(per_cent(runs, figure)) for figure in ("finds wrong votes", "worst 5%", "worst 10%")]
            accuracy = shown(per_cent(trained[row], "accuracy")) if row in trained else ""
            rows.append([title, row, len(runs), *figures, accuracy])
        if "nothing" in trained:
            rows.append([title, "nothing pruned", "", "", "", "", shown(per_cent(trained["nothing"], "accuracy"))])
    header = ["set", "ranked by", "runs", "finds", "votes right, worst 5 %", "worst 10 %", "pruned"]
    changes = {}
    for name in SETS:
        means = {
            row: statistics.mean(per_cent(one["runs"], "accuracy")) for row, one in more[f"pruned, {name}"].items()
        }
        gains = [mean - means["nothing"] for row, mean in means.items() if row != "nothing"]
        changes[name] = f"{min(gains):+.1f} to {max(gains):+.1f} points"
    return "\n".join(["## Variants\n", paragraph(VARIANTS), grid(header, rows), paragraph(READING.format(**changes))])


def _gallery() -> str:
    """The picture, and what is on it in words."""
    runs = saved(MORE)["gallery"]["labelme"]["runs"]
    rows = [[n + 1, one["gold"], one["said"], f"{one['waum']:.3f}"] for n, one in enumerate(runs)]
    return "\n".join([
        "## The worst photographs of LabelMe\n", GALLERY.format(unsaid=_unsaid(runs), apart=_apart(runs)),
        grid(["photograph", "class", "annotators said", "WAUM"], rows),
    ])  # fmt: skip


def _redundancy() -> str:
    more, rows = saved(MORE), []
    figures = ("WAUM", "vote entropy", "Dawid-Skene's posterior", "accuracy, WAUM", "accuracy, nothing pruned")
    parts = [part for part in more if part.startswith("redundancy")]
    for part in parts:
        for row, one in more[part].items():
            runs = one["runs"]
            cells = [shown(per_cent(runs, figure)) if figure in runs[0] else "" for figure in figures]
            name = part.removeprefix("redundancy, ")
            rows.append([TITLES.get(name, name), row, shown(per_cent(runs, "votes right")), *cells])
    header = ["set", "labels", "votes right", *(f"{figure} finds" for figure in figures[:3]), *figures[3:]]
    return "\n".join(["## Fewer labels a task\n", paragraph(REDUNDANCY), grid(header, rows)])


def render(results: dict[str, Any]) -> str:
    """The whole page."""
    deep = saved("reproduce_deep.json")["labelme"]
    rows = {
        RESULTS.name: dict(recorded(results)),
        "reproduce_deep.json": {f"labelme: {row}": deep[row]["stack"] for row in LABELME},
        MORE: {f"{part}: {row}": one["stack"] for part, found in saved(MORE).items() for row, one in found.items()},
    }
    return Page(
        HEAD, "waum", SCRIPTS, OVERVIEW, PROTOCOL, NOTE, tables(results), _claims(results),
        "\n".join([_music(results), _variants(), _gallery(), _redundancy()]).rstrip("\n") + "\n",
        ABSENT, STACK, rows,
    ).markdown()  # fmt: skip
