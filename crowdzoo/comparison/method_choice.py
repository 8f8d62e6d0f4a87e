"""choose_method: which deep method, and how many epochs, by what models predict of hidden annotations."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.registry import create
from crowdzoo.comparison.measures import measure_of
from crowdzoo.comparison.setup import PARTS
from crowdzoo.comparison.trained import lengths, trained_answers
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.training.candidates import CANDIDATES, Candidates, check_candidates, compared
from crowdzoo.training.faults import NotLearnedWarning
from crowdzoo.training.held_out_annotations import FEWEST
from crowdzoo.training.instance_training import given_values
from crowdzoo.training.length import num_labelled, with_length
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import InstanceSettings
from crowdzoo.training.training_loop import paired

ENOUGH = 200  # hidden tasks; further parts are hidden until there are as many
LINE = "choose_method(settings, x, annotations, tasks={})"


@dataclass(frozen=True)
class MethodCandidate:
    """A deep method that was tried.

    Attributes:
        settings: of its training, with the number of epochs that predicted best.
        score: mean log-probability of a hidden annotation, nats; with gold, accuracy on hidden tasks.
        behind: how much less that is than the best candidate's.
        error: standard error of `behind`, tasks taken as independent.
    """

    settings: InstanceSettings
    score: float
    behind: float
    error: float


@dataclass(frozen=True)
class MethodChoice:
    """What was tried, and what is to be trained.

    Attributes:
        candidates: the best first.
        num_hidden: number of tasks whose annotations were hidden.
    """

    candidates: tuple[MethodCandidate, ...]
    num_hidden: int

    @property
    def settings(self) -> InstanceSettings:
        """Those of the best candidate."""
        return self.candidates[0].settings


def num_trainings(num_tasks: int, candidates: Sequence[Any] = CANDIDATES) -> int:
    """How many trainings `choose_method` makes of so many labelled tasks."""
    return _rounds(num_tasks) * len(candidates)


def choose_method(
    settings: InstanceSettings,
    x: Any,
    annotations: Annotations,
    *,
    tasks: Any = None,
    candidates: Candidates | None = None,
    gold: NDArray[Any] | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    on_training: Callable[[], Any] = lambda: None,
) -> MethodChoice:
    """Chooses a deep method and the length of its training without gold.

    A fifth of the labelled tasks is hidden, and each candidate is trained on the others. Where that hides fewer than
    200 tasks, further fifths are hidden in turns. Then the model's class probabilities p of a hidden task i are asked
    for the probability of its annotations, `sum_k p_ik^(1/T) prod_r pi_r[k, y_ir]` (p to the power of 1/T normalised).
    The confusion matrices pi of the annotators are those of `hierarchical-dawid-skene` on all annotations, and so the
    same for each candidate. The temperature T of a candidate is the one that suits the hidden annotations best, so that
    a model is not punished for being too sure. A training is looked at after a quarter, half, three quarters and all of
    its epochs. The candidate and the length with the highest score win.

    Of ratings the truth is drawn from a normal distribution around the prediction, and the annotators' biases and
    precisions are those of `rating-em`; its deviation stands in the place of T, and a level, which biases leave open,
    is chosen with it.

    Hidden annotations say which model predicts annotators best. Where annotators agree on what is false, that is not
    the model that predicts the truth best.

    Args:
        settings: how to train: base, epochs (None chooses; the most that are tried), batch size, seed. Method and
            arguments are not used.
        x: instances, as for `train`.
        annotations: classes or ratings.
        tasks: ids of the rows of x; see `CrowdModel.fit`.
        candidates: methods and their hyperparameters; None takes those of `crowdzoo.training.candidates`. "aggregated"
            is trained on the posteriors of method robust, of ratings on the estimates of rating-em.
        gold: true classes, codes `[N]` by the rows of x, -1 where unknown. Where it is given, a score is the share of
            hidden tasks with gold whose most probable class is right, in place of the likelihood of annotations.
        callbacks: Keras callbacks of each training.
        on_training: called after each training.

    Returns:
        The choice; train with its `settings`. On one CPU the same arguments give the same choice.

    Raises:
        ConfigError: no candidates, or an unknown method or hyperparameter.
        DataError: other labels than classes and ratings, fewer than 20 labelled tasks, or what `train` raises.

    Source:
        Choice by the likelihood of held-out data is cross-validation (M. Stone: Cross-validatory choice and assessment
        of statistical predictions. JRSS B 36, 1974). For learning from crowds without gold see M. Herde et al.:
        dopanim, crowd-hpo (2024 and 2025), which compare criteria; this criterion is ours.
    """
    measure = measure_of(annotations, "choose_method")
    if annotations.kind != settings.kind:
        raise DataError("choose_method: compares methods for classes or for ratings; these are labels of another kind.")
    if gold is not None and not annotations.label_kind.has_classes:
        raise DataError("choose_method: gold compares methods for classes; leave it out, ratings are compared without.")
    of_annotations = replace(settings, method="crowdsourced-layer", arguments={})
    x, annotations, _ = paired(of_annotations, given_values(settings, x), annotations, tasks, LINE)
    labelled = np.flatnonzero(annotations.redundancy > 0)
    if len(labelled) < FEWEST:
        raise DataError(
            f"choose_method: {len(labelled)} labelled tasks are too few to hide some; name a method, or label at least "
            f"{FEWEST}."
        )
    length = with_length(settings, num_labelled(annotations))
    tried = check_candidates(length, compared(annotations.label_kind) if candidates is None else candidates)
    scored = measure.hidden(annotations)
    order = np.random.default_rng(settings.seed).permutation(labelled)
    hidden = [np.sort(part) for part in np.array_split(order, PARTS)[: _rounds(len(labelled))]]
    asked = np.concatenate(hidden)
    epochs = lengths(length.epochs)
    found: list[list[list[NDArray[np.float64]]]] = [[[] for _ in epochs] for _ in tried]
    for part in hidden:
        kept = np.setdiff1d(labelled, part)
        soft = None
        for own, answers in zip(tried, found, strict=True):
            if own.method == AGGREGATED and soft is None:
                aggregator = create(measure.final, kind=annotations.kind)
                soft = measure.targets(measure.answers(aggregator.fit(annotations.select_tasks(kept))))
            with warnings.catch_warnings():  # which the score says, too
                warnings.simplefilter("ignore", NotLearnedWarning)
                given = trained_answers(own, x, annotations, kept, part, soft, epochs, callbacks)
            for place, answer in enumerate(given):
                answers[place].append(answer)
            on_training()
    number: Any = annotations.redundancy[asked].sum()
    if gold is not None:
        known, truth = gold[asked] >= 0, gold[asked]
        number = known.sum()
        if not number:
            raise DataError("choose_method: no hidden task has gold. Name the gold of more tasks, or leave gold out.")

    def judged(answers: NDArray[np.float64]) -> NDArray[np.float64]:
        """A number for each hidden task, whose sum over `number` is the score."""
        if gold is None:
            return scored(answers, asked)
        return measure.right(answers[known], truth[known])

    best = []
    for own, per_length in zip(tried, found, strict=True):
        found_scores = [judged(np.concatenate(answers)) for answers in per_length]
        chosen = int(np.argmax([score.sum() for score in found_scores]))
        best.append((replace(own, epochs=epochs[chosen]), found_scores[chosen]))
    best.sort(key=lambda each: -each[1].sum())
    described = []
    for own, score in best:
        gap = best[0][1] - score
        error = gap.std(ddof=1) * np.sqrt(len(gap))
        described.append(
            MethodCandidate(own, float(score.sum() / number), float(gap.sum() / number), float(error / number))
        )
    return MethodChoice(tuple(described), len(asked))


def _rounds(num_tasks: int) -> int:
    """How many of the parts are hidden in turns."""
    return min(PARTS, -(-ENOUGH * PARTS // max(1, num_tasks)))
