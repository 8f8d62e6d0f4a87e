"""Where annotators' matrices should start: thirteen methods, three learning rates, two crowds, and a confirmation.

    KERAS_BACKEND=jax python benchmarks/reproduce/starts.py      # the rows that are missing; needs scikit-learn
    python benchmarks/reproduce/starts.py --print                # the saved results

For an environment with JAX and without scikit-learn, `python benchmarks/reproduce/starts.py --draw FILE` writes the
crowds elsewhere, and the variable `STARTS_CROWDS` names the file.

A study before this one chose the starts at one learning rate; at others `ccem`, `conal`, `union-net` and the connection
VB of `crowdsourced-layer` lose classes. This study replaces its decision.

**Protocol**, fixed before the first run.

- Start: probability d of the right label that every annotator starts with. Candidates: "papers" (e / (e + K - 1), the
  identity under a softmax), .5, .65 and .8; set by each layer's own argument (`scale`, `diagonal`). `deep-em`,
  `cross-fitted-em`, `max-mig`, `doctor-net`, `lia` and `waum` count their matrices or have none, so that there is
  nothing to choose: they are run as they are.
- Model: a user's own, `Dense(64, "relu")`, softmax; Adam at rate / batch / epochs of .001 / 32 / 40, .003 / 32 / 30 and
  .01 / 32 / 20. Figures: accuracy on the test tasks after the last epoch, and whether the model loses a class
  (`crowdzoo.metrics.lost_classes`, on all training tasks).
- Crowds of development, six seeds (0 to 5), each with draws of its own:
    - "digits": scikit-learn's digits, 1,200 to train on and 597 to test. Thirty annotators: 12 are right with .8; 12
      say 7 for 1, 8 for 3 and 9 for 4 in .58 of these tasks and are right with .9 in all others; 6 say any digit; four
      label each task.
    - "clouds": scikit-learn's `make_classification`, six classes of .3 to .08 of the tasks, two clouds each, 20
      features, 1,000 to train on and 1,000 to test. Sixty annotators: 20 are right with .5 to .9, each with errors of
      their own; 20 say the class before in .55 of the tasks of the second, fourth and sixth class, and are right with
      .85 in all others; 20 are right with .4. Two label each task.
- Choice, for each method, by development alone. A candidate is safe if the number of its 36 runs that lose a class is
  at most one more than the fewest of any candidate. Of the safe candidates the one with the highest mean accuracy over
  the six cells (crowd and rate) is chosen; a candidate within .3 points of it that is nearer to .5 is taken instead.
  One start is taken for all methods if it is safe for each of them and its mean over the methods is within .5 points of
  their own choices' mean.
- Confirmation, on other sets, other seeds (100 to 103) and other rates, .002 / 32 / 30 and .006 / 32 / 20: LabelMe
  with its real crowd (as it ships, 750 tasks to train on), and four families of recipe.py with new draws (CoNAL's
  asymmetric and symmetric, Dawid and Skene's, digits labelled by small classifiers). The chosen start is confirmed for
  a method if it loses a class in no more runs than the default before, and the 95 % interval of the paired difference
  to that default (`mean_interval` over the five sets) reaches above -.5 points. Where it is not confirmed, the default
  of before stays if it was safe, and else the chosen start is taken and its cost is told.
- The methods of gradient descent are trained without `fit`: all starts and seeds of a cell at once, one
  `jax.lax.scan` of the layer's own loss and of Keras' Adam under `jax.vmap`, some twenty times as fast. The others are
  trained by `CrowdModel.fit`, three seeds (see below). Part "by fit" trains the methods whose default changes by
  `CrowdModel.fit` on TensorFlow on "digits", at .01 / 32 / 20, with other seeds (10 to 14), with the default before and
  after.

(Amended while the confirmation ran: the methods that have no start, of which nothing is chosen, are run with
one seed per cell, for lack of time.)

Each row is saved with its stack when it is done, to benchmarks/results/starts.json.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import Parts, run

RESULTS = Path(__file__).parents[1] / "results" / "starts.json"
CANDIDATES: tuple[float | None, ...] = (None, 0.5, 0.65, 0.8)  # None: as in the papers
RATES = ((0.001, 32, 40), (0.003, 32, 30), (0.01, 32, 20))  # Adam's rate, batch, epochs
OTHER_RATES = ((0.002, 32, 30), (0.006, 32, 20))
# name -> method, arguments
STARTED: dict[str, tuple[str, dict[str, Any]]] = {
    "crowdsourced-layer": ("crowdsourced-layer", {}),
    "crowdsourced-layer VB": ("crowdsourced-layer", {"connection": "VB"}),
    "ccem": ("ccem", {}),
    "geo-crowd-net": ("geo-crowd-net", {}),
    "trace-regularization": ("trace-regularization", {}),
    "pooled-confusions": ("pooled-confusions", {}),
    "conal": ("conal", {}),
    "union-net": ("union-net", {}),
}
# The default of P(right) before and after this study; for few classes it is e / (e + K - 1) at least
BEFORE: dict[str, float | None] = {
    "crowdsourced-layer": 0.5, "crowdsourced-layer VB": None, "ccem": None, "geo-crowd-net": 0.5,
    "trace-regularization": 0.5, "pooled-confusions": 0.8, "conal": 0.5, "union-net": None,
}  # fmt: skip
AFTER: dict[str, float] = {
    "crowdsourced-layer": 0.65, "crowdsourced-layer VB": 0.65, "ccem": 0.5, "geo-crowd-net": 0.5,
    "trace-regularization": 0.5, "pooled-confusions": 0.5, "conal": 0.65, "union-net": 0.5,
}  # fmt: skip
COUNTED = ("deep-em", "cross-fitted-em", "max-mig", "doctor-net", "lia", "waum")
LOOKS_LIKE = {1: 7, 3: 8, 4: 9}

# === Crowds: x, labels [N, R], x to test on, their gold ===

Crowd = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def answers(gold: np.ndarray, matrices: np.ndarray, redundancy: int, rng: np.random.Generator) -> np.ndarray:
    """Labels `[N, R]` of so many annotators per task, drawn at random, from `matrices[r, true, said]`; -1 elsewhere."""
    annotators, _, classes = matrices.shape
    labels = np.full((len(gold), annotators), -1)
    for task, truth in enumerate(gold):
        for annotator in rng.choice(annotators, redundancy, replace=False):
            labels[task, annotator] = rng.choice(classes, p=matrices[annotator, truth])
    return labels


def right_with(share: float, classes: int) -> np.ndarray:
    """A matrix with `share` on the diagonal and the rest spread evenly."""
    return (share - (1 - share) / (classes - 1)) * np.eye(classes) + (1 - share) / (classes - 1)


def digits(seed: int) -> Crowd:
    from sklearn.datasets import load_digits

    x, gold = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    x, gold = (x[order] / 16).astype("float32"), gold[order]
    confused = right_with(0.9, 10)
    for truth, label in LOOKS_LIKE.items():
        confused[truth] *= 0.42
        confused[truth, label] += 0.58
    matrices = np.stack([right_with(0.8, 10)] * 12 + [confused] * 12 + [np.full((10, 10), 0.1)] * 6)
    return x[:1200], answers(gold[:1200], matrices, 4, rng), x[1200:], gold[1200:]


def clouds(seed: int) -> Crowd:
    from sklearn.datasets import make_classification

    x, gold = make_classification(
        2000, 20, n_informative=8, n_redundant=4, n_classes=6, n_clusters_per_class=2, class_sep=1.8, flip_y=0,
        weights=[0.3, 0.22, 0.16, 0.14, 0.1, 0.08], random_state=seed,
    )  # fmt: skip
    rng = np.random.default_rng([seed, 1])
    errors = rng.dirichlet(np.full(5, 0.5), size=(20, 6))
    own = np.zeros((20, 6, 6))
    for r, share in enumerate(rng.uniform(0.5, 0.9, 20)):
        for truth in range(6):
            own[r, truth, np.arange(6) != truth] = (1 - share) * errors[r, truth]
            own[r, truth, truth] = share
    before = right_with(0.85, 6)
    for truth in (1, 3, 5):
        before[truth] *= 0.45
        before[truth, truth - 1] += 0.55
    matrices = np.concatenate([own, np.stack([before] * 20), np.stack([right_with(0.4, 6)] * 20)])
    x = ((x - x[:1000].mean(axis=0)) / x[:1000].std(axis=0)).astype("float32")
    return x[:1000], answers(gold[:1000], matrices, 2, rng), x[1000:], gold[1000:]


def labelme(seed: int) -> Crowd:
    """750 tasks to train on and 250 to test, drawn by the seed; the real crowd."""
    from crowdzoo.datasets import load_labelme

    data = load_labelme()
    order = np.random.default_rng(seed).permutation(len(data.gold))
    train, test = order[:750], order[750:]
    x = (data.instances - data.instances[train].mean(axis=0)) / (data.instances[train].std(axis=0) + 1e-6)
    labels = data.annotations.to_dense()[train]
    return x[train].astype("float32"), labels, x[test].astype("float32"), data.gold[test]


def family(name: str, seed: int) -> Crowd:
    from recipe import GENERATED

    data = GENERATED[name](seed)
    x, x_test = data.x, data.x_test
    if x.max() > 1:
        center, unit = x.mean(axis=0), x.std(axis=0) + 1e-6
        x, x_test = (x - center) / unit, (x_test - center) / unit
    return x.astype("float32"), data.annotations.to_dense(), x_test.astype("float32"), data.gold_test


DEVELOPMENT: dict[str, Callable[[int], Crowd]] = {"digits": digits, "clouds": clouds}
OTHERS: dict[str, Callable[[int], Crowd]] = {
    "LabelMe": labelme,
    "CoNAL's, asymmetric": partial(family, "CoNAL's, asymmetric"),
    "CoNAL's, symmetric": partial(family, "CoNAL's, symmetric"),
    "Dawid-Skene's": partial(family, "Dawid-Skene's"),
    "digits by classifiers": partial(family, "digits"),
}
SEEDS, OTHER_SEEDS, FIT_SEEDS = range(6), range(100, 104), range(10, 15)
ARRAYS = ("x", "labels", "x_test", "gold_test")


def draw(path: str) -> None:
    """Writes all crowds to a file, for an environment without scikit-learn."""
    arrays = {}
    for sets, seeds in ((DEVELOPMENT, (*SEEDS, *FIT_SEEDS)), (OTHERS, OTHER_SEEDS)):
        for name, make in sets.items():
            for seed in seeds:
                arrays |= {f"{name}/{seed}/{part}": value for part, value in zip(ARRAYS, make(seed), strict=True)}
    np.savez_compressed(path, **arrays)
    print(f"written: {path}")


@cache
def crowd(name: str, seed: int) -> Crowd:
    if path := os.environ.get("STARTS_CROWDS"):
        with np.load(path) as drawn:
            x, labels, x_test, gold_test = (drawn[f"{name}/{seed}/{part}"] for part in ARRAYS)
        return x, labels, x_test, gold_test
    return {**DEVELOPMENT, **OTHERS}[name](seed)


# === Training ===


def own_model(num_features: int, classes: int, head: bool = True) -> Any:
    """A user's model."""
    import keras

    layers = [keras.Input((num_features,)), keras.layers.Dense(64, "relu")]
    return keras.Sequential([*layers, *([keras.layers.Dense(classes, "softmax")] if head else [])])


def start_arguments(method: str, start: float | None, classes: int) -> dict[str, Any]:
    """Arguments of the layer for a start."""
    if method == "pooled-confusions":
        return {"diagonal": float(np.e / (np.e + classes - 1)) if start is None else start}
    return {"scale": 1.0 if start is None else float(np.log(start / (1 - start) * (classes - 1)))}


def figures(predicted: np.ndarray, labels: np.ndarray, right: np.ndarray, classes: int) -> dict[str, float]:
    from crowdzoo.metrics import lost_classes

    return {"test": float(right.mean()), "lost": float(len(lost_classes(predicted, labels, classes)))}


def in_one(
    name: str, seeds: Iterator[int], row: str, rate: tuple[float, int, int], starts: tuple[float | None, ...]
) -> dict[float | None, list[dict[str, Any]]]:
    """Trainings of a cell, all starts and seeds at once; JAX. Their figures by start."""
    import jax
    import keras
    from jax import numpy as jnp

    from crowdzoo.models import CrowdModel
    from crowdzoo.training.methods import create_crowd_layer

    method, arguments = STARTED[row]
    crowds = [crowd(name, seed) for seed in seeds]
    classes = int(max(labels.max() for _, labels, _, _ in crowds)) + 1
    annotators = max(labels.shape[1] for _, labels, _, _ in crowds)
    keras.utils.clear_session()
    learning_rate, batch, epochs = rate
    most = int(max((labels >= 0).sum(axis=1).max() for _, labels, _, _ in crowds))
    lanes, states, orders, instances, ids, says = [], [], [], [], [], []
    for number, (seed, (x, labels, _, _)) in enumerate(zip(seeds, crowds, strict=True)):
        # a row more, which nobody labelled, fills the last batch
        padded = np.full((2, len(x) + 1, most), -1, "int32")
        for task, line in enumerate(labels):
            who = np.flatnonzero(line >= 0)
            padded[:, task, : len(who)] = who, line[who]
        instances.append(np.concatenate([x, x[:1]]))
        ids.append(padded[0])
        says.append(padded[1])
        rng, steps = np.random.default_rng(seed), -(-len(x) // batch)
        order = [np.append(rng.permutation(len(x)), np.full(steps * batch - len(x), len(x))) for _ in range(epochs)]
        orders.append(np.concatenate(order).reshape(-1, batch).astype("int32"))
        for start in starts:
            keras.utils.set_random_seed(seed)
            base = own_model(x.shape[1], classes)
            start_of = start_arguments(method, start, classes)
            layer = create_crowd_layer(method, annotators, classes, {**arguments, **start_of})
            model = CrowdModel(base, layer)
            model({"instances": x[:1], "annotators": padded[0][:1]})
            if method == "pooled-confusions":
                layer.set_counts((labels >= 0).sum(axis=0))
            lanes.append((number, start))
            states.append(
                ([v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables])
            )
    loss_of, optimizer = layer.default_loss(), keras.optimizers.Adam(learning_rate)
    optimizer.build(model.trainable_variables)
    of_lane = jnp.asarray([number for number, _ in lanes])
    instances, ids, says, orders = (jnp.asarray(np.stack(part)) for part in (instances, ids, says, orders))
    trained, fixed = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def loss(trained: Any, fixed: Any, x: Any, annotators: Any, labels: Any) -> Any:
        answers, fixed, more = model.stateless_call(
            trained, fixed, {"instances": x, "annotators": annotators}, training=True, return_losses=True
        )
        return loss_of(labels, answers) + sum(more), fixed

    def train(trained: Any, fixed: Any, number: Any) -> Any:
        def step(state: Any, rows: Any) -> Any:
            trained, fixed, moments = state
            batch = (array[number, rows] for array in (instances, ids, says))
            (_, fixed), gradients = jax.value_and_grad(loss, has_aux=True)(trained, fixed, *batch)
            trained, moments = optimizer.stateless_apply(moments, gradients, trained)
            return (trained, fixed, moments), None

        moments = [variable.value for variable in optimizer.variables]
        (trained, fixed, _), _ = jax.lax.scan(step, (trained, fixed, moments), orders[number])
        return trained, fixed

    trained, fixed = jax.jit(jax.vmap(train))(trained, fixed, of_lane)
    runs_by_start: dict[float | None, list[dict[str, Any]]] = {start: [] for start in starts}
    for lane, (number, start) in enumerate(lanes):
        for variable, values in zip(model.trainable_variables, trained, strict=True):
            variable.assign(values[lane])
        x, labels, x_test, gold_test = crowds[number]
        predicted = np.asarray(model.base(x)).argmax(axis=1)
        right = np.asarray(model.base(x_test)).argmax(axis=1) == gold_test
        runs_by_start[start].append({"seed": str(seeds[number]), **figures(predicted, labels, right, classes)})
    return runs_by_start


def by_fit(
    name: str, seed: int, method: str, arguments: dict[str, Any], rate: tuple[float, int, int]
) -> dict[str, Any]:
    """One training by `CrowdModel.fit`."""
    import keras

    from crowdzoo.models import CrowdModel
    from crowdzoo.training.methods import create_crowd_layer

    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    started = time.process_time()
    learning_rate, batch, epochs = rate
    x, labels, x_test, gold_test = crowd(name, seed)
    classes = int(labels.max()) + 1
    base = own_model(x.shape[1], classes, head=method != "doctor-net")
    model = CrowdModel(base, create_crowd_layer(method, labels.shape[1], classes, arguments))
    whole = -(-len(x) // batch) if keras.backend.backend() == "tensorflow" else 1  # which changes the time alone
    model.compile(keras.optimizers.Adam(learning_rate), steps_per_execution=whole)
    model.fit(x, labels, epochs=epochs, batch_size=batch, seed=seed, verbose=0)
    predicted = model.predict(x, verbose=0).argmax(axis=1)
    right = model.predict(x_test, verbose=0).argmax(axis=1) == gold_test
    return {
        "seed": str(seed), **figures(predicted, labels, right, classes),
        "seconds": round(time.process_time() - started, 1),
    }  # fmt: skip


# === Rows ===


def cell(name: str, rate: tuple[float, int, int]) -> str:
    return f"{name}, {rate[0]:g}"


def called(start: float | None) -> str:
    return "papers" if start is None else f"{start:g}"


@cache
def cells(name: str, rate: tuple[float, int, int], row: str) -> dict[float | None, list[dict[str, Any]]]:
    return in_one(name, SEEDS if name in DEVELOPMENT else OTHER_SEEDS, row, rate, CANDIDATES)


def _by_fit(row: str, start: float | None) -> Iterator[dict[str, Any]]:
    method, arguments = STARTED[row]
    for seed in FIT_SEEDS:
        yield by_fit("digits", seed, method, {**arguments, **start_arguments(method, start, 10)}, RATES[-1])


def _started(name: str, rate: tuple[float, int, int], row: str, start: float | None) -> Iterator[dict[str, Any]]:
    yield from cells(name, rate, row)[start]


def _counted(name: str, rate: tuple[float, int, int], row: str) -> Iterator[dict[str, Any]]:
    for seed in SEEDS[:1]:
        yield by_fit(name, seed, row, {}, rate)


PARTS: Parts = {
    cell(name, rate): {
        **{
            f"{row}: {called(start)}": partial(_started, name, rate, row, start)
            for row in STARTED
            for start in CANDIDATES
        },
        **{row: partial(_counted, name, rate, row) for row in COUNTED if sets is DEVELOPMENT},
    }
    for sets, rates in ((DEVELOPMENT, RATES), (OTHERS, OTHER_RATES))
    for name in sets
    for rate in rates
}
PARTS["by fit"] = {
    f"{row}: {called(start)}": partial(_by_fit, row, start)
    for row, after in AFTER.items() for start in (BEFORE[row], after) if BEFORE[row] != after
}  # fmt: skip


if __name__ == "__main__":
    if "--draw" in sys.argv:
        draw(sys.argv[sys.argv.index("--draw") + 1])
    else:
        run(RESULTS, PARTS, __doc__)
