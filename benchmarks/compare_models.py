"""How good the choice of `crowdzoo.compare` among deep methods is, with gold and without it.

    python benchmarks/compare_models.py            # about an hour on two busy cores; needs CROWDZOO_DATA

LabelMe (descriptors of images, its training split), scikit-learn's digits with annotators who exchange digits
(reproduce/lost_classes.py), MovieReviews (texts and ratings) and Music genres (a table of 124 columns). Each is
compared twice by the methods of "quick", with gold and without it: fifths in turns, seed 0, default settings. The table
has the score with gold of the method that is first without gold, of the method that is first with gold, which is the
best in hindsight, of the default and of the baseline. The result goes to benchmarks/results/compare_models.json.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
from deep_methods import labelme, music
from lost_classes import digits
from needed import need
from stack import stack

from crowdzoo import Annotations, compare
from crowdzoo.datasets import data_folder
from crowdzoo.models import TableSettings, TextSettings, TrainingSettings
from crowdzoo.report.tables import print_table

RESULT = Path(__file__).with_name("results") / "compare_models.json"
DEFAULTS = {"classification": "ccem", "regression": "rating-em"}
HEADER = ("set", "first without gold", "score", "first with gold", "score", "default", "baseline")


def movie_reviews():
    """Texts, ratings of 135 annotators, and the authors' own ratings."""
    folder = data_folder() / "movie-reviews-amt" / "clasda"
    with gzip.open(folder / "texts_train.txt.gz", "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file]
    answers = np.loadtxt(folder / "answers.txt.gz")
    annotations = Annotations.from_dense(np.where(answers < 0, np.nan, answers), kind="regression")
    return texts, annotations, np.loadtxt(folder / "ratings_train.txt"), TextSettings(kind="regression")


def table():
    """Music as a table of columns with names."""
    data = music()
    columns = {f"feature{number}": values for number, values in enumerate(data.x.T)}
    return columns, data.annotations, data.gold, TableSettings()


def features(data):
    """Of feature vectors."""
    return data.x, data.annotations, data.gold, TrainingSettings()


SETS = {
    "LabelMe": lambda: features(labelme()), "digits, exchanged": lambda: features(digits(0)),
    "MovieReviews": movie_reviews, "Music": table,
}  # fmt: skip


def measured(x, annotations, gold, settings):
    """Scores with gold by method, and the methods in the order of the score without."""
    arguments = {"settings": settings, "tasks": annotations.tasks}
    with_gold = compare(annotations, x, gold, **arguments).frame.dropna(subset=["score"]).set_index("method")
    hidden = compare(annotations, x, **arguments).frame.dropna(subset=["score"])
    return {
        "scores": with_gold["score"].drop("gold", errors="ignore").to_dict(), "without gold": hidden["method"].tolist(),
        "default": DEFAULTS[annotations.kind], "stack": stack(),
    }  # fmt: skip


def row(name, result):
    """Of the table."""
    scores, blind = result["scores"], result["without gold"][0]
    best = max(scores, key=scores.get)
    baseline = next(iter({"majority-vote", "mean"} & scores.keys()))
    cells = [blind, scores[blind], best, scores[best], scores[result["default"]], scores[baseline]]
    return [name, *(cell if isinstance(cell, str) else f"{cell:.3f}" for cell in cells)]


def main():
    results = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name, make in SETS.items():
        if name not in results:
            results[name] = measured(*make())
            RESULT.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            print(row(name, results[name]), flush=True)
    print_table("Choice among deep methods", HEADER, [row(name, result) for name, result in results.items()])


if __name__ == "__main__":
    need("music-genre-amt", "movie-reviews-amt")
    main()
