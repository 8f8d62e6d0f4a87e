"""MovieReviews of Rodrigues and Pereira (AAAI 2018): ratings by a crowd, aggregated and learnt from.

    python benchmarks/reproduce/movie_reviews.py                       # what is missing in the saved results
    python benchmarks/reproduce/movie_reviews.py --parts "bag of words" --rows "CL (B)"
    python benchmarks/reproduce/movie_reviews.py --print               # the tables of the saved results, no training

Reads the raw data below CROWDZOO_DATA.

Parts. "ratings alone": one rating per task from the crowd's, against the authors' own, on the 1,500 reviews and on the
seven affects of Snow et al. (2008). "bag of words": networks on TF-IDF of the bags of words (7,600 terms, of three
training reviews or more), learnt from the 1,500 reviews, measured on the 3,506 of the test split. "text, bag of words":
of the 1,498 reviews whose text there is four fifths are learnt from and the last fifth (drawn by the seed) is measured,
by the recipe that the command line and the pipeline have for texts. All figures are of the last epoch, on the scale
from 0 to 1; the paper's are in stars, of which there are ten. On bags of words the paper's rows have 30 seeds, as
there; all others have five.

Answers are standardised by their own mean and deviation (the authors' notebook takes those of gold). Settings of the
networks were chosen without gold: of three pairs of learning rate, batch and dropout those where held-out answers of
annotators were foretold best by CL (B) (squared error .616 of the answers' variance after 36 epochs, .631 and .630 for
the other two), and the error was still falling then.
"""

import csv
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import baselines  # noqa: F401 - so that crowd_baselines is found
import numpy as np
from load_movie_reviews import load_movie_reviews
from needed import need
from rows import Parts, run

from crowdzoo.aggregation import create
from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets import data_folder
from crowdzoo.metrics import mean_absolute_error, r2_score, root_mean_squared_error

RESULTS = Path(__file__).parents[1] / "results" / "movie_reviews.json"
SEEDS, PAPER_SEEDS = 5, 30
PAPER_ROWS = ("gold", "mean", "CL (S)", "CL (B)", "CL (S+B)")  # on bags of words
ENOUGH = 20  # ratings of an annotator whose true bias is compared
BAG: dict[str, Any] = {"hidden": 64, "dropout": 0.5, "epochs": 40, "batch_size": 32, "learning_rate": 1e-3}
# `TextSettings`, as `crowdzoo train` and the pipeline take them
TEXT_BAG: dict[str, Any] = {
    "form": "bag-of-words", "min_texts": 3, "epochs": 15, "batch_size": 64, "learning_rate": 1e-3, "dropout": 0.5,
    "hidden": None, "max_words": 20_000, "max_length": None,
}  # fmt: skip
SCALE = {"low": None, "high": None}
EM = {"bias": True, "unrelated": 0.1, "level": "all"}
AGGREGATORS: dict[str, dict[str, Any]] = {
    "mean": {"trim": 0.0, **SCALE},
    "median": SCALE,
    "rating-em": {**EM, **SCALE, "precision": True, "shape": None, "max_iter": 1000, "tol": 1e-6},
}
AFFECTS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")

# row -> what is learnt from: an aggregation's name, "gold", or a crowd layer and its arguments
ROWS: dict[str, Any] = {
    "gold": "gold",
    "DL-DN": ("doctor-net-of-ratings", {"weighted": False}),  # examples/baselines
    "DL-WDN": ("doctor-net-of-ratings", {"weighted": True}),
    "mean": "mean",
    "EM": "rating-em",
    **{
        f"CL ({connection})": ("crowdsourced-layer", {"connection": connection, "scale": 1.0, "anchor": False})
        for connection in ("S", "B", "S+B")
    },
    "deep EM": ("rating-em", {**EM, "prior": 1.0, "epochs_per_round": 1, "start_rounds": 30}),
}
TEXT_ROWS = ("gold", "mean", "EM", "CL (B)", "deep EM")
reviews = cache(load_movie_reviews)


def figures(gold: np.ndarray, estimates: np.ndarray) -> dict[str, float]:
    """Errors, R2, R2 of what is left when the mean error is taken off, correlation."""
    error = estimates - gold
    return {
        "MAE": round(mean_absolute_error(gold, estimates), 4),
        "RMSE": round(root_mean_squared_error(gold, estimates), 4),
        "R2": round(r2_score(gold, estimates), 4),
        "R2 without shift": round(r2_score(gold, estimates - error.mean()), 4),
        "shift": round(float(error.mean()), 4),
    }


# === Ratings alone ===


def ratings_of(name: str) -> tuple[Annotations, np.ndarray]:
    """Annotations and gold of a set."""
    if name == "MovieReviews":
        return reviews().annotations, reviews().gold
    place = data_folder() / "snow2008" / "all_collected_data" / f"{name}.standardized.tsv"
    with open(place, encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    answers = [(row["orig_id"], row["!amt_worker_ids"], float(row["response"])) for row in rows]
    annotations = Annotations.from_arrays(*zip(*answers, strict=True), kind="regression")
    gold = {row["orig_id"]: float(row["gold"]) for row in rows}
    return annotations, np.array([gold[str(task)] for task in annotations.tasks])


def aggregated(name: str, method: str) -> Iterator[dict[str, Any]]:
    annotations, gold = ratings_of(name)
    result = create(method, kind="regression", **AGGREGATORS[method]).fit(annotations)
    row = figures(gold, result.estimates)
    if result.biases is not None:
        biases, counts = annotator_biases(annotations, gold)
        row["bias correlation"] = round(bias_correlation(biases, result.biases, counts), 3)
    yield row


def annotator_biases(annotations: Annotations, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each annotator's ratings lie above known truths on average, [R], and how many such ratings there are."""
    known = ~np.isnan(gold[annotations.task_ids])
    who, errors = annotations.annotator_ids[known], (annotations.labels - gold[annotations.task_ids])[known]
    counts = np.bincount(who, minlength=annotations.num_annotators)
    return np.bincount(who, errors, annotations.num_annotators) / np.maximum(counts, 1), counts


def bias_correlation(true: np.ndarray, learned: np.ndarray, counts: np.ndarray) -> float:
    """Pearson correlation over annotators who rated enough for their bias to mean something."""
    return float(np.corrcoef(true[counts >= ENOUGH], learned[counts >= ENOUGH])[0, 1])


# === Networks ===


def targets(what: str, annotations: Annotations, gold: np.ndarray) -> np.ndarray:
    """The true ratings, or what an aggregation found."""
    return gold if what == "gold" else create(what, kind="regression", **AGGREGATORS[what]).fit(annotations).estimates


def trained(row: str, seed: int) -> Any:
    """A model on bags of words."""
    import keras
    from crowd_baselines import rating_doctors  # noqa: F401 - registers "doctor-net-of-ratings"

    from crowdzoo.losses import RatingSquaredError
    from crowdzoo.models import CrowdModel, FeatureClassifier, FeatureRegressor
    from crowdzoo.training.methods import create_crowd_layer
    from crowdzoo.training.rating_units import rating_unit

    what, (x, _), crowd, y = ROWS[row], reviews().tf_idf(), None, reviews().annotations
    keras.utils.set_random_seed(seed)
    if isinstance(what, str):
        y = np.asarray(targets(what, y, reviews().gold), "float32")[:, None]
    center, unit = rating_unit(y)
    if not isinstance(what, str):
        crowd = create_crowd_layer(what[0], y.num_annotators, 0, what[1], kind="regression", center=center, unit=unit)
    size = {"hidden": (BAG["hidden"],), "dropout": BAG["dropout"], "batch_normalization": False}
    if crowd is None or not crowd.traits.needs_hidden_layer:
        base = FeatureRegressor(x.shape[1], center=center, unit=unit, **size)
    else:
        base = FeatureClassifier(x.shape[1], None, **size)
    model = CrowdModel(base, crowd)
    model.compile(keras.optimizers.Adam(BAG["learning_rate"]), loss=None if crowd else RatingSquaredError(unit))
    tasks = y.tasks if isinstance(y, Annotations) else None
    model.fit(x, y, tasks=tasks, epochs=BAG["epochs"], batch_size=BAG["batch_size"], seed=seed, verbose=0)
    return model


def measured(
    model: Any, annotations: Annotations, gold: np.ndarray, x: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    row_figures = figures(truth, model.predict(x, verbose=0, batch_size=1024)[:, 0].astype("float64"))
    if model.crowd is not None and hasattr(model.crowd, "annotator_biases"):
        learned = model.annotator_biases()
        if learned.any():
            biases, counts = annotator_biases(annotations, gold)
            row_figures["bias correlation"] = round(bias_correlation(biases, learned, counts), 3)
    return row_figures


def bag_of_words(row: str) -> Iterator[dict[str, Any]]:
    test = reviews().tf_idf()[1]
    for seed in range(PAPER_SEEDS if row in PAPER_ROWS else SEEDS):
        yield measured(trained(row, seed), reviews().annotations, reviews().gold, test, reviews().test_gold)


def text_bags(row: str) -> Iterator[dict[str, Any]]:
    from crowdzoo.models import TextIds, TextSettings, train
    from crowdzoo.training.methods import AGGREGATED

    texts, what = np.array(reviews().texts, object), ROWS[row]
    for seed in range(SEEDS):
        test, training = np.split(np.random.default_rng(seed).permutation(len(texts)), [len(texts) // 5])
        annotations, gold = reviews().text_annotations.select_tasks(training), reviews().text_gold[training]
        labels: dict[str, Any] = {"annotations": annotations, "tasks": annotations.tasks}
        if isinstance(what, str):
            labels = {"ratings": targets(what, annotations, gold)}
        name, arguments = (AGGREGATED, {}) if isinstance(what, str) else what
        settings = TextSettings(name, arguments, seed=seed, kind="regression", **TEXT_BAG)
        model, text_ids = train(settings, texts[training], **labels)
        assert isinstance(text_ids, TextIds)
        yield measured(model, annotations, gold, text_ids.to_numpy(texts[test]), reviews().text_gold[test])


PARTS: Parts = {
    **{
        f"ratings alone, {name}": {method: partial(aggregated, name, method) for method in AGGREGATORS}
        for name in ("MovieReviews", *AFFECTS)
    },
    "bag of words": {row: partial(bag_of_words, row) for row in ROWS},
    "text, bag of words": {row: partial(text_bags, row) for row in TEXT_ROWS},
}

if __name__ == "__main__":
    need("movie-reviews-amt", "snow2008")
    run(RESULTS, PARTS, __doc__)
