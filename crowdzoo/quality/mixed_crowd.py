"""people_and_models: labels from a few people and many models, weighted by how well models match people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from crowdzoo.aggregation import Aggregation, OneCoinDawidSkene, VotesWarning
from crowdzoo.aggregation.base import check_classification, ignored
from crowdzoo.aggregation.engine.block import sum_rows
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError, Setting
from crowdzoo.quality.error_correlation import ErrorCorrelation
from crowdzoo.quality.model_agreement import codes_of

TRUST = 20.0  # annotations of a person that `trusted` counts as
SHARED = 20.0  # annotations that the matrix of all models counts as in each row of a model's own
COIN, COIN_RIGHT = 4.0, 0.5  # annotations a row in the matrix of all models before any are seen, and how many are right
FOLDS = 5
DISCOUNTS = np.linspace(0.0, 1.0, 41)


@dataclass(frozen=True, eq=False)
class PeopleAndModels:
    """Result of `people_and_models`. N tasks, R annotators, K classes.

    Attributes:
        aggregation: posteriors and labels; `confusions` of each annotator by itself, whatever others said;
            `effective_votes` of a task are the people's annotations plus what the models' are worth.
        is_model: whether each annotator is a model, bool [R].
        discount: c in the worth m / (1 + (m - 1) c) of the votes of m models, from 0 (m votes) to 1 (one vote). It is
            the value at which models predict people best, not a correlation: if models err together and people labelled
            few of these tasks, many values predict about equally well.
        correlation: correlation of the errors of two models, with its interval, see `ErrorCorrelation`. The labels do
            not depend on it.
        models_per_task: number of models that labelled each task, int64 [N].
    """

    aggregation: Aggregation
    is_model: NDArray[np.bool_]
    discount: float
    correlation: ErrorCorrelation
    models_per_task: NDArray[np.int64]

    def __repr__(self) -> str:
        models, people = int(self.is_model.sum()), int((~self.is_model).sum())
        return (
            f"PeopleAndModels({len(self.models_per_task):,} tasks, {people:,} people, {models:,} models, "
            f"discount {self.discount:.2f})"
        )

    def next_confusions(self, tasks: NDArray[np.int64], annotators: NDArray[np.int64]) -> NDArray[np.float64]:
        """Confusion matrices of the next answers, for `next_annotations`.

        An answer of a person, or of the first model, follows the annotator's matrix. The next of m models adds the
        share `s = worth(m + 1) - worth(m)` of a vote, with `worth(m) = m / (1 + (m - 1) c)` and c the discount: its
        matrix has weight s, and the rest of its answers does not depend on the class.

        Args:
            tasks: task codes, int [B].
            annotators: annotator codes, int [B, M].

        Returns:
            P(says l | truth k), [B, M, K, K].
        """
        assert self.aggregation.confusions is not None
        assert self.aggregation.class_prior is not None
        confusions = self.aggregation.confusions[annotators]
        already = self.models_per_task[tasks]
        gain = _worth(already + 1, self.discount) - _worth(already, self.discount)
        share = np.where(self.is_model[annotators], gain[:, None], 1.0)[..., None, None]
        blind = np.einsum("k,...kl->...l", self.aggregation.class_prior, confusions)[..., None, :]
        return share * confusions + (1 - share) * blind


@checked(trusted=Number(0, 1, above=True, below=True), seed=SEED)
def people_and_models(
    annotations: Annotations, models: Sequence[object], *, trusted: float = 0.8, seed: int = 0
) -> PeopleAndModels:
    """Aggregates labels of tasks that models labelled, and people some of them.

    A method that treats all annotators alike believes models when they agree, even if they agree for the wrong reasons.
    Here the models' labels do not change the estimates for people:

    1. The people's annotations are aggregated separately (`OneCoinDawidSkene`, with `trusted` as a prior).
    2. The models' confusion matrices are estimated on the tasks that people labelled, each shrunk to the matrix of all
       models (20 annotations per row).
    3. The m votes of models on a task count as m / (1 + (m - 1) c), the form of Kish's effective number. At the
    discount
       c the models, with matrices from other tasks (five-fold), predict people's labels best (likelihood of the
       people's annotations).
    4. Bayes' rule: class prior of the people's tasks, people's annotations, weighted votes of models.

    So models are weighted by how informative they are compared with people, with no weight for guessing. People should
    have labelled a random sample of tasks, as the matrices are estimated on these tasks.

    `correlation` measures how much models err on the same tasks. It needs at least 30 tasks that two people and two
    models labelled, and is otherwise unknown.

    Source: our own, of known parts. L. Kish: Survey Sampling. 1965 (effective number); that labels of a few people tell
    how far to trust many labels of a model is the idea of prediction-powered inference.

    Args:
        annotations: kind classification, K classes.
        models: names of the annotators that are models; all others are people.
        trusted: prior accuracy of people, between 0 and 1, worth 20 annotations per person. If no task has labels of
            two people, nothing else is known about them.
        seed: seed of the five parts of the tasks, and of random ties.

    Raises:
        ConfigError: an unknown name, or an option out of range.
        DataError: wrong kind of labels, or no annotations by people.

    Warns:
        VotesWarning: labels from only the people's annotations are far from the people's votes.
    """
    check_classification(annotations, "people_and_models")
    is_model = np.zeros(annotations.num_annotators, bool)
    is_model[codes_of(annotations, models, f"{Setting('models')}: ")] = True
    by_model = is_model[annotations.annotator_ids]
    people, machines = annotations.select_rows(~by_model), annotations.select_rows(by_model)
    if not len(people):
        raise DataError("people_and_models: no person labelled a task, so nothing says how far to trust the models.")

    coin = OneCoinDawidSkene(right=TRUST * trusted, wrong=TRUST * (1 - trusted), max_iter=1000, seed=seed).fit(people)
    assert coin.confusions is not None
    labelled = people.redundancy > 0
    classes = coin.posteriors[labelled].sum(axis=0) + 1
    prior = classes / classes.sum()
    logs_of_people = _logs(people, coin.confusions)

    parts = np.random.default_rng(seed).permutation(annotations.num_tasks) % FOLDS
    logs_of_models = np.zeros_like(logs_of_people)
    for part in range(FOLDS):
        matrices = _matrices(machines, coin.posteriors, labelled & (parts != part))
        logs_of_models[parts == part] = _logs(machines, matrices)[parts == part]
    matrices = _matrices(machines, coin.posteriors, labelled)
    logs_of_models[~labelled] = _logs(machines, matrices)[~labelled]  # a task is not evidence about itself
    number = machines.redundancy
    shares = [_worth(number, discount) / np.maximum(number, 1) for discount in DISCOUNTS]
    likelihood = np.exp(logs_of_people - logs_of_people.max(axis=1, keepdims=True))
    fits = []
    for share in shares:
        predicted = softmax(np.log(prior) + share[:, None] * logs_of_models, axis=-1)
        fits.append(float(np.log((predicted * likelihood)[labelled].sum(axis=1)).sum()))
    best = int(np.argmax(fits))
    posteriors = softmax(np.log(prior) + logs_of_people + shares[best][:, None] * logs_of_models, axis=-1)
    confusions = np.where(is_model[:, None, None], matrices, coin.confusions)
    with ignored(VotesWarning):  # models may outnumber people, and are meant to be outvoted
        aggregation = Aggregation.of(
            "people-and-models",
            annotations,
            posteriors,
            seed=seed,
            confusions=confusions,
            class_prior=prior,
            effective_votes=people.redundancy + _worth(number, DISCOUNTS[best]),
        )
    right = coin.confusions.trace(axis1=1, axis2=2) / annotations.num_classes
    correlation = ErrorCorrelation.of(people, machines, right, seed)
    return PeopleAndModels(replace(aggregation, notes=()), is_model, float(DISCOUNTS[best]), correlation, number)


def _worth(number: NDArray[np.int64], discount: float) -> NDArray[np.float64]:
    """Number of independent votes that this number of votes is worth."""
    return number / (1 + np.maximum(number - 1, 0) * discount)


def _logs(annotations: Annotations, confusions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-likelihood of each task's annotations by class, [N, K]."""
    logs = np.log(confusions[annotations.annotator_ids, :, annotations.labels])  # [A, K]
    return sum_rows(logs, annotations.task_ids, annotations.num_tasks)


def _matrices(machines: Annotations, posteriors: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Confusion matrices of the models on the known tasks, [R, K, K]; above 0."""
    size, number = machines.num_classes, machines.num_annotators
    rows = known[machines.task_ids]
    cells = machines.annotator_ids[rows] * size + machines.labels[rows]
    said = sum_rows(posteriors[machines.task_ids[rows]], cells, number * size).reshape(number, size, size)
    counts = said.transpose(0, 2, 1)  # [R, true, said]
    wrong = (1 - COIN_RIGHT) / max(size - 1, 1)
    coin = np.where(np.eye(size, dtype=bool), COIN_RIGHT if size > 1 else 1.0, wrong)
    common = counts.sum(axis=0) + COIN * coin
    matrices: NDArray[np.float64] = counts + SHARED * common / common.sum(axis=1, keepdims=True)
    return matrices / matrices.sum(axis=2, keepdims=True)
