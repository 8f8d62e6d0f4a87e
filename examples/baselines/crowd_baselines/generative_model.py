"""GenerativeModel: the label model of Snorkel until version 0.7."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from crowdzoo import register
from crowdzoo.aggregation import Aggregation, Aggregator
from crowdzoo.checks import COUNT, FLAG, Number, setting


@register("aggregator", "generative-model")
@dataclass(frozen=True)
class GenerativeModel(Aggregator):
    """A factor graph with a weight of accuracy and one of propensity per annotator, who are labelling functions.

    Annotator r says the true class with odds `exp(p_r + w_r)`, each other class with odds `exp(p_r - w_r)`, and nothing
    with odds 1. Classes are equally frequent. The gradient of the marginal likelihood is followed for a number of
    passes over the tasks. Snorkel estimates it from Gibbs samples; here it is computed exactly, and all tasks of a pass
    make one step. With Snorkel's small step the weights stay near their start, and the result near the majority vote.

    Args:
        epochs: passes over the tasks.
        step_size: step per task. A weight of accuracy takes two, because Snorkel visits its factor from both ends.
        ridge: strength of the pull of the weights to their start, as a rate per step.
        start: weight of accuracy at the start.
        propensity: whether weights of propensity are learnt; otherwise they are 0.

    Source:
        A. Ratner, C. De Sa, S. Wu, D. Selsam, C. Ré: Data Programming. NIPS 2016. A. Ratner et al.: Snorkel. VLDB 2018.
        The settings are Snorkel's defaults with `lf_propensity=True`, as in the code of Platanios et al. (2020).

    Needs:
        Annotators (rules, models) that mostly are better than chance.
    """

    whole_table = True
    unanimous_probability = 0.98  # four weights of 1 give e^8 to 2

    epochs: int = setting(30, COUNT)
    step_size: float = setting(1e-4, Number(0, 1))
    ridge: float = setting(0.1, Number(0, 1e6))
    start: float = setting(1.0, Number(0, 100))
    propensity: bool = setting(True, FLAG)

    def fit(self, annotations):
        """Estimates the weights and then the classes; `skills` are the weights of accuracy."""
        task, annotator, label = annotations.task_ids, annotations.annotator_ids, annotations.labels
        people, classes = annotations.num_annotators, annotations.num_classes
        tasks = int((annotations.redundancy > 0).sum())  # a task without labels tells nothing
        number = np.bincount(annotator, minlength=people)
        accuracy, propensity = np.full(people, self.start), np.zeros(people)
        for _ in range(self.epochs):
            agreeing = np.bincount(annotator, self._posteriors(annotations, accuracy)[task, label], people)
            right, wrong = np.exp(propensity + accuracy), (classes - 1) * np.exp(propensity - accuracy)
            scale = tasks / (1 + right + wrong)  # expected numbers of labels are scale * right and scale * wrong
            gradient = (2 * agreeing - number) - scale * (right - wrong)
            shrink = (1 + self.ridge * self.step_size) ** -tasks
            accuracy = self.start + shrink**2 * (accuracy - self.start) + 2 * self.step_size * gradient
            if self.propensity:
                propensity = shrink * propensity + self.step_size * (number - scale * (right + wrong))
        return Aggregation.of(
            "generative-model", annotations, self._posteriors(annotations, accuracy),
            skills=accuracy, class_prior=np.full(classes, 1 / classes), num_iterations=self.epochs,
        )  # fmt: skip

    def _posteriors(self, annotations, accuracy):
        """Class probabilities [N, K] given the weights: those of propensity are alike for all classes."""
        joint = np.zeros((annotations.num_tasks, annotations.num_classes))
        np.add.at(joint, (annotations.task_ids, annotations.labels), 2 * accuracy[annotations.annotator_ids])
        return softmax(joint, axis=1)
