"""The baselines of examples/baselines: sound plug-ins, and the numbers of papers and of the authors' own packages."""

import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations, plugins
from crowdzoo.aggregation import DawidSkene, create
from crowdzoo.errors import ConfigError
from crowdzoo.testing import check_aggregator, check_layer, simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
PACKAGE = Path(__file__).parents[2] / "examples" / "baselines"
tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
POINTS = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]


@pytest.fixture(scope="module", autouse=True)
def baselines(reproduce):
    """Registered by the door of scripts."""
    reproduce("baselines")
    for point in [*POINTS["crowdzoo.aggregators"].values(), *POINTS["crowdzoo.layers"].values()]:
        module, _, name = point.partition(":")
        assert hasattr(importlib.import_module(module), name)


@pytest.fixture(scope="module")
def real_sets(reproduce):
    reproduce("pages")  # which makes benchmarks/ known
    return importlib.import_module("real_crowds").real_sets


def crowd_of(said):
    return Annotations.from_dense(np.array(said), classes=list(range(np.max(said) + 1)))


# === As plug-ins ===


def test_both_doors_have_the_same_names():
    for sort in ("aggregator", "layer"):
        points = POINTS[f"crowdzoo.{sort}s"]
        registered = {name: added.value for (kind, name), added in plugins._registered.items() if kind == sort}
        assert points.items() <= registered.items()


@pytest.mark.parametrize("name", POINTS["crowdzoo.aggregators"])
def test_aggregators_pass_the_battery(name):
    check_aggregator(create(name))


@pytest.mark.parametrize("name", POINTS["crowdzoo.aggregators"])
def test_settings_out_of_range_are_refused_by_name(name):
    for setting, value in create(name).get_params().items():
        if value is not None:
            with pytest.raises(ConfigError, match=setting):
                create(name, **{setting: "none of these"})


@pytest.mark.slow
def test_mmce_with_the_other_ridge_passes_the_battery():
    check_aggregator(create("mmce", ridge="label", max_iter=4, newton_steps=50))


@pytest.mark.parametrize(
    ("layer", "arguments", "inputs", "shape"),
    [
        ("rating_doctors:RatingDoctors", {"weighted": True, "center": 0.5, "unit": 0.2}, (4, 5), (4, 2)),
        ("crf_ma:CRFMA", {"num_classes": 3, "first_epochs": 2}, (4, 6, 5), (4, 6, 2, 3)),
    ],
)
def test_layers_pass_the_battery(layer, arguments, inputs, shape):
    module, _, name = layer.partition(":")
    values = np.random.default_rng(0).normal(size=inputs).astype("float32")
    codes = np.array([[0, 1], [1, 2], [2, 0], [0, 2]], "int32")
    made = getattr(importlib.import_module(f"crowd_baselines.{module}"), name)
    check_layer(made, {"num_annotators": 3, **arguments}, values, shape, annotators=codes)


@pytest.mark.slow
def test_the_command_line_knows_the_package_when_it_is_installed(tmp_path):
    info = tmp_path / "crowd_baselines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crowd-baselines\nVersion: 1.0\n")
    lines = ["[crowdzoo.aggregators]", *(f"{name} = {value}" for name, value in POINTS["crowdzoo.aggregators"].items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.csv").write_text(
        "task,annotator,label\n" + "".join(f"{t},{r},{'ab'[t % 2]}\n" for t in range(9) for r in "xyz")
    )
    path = os.pathsep.join([str(tmp_path), str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    for name in POINTS["crowdzoo.aggregators"]:
        words = ["aggregate", "a.csv", "--method", name, "--out", f"{name}.csv"]
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "crowdzoo", *words], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / f"{name}.csv").read_text().count("\n") == 10


# === MMCE ===


def mmce_of_two_classes(annotations, gamma, rounds, per_label):
    """In log-odds of saying class 1, one number per row: u of annotators and v of tasks."""
    tasks, annotators, said = annotations.task_ids, annotations.annotator_ids, annotations.labels
    labels, votes = np.bincount(annotators), np.bincount(tasks)
    alpha = gamma * 4
    beta = alpha * labels.mean() / votes.mean()
    u, v = np.zeros((len(labels), 2)), np.zeros((len(votes), 2))
    owners = (
        (u, annotators, alpha / 2 * (labels if per_label else np.ones(len(labels)))),
        (v, tasks, beta / 2 * (votes if per_label else np.ones(len(votes)))),
    )
    shares = np.bincount(tasks, said) / votes
    q = np.stack([1 - shares, shares], axis=1)
    for _ in range(rounds):
        for _ in range(60):
            for own, ids, ridge in owners:
                p = 1 / (1 + np.exp(-u[annotators] - v[tasks]))
                for k in (0, 1):
                    slope = np.bincount(ids, q[tasks, k] * (said - p[:, k])) - ridge * own[:, k]
                    own[:, k] += slope / (np.bincount(ids, q[tasks, k] * p[:, k] * (1 - p[:, k])) + ridge)
        logs = -np.log1p(np.exp((1 - 2 * said[:, None]) * (u[annotators] + v[tasks])))
        joint = np.stack([np.bincount(tasks, logs[:, k]) for k in (0, 1)], axis=1)
        q = np.exp(joint - np.logaddexp(*joint.T)[:, None])
    return q


@pytest.mark.parametrize("ridge", ["label", "table"])
def test_mmce_is_that_of_log_odds_with_two_classes(ridge):
    annotations, _ = simulated_crowd(num_classes=2, num_tasks=40)
    method = create("mmce", gamma=0.25, ridge=ridge, max_iter=3, newton_steps=60, tol=0.0)
    expected = mmce_of_two_classes(annotations, 0.25, 4, ridge == "label")
    np.testing.assert_allclose(method.fit(annotations).posteriors, expected, atol=1e-8)


def test_mmce_never_gets_worse():
    result = create("mmce").fit(simulated_crowd(num_classes=4)[0])
    assert result.converged
    assert (np.diff(result.history) > -1e-9).all()


# accuracies: of MMCE by Zhou et al. (2012, 2015), gamma 1/4; of worker clustering by Imamura et al. (2018), 5 clusters
PUBLISHED = {
    "bluebird": {"mmce": 0.9167, "worker-clustering": 0.898},
    "dog": {"mmce": 0.8377, "worker-clustering": 0.839},
    "rte": {"mmce": 0.9250},
    "face": {"worker-clustering": 0.656},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_accuracies_are_the_published_ones(real_sets, name):
    found = next(iter(real_sets((name,))), None)
    if found is None:
        pytest.skip(f"CROWDZOO_DATA has no {name}")
    _, annotations, gold = found
    for method, accuracy in PUBLISHED[name].items():
        settings = {"num_clusters": 5} if method == "worker-clustering" else {}
        tolerance = 0.003 if method == "worker-clustering" else 0.0013  # one task of bluebird is .009
        assert create(method, **settings).fit(annotations).accuracy(gold) == pytest.approx(accuracy, abs=tolerance)


# === Worker clustering ===


def clustering_in_loops(rows, q, members, num_annotators, rounds, prior):
    """Variational EM by products of powers: posteriors [N][K], bounds left out."""
    clusters, classes = len(members[0]), len(q[0])
    for _ in range(rounds):
        pi = [[[prior] * classes for _ in range(classes)] for _ in range(clusters)]
        for (i, r, said), c, k in itertools.product(rows, range(clusters), range(classes)):
            pi[c][k][said] += members[r][c] * q[i][k]
        pi = [[[cell / sum(row) for cell in row] for row in matrix] for matrix in pi]
        tau = [sum(members[r][c] for r in {r for _, r, _ in rows}) + prior for c in range(clusters)]
        rho = [sum(row[k] for row in q) + prior for k in range(classes)]
        tau, rho = ([value / sum(all_) for value in all_] for all_ in (tau, rho))
        members = [list(tau) for _ in range(num_annotators)]
        for (i, r, said), c, k in itertools.product(rows, range(clusters), range(classes)):
            members[r][c] *= pi[c][k][said] ** q[i][k]
        members = [[value / sum(row) for value in row] for row in members]
        fresh = [list(rho) for _ in q]
        for (i, r, said), c, k in itertools.product(rows, range(clusters), range(classes)):
            fresh[i][k] *= pi[c][k][said] ** members[r][c]
        q = [[value / sum(row) for value in row] for row in fresh]
    return q


def test_worker_clustering_is_that_of_loops():
    annotations, _ = simulated_crowd(25, 7, 3, redundancy=3, seed=1)
    rows = list(zip(*(getattr(annotations, name).tolist() for name in ("task_ids", "annotator_ids", "labels")),
                    strict=True))  # fmt: skip
    votes = np.zeros((25, 3))
    np.add.at(votes, (annotations.task_ids, annotations.labels), 1)
    shares = votes / votes.sum(axis=1, keepdims=True)
    agreement = np.bincount(annotations.annotator_ids, shares[annotations.task_ids, annotations.labels])
    counts = np.bincount(annotations.annotator_ids)
    agreement = (agreement + agreement.sum() / counts.sum()) / (counts + 1)
    members = np.eye(2)[(agreement >= np.quantile(agreement, 0.5, method="higher")).astype(int)]
    expected = clustering_in_loops(rows, shares.tolist(), members.tolist(), 7, 4, 0.2)
    result = create("worker-clustering", num_clusters=2, prior=0.2, max_iter=3, tol=0.0).fit(annotations)
    np.testing.assert_allclose(result.posteriors, expected, rtol=1e-8, atol=1e-12)


# === Label models ===

LABELS = [
    [0, 0, 1, -1], [1, 1, -1, 1], [2, -1, 2, 0], [0, 2, 0, 0],
    [-1, 1, 1, 2], [2, 2, 2, 2], [1, 0, 1, -1], [0, -1, 0, 1],
]  # fmt: skip
# LabelModel(cardinality=3).fit(LABELS, seed=3) of Snorkel 0.9.9; with n_epochs=300 snorkel-metal 0.5.0 has the same
SNORKEL = {
    100: [[0.19836, 0.80155, 0.0001], [0.00848, 0.99094, 0.00058], [0.00028, 0.0, 0.99971], [0.99884, 0.0, 0.00116],
          [0.00014, 0.93231, 0.06756], [0.0, 0.0, 0.99999], [0.01555, 0.9844, 4e-05], [0.99847, 0.00146, 8e-05]],
    300: [[0.06313, 0.93677, 9e-05], [0.07292, 0.92667, 0.00041], [0.00029, 0.0, 0.99971], [0.99881, 0.0, 0.00119],
          [0.00031, 0.91824, 0.08146], [0.0, 0.0, 0.99999], [0.00732, 0.99264, 5e-05], [0.99868, 0.00128, 4e-05]],
}  # fmt: skip


@pytest.mark.parametrize("epochs", SNORKEL)
def test_metal_has_the_probabilities_of_snorkel(epochs):
    for floor in (None, 0.01):
        result = create("metal", seed=3, epochs=epochs, floor=floor).fit(crowd_of(LABELS))
        np.testing.assert_allclose(result.posteriors, SNORKEL[epochs], atol=2e-5)


def test_the_generative_model_climbs_the_likelihood_of_all_labels_and_of_abstaining():
    annotations, step = crowd_of(LABELS), 1e-3
    said = np.array(LABELS)

    def log_likelihood(accuracy, propensity):
        logs = np.zeros((len(said), 3))
        for i, r, k in np.ndindex(*said.shape, 3):
            odds = [np.exp(propensity[r] + (accuracy[r] if label == k else -accuracy[r])) for label in range(3)]
            logs[i, k] += np.log((1.0 if said[i, r] < 0 else odds[said[i, r]]) / (1 + sum(odds)))
        return np.log(np.exp(logs).sum(axis=1)).sum()

    start, none, small = np.ones(4), np.zeros(4), 1e-5
    slopes = [
        (log_likelihood(start + move, none) - log_likelihood(start - move, none)) / (2 * small)
        for move in small * np.eye(4)
    ]
    result = create("generative-model", epochs=1, step_size=step, ridge=0.0).fit(annotations)
    np.testing.assert_allclose((result.skills - 1) / (2 * step), slopes, rtol=1e-4)


def test_dawid_skene_without_spammers_is_that_of_the_others():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    good = np.where(rng.random((300, 4)) < 0.8, truth[:, None], rng.integers(3, size=(300, 4)))
    said = np.concatenate([good, rng.integers(3, size=(300, 3))], axis=1)
    result = create("dawid-skene-without-spammers").fit(crowd_of(said))
    np.testing.assert_allclose(result.posteriors, DawidSkene().fit(crowd_of(good)).posteriors, atol=1e-6)


# === CRF-MA and Doctor Net for ratings ===


def test_the_probabilities_of_all_paths_of_a_crf_sum_to_one_and_absent_annotators_have_none():
    from crowd_baselines.crf_ma import CRFMA

    layer = CRFMA(9, 2)
    hidden = np.random.default_rng(1).normal(size=(1, 4, 5)).astype("float32")
    layer.build((None, None, 5))
    layer.crf.transitions.assign([[0.5, -1.0], [0.25, 2.0]])
    paths = np.array([[*path, -1] for path in itertools.product((0, 1), repeat=3)], "int32").T[None]  # [1, 4, 8]
    logs = np.asarray(layer.with_labels(hidden, np.arange(1, 9, dtype="int32")[None], paths))[0, 0]
    assert logs[0] == 0
    np.testing.assert_allclose(np.exp(logs[1:]).sum(), 1, rtol=1e-5)


@pytest.mark.slow
def test_crf_ma_holds_careful_annotators_responsible():
    import keras
    from crowd_baselines.crf_ma import CRFMA, masked

    from crowdzoo import CrowdModel
    from crowdzoo.datasets.generated_ner import generated_ner
    from crowdzoo.networks.sequence_tagger import SequenceTagger
    from crowdzoo.networks.token_encoder import TokenEncoder

    crowd = generated_ner(300)
    encoder = TokenEncoder.fit(crowd.tokens, tokenizer="whitespace")
    keras.utils.set_random_seed(0)
    base = masked(SequenceTagger(**encoder.sizes, num_classes=None, filters=32, units=16, embedding=16, dropout=0.0))
    model = CrowdModel(base, CRFMA(crowd.annotations.num_annotators, len(crowd.classes)))
    model.compile(keras.optimizers.Adam(0.01))
    tasks = crowd.annotations.tasks
    model.fit(encoder(crowd.tokens), crowd.annotations, tasks=tasks, epochs=20, batch_size=32, verbose=0)
    reliability = np.asarray(model.crowd.reliability)
    # of ten annotators of generated_ner the second and sixth are careful, and the tenth tags at random
    assert reliability[[1, 5, 11, 15]].min() > np.median(reliability) > reliability[[9, 19]].max()


def test_weighted_doctors_give_an_annotator_at_random_little_weight():
    import keras
    from crowd_baselines.rating_doctors import RatingDoctors

    from crowdzoo import CrowdModel

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype("float32")
    ratings = np.stack([x[:, 0], x[:, 0] + 0.1, x[:, 0] + rng.normal(size=200) / 4, rng.normal(size=200)], axis=1)
    ratings[:, 2][rng.random(200) < 0.5] = np.nan
    weights = {}
    for weighted in (False, True):
        keras.utils.set_random_seed(0)
        base = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4)])
        model = CrowdModel(base, RatingDoctors(5, weighted=weighted))
        model.compile(keras.optimizers.Adam(0.02))
        model.fit(x, np.pad(ratings, ((0, 0), (0, 1)), constant_values=np.nan), epochs=8, verbose=0)
        weights[weighted] = np.asarray(model.crowd.weight)
        heads = np.asarray(model.crowd(model.base.predict(x, verbose=0)))
        np.testing.assert_allclose(model.predict(x, verbose=0)[:, 0], heads @ weights[weighted], atol=1e-5)
    np.testing.assert_allclose(weights[False], [0.25, 0.25, 0.25, 0.25, 0])  # the fifth has no ratings
    assert weights[True].sum() == pytest.approx(1)
    assert weights[True][4] == 0
    assert weights[True][0] > weights[True][3]
