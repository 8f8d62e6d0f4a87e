"""MeTaL: the label model of Snorkel MeTaL, and of Snorkel from version 0.9."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from crowdzoo import register
from crowdzoo.aggregation import Aggregation, Aggregator
from crowdzoo.checks import COUNT, SEED, Number, setting


@register("aggregator", "metal")
@dataclass(frozen=True)
class MeTaL(Aggregator):
    """Conditional label probabilities that explain how often two annotators gave a task two labels.

    `mu[r, l, k]` is P(r says l | truth k), saying nothing included in the rest. Gradient descent with momentum on
    `sum over r != s of |O_rs - mu_r P mu_s'|^2 + sum_r |mu_r p - O_r|^2`, where O are shares of tasks, p is uniform and
    P its diagonal matrix. The posteriors are those of naive Bayes; a missing label says nothing.

    Args:
        epochs: steps.
        learning_rate: of a step.
        momentum: of a step.
        precision: P(truth l | label l) at the start, which is then multiplied by one random number.
        floor: least probability in the end. None is .01, or one over the power of ten above the number of tasks if
            this is less, as in Snorkel 0.9; snorkel-metal 0.5 has .01.
        seed: of this number, which is Snorkel's for the same seed.

    Source:
        A. Ratner, B. Hancock, J. Dunnmon, F. Sala, S. Pandey, C. Ré: Training Complex Models with Multi-Task Weak
        Supervision. AAAI 2019. The defaults are those of Snorkel 0.9.

    Needs:
        Annotators (rules, models) that share tasks. Memory for (R K)^2 numbers.
    """

    whole_table = True

    epochs: int = setting(100, COUNT)
    learning_rate: float = setting(0.01, Number(0, 1))
    momentum: float = setting(0.9, Number(0, 1, below=True))
    precision: float = setting(0.7, Number(0, 1, above=True))
    floor: float | None = setting(None, Number(1e-12, 0.5, optional=True))
    seed: int = setting(0, SEED)

    def fit(self, annotations):
        """Estimates the probabilities and then the classes; `skills` are P(right | a label)."""
        people, classes = annotations.num_annotators, annotations.num_classes
        tasks = max(int((annotations.redundancy > 0).sum()), 1)  # a task without labels tells nothing
        said = np.zeros((annotations.num_tasks, people * classes))
        said[annotations.task_ids, annotations.annotator_ids * classes + annotations.labels] = 1
        moments = said.T @ said / tasks
        shares, own = np.diag(moments).copy(), np.kron(np.eye(people), np.ones((classes, classes))) > 0
        mu = np.tile(np.eye(classes), (people, 1)) * np.clip(shares * self.precision * classes, 0, 1)[:, None]
        mu *= np.random.RandomState(self.seed).random_sample()
        velocity = np.zeros_like(mu)
        for _ in range(self.epochs):
            pairs = np.where(own, 0.0, mu @ mu.T / classes - moments)
            gradient = 4 * pairs @ mu / classes + 2 * (mu.mean(axis=1) - shares)[:, None] / classes
            velocity = self.momentum * velocity + gradient
            mu = mu - self.learning_rate * velocity
        least = min(0.01, 10.0 ** -np.ceil(np.log10(tasks))) if self.floor is None else self.floor
        mu = np.clip(mu, least, 1 - least).reshape(people, classes, classes)
        mu = mu[:, :, linear_sum_assignment(-mu.sum(axis=0))[1]]  # the order of classes that trusts annotators most
        posteriors = softmax(said @ np.log(mu.reshape(-1, classes)), axis=1)
        coverage = np.maximum(shares.reshape(people, classes).sum(axis=1), 1e-12)
        right = np.einsum("rkk->r", mu) / classes
        return Aggregation.of(
            "metal", annotations, posteriors, seed=self.seed, class_prior=np.full(classes, 1 / classes),
            skills=np.clip(right / coverage, 1e-6, 1.0), num_iterations=self.epochs,
        )  # fmt: skip
