"""MovieReviews of Rodrigues and Pereira (AAAI 2018): ratings by a crowd, aggregated and learnt from.

    python benchmarks/reproduce/movie_reviews.py                       # what is missing in the saved results
    python benchmarks/reproduce/movie_reviews.py --rows "CL (B)" --seeds 2
    python benchmarks/reproduce/movie_reviews.py --parts aggregation   # ratings alone, no network
    python benchmarks/reproduce/movie_reviews.py --again               # everything anew
    python benchmarks/reproduce/movie_reviews.py --print               # the tables of the saved results, no training


Reads the raw data below CROWDZOO_DATA.

Four parts. "aggregation": one rating per task from the crowd's, against the authors' own, on the 1,500 reviews and on
the seven affects of Snow et al. (2008). "bag of words": networks on TF-IDF of the bags of words (7,600 terms, of three
training reviews or more), learnt from the 1,500 reviews, measured on the 3,506 of the test split. "text": the paper's
convolutional network on the raw texts; there are none of the test split, so it learns from four fifths of the
1,498 reviews whose text there is and is measured on the last fifth (drawn by the seed). "text, bag of words": the same
fifths, by the recipe that the command line and the pipeline have for texts. All figures are of the last
epoch, on the scale from 0 to 1; the paper's are in stars, of which there are ten. On bags of words the paper's rows
have 30 seeds, as there; all others have five.

Answers are standardised by their own mean and deviation (the authors' notebook takes those of gold). Settings of the
networks were chosen without gold: of three pairs of learning rate, batch and dropout those where held-out answers of
annotators were foretold best by CL (B) (squared error .616 of the answers' variance after 36 epochs, .631 and .630 for
the other two), and the error was still falling then. The text network's embedding is learnt, not GloVe's.
Results go to benchmarks/results/movie_reviews.json.
"""

import argparse
import csv
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from load_movie_reviews import load_movie_reviews
from needed import need
from stack import stack

from crowdzoo.aggregation import RATING_METHODS, create
from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets import data_folder
from crowdzoo.metrics import (
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)
from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parents[1] / "results" / "movie_reviews.json"
SEEDS = 5
PAPER_SEEDS = 30
PAPER_ROWS = ("gold", "mean", "CL (S)", "CL (B)", "CL (S+B)")  # on bags of words
ENOUGH = 20  # ratings of an annotator whose true bias is compared
BAG: dict[str, Any] = {"hidden": 64, "dropout": 0.5, "epochs": 40, "batch_size": 32, "learning_rate": 1e-3}
TEXT: dict[str, Any] = {"embedding": 64, "max_length": 300, "epochs": 15, "batch_size": 64, "learning_rate": 1e-3}
TEXT_ROWS = ("gold", "mean", "CL (B)", "deep EM")
# `TextSettings`, as `crowdzoo train` and the pipeline take them
TEXT_BAG: dict[str, Any] = {"form": "bag-of-words", "min_texts": 3, "epochs": 15}
TEXT_BAG_ROWS = ("gold", "mean", "EM", "CL (B)", "CL (B), anchored", "deep EM")
PARTS = ("bag of words", "text", "text, bag of words")

AGGREGATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("mean", {}),
    "mean without the outer fifths": ("mean", {"trim": 0.2}),
    "median": ("median", {}),
    "EM, precisions": ("rating-em", {"bias": False}),
    "EM, biases": ("rating-em", {"precision": False}),
    "EM, biases and precisions": ("rating-em", {}),
}
AFFECTS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")

# row -> what is learnt from: targets (an aggregation's name or "gold"), "every label", or a crowd layer's arguments
ROWS: dict[str, Any] = {
    "gold": "gold",
    "mean": "mean",
    "median": "median",
    "EM": "EM, biases and precisions",
    "every label": "every label",
    "CL (S)": ("crowdsourced-layer", {"connection": "S"}),
    "CL (B)": ("crowdsourced-layer", {"connection": "B"}),
    "CL (B), anchored": ("crowdsourced-layer", {"connection": "B", "anchor": True}),
    "CL (S+B)": ("crowdsourced-layer", {"connection": "S+B"}),
    "deep EM": ("rating-em", {}),
    "deep EM, precisions": ("rating-em", {"bias": False}),
}
# R2 of the authors' notebook, one run
PUBLISHED = {"gold": "R2 .453", "mean": "R2 .301", "CL (B)": "R2 .400"}


def figures(gold: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Errors, R2, R2 of what is left when the mean error is taken off, correlation."""
    error = found - gold
    return {
        "MAE": round(mean_absolute_error(gold, found), 4),
        "RMSE": round(root_mean_squared_error(gold, found), 4),
        "R2": round(r2_score(gold, found), 4),
        "R2 without shift": round(r2_score(gold, found - error.mean()), 4),
        "shift": round(float(error.mean()), 4),
    }


# === Ratings alone ===


def aggregation_table() -> dict[str, Any]:
    reviews = load_movie_reviews()
    sets = {"MovieReviews": (reviews.annotations, reviews.gold)}
    folder = data_folder() / "snow2008" / "all_collected_data"
    for affect in AFFECTS:
        with open(folder / f"{affect}.standardized.tsv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        answers = [(row["orig_id"], row["!amt_worker_ids"], float(row["response"])) for row in rows]
        annotations = Annotations.from_arrays(*zip(*answers, strict=True), kind="regression")
        gold = {row["orig_id"]: float(row["gold"]) for row in rows}
        sets[affect] = (annotations, np.array([gold[str(task)] for task in annotations.tasks]))
    return {name: _aggregated(name, *each) for name, each in sets.items()}


def annotator_biases(annotations: Annotations, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each annotator's ratings lie above known truths on average, [R], and how many such ratings there are."""
    known = ~np.isnan(gold[annotations.task_ids])
    who, errors = annotations.annotator_ids[known], (annotations.labels - gold[annotations.task_ids])[known]
    counts = np.bincount(who, minlength=annotations.num_annotators)
    return np.bincount(who, errors, annotations.num_annotators) / np.maximum(counts, 1), counts


def bias_correlation(true: np.ndarray, learned: np.ndarray, counts: np.ndarray) -> float:
    """Pearson correlation over annotators who rated enough for their bias to mean something."""
    return float(np.corrcoef(true[counts >= ENOUGH], learned[counts >= ENOUGH])[0, 1])


def _aggregated(name: str, annotations: Annotations, gold: np.ndarray) -> dict[str, Any]:
    biases, counts = annotator_biases(annotations, gold)
    rows: dict[str, Any] = {}
    for row, (method, settings) in AGGREGATORS.items():
        if method not in RATING_METHODS:
            continue
        start = time.process_time()
        found = create(method, kind="regression", **settings).fit(annotations)
        seconds = time.process_time() - start
        rows[row] = figures(gold, found.estimates) | {"cpu_seconds": round(seconds, 3)}
        if found.biases is not None:
            rows[row]["bias correlation"] = round(bias_correlation(biases, found.biases, counts), 3)
        rows[row]["stack"] = stack()
        print(f"{name:13} {row:30} {rows[row]}", flush=True)
    true = annotations.labels - biases[annotations.annotator_ids]
    debiased = np.bincount(annotations.task_ids, true) / annotations.redundancy
    rows["mean, debiased by gold (a peep)"] = figures(gold, debiased)
    return rows


# === Networks ===


def train_row(row: str, x: np.ndarray, annotations: Annotations, gold: np.ndarray, make: Any, seed: int) -> Any:
    """A trained model of a row; `make` gives the base, for center and unit, with or without a head."""
    import keras

    from crowdzoo.layers.rating_squared_error import RatingSquaredError
    from crowdzoo.models import CrowdModel
    from crowdzoo.training.methods import create_crowd_layer
    from crowdzoo.training.rating_units import rating_unit

    settings = BAG if make.__name__ == "bag_base" else TEXT
    what = ROWS[row]
    keras.utils.set_random_seed(seed)
    crowd, y = None, annotations
    if not isinstance(what, tuple):
        if what == "every label":
            x, y = x[annotations.task_ids], annotations.labels
        elif what == "gold":
            y = gold
        else:
            method, arguments = AGGREGATORS[what]
            y = create(method, kind="regression", **arguments).fit(annotations).estimates
        y = np.asarray(y, "float32")[:, None]
    center, unit = rating_unit(y)
    if isinstance(what, tuple):
        crowd = create_crowd_layer(
            what[0], annotations.num_annotators, 0, what[1], kind="regression", center=center, unit=unit
        )
    base = make(center, unit, crowd is None or not crowd.stands_on_hidden_layer)
    model = CrowdModel(base, crowd)
    model.compile(keras.optimizers.Adam(settings["learning_rate"]), loss=None if crowd else RatingSquaredError(unit))
    # every label: as many steps as the others
    repeated = len(x) / annotations.num_tasks
    batch = int(settings["batch_size"] * repeated)
    tasks = y.tasks if isinstance(y, Annotations) else None
    model.fit(x, y, tasks=tasks, epochs=settings["epochs"], batch_size=batch, seed=seed, verbose=0)
    return model


def measured(
    model: Any, annotations: Annotations, gold: np.ndarray, x: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    found = figures(truth, model.predict(x, verbose=0, batch_size=1024)[:, 0].astype("float64"))
    if model.crowd is not None and hasattr(model.crowd, "annotator_biases"):
        learned = model.annotator_biases()
        if learned.any():
            biases, counts = annotator_biases(annotations, gold)
            found["bias correlation"] = round(bias_correlation(biases, learned, counts), 3)
            found["mean bias"] = round(float(learned[annotations.annotator_ids].mean()), 4)
    return found


def bag_of_words(table: dict[str, Any], rows: list[str], seeds: int | None, again: bool) -> None:
    reviews = load_movie_reviews()
    x, test = reviews.tf_idf()

    def bag_base(center: float, unit: float, head: bool) -> Any:
        from crowdzoo.models import FeatureClassifier, FeatureRegressor

        size = {"hidden": (BAG["hidden"],), "dropout": BAG["dropout"]}
        if not head:
            return FeatureClassifier(x.shape[1], None, **size)
        return FeatureRegressor(x.shape[1], center=center, unit=unit, **size)

    runs = {row: seeds or (PAPER_SEEDS if row in PAPER_ROWS else SEEDS) for row in rows}
    for row, seed, cell in _wanted(table, "bag of words", runs, again):
        start = time.process_time()
        model = train_row(row, x, reviews.annotations, reviews.gold, bag_base, seed)
        seconds = time.process_time() - start
        cell[str(seed)] = measured(model, reviews.annotations, reviews.gold, test, reviews.test_gold)
        cell[str(seed)]["cpu_seconds"] = round(seconds, 1)
        _told("bag of words", row, seed, cell, table)


def text(table: dict[str, Any], rows: list[str], seeds: int | None, again: bool) -> None:
    from crowdzoo.models import TextRegressor

    reviews = load_movie_reviews()
    ids, num_words = word_ids(reviews.texts, TEXT["max_length"])

    def text_base(center: float, unit: float, head: bool) -> Any:
        network = {"form": "convolutional", "embedding": TEXT["embedding"]}
        return TextRegressor(num_words, **network, center=center, unit=unit, head=head)

    for row, seed, cell in _wanted(table, "text", {row: seeds or SEEDS for row in rows if row in TEXT_ROWS}, again):
        shuffled = np.random.default_rng(seed).permutation(len(ids))
        test, train = np.split(shuffled, [len(ids) // 5])
        annotations, gold = reviews.text_annotations.select_tasks(train), reviews.text_gold[train]
        start = time.process_time()
        model = train_row(row, ids[train], annotations, gold, text_base, seed)
        seconds = time.process_time() - start
        cell[str(seed)] = measured(model, annotations, gold, ids[test], reviews.text_gold[test])
        cell[str(seed)]["cpu_seconds"] = round(seconds, 1)
        _told("text", row, seed, cell, table)


def text_bags(table: dict[str, Any], rows: list[str], seeds: int | None, again: bool) -> None:
    from crowdzoo.models import TextIds, TextSettings, train
    from crowdzoo.training.methods import AGGREGATED

    part, reviews = "text, bag of words", load_movie_reviews()
    texts = np.array(reviews.texts, object)
    for row, seed, cell in _wanted(table, part, {row: seeds or SEEDS for row in rows if row in TEXT_BAG_ROWS}, again):
        shuffled = np.random.default_rng(seed).permutation(len(texts))
        test, training = np.split(shuffled, [len(texts) // 5])
        annotations, gold = reviews.text_annotations.select_tasks(training), reviews.text_gold[training]
        what = ROWS[row]
        start = time.process_time()
        labels: dict[str, Any] = {"annotations": annotations, "tasks": annotations.tasks}
        if not isinstance(what, tuple):
            labels = {"ratings": gold}
            if what != "gold":
                method, arguments = AGGREGATORS[what]
                labels["ratings"] = create(method, kind="regression", **arguments).fit(annotations).estimates
        name, arguments = what if isinstance(what, tuple) else (AGGREGATED, {})
        settings = TextSettings(name, arguments, seed=seed, task="regression", **TEXT_BAG)
        model, text_ids = train(settings, texts[training], **labels)
        assert isinstance(text_ids, TextIds)
        seconds = time.process_time() - start
        found = measured(model, annotations, gold, text_ids.to_numpy(texts[test]), reviews.text_gold[test])
        cell[str(seed)] = found | {"cpu_seconds": round(seconds, 1)}
        _told(part, row, seed, cell, table)


def word_ids(texts: list[str], max_length: int, num_words: int = 8000) -> tuple[np.ndarray, int]:
    """Ids without TensorFlow, for any backend; the texts hold words and blanks only, in lower case."""
    from collections import Counter

    words = [line.split()[:max_length] for line in texts]
    counts = Counter(word for line in words for word in line)
    known = {word: number + 2 for number, (word, _) in enumerate(counts.most_common(num_words))}
    ids = np.zeros((len(words), max_length), "int32")
    for row, line in zip(ids, words, strict=True):
        row[: len(line)] = [known.get(word, 1) for word in line]
    return ids, num_words + 2


def _wanted(
    table: dict[str, Any], part: str, runs: dict[str, int], again: bool
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Row, seed and place of each run that a part lacks; `runs` has the number of runs of each row."""
    for row in runs:
        cell = table.setdefault(part, {}).setdefault(row, {})
        if again:
            cell.clear()
    for seed in range(max(runs.values(), default=0)):
        for row, count in runs.items():
            if seed < count and str(seed) not in table[part][row]:
                yield row, seed, table[part][row]


def _told(part: str, row: str, seed: int, cell: dict[str, Any], table: dict[str, Any]) -> None:
    print(f"{part} {row:22} seed {seed}: {cell[str(seed)]}", flush=True)
    cell[str(seed)]["stack"] = stack()
    save(table)


# === Results ===


def save(table: dict[str, Any]) -> None:
    """Puts the parts into the file, beside what another run may have written there in the meantime."""
    saved = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    saved["settings"] = dict(zip(PARTS, (BAG, TEXT, TEXT_BAG), strict=True))
    if "aggregation" in table:
        saved["aggregation"] = table["aggregation"]
    for part in PARTS:
        for row, seeds in table.get(part, {}).items():
            # what this run did not measure stays as the file has it by now
            saved.setdefault(part, {}).setdefault(row, {}).update(seeds)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


def tables(table: dict[str, Any]) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Title, header and rows of each table."""
    names = ["MAE", "RMSE", "R2", "R2 without shift", "shift", "bias correlation"]
    for name, rows in table.get("aggregation", {}).items():
        lines = [[row, *(f"{cell[each]:.4g}" if each in cell else "" for each in names)] for row, cell in rows.items()]
        yield f"{name}: ratings alone, against gold of the annotated tasks", ["row", *names], lines
    for part in PARTS:
        rows = table.get(part, {})
        lines = []
        for row in (each for each in ROWS if each in rows):
            cells = list(rows[row].values())
            averages = [_mean([cell[each] for cell in cells if each in cell]) for each in names]
            times = [cell["cpu_seconds"] for cell in cells if "cpu_seconds" in cell]
            stars = f"{10 * statistics.mean(cell['RMSE'] for cell in cells):.2f}"
            lines.append(
                [
                    row,
                    *averages,
                    stars,
                    # cells that were measured before have the time that passed, on a busy machine
                    f"{statistics.median(times):.0f}" if times else "",
                    PUBLISHED.get(row, ""),
                ]
            )
        if lines:
            count = max(len(rows[row]) for row in rows)
            head = ["row", *names, "RMSE, stars", "CPU s", "published, on GloVe"]
            yield f"MovieReviews, {part}: last epoch, mean ± sd of up to {count} seeds", head, lines


def _mean(values: list[float]) -> str:
    if not values:
        return ""
    return f"{statistics.mean(values):.4f}" + (f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else "")


def show(table: dict[str, Any]) -> None:
    """Prints the tables."""
    for title, header, rows in tables(table):
        print_table(title, header, rows)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("aggregation", *PARTS)
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=parts)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--seeds", type=int, help=f"of every row; otherwise {SEEDS}, of the paper's {PAPER_SEEDS}")
    parser.add_argument("--again", action="store_true", help="also what is in the saved results already")
    parser.add_argument("--print", action="store_true", help="only print the saved results")
    options = parser.parse_args()
    table = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if not options.print:
        if "aggregation" in options.parts and (options.again or "aggregation" not in table):
            table["aggregation"] = aggregation_table()
            save({"aggregation": table["aggregation"]})
        if "bag of words" in options.parts:
            bag_of_words(table, options.rows, options.seeds, options.again)
        if "text" in options.parts:
            text(table, options.rows, options.seeds, options.again)
        if "text, bag of words" in options.parts:
            text_bags(table, options.rows, options.seeds, options.again)
        table = json.loads(RESULTS.read_text(encoding="utf-8"))
    show(table)


if __name__ == "__main__":
    need("movie-reviews-amt", "snow2008")
    main()
