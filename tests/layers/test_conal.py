"""CoNAL against the paper's equations, written out in NumPy with loops and float64."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers.conal import CoNAL
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.testing import LAYER_CHECKS, LayerCase, gradients

R, K, B, D, E = 5, 3, 4, 6, 4
# annotator 4 labels nothing; annotator 0 labels three tasks, annotator 3 one; task 2 nobody labelled
IDS = np.array([[0, 2, -1], [1, 0, -1], [-1, -1, -1], [3, 0, 1]], dtype="int32")
LABELS = np.array([[0, 2, -1], [1, 1, -1], [-1, -1, -1], [2, 0, 1]], dtype="int32")
TABLE = np.random.default_rng(3).normal(size=(R, 2)).tolist()

each_mixing = pytest.mark.parametrize("mixing", ["logits", "probabilities"])
each_variant = pytest.mark.parametrize(
    "more",
    [
        {},
        {"normalize_instances": False},
        {"instance_hidden": 7},
        {"annotator_features": TABLE},
        {"separation": 0.0},
    ],
    ids=str,
)


def inputs(seed=0):
    """Bottleneck [B, K] and features [B, D]."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K), size=B).astype("float32"), rng.normal(size=(B, D)).astype("float32")


def made(seed=1, **arguments):
    """A built layer with random weights."""
    layer = CoNAL(R, **{"embedding_size": E, "separation": 0.1, **arguments})
    layer.build((None, K), (None, D))
    rng = np.random.default_rng(seed)
    fixed = {id(layer.annotators)} if layer.annotator_features is not None else set()
    for weight in layer.weights:
        if id(weight) not in fixed:
            weight.assign(rng.normal(size=weight.shape))
    return layer


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def array(weight):
    return np.asarray(ops.convert_to_numpy(weight), dtype="float64")


def paper_omega(layer, r, v):
    """omega_ir = sigmoid(u_r . v_i); v is the embedding of the instance."""
    u = array(layer.annotators)[r]
    if layer.annotator_features is not None:
        u = u @ array(layer.annotator_map.kernel) + array(layer.annotator_map.bias)
    return 1 / (1 + np.exp(-(u / np.linalg.norm(u)) @ v))


def paper_embedding(layer, x):
    """v_i = A x_i + a, of length one."""
    x = np.asarray(x, dtype="float64")
    if layer.instance_hidden is not None:
        x = x @ array(layer.hidden_map.kernel) + array(layer.hidden_map.bias)
    v = x @ array(layer.instance_map.kernel) + array(layer.instance_map.bias)
    return v / np.linalg.norm(v) if layer.normalize_instances else v


def paper_answer(layer, p, omega, r):
    """Annotator r's label distribution for one task; kernels are [true, said], so the paper's W p is p W here."""
    common, own = array(layer.common), array(layer.kernel)[r]
    said_common = [sum(p[k] * common[k, label] for k in range(K)) for label in range(K)]
    said_own = [sum(p[k] * own[k, label] for k in range(K)) for label in range(K)]
    said_common, said_own = np.array(said_common), np.array(said_own)
    if layer.mixing == "logits":
        return softmax(omega * said_common + (1 - omega) * said_own)
    return omega * softmax(said_common) + (1 - omega) * softmax(said_own)


def answers(layer, p, x, ids=IDS):
    """What the layer says, as probabilities [B, M, K]."""
    logits = ops.convert_to_numpy(layer(p, annotators=ids, features=x)).astype("float64")
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def by_weight(layer, found, weight):
    """The gradient, out of those of all trainable weights, that belongs to a weight."""
    return next(gradient for own, gradient in zip(layer.trainable_variables, found, strict=True) if own is weight)


@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("mixing", "more"),
    [
        ("logits", {}),
        ("probabilities", {"instance_hidden": 7, "annotator_features": TABLE}),
        pytest.param("logits", {"instance_hidden": 7, "annotator_features": TABLE}, marks=pytest.mark.slow),
        pytest.param("probabilities", {}, marks=pytest.mark.slow),
    ],
    ids=["logits-table", "probabilities-maps", "logits-maps", "probabilities-table"],
)
def test_the_battery_passes(mixing, more, form, check):
    p, x = inputs()
    arguments = {
        "num_annotators": R,
        "embedding_size": E,
        "separation": 0.1,
        "mixing": mixing,
        "scale": 1.5,
        "normalize_instances": False,
        **more,
    }
    if form == "dense":
        case = LayerCase(CoNAL, arguments, p, (B, R, K), {"features": x})
    else:
        case = LayerCase(CoNAL, arguments, p, (B, 3, K), {"annotators": IDS, "features": x})
    check(case)


@each_variant
@each_mixing
def test_answers_are_the_papers(mixing, more):
    layer, (p, x) = made(mixing=mixing, **more), inputs()
    said = answers(layer, p, x)
    for i, m in np.argwhere(IDS >= 0):
        omega = paper_omega(layer, IDS[i, m], paper_embedding(layer, x[i]))
        np.testing.assert_allclose(said[i, m], paper_answer(layer, p[i], omega, IDS[i, m]), rtol=1e-4, atol=1e-6)


@each_mixing
def test_mixed_probabilities_come_out_as_their_logarithms(mixing):
    layer, (p, x) = made(mixing=mixing), inputs()
    sums = np.exp(ops.convert_to_numpy(layer(p, annotators=IDS, features=x))).sum(axis=-1)
    assert np.allclose(sums, 1, atol=1e-5) == (mixing == "probabilities")


@each_variant
@each_mixing
def test_the_dense_form_says_the_same_as_the_sparse_one(mixing, more):
    layer, (p, x) = made(mixing=mixing, **more), inputs()
    dense, sparse = (ops.convert_to_numpy(layer(p, annotators=ids, features=x)) for ids in (None, IDS))
    for i, m in np.argwhere(IDS >= 0):
        np.testing.assert_allclose(sparse[i, m], dense[i, IDS[i, m]], rtol=1e-4, atol=1e-5)


@each_variant
@each_mixing
def test_confusions_of_an_instance_are_its_answers_to_certain_truths(mixing, more):
    layer, (_, x) = made(mixing=mixing, **more), inputs()
    confusions = np.exp(ops.convert_to_numpy(layer.log_confusions(IDS, x)))
    for i, m in np.argwhere(IDS >= 0):
        omega = paper_omega(layer, IDS[i, m], paper_embedding(layer, x[i]))
        for true in range(K):
            expected = paper_answer(layer, np.eye(K)[true], omega, IDS[i, m])
            np.testing.assert_allclose(confusions[i, m, true], expected, rtol=1e-4, atol=1e-6)


@each_mixing
def test_a_posterior_is_bayes_rule_with_the_instances_own_confusions(mixing):
    layer, (p, x) = made(mixing=mixing), inputs()
    joint = ops.convert_to_numpy(layer.log_joint(p, IDS, LABELS, x))
    confusions = ops.convert_to_numpy(layer.log_confusions(IDS, x))
    for i in range(B):
        for k in range(K):
            given = sum(confusions[i, m, k, LABELS[i, m]] for m in range(3) if LABELS[i, m] >= 0)
            assert joint[i, k] == pytest.approx(np.log(p[i, k]) + given, rel=1e-4, abs=1e-4)


def test_at_first_everybody_says_what_the_base_says():
    p, x = inputs()
    for factor, layer in ((1, CoNAL(R)), (2, CoNAL(R, scale=2))):
        said = ops.convert_to_numpy(layer(p, annotators=IDS, features=x))
        np.testing.assert_allclose(said, np.broadcast_to(factor * p[:, None], said.shape), rtol=1e-5)


def test_embeddings_of_length_one_keep_omega_between_sigmoids_of_minus_one_and_one():
    layer, (_, x) = made(), inputs()
    for factor in (1, 1000):
        odds = ops.convert_to_numpy(layer._log_odds(None, layer._instance_embeddings(factor * x)))
        assert np.abs(odds).max() <= 1 + 1e-6
    free = made(normalize_instances=False)
    assert np.abs(ops.convert_to_numpy(free._log_odds(None, free._instance_embeddings(1000 * x)))).max() > 100


def test_an_omega_of_zero_or_one_leaves_finite_answers_and_gradients():
    p, x = inputs()
    for mixing in ("logits", "probabilities"):
        layer = made(mixing=mixing, normalize_instances=False)
        _, by_weights = gradients(
            layer, lambda said: MaskedCrowdCrossentropy()(LABELS, said), p, annotators=IDS, features=1e6 * x
        )
        assert all(np.isfinite(gradient).all() for gradient in by_weights)


# === The separation of common and own kernels ===


def penalty(layer, ids=IDS):
    p, x = inputs()
    layer(p, annotators=ids, features=x)
    return sum(float(ops.convert_to_numpy(loss)) for loss in layer.losses)


def test_the_penalty_counts_every_annotator_of_the_batch_once_and_no_padding():
    layer = made(separation=0.1)
    distances = [np.linalg.norm(array(layer.common) - array(layer.kernel)[r]) for r in range(R)]
    assert penalty(layer) == pytest.approx(-0.1 * sum(distances[:4]), rel=1e-5)  # annotator 4 is not there
    assert penalty(layer, np.full_like(IDS, -1)) == 0
    assert penalty(layer, None) == pytest.approx(-0.1 * sum(distances), rel=1e-5)


def test_no_separation_adds_no_loss():
    p, x = inputs()
    layer = made(separation=0)
    layer(p, annotators=IDS, features=x)
    assert layer.losses == []


def penalty_gradients(layer):
    """Gradients of the penalty alone, by the trainable weights."""
    p, x = inputs()
    if keras.backend.backend() != "jax":

        def cost(said):  # the answers take part, so that no backend calls a gradient of 0 missing
            return 0 * ops.sum(said) + sum(layer.losses)

        return gradients(layer, cost, p, annotators=IDS, features=x)[1]
    import jax

    def cost_of(weights):  # a stateless call keeps its losses to itself
        fixed = [variable.value for variable in layer.non_trainable_variables]
        return sum(layer.stateless_call(weights, fixed, p, annotators=IDS, features=x, return_losses=True)[2])

    found = jax.grad(cost_of)([variable.value for variable in layer.trainable_variables])
    return [np.asarray(gradient) for gradient in found]


def test_where_common_and_own_kernel_agree_the_penalty_and_its_gradient_are_zero():
    layer = CoNAL(R, separation=0.1)
    layer.build((None, K), (None, D))
    assert penalty(layer) == 0
    for gradient in penalty_gradients(layer):
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


def test_descending_on_the_penalty_drives_common_and_own_kernels_apart():
    layer = made(separation=0.1)
    by_weights = penalty_gradients(layer)
    by_kernel, by_common = by_weight(layer, by_weights, layer.kernel), by_weight(layer, by_weights, layer.common)
    for r in range(R):
        difference = array(layer.kernel)[r] - array(layer.common)
        expected = -0.1 * difference / np.linalg.norm(difference) * (r < 4)
        np.testing.assert_allclose(by_kernel[r], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(by_common, -by_kernel.sum(axis=0), rtol=1e-4, atol=1e-6)


# === Gradients ===


@each_mixing
def test_gradients_equal_finite_differences_of_the_papers_loss(mixing):
    layer, (p, x) = made(mixing=mixing, separation=0), inputs()
    loss = MaskedCrowdCrossentropy()
    _, by_weights = gradients(layer, lambda said: loss(LABELS, said), p, annotators=IDS, features=x)

    def cost():
        costs = []
        for i, m in np.argwhere(LABELS >= 0):
            omega = paper_omega(layer, IDS[i, m], paper_embedding(layer, x[i]))
            costs.append(-np.log(paper_answer(layer, p[i], omega, IDS[i, m])[LABELS[i, m]]))
        return sum(costs) / len(costs)

    for weight, gradient in zip(layer.trainable_variables, by_weights, strict=True):
        start = ops.convert_to_numpy(weight).copy()
        for cell in list(np.ndindex(*start.shape))[:8]:
            values = []
            for step in (1e-3, -1e-3):
                changed = start.copy()
                changed[cell] += step
                weight.assign(changed)
                values.append(cost())
            weight.assign(start)
            assert gradient[cell] == pytest.approx((values[0] - values[1]) / 2e-3, rel=5e-3, abs=2e-5), weight.name


def test_an_annotator_without_labels_and_a_padded_place_get_no_gradient():
    p, x = inputs()
    layer, loss = made(separation=0), MaskedCrowdCrossentropy()
    _, by_weights = gradients(layer, lambda said: loss(LABELS, said), p, annotators=IDS, features=x)
    for weight in (layer.kernel, layer.annotators):
        gradient = by_weight(layer, by_weights, weight)
        assert not gradient[4].any()
        assert all(gradient[r].any() for r in range(4))
    empty = np.full_like(IDS, -1)
    _, by_weights = gradients(layer, lambda said: loss(empty, said), p, annotators=empty, features=x)
    assert not any(gradient.any() for gradient in by_weights)


def test_annotators_with_features_alike_follow_the_common_confusion_alike():
    table = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1], [1, 0]])
    layer = made(annotator_features=table.tolist())
    shares = layer.common_shares()
    np.testing.assert_allclose(shares[[0, 2, 4]], shares[0], rtol=1e-6)
    np.testing.assert_allclose(shares[[1, 3]], shares[1], rtol=1e-6)
    assert shares[0] != pytest.approx(shares[1])


# === What was learnt ===


def test_training_calls_move_the_mean_instance_and_others_leave_it():
    layer, (p, x) = made(), inputs()
    layer.mean_instance.assign(np.zeros(E))
    expected = np.zeros(E)
    for seed in range(3):
        _, x = inputs(seed)
        layer(p, annotators=IDS, features=x)
        layer(p, annotators=IDS, features=x, training=True)
        batch = np.mean([paper_embedding(layer, row) for row in x], axis=0)
        expected += 0.1 * (batch - expected)
    np.testing.assert_allclose(array(layer.mean_instance), expected, rtol=1e-4)


@each_variant
@each_mixing
def test_annotators_confusions_and_shares_are_those_at_the_mean_instance(mixing, more):
    layer = made(mixing=mixing, **more)
    v = array(layer.mean_instance)
    confusions, shares = layer.annotator_confusions(), layer.common_shares()
    assert confusions.shape == (R, K, K)
    assert shares.shape == (R,)
    np.testing.assert_allclose(confusions.sum(axis=2), 1)
    for r in range(R):
        omega = paper_omega(layer, r, v)
        assert shares[r] == pytest.approx(omega, rel=1e-5)
        for true in range(K):
            expected = paper_answer(layer, np.eye(K)[true], omega, r)
            np.testing.assert_allclose(confusions[r, true], expected, rtol=1e-4, atol=1e-6)


def test_the_common_confusion_is_true_then_said():
    layer = made()
    kernel = 20 * np.eye(K)
    kernel[0] = [0, 0, 20]  # class 0 is called class 2, class 2 is known
    layer.common.assign(kernel)
    np.testing.assert_allclose(layer.common_confusion(), [[0, 0, 1], [0, 1, 0], [0, 0, 1]], atol=1e-6)


# === Training ===


def simulated(num_tasks, num_annotators, seed):
    """Six classes of points; three labels a task, half by one common confusion, half by the annotator's own.

    Each confusion says the truth with .55 and one other class with .45: the next class for the common one, any class
    for an annotator's own. (The generator in `crowdzoo.datasets` needs packages that not every backend is tested with.)
    """
    rng = np.random.default_rng(seed)
    gold = rng.integers(6, size=num_tasks)
    instances = (3 * np.eye(6, 10)[gold] + rng.normal(size=(num_tasks, 10))).astype("float32")
    common = 0.55 * np.eye(6) + 0.45 * np.roll(np.eye(6), 1, axis=1)
    steps = rng.integers(1, 6, size=(num_annotators, 6))
    own = 0.55 * np.eye(6) + 0.45 * np.eye(6)[(np.arange(6) + steps) % 6]
    annotators = rng.random((num_tasks, num_annotators)).argsort(axis=1)[:, :3].ravel()
    tasks = np.repeat(np.arange(num_tasks), 3)
    chances = np.where(rng.random((len(tasks), 1)) < 0.5, common[gold[tasks]], own[annotators, gold[tasks]])
    labels = (rng.random((len(tasks), 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return SimpleNamespace(
        instances=instances,
        gold=gold,
        annotations=Annotations.from_arrays(tasks, annotators, labels),
        common=common,
        confusions=(common + own) / 2,
    )


def crowd_model(crowd, seed=0, **arguments):
    keras.utils.set_random_seed(seed)
    base = FeatureClassifier(crowd.instances.shape[1], crowd.annotations.num_classes, hidden=(32,), dropout=0)
    base.adapt(crowd.instances)
    model = CrowdModel(base, CoNAL(crowd.annotations.num_annotators, **arguments), features="standardize")
    model.compile(keras.optimizers.Adam(0.01))
    return model


@pytest.fixture(scope="module")
def few():
    return simulated(num_tasks=200, num_annotators=10, seed=1)


def em(p, omega, ids, labels, rounds):
    """EM of the model with two hidden things: the truth of a task, and which confusion an annotation follows.

    Derived from the model (the form in the paper's appendix is in no source at hand). omega and p are known, and all
    tasks have as many labels.

    Args:
        p: probabilities of the truth [N, K].
        omega: share of the common confusion [N, M].
        ids: annotators [N, M].
        labels: what they said [N, M].
        rounds: number of rounds.

    Returns:
        Common confusion [K, K], own ones [R, K, K], and the log-likelihood before each round.
    """
    classes, annotators = p.shape[1], ids.max() + 1
    said = np.eye(classes)[labels]  # [N, M, K]
    votes = said.mean(axis=1)
    common = np.einsum("ik,iml->kl", votes, said) + 0.1
    common /= common.sum(axis=1, keepdims=True)
    own, seen = np.full((annotators, classes, classes), 1 / classes), []
    for _ in range(rounds):
        by_common = omega[..., None] * np.moveaxis(common[:, labels], 0, -1)  # [N, M, K]
        by_own = (1 - omega)[..., None] * own[ids[..., None], np.arange(classes), labels[..., None]]
        joint = np.log(p) + np.log(by_common + by_own).sum(axis=1)
        top = joint.max(axis=1, keepdims=True)
        odds = np.exp(joint - top)
        seen.append(float((top[:, 0] + np.log(odds.sum(axis=1))).sum()))
        q = odds / odds.sum(axis=1, keepdims=True)
        follows = q[:, None] * by_common / (by_common + by_own)  # [N, M, K]
        common = np.einsum("imk,iml->kl", follows, said)
        own = np.zeros_like(own)
        np.add.at(own, ids, np.einsum("imk,iml->imkl", q[:, None] - follows, said))
        common, own = (np.maximum(each, 1e-12) for each in (common, own))
        common, own = common / common.sum(axis=1, keepdims=True), own / own.sum(axis=2, keepdims=True)
    return common, own, seen


def test_em_of_the_same_model_ends_in_a_maximum_of_the_layers_likelihood():
    rng, tasks, redundancy = np.random.default_rng(0), 1500, 3
    layer = CoNAL(4, embedding_size=E, mixing="probabilities")
    layer.build((None, K), (None, D))
    for weight in (layer.annotators, layer.instance_map.kernel):
        weight.assign(rng.normal(size=weight.shape))
    x = rng.normal(size=(tasks, D)).astype("float32")
    ids = np.stack([rng.permutation(4)[:redundancy] for _ in range(tasks)])
    omega = 1 / (1 + np.exp(-array(layer._log_odds(ids, layer._instance_embeddings(x)))))
    # all annotators follow one confusion, and each an own one; instances say much of the truth
    common = np.array([[0.3, 0.7, 0.0], [0.0, 0.3, 0.7], [0.7, 0.0, 0.3]])
    own = np.stack([(1 - wrong) * np.eye(K) + wrong / K for wrong in (0.1, 0.3, 0.5, 0.9)])
    p = rng.dirichlet(np.full(K, 0.1), size=tasks).clip(1e-3)
    p = (p / p.sum(axis=1, keepdims=True)).astype("float32")
    truth = np.array([rng.choice(K, p=row / row.sum()) for row in p.astype("float64")])
    rows = np.where((rng.random(omega.shape) < omega)[..., None], common[truth][:, None], own[ids, truth[:, None]])
    labels = (rng.random(omega.shape)[..., None] > rows.cumsum(axis=-1)).sum(axis=-1).clip(max=K - 1)

    found_common, found_own, seen = em(p.astype("float64"), omega, ids, labels, rounds=300)
    assert (np.diff(seen) > -1e-9).all()
    assert np.abs(found_common - common).max() < 0.1  # both confusions are found apart, though none is ever seen alone
    assert np.abs(found_own - own).max() < 0.2
    layer.common.assign(np.log(found_common))
    layer.kernel.assign(np.log(found_own))

    def likelihood():
        return float(ops.sum(ops.logsumexp(layer.log_joint(p, ids, labels, x), axis=1)))

    best = likelihood()
    assert best == pytest.approx(seen[-1], rel=1e-5)
    for weight in (layer.common, layer.kernel):
        there = array(weight)
        for _ in range(5):
            weight.assign(there + 0.2 * rng.normal(size=there.shape))
            assert likelihood() < best - 0.1
        weight.assign(there)


@pytest.mark.learning
@each_mixing
def test_the_learnt_common_confusion_finds_the_true_one(mixing):
    crowd = simulated(num_tasks=3000, num_annotators=20, seed=0)
    model = crowd_model(crowd, mixing=mixing, scale=2.0)  # the authors' start: further from a flat matrix
    model.fit(crowd.instances, crowd.annotations, epochs=15, batch_size=64, verbose=0)
    learnt, off = model.crowd.common_confusion(), ~np.eye(6, dtype=bool)
    np.testing.assert_array_equal((learnt * off).argmax(axis=1), (crowd.common * off).argmax(axis=1))
    # mixed probabilities tell the common confusion from the annotators' own ones, mixed logits only roughly
    assert np.abs(learnt - crowd.common).mean() < {"logits": 0.1, "probabilities": 0.04}[mixing]
    # what an annotator says on the whole is better determined than its two parts
    assert np.abs(model.annotator_confusions() - crowd.confusions).mean() < 0.05
    assert np.mean(model.predict(crowd.instances, verbose=0).argmax(axis=1) == crowd.gold) > 0.85


@pytest.mark.slow
@each_mixing
def test_a_trained_model_is_saved_with_its_mean_instance(few, mixing, tmp_path):
    model = crowd_model(few, mixing=mixing, annotator_features=np.eye(10).tolist(), instance_hidden=8)
    model.fit(few.instances, few.annotations, epochs=1, batch_size=64, verbose=0)
    assert np.abs(array(model.crowd.mean_instance)).max() > 0
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.crowd.get_config() == model.crowd.get_config()
    np.testing.assert_array_equal(loaded.annotator_confusions(), model.annotator_confusions())
    np.testing.assert_array_equal(loaded.crowd.common_shares(), model.crowd.common_shares())
    x = few.instances
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_poor_crowds_leave_no_nan():
    # annotator 1 has one label, annotator 2 none, class 3 is never said, task 1 is tied, task 2 has one label
    dense = np.array([[0, -1, -1], [2, 1, -1], [1, -1, -1], [0, -1, -1]])
    x = np.random.default_rng(0).normal(size=(4, D)).astype("float32")
    for mixing in ("logits", "probabilities"):
        keras.utils.set_random_seed(0)
        base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(4, activation="softmax")])
        model = CrowdModel(base, CoNAL(3, mixing=mixing, separation=0.01))
        history = model.fit(x, dense, epochs=2, verbose=0).history
        assert np.isfinite(history["loss"]).all()
        assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_a_million_annotators_are_asked_because_only_those_who_labelled_are_read():
    # dense answers of this batch would be 512 x 1,000,000 x 3 floats: 6 GB
    ids = np.random.default_rng(0).integers(1_000_000, size=(512, 3)).astype("int32")
    p, x = np.full((512, K), 1 / K, dtype="float32"), np.ones((512, D), dtype="float32")
    layer = CoNAL(1_000_000, embedding_size=2)
    layer.build(p.shape, x.shape)
    assert layer(p, annotators=ids, features=x).shape == (512, 3, K)
    assert len(layer.losses) == 1


# === Refusals ===


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_annotators": 0}, "CoNAL: num_annotators must be .*, got 0"),
        ({"embedding_size": 0}, "CoNAL: embedding_size must be .*, got 0"),
        ({"separation": -1}, "CoNAL: separation must be .*, got -1"),
        ({"separation": float("nan")}, "CoNAL: separation must be"),
        ({"mixing": "both"}, "CoNAL: unknown mixing 'both': choose one of logits, probabilities"),
        ({"scale": float("inf")}, "CoNAL: scale must be a number from -10000 to 10000"),
        ({"instance_hidden": 0}, "CoNAL: instance_hidden must be .*, got 0"),
        (
            {"annotator_features": [[1.0]]},
            r"annotator_features must be .* \[5, features\], got shape \(1, 1\)",
        ),
        ({"annotator_features": [[1.0]] * 4 + [[float("nan")]]}, "annotator_features must be finite"),
    ],
)
def test_a_wrong_argument_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CoNAL(**{"num_annotators": R, **arguments})


def test_features_are_needed():
    p, x = inputs()
    with pytest.raises(ValueError, match=r"features must have shape \[batch, features\], got None"):
        CoNAL(R)(p, annotators=IDS)
    layer = made()
    with pytest.raises(ValueError, match=r"CoNAL: the features must have shape .*features=h"):
        layer(p, annotators=IDS)
    with pytest.raises(ValueError, match=r"must have shape \[batch, features\]"):
        CoNAL(R)(p, annotators=IDS, features=x[:, None])


def test_a_layer_without_weights_says_so():
    for ask in (CoNAL(R).annotator_confusions, CoNAL(R).common_confusion, CoNAL(R).common_shares):
        with pytest.raises(ValueError, match="no weights yet"):
            ask()
