"""Which form of a model of texts is the better default: convolutions over the words, or a bag of words.

    python benchmarks/reproduce/text_forms.py                     # what is missing in the saved results
    python benchmarks/reproduce/text_forms.py --parts medical-cause --rows "bag-of-words, aggregated"
    python benchmarks/reproduce/text_forms.py --print             # the saved results, no training
    python benchmarks/reproduce/text_forms.py --page              # prints their table

**Protocol**, fixed before the first run. Every setting but the form is the default of `crowdzoo train`. Sets, all with
texts and experts' answers: MovieReviews (ratings of 1,498 reviews), causes and treatments in 3,231 medical sentences
(yes or no, by an annotator's choice of that relation), and RTE (800 pairs of a text and a hypothesis, joined). A fifth
of the tasks is held out, another for each of 5 seeds. Two methods: the crowd layer of the default, and training on one
aggregated label per task (votes' shares; for ratings the mean).

- "crowd": on held-out tasks, without gold. For classes the area under the ROC curve of the model's probability of yes
  against the majority vote (ties are left out): the probability that a task with most votes for yes is above one with
  most votes for no. For ratings R² against the mean rating.
- "gold": the same against the experts' answers, where there are some. It decides nothing.
- The default is the form that is higher in "crowd", in the mean over seeds, on more of the eight pairs of a set and a
  method; if each is on four, the one with the higher mean over all.

CPU seconds are those of a row, five trainings. Results go to benchmarks/results/text_forms.json.
"""

import functools
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from lia import MEDICAL, medical, medical_texts, rte, rte_texts
from load_movie_reviews import load_movie_reviews
from needed import need
from rows import Parts, grid, read, run, seconds_of, shown
from settings import LAYERS, batch_size
from stack import told

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote
from crowdzoo.metrics import r2_score

RESULTS = Path(__file__).parents[1] / "results" / "text_forms.json"
SEEDS = range(5)
FORMS = ("convolutional", "bag-of-words")
METHODS = ("crowdsourced-layer", "aggregated")
# defaults of `crowdzoo train` when the rows were computed
TEXT: dict[str, Any] = {
    "epochs": 15, "dropout": 0.5, "learning_rate": 1e-3, "embedding": 64, "filters": 128, "hidden": None,
    "max_words": 20_000, "min_texts": 1, "max_length": None,
}  # fmt: skip


@functools.cache
def texts_of(name: str) -> tuple[np.ndarray, Annotations, np.ndarray]:
    """Texts [N], annotations, and the experts' answers [N]: a class, -1 where missing; for ratings a number."""
    if name == "MovieReviews":
        reviews = load_movie_reviews()
        return np.array(reviews.texts, object), reviews.text_annotations, reviews.text_gold
    if name == "RTE":
        data, by_task = rte(), {task: " ".join(parts) for task, parts in rte_texts().items()}
    else:
        data, by_task = medical(name), medical_texts()
    return np.array([by_task[str(task)] for task in data.annotations.tasks], object), data.annotations, data.gold


def area(yes: np.ndarray, truth: np.ndarray) -> float:
    """Area under the ROC curve of scores `[N]` against 0, 1 and -1 (left out)."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth[truth >= 0], yes[truth >= 0]))


def trainings(name: str, form: str, method: str) -> Iterator[dict[str, Any]]:
    """Figures of a held-out fifth, for each seed."""
    from crowdzoo.models import TextIds, TextSettings, train

    texts, annotations, gold = texts_of(name)
    ratings = name == "MovieReviews"
    if ratings:
        targets = np.bincount(annotations.task_ids, annotations.labels) / annotations.redundancy
    else:
        shares = MajorityVote().fit(annotations).posteriors
        targets = np.where(shares[:, 1] == 0.5, -1, shares[:, 1] > 0.5)
    for seed in SEEDS:
        test, training = np.split(np.random.default_rng(seed).permutation(len(texts)), [len(texts) // 5])
        labels: dict[str, Any] = {
            "annotations": annotations.select_tasks(training),
            "tasks": annotations.tasks[training],
        }
        if method == "aggregated":
            labels = {"ratings": targets[training]} if ratings else {"label_distribution": shares[training]}
        kind = "regression" if ratings else "classification"
        arguments = {} if method == "aggregated" else {**LAYERS[method]}
        if arguments and ratings:
            del arguments["majority_epochs"]
            arguments["connection"] = "B"
        length = {"batch_size": batch_size(len(training))}
        settings = TextSettings(method, arguments, kind=kind, form=form, seed=seed, **TEXT, **length)
        model, text_ids = train(settings, texts[training], **labels)
        assert isinstance(text_ids, TextIds)
        predicted = model.predict(text_ids.to_numpy(texts[test]), verbose=0).astype("float64")
        score = partial(r2_score, predicted=predicted[:, 0]) if ratings else partial(area, predicted[:, 1])
        yield {"seed": seed, "crowd": float(score(targets[test])), "gold": float(score(gold[test]))}


PARTS: Parts = {
    name: {f"{form}, {method}": partial(trainings, name, form, method) for form in FORMS for method in METHODS}
    for name in ("RTE", *MEDICAL, "MovieReviews")
}


def show_table() -> None:
    """Prints the results as Markdown."""
    lines = []
    for name, rows in read(RESULTS).items():
        for form in FORMS:
            of_form = [rows[f"{form}, {method}"] for method in METHODS]
            cells = [
                shown([100 * run[figure] for run in row["runs"]]) for figure in ("crowd", "gold") for row in of_form
            ]
            lines.append([name, form, *cells, f"{sum(map(seconds_of, of_form)) / len(METHODS):.0f}"])
    columns = [f"{method}, {against}" for against in ("crowd", "gold") for method in ("crowd layer", "aggregated")]
    print(grid(["set", "form", *columns, "CPU s"], lines, words=2) + f"\nComputed on {told()}.\n")


if __name__ == "__main__":
    need("movie-reviews-amt", "snow2008", "medical-relation-extraction")
    run(RESULTS, PARTS, __doc__, show_table)
