"""Every row of every table of the five papers: the command that measures it, or the reason why it is not measured.

    python benchmarks/reproduce/published_rows.py            # the list
    python benchmarks/reproduce/published_rows.py rodrigues

`ROWS[paper][table][row]` is a `Measured`, or the reason as text. A test compares it with what the scripts offer and
with the tables of docs/papers. Rows of LIA, CoNAL and WAUM are those of the papers; of Rodrigues and Pereira and of
Ibrahim et al., whose tables were not at hand, those that their texts and codes name.

published.csv has the papers' figures, several of a row with blanks between them:

- lia: Platanios et al. 2020, table 2 by set, and table 3: accuracy in per cent by the annotations per task, means of 50
  runs.
- conal: Chu, Ma and Wang, AAAI 2021, tables 1 and 2: mean and standard deviation of five runs; and one of the text.
- rodrigues: the notebooks of the authors' repository (fmpr/CrowdLayer), each stored run; CoNLL-2003: precision, recall
  and F1, with GloVe and all 5,985 sentences.
- waum: Lefort et al., TMLR 2024: accuracy, its standard deviation and calibration error; three circles, one run, from
  the authors' slides.
"""

import argparse
import csv
import functools
import importlib
import shlex
from dataclasses import dataclass
from pathlib import Path

import baselines  # noqa: F401 - registers the aggregators of examples/baselines

__all__ = ["OPTIONS", "ROWS", "Measured", "offered", "published"]


@dataclass(frozen=True)
class Measured:
    """A row of a script.

    Attributes:
        script: file in benchmarks/reproduce, without .py.
        row: its name there.
        parts: parts or data sets of the script that have it.
    """

    script: str
    row: str
    parts: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Without the row."""
        words = [f"{self.script}.py", *([OPTIONS[self.script]] if self.parts else []), *self.parts]
        return " ".join(f'"{word}"' if " " in word else word for word in words)

    def __str__(self) -> str:
        return f"{self.command} --rows {shlex.quote(self.row)}"


OPTIONS = dict.fromkeys(("deep_methods", "lia"), "--data") | dict.fromkeys(
    ("conal", "crowd_layer", "geo_crowd_net", "movie_reviews", "waum", "waum_variants"), "--parts"
)
Table = dict[str, Measured | str]

MUSIC = ("music", "labelme")
CIRCLES = ("circles, neighbours", "circles, small classifiers", "circles, three classifiers")
PUBLIC, MEDICAL = ("bluebirds", "wordsim", "rte"), ("medical-cause", "medical-treat")
TOPICS = "a topic model of word counts, whose classifier is part of the model: no base, no crowd layer, no aggregation"
CIFAR = "the photographs with their annotators' labels are not at hand; circles and Music have the row"
SPAM = "Dawid-Skene, spammers left out"
IMAGES = "the images are not at hand"


def _rows(script: str, names: dict[str, str], *parts: str) -> Table:
    return {row: Measured(script, name, parts) for row, name in names.items()}


SAME = {"DL-MV": "DL-MV", "DL-DS": "DL-DS", "DL-EM": "DL-EM (AggNet)"}
ROWS: dict[str, dict[str, Table]] = {
    "lia": {
        "table 1": {"all": "sizes of the data sets, no methods"},
        "table 2": _rows("lia", {
            "MAJ": "majority", "MAJ*-E": "MAJ*-E", "MAJ*": "MAJ*", "MMCE": "MMCE, ridge per label",
            "MMCE*-E": "MMCE*-E", "MMCE*": "MMCE*", "Snorkel": "Snorkel", "MeTaL": "MeTaL", "LIA-E": "LIA-E",
            "LIA": "LIA",
        }, *PUBLIC, *MEDICAL) | _rows("lia", {"LIA-ML": "LIA-ML"}, *MEDICAL),
        "table 3": {"LIA, no marginal step": Measured("lia", "LIA", (*PUBLIC, *MEDICAL))},
    },
    "rodrigues": {
        "table 1, Dogs vs. Cats": _rows("crowd_layer", {
            **SAME, "gold": "gold", "DL-DN": "DoctorNet", "DL-WDN": "WDN", "CL (VW)": "CL VW", "CL (VW+B)": "CL VW+B",
            "CL (MW)": "CL MW",
        }, "five annotators"),
        "table 1, LabelMe": _rows("crowd_layer", {
            **SAME, "gold": "gold", "DL-DN": "DoctorNet", "DL-WDN": "WDN", "CL (VW)": "CL VW", "CL (VW+B)": "CL VW+B",
            "CL (MW)": "CL MW",
        }, "thirty runs") | {"MA-sLDAc": TOPICS},
        "table 2, MovieReviews": _rows("movie_reviews", {
            "gold": "gold", "DL-MEAN": "mean", "DL-EM": "deep EM", "DL-DN": "DL-DN", "DL-WDN": "DL-WDN",
            "CL (S)": "CL (S)", "CL (S+B)": "CL (S+B)", "CL (B)": "CL (B)",
        }, "bag of words") | {"MA-sLDAr": TOPICS},
        "table 3, CoNLL-2003": _rows("ner", {
            "CRF-MA": "CRF-MA", "gold": "gold", "DL-MV": "DL-MV", "DL-DS": "DL-DS", "DL-EM": "DL-EM", "DL-DN": "DL-DN",
            "DL-WDN": "DL-WDN", "CL (VW)": "CL VW", "CL (VW+B)": "CL VW+B", "CL (MW)": "CL MW",
        }),
    },
    "conal": {
        "table 1": _rows("deep_methods", {row: row for row in (
            "DL-MV", "CL MW", "DoctorNet", "Anno-Reg", "Max-MIG", "DL-GLAD", "DL-WC", "DL-EM (AggNet)", "CoNAL",
        )}, *MUSIC),
        "table 2": _rows("deep_methods", {row: row for row in (
            "CoNAL", "CoNAL 0", "CoNAL 1e-4", "CoNAL 1e-6",
        )}, *MUSIC),
        "open country": _rows("conal", {row: row for row in ("CoNAL", "Max-MIG")}, "classes"),
        "CIFAR-10": {"all": f"figures without numbers, and {IMAGES}"},
        "appendix": {"CoNAL by EM": "derived in the appendix and rejected there, without figures"},
    },
    "waum": {
        "CIFAR-10H": dict.fromkeys(
            ("majority vote", "naive soft", "Dawid-Skene", SPAM, "GLAD", "WAUM"), CIFAR
        ),
        "three circles": _rows("waum", {row: row for row in (
            "majority vote", "naive soft", "Dawid-Skene", "GLAD", "WAUM",
        )}, *CIRCLES),
        "circles and Music, ours": {
            SPAM: Measured("waum", SPAM, (*CIRCLES, "training")),
        },
        "LabelMe and Music": {"all": "the figures were not at hand; `waum.py` and `waum_variants.py` have ours"},
    },
    "ibrahim": {
        "MNIST, Fashion-MNIST, CIFAR-10": {"all": IMAGES},
        "LabelMe and Music": _rows("deep_methods", {
            "true labels": "gold", "majority vote": "DL-MV", "AggNet": "DL-EM (AggNet)", "CrowdLayer": "CL MW",
            "TraceReg": "Anno-Reg", "Max-MIG": "Max-MIG", "DoctorNet": "DoctorNet", "CoNAL": "CoNAL",
            "no regularization": "CCEM", "GeoCrowdNet(F)": "GeoCrowdNet F", "GeoCrowdNet(W)": "GeoCrowdNet W",
        }, *MUSIC) | {"MBEM": "one or two rounds of AggNet; `crowd_layer.py` has AggNet by few rounds (EM schedules)"},
    },
}  # fmt: skip


@functools.cache
def published(paper: str, table: str) -> dict[str, tuple[float, ...]]:
    """Row -> its figures in a table of a paper."""
    with open(Path(__file__).with_name("published.csv"), encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["paper"], row["table"]) == (paper, table)]
    return {row["row"]: tuple(map(float, row["figures"].split())) for row in rows}


def offered(script: str) -> dict[str, set[str]]:
    """The rows that a script can measure, by part; a script without parts has one of no name."""
    parts = importlib.import_module(script).PARTS
    return {part if script in OPTIONS else "": {*rows} for part, rows in parts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(ROWS)}; otherwise all")
    for paper in parser.parse_args().papers or ROWS:
        for title, rows in ROWS[paper].items():
            for row, how in rows.items():
                print(f"{paper}, {title}, {row}: {how}")


if __name__ == "__main__":
    main()
