"""Preferences between arguments: what methods predict of held-out judgments, and scores of new topics.

    python benchmarks/reproduce/preferences.py             # all that is missing in the results
    python benchmarks/reproduce/preferences.py --print     # the tables of the saved results

Data: Habernal and Gurevych, "Which argument is more convincing?", ACL 2016; the 24 topics in `convincing-arguments` of
the folder that CROWDZOO_DATA names. Five annotators judged each pair of arguments as left, right or equal. The
published label of a pair is the authors' consensus by MACE of the same judgments, and no independent truth.

**Protocol**, fixed before the first run.

- Part "held-out": a fifth of the judgments, drawn at random (seeds 0 to 4), is held out; methods with their default
  settings are fitted to the others. Figures are the mean log-likelihood of a held-out judgment, in nats, given its pair
  and its annotator, and the share of held-out judgments that are the most probable answer. Rows to compare with:
  "frequencies" gives every judgment the shares of the three answers among the others; "votes" the votes on the pair,
  with as many pseudo-votes as three, spread by those shares. Topics with even numbers decide the default method (the
  highest log-likelihood); topics with odd numbers are what is reported.
- Part "consensus": all judgments of a topic. Agreement with the published labels of left and right: the method says
  left where it gives left a higher probability than right (a typical annotator without bias); "votes" takes the side
  with more votes, and half a pair where they are equal.
- Part "cross-topic": each topic in turn is held out, judgments and texts; seed 0. Texts are 100 components (truncated
  SVD) of TF-IDF of words and pairs of words (in two texts or more, sublinear), and nine counts (characters, words,
  letters a word, full stops, commas, question marks, exclamation marks, digits, capitals; logarithms of one plus the
  count), all fitted to the texts of the other topics and standardised there. The scorer is Dense(64, relu), dropout
  0.5, Dense(1); Adam 0.001, 10 epochs, 128 pairs a batch. It is trained on "judgments" (PairAnnotators), on "vote
  shares" of the pair, on its "majority label" (one of the most frequent answers, drawn with the seed), and on
  "probabilities" of the pair that AnnotatorBradleyTerry found in the judgments of the other topics. "length" is the
  number of characters, without training. Figures are the mean over topics of the accuracy on the pairs with a published
  label, of Spearman's rho between scores and the Bradley-Terry scores of the published labels (prior 0.5; the published
  ranks are not in the data), and of the log-likelihood of a judgment by a typical annotator. Nothing is chosen by them.
  (Amended before the first row of networks was done, for want of time: the topics with odd numbers are held out, each
  in turn. The networks still train on all of the other 23 topics.)
"""

import csv
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from needed import need
from rows import Parts, run

from crowdzoo.aggregation import PREFERENCE_METHODS, AnnotatorBradleyTerry, BradleyTerry, create
from crowdzoo.datasets import data_folder
from crowdzoo.metrics import spearman
from crowdzoo.tables import Annotations

RESULTS = Path(__file__).parents[1] / "results" / "preferences.json"
SEEDS = range(5)
HALVES = ("even", "odd")


def rows_of(name: str) -> list[dict[str, str]]:
    """Rows of a file of the data set."""
    with open(data_folder() / "convincing-arguments" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def judgments() -> Annotations:
    """All judgments, kind preference; an annotator who judged a pair twice keeps both."""
    pairs = {row["task"]: row for row in rows_of("pairs")}
    rows = [(pairs[row["task"]], row) for row in rows_of("annotations")]
    return Annotations.from_arrays(
        [pair["left"] for pair, _ in rows],
        [int(row["annotator"]) for _, row in rows],
        [row["label"] for _, row in rows],
        right=[pair["right"] for pair, _ in rows],
        kind="preference",
        tasks=[row["argument"] for row in rows_of("arguments")],
    )


@cache
def topics() -> np.ndarray:
    """Topic of each argument, int64 [N]."""
    return np.array([int(row["topic"]) for row in rows_of("arguments")])


@cache
def published() -> tuple[np.ndarray, np.ndarray]:
    """Pairs with a published label, int64 [P, 2], and the label: 0 left, 1 right."""
    code = {name: number for number, name in enumerate(judgments().tasks.tolist())}
    rows = [row for row in rows_of("pairs") if row["published_label"] in ("left", "right")]
    sides = [[code[row["left"]], code[row["right"]]] for row in rows]
    return np.array(sides), np.array([int(row["published_label"] == "right") for row in rows])


def only(chosen: np.ndarray) -> Annotations:
    """Judgments of the arguments with these topics, all annotators."""
    return judgments().select_tasks(np.flatnonzero(np.isin(topics(), chosen)))


def shares(crowd: Annotations) -> np.ndarray:
    """Shares of the three answers, [3]."""
    return np.bincount(crowd.labels, minlength=3) / len(crowd)


def vote_table(crowd: Annotations, num_tasks: int) -> dict[int, np.ndarray]:
    """Votes of each pair, by its key."""
    pairs, table = crowd.pairs()
    votes = np.zeros((len(pairs), 3))
    np.add.at(votes, (table.task_ids, table.labels), 1)
    return dict(zip((pairs[:, 0] * num_tasks + pairs[:, 1]).tolist(), votes, strict=True))


# === Held-out judgments ===


def held_out(method: str, half: str) -> Iterator[dict[str, Any]]:
    """One run a seed."""
    numbers = np.unique(topics())
    crowd = only(numbers[numbers % 2 == HALVES.index(half)])
    for seed in SEEDS:
        held = np.random.default_rng(seed).random(len(crowd)) < 0.2
        train, test = crowd.select_rows(~held), crowd.select_rows(held)
        common = shares(train)
        if method == "frequencies":
            found = np.tile(common, (len(test), 1))
        elif method == "votes":
            votes, keys = vote_table(train, len(crowd.tasks)), test.task_ids * len(crowd.tasks) + test.right_ids
            counts = np.array([votes.get(key, np.zeros(3)) for key in keys.tolist()]) + 3 * common
            found = counts / counts.sum(axis=1, keepdims=True)
        else:
            name, _, ties = method.partition(", ")
            settings: dict[str, Any] = (
                {"position_bias": True} if ties == "position bias" else {"ties": ties} if ties else {}
            )
            found = create(name, kind="preference", **settings).fit(train).answer_probabilities(test)
        said = found[np.arange(len(test)), test.labels]
        right = float((found.argmax(axis=1) == test.labels).mean())
        yield {"seed": str(seed), "log-likelihood": float(np.log(said).mean()), "share right": right}


def consensus(method: str) -> Iterator[dict[str, Any]]:
    """One run: all topics at once, which share annotators."""
    crowd, (pairs, labels) = judgments(), published()
    if method == "votes":
        votes = vote_table(crowd, len(crowd.tasks))
        counts = np.array([votes[key] for key in (pairs[:, 0] * len(crowd.tasks) + pairs[:, 1]).tolist()])
        lead = counts[:, 0] - counts[:, 1]
    else:
        found = create(method, kind="preference").fit(crowd).probabilities(*pairs.T)
        lead = found[:, 0] - found[:, 1]
    agrees = np.where(lead == 0, 0.5, (lead > 0) == (labels == 0))
    yield {"agreement": float(agrees.mean()), "equal": float((lead == 0).mean())}


# === New topics ===


@cache
def texts() -> list[str]:
    return [row["text"] for row in rows_of("arguments")]


def counts_of(text: str) -> list[float]:
    words = text.split()
    marks = [sum(map(text.count, letters)) for letters in (".", ",", "?", "!")]
    digits, capitals = sum(map(str.isdigit, text)), sum(map(str.isupper, text))
    mean = len(text) / max(len(words), 1)
    return np.log1p([len(text), len(words), mean, *marks, digits, capitals]).tolist()


@cache
def features(topic: int) -> np.ndarray:
    """Features of all arguments, float32 [N, D], fitted to those of the other topics."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    train = np.flatnonzero(topics() != topic)
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    words.fit([texts()[task] for task in train])
    terms = words.transform(texts())
    components = TruncatedSVD(100, random_state=0).fit(terms[train])
    found = np.hstack([components.transform(terms), [counts_of(text) for text in texts()]])
    mean, deviation = found[train].mean(axis=0), found[train].std(axis=0)
    return ((found - mean) / np.maximum(deviation, 1e-9)).astype(np.float32)


def small_scorer(width: int) -> Any:
    """The scorer of the part cross-topic."""
    import keras

    return keras.Sequential([
        keras.Input((width,)), keras.layers.Dense(64, "relu"), keras.layers.Dropout(0.5), keras.layers.Dense(1),
    ])  # fmt: skip


def score(
    form: str,
    train_topics: np.ndarray,
    x: np.ndarray,
    make: Callable[[int], Any] = small_scorer,
    seed: int = 0,
    **training: Any,
) -> tuple[np.ndarray, float]:
    """Scores of all arguments [N] after training on some topics, and the log of Davidson's nu.

    Args:
        form: what is learned from.
        train_topics: numbers of the topics.
        x: features of all arguments, float32 [N, D].
        make: the scorer for D features.
        seed: of the network.
        **training: `epochs` (10), `batch_size` in pairs (128), `rate` of Adam (0.001).
    """
    import keras

    from crowdzoo.layers import PairAnnotators, PairProbabilities
    from crowdzoo.models import CrowdModel

    train, crowd = np.flatnonzero(np.isin(topics(), train_topics)), only(train_topics)
    pairs, table = crowd.pairs()
    targets = None if form == "judgments" else targets_of(form, crowd, train)
    if form == "published label":  # the others have none
        known = targets.sum(axis=1) > 0
        pairs, targets = pairs[known], targets[known]
    sides = {"left": x[train[pairs[:, 0]]], "right": x[train[pairs[:, 1]]]}
    keras.utils.set_random_seed(seed)
    scorer = make(x.shape[1])
    inputs = {name: keras.Input((x.shape[1],), name=name) for name in sides}
    end = PairProbabilities()
    base = keras.Model(inputs, end(keras.layers.Concatenate()([scorer(side) for side in inputs.values()])))
    how: dict[str, Any] = {"epochs": 10, "batch_size": 128, "verbose": 0, **training}
    optimizer = keras.optimizers.Adam(how.pop("rate", 0.001))
    if form == "judgments":
        model = CrowdModel(base, PairAnnotators(crowd.num_annotators, len(crowd)))
        model.compile(optimizer, jit_compile=False)
        model.fit(sides, table, **how)
    else:
        base.compile(optimizer, loss="categorical_crossentropy", jit_compile=False)
        base.fit(sides, targets, **how)
    return scorer.predict(x, verbose=0)[:, 0].astype(float), float(end.log_nu)


def targets_of(form: str, crowd: Annotations, train: np.ndarray) -> np.ndarray:
    """Probabilities of the answers for each pair of the crowd, [P, 3]; a pair without a published label has zeros.

    Args:
        form: what is learned from.
        crowd: judgments of some topics.
        train: places of their arguments among all, int64.
    """
    pairs, table = crowd.pairs()
    if form == "probabilities":
        return AnnotatorBradleyTerry().fit(crowd).probabilities(*pairs.T)
    if form == "published label":
        sides, labels = published()
        keys = dict(zip((sides[:, 0] * len(topics()) + sides[:, 1]).tolist(), labels.tolist(), strict=True))
        own = train[pairs]
        said = [keys.get(key, 3) for key in (own[:, 0] * len(topics()) + own[:, 1]).tolist()]
        return np.eye(4)[said, :3]
    votes = np.zeros((len(pairs), 3))
    np.add.at(votes, (table.task_ids, table.labels), 1)
    if form == "majority label":
        drawn = np.where(votes == votes.max(axis=1, keepdims=True), np.random.default_rng(0).random(votes.shape), -1)
        return np.eye(3)[drawn.argmax(axis=1)]
    return votes / votes.sum(axis=1, keepdims=True)


def cross_topic(form: str) -> Iterator[dict[str, Any]]:
    """One run a topic."""
    from crowdzoo.aggregation.engine.comparisons import answer_probabilities

    pairs, labels = published()
    for topic in np.unique(topics()[topics() % 2 == 1]).tolist():
        here = topics()[pairs[:, 0]] == topic
        scores, tie = (
            (np.array([float(len(text)) for text in texts()]), 0.0)
            if form == "length"
            else score(form, np.setdiff1d(topics(), [topic]), features(topic))
        )
        lead = scores[pairs[here, 0]] - scores[pairs[here, 1]]
        agrees = np.where(lead == 0, 0.5, (lead > 0) == (labels[here] == 0))
        about = np.flatnonzero(topics() == topic)
        place = np.full(len(topics()), -1)
        place[about] = np.arange(len(about))
        known = Annotations.from_arrays(
            place[pairs[here, 0]], np.arange(here.sum()), np.array(["left", "right"], object)[labels[here]],
            right=place[pairs[here, 1]], kind="preference", tasks=np.arange(len(about)),
        )  # fmt: skip
        reference = BradleyTerry().fit(known).scores
        found = {"topic": str(topic), "accuracy": float(agrees.mean()), "rho": spearman(reference, scores[about])}
        if form != "length":
            held = only(np.array([topic]))
            lead = scores[about][held.task_ids] - scores[about][held.right_ids]
            said = answer_probabilities(lead, tie, "davidson")[np.arange(len(held)), held.labels]
            found["log-likelihood"] = float(np.log(said).mean())
        yield found


METHODS = (*PREFERENCE_METHODS, "annotator-bradley-terry, rao-kupper", "bradley-terry, position bias")
PARTS: Parts = {
    **{
        f"held-out, {half} topics": {
            row: (lambda row=row, half=half: held_out(row, half)) for row in ("frequencies", "votes", *METHODS)
        }
        for half in HALVES
    },
    "consensus": {row: (lambda row=row: consensus(row)) for row in ("votes", *PREFERENCE_METHODS)},
    "cross-topic": {
        row: (lambda row=row: cross_topic(row))
        for row in ("length", "majority label", "judgments", "vote shares", "probabilities")
    },
}

if __name__ == "__main__":
    need("convincing-arguments")
    run(RESULTS, PARTS, __doc__)
