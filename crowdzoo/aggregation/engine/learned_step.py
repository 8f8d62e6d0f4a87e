"""The learned step of `Robust`: a small network that computes the evidence of annotators' answers from counts.

Everything is written for an array library `xp` (NumPy, or `keras.ops` to train the network), with any leading axes, and
is equivariant to renumbering of tasks, annotators and classes.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

LEAST = 1e-6
MANY = 700.0  # annotations by an annotator; larger numbers, unseen in training, are capped
LOWEST = -30.0  # log evidence of one answer against a class


def _dense(xp: Any, weights: Mapping[str, Any], name: str, x: Any) -> Any:
    return xp.matmul(x, weights[f"{name}/kernel"]) + weights[f"{name}/bias"]


def _relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0.0)


def _softplus(xp: Any, x: Any) -> Any:
    return xp.logaddexp(x, xp.zeros_like(x))


def _logit(xp: Any, p: Any) -> Any:
    return xp.log(p + LEAST) - xp.log(1 - p + LEAST)


def softmax(xp: Any, z: Any) -> Any:
    """Probabilities along the last axis."""
    e = xp.exp(z - xp.max(z, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


class Crowd(NamedTuple):
    """Answers of a crowd, without any model. A pair is an annotator and a class that the annotator gave; B crowds.

    Attributes:
        annotators: annotator of each pair, int [U].
        labels: class of each pair, int [U].
        crowds: crowd of each pair, int [U].
        said: number of answers of each pair, [U].
        agree: for those, the share of the task's other annotators who gave the same class, summed, [U].
        agreed: number of those whose task has other annotators, [U].
        facts: sizes and densities of the crowds from `facts_of`, [B, 6].
        num_annotators: R, of all crowds together.
        num_classes: K, of each crowd.
    """

    annotators: Any
    labels: Any
    crowds: Any
    said: Any
    agree: Any
    agreed: Any
    facts: Any
    num_annotators: Any
    num_classes: Any


def facts_of(xp: Any, num_classes: Any, annotations: Any, tasks: Any, annotators: Any, single: Any) -> Any:
    """Features of a crowd from K, A, and numbers of annotated tasks, active annotators and single-annotation tasks."""
    return xp.stack(
        [
            xp.log(num_classes) / 2,
            xp.log(annotations / tasks) / 2,
            xp.log(xp.minimum(annotations / annotators, MANY)) / 3 - 1,
            xp.log(annotators) / 3 - 1,
            annotations / (tasks * annotators),
            single / tasks,
        ],
        axis=-1,
    )


def evidence(
    xp: Any, weights: Mapping[str, Any], step: int, counts: Any, classes: Any, crowd: Crowd, total: Callable[..., Any]
) -> Any:
    """Computes the evidence of each answer of each annotator for each class.

    Args:
        xp: array library.
        weights: kernels and biases by name.
        step: number of the step, which selects the layers.
        counts: expected number of times the truth is k when a pair's annotator gave its class, [U, K].
        classes: expected number of tasks of each class, [B, K].
        crowd: data that do not change between steps.
        total: function that sums rows by number, as `keras.ops.segment_sum`.

    Returns:
        Log evidence of each pair, up to a constant along the last axis, [U, K]; log prior [B, K]; context of the crowds
        [B, C].
    """
    who, label, at, said = crowd.annotators, crowd.labels, crowd.crowds, crowd.said
    k, num_annotators, num_crowds = crowd.num_classes, crowd.num_annotators, xp.shape(crowd.facts)[0]
    eye = xp.where(label[:, None] == xp.arange(k)[None, :], 1.0, 0.0)
    num_classes = xp.sum(xp.ones_like(classes[:1]))
    log_classes = xp.log(num_classes + 0.5)

    def of_annotators(x: Any) -> Any:
        return total(x, who, num_annotators)

    def back(x: Any) -> Any:
        return xp.take(x, who, axis=0)

    def of_crowds(x: Any) -> Any:
        return total(x, at, num_crowds)

    def there(x: Any) -> Any:
        return xp.take(x, at, axis=0)

    # === Of the crowd ===
    size = of_crowds(said)
    diagonal = xp.sum(counts * eye, axis=-1)
    accuracy = (of_crowds(diagonal) + 1) / (size + 2)
    prior = (classes + 1) / xp.sum(classes + 1, axis=-1, keepdims=True)
    share = (of_crowds(said[:, None] * eye) + 1) / (size[:, None] + num_classes)
    odd = (1 - accuracy) / xp.maximum(num_classes - 1, 1.0)
    place = at * k + label  # index of a class that a crowd gave
    diag = xp.where(xp.arange(k)[:, None] == xp.arange(k)[None, :], 1.0, 0.0)
    coin = diag * accuracy[:, None, None] + (1 - diag) * odd[:, None, None]
    common = xp.reshape(total(counts, place, num_crowds * k), (num_crowds, k, k)) + 2 * num_classes * coin
    common = common / xp.sum(common, axis=1, keepdims=True)  # [crowd, said, true]
    common = xp.take(xp.reshape(common, (num_crowds * k, k)), place, axis=0)
    crowd_agree = (of_crowds(crowd.agree) + 1) / (of_crowds(crowd.agreed) + 2)
    agree_said = of_crowds(crowd.agree[:, None] * eye) + crowd_agree[:, None]
    agree_said = agree_said / (of_crowds(crowd.agreed[:, None] * eye) + 1)
    precise = (of_crowds(diagonal[:, None] * eye) + accuracy[:, None]) / (of_crowds(said[:, None] * eye) + 1)

    def said_there(x: Any) -> Any:
        return xp.sum(there(x) * eye, axis=-1)

    # === Of annotators ===
    n = back(of_annotators(said))
    per_class = back(of_annotators(counts))
    skill = (back(of_annotators(diagonal)) + 4 * there(accuracy)) / (n + 4)
    portion = said / n
    entropy = back(of_annotators(-portion * xp.log(portion))) / log_classes
    used = back(of_annotators(xp.ones_like(said)))
    lean = xp.log(portion / said_there(share))
    divergence = back(of_annotators(portion * lean))
    agree_all = back(of_annotators(crowd.agree)) + 4 * there(crowd_agree)
    agree_all = agree_all / (back(of_annotators(crowd.agreed)) + 4)
    agreement = _logit(xp, (crowd.agree + 2 * said_there(agree_said)) / (crowd.agreed + 2))
    precision = _logit(xp, (diagonal + 2 * said_there(precise)) / (said + 2))
    recalled = (diagonal + 2 * xp.sum(common * eye, axis=-1)) / (xp.sum(per_class * eye, axis=-1) + 2)
    log_share, log_prior = xp.log(said_there(share)), xp.log(said_there(prior))
    features = xp.stack(
        [
            xp.log1p(xp.minimum(n, MANY)) / 3 - 1,
            xp.log1p(xp.minimum(said, MANY)) / 3 - 1,
            _logit(xp, skill),
            precision,
            precision - log_prior / 2 - 1,
            _logit(xp, recalled),
            agreement,
            _logit(xp, agree_all) - there(_logit(xp, crowd_agree)),
            agreement - _logit(xp, xp.exp(log_share)),
            lean,
            entropy,
            xp.where(used == 1, 1.0, 0.0),
            used / num_classes,
            divergence,
            log_share / 2,
            log_prior / 2,
        ],
        axis=-1,
    )

    def mean(x: Any) -> Any:
        return of_crowds(x * said) / size

    now = xp.stack(
        [
            _logit(xp, accuracy),
            _logit(xp, crowd_agree),
            4 * (crowd_agree - accuracy**2 - (1 - accuracy) * odd),
            xp.max(prior, axis=-1),
            xp.max(share, axis=-1),
            -xp.sum(prior * xp.log(prior), axis=-1) / log_classes,
            -xp.sum(share * xp.log(share), axis=-1) / log_classes,
            2 * mean(xp.where(used == 1, 1.0, 0.0)),
            5 * xp.sqrt(mean((skill - there(accuracy)) ** 2) + LEAST),
            mean(divergence),
            2 * xp.sum(prior * xp.log(prior / share), axis=-1),
        ],
        axis=-1,
    )
    # === The network ===
    first = _relu(xp, _dense(xp, weights, f"{step}/first", features))
    seen = of_crowds((said / there(size))[:, None] * first)
    context = _relu(xp, _dense(xp, weights, f"{step}/context", xp.concatenate([seen, now, crowd.facts], axis=-1)))
    second = _relu(xp, _dense(xp, weights, f"{step}/second", xp.concatenate([first, there(context)], axis=-1)))
    mix = _softplus(xp, _dense(xp, weights, f"{step}/mix", second))
    odds = _logit(xp, skill) + xp.log(xp.maximum(num_classes - 1, 1.0))
    expected = there(prior) * n[:, None]
    parts = (
        eye,
        eye * odds[:, None],
        xp.log(common),
        xp.log((counts + common) / (per_class + 1)),
        xp.log((counts + 8 * common) / (per_class + 8)),
        xp.log((counts + 2 * common) / (expected + 2)),
        eye * (precision - _logit(xp, xp.exp(log_prior)))[:, None],
    )
    table = sum(mix[:, j : j + 1] * part for j, part in enumerate(parts))
    head = _softplus(xp, _dense(xp, weights, f"{step}/prior", context))
    log_prior = head[:, :1] * xp.log(prior) + head[:, 1:] * xp.log(share)
    return xp.maximum(table - xp.max(table, axis=-1, keepdims=True), LOWEST), log_prior, context


def readout(xp: Any, weights: Mapping[str, Any], sums: Any, votes: Any, context: Any) -> Any:
    """Computes posteriors of tasks.

    Args:
        xp: array library.
        weights: kernels and biases by name.
        sums: log evidence with the prior, summed over a task's annotations, [N, K].
        votes: number of votes, [N, K].
        context: context of the crowd, [N, C].

    Returns:
        Class probabilities, [N, K]: a mixture of the tempered evidence and of tempered votes.
    """
    p = softmax(xp, sums)
    n = xp.sum(votes, axis=-1)
    share = votes / xp.maximum(n, 1.0)[..., None]
    top, most = xp.max(p, axis=-1), xp.max(share, axis=-1)
    chosen = xp.where(p >= top[..., None], 1.0, 0.0)
    voted = xp.where(share >= most[..., None], 1.0, 0.0)
    of_chosen = xp.sum(chosen * share, axis=-1) / xp.sum(chosen, axis=-1)
    of_voted = xp.sum(voted * p, axis=-1) / xp.sum(voted, axis=-1)
    tied = xp.sum(voted, axis=-1) > 1
    behind = xp.where(tied, most, xp.max(share * (1 - voted), axis=-1))
    features = xp.stack(
        [
            xp.log1p(n) - 1,
            top,
            xp.max(p * (1 - chosen), axis=-1),
            most,
            behind,
            of_chosen,
            most - of_chosen,
            of_voted,
            -xp.sum(share * xp.log(share + LEAST), axis=-1),
            -xp.sum(p * xp.log(p + LEAST), axis=-1),
            -xp.log(1 - top + 1e-4) / 3,
            xp.where(n == 1, 1.0, 0.0),
        ],
        axis=-1,
    )
    hidden = _relu(xp, _dense(xp, weights, "out/first", xp.concatenate([features, context], axis=-1)))
    hidden = _relu(xp, _dense(xp, weights, "out/second", hidden))
    last = _dense(xp, weights, "out/last", hidden)
    part = 1 / (1 + xp.exp(-last[..., 1:2]))
    plain = votes + 1 / xp.sum(xp.ones_like(votes[:1]))
    voting = softmax(xp, xp.log(plain) * xp.exp(last[..., 2:]))
    return (1 - part) * softmax(xp, _softplus(xp, last[..., :1]) * sums) + part * voting
