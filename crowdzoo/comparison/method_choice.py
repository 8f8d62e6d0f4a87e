"""choose_method: which deep method, and how many epochs, by what models predict of hidden annotations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
from numpy.typing import NDArray

from crowdzoo.comparison.compare import compared_on
from crowdzoo.comparison.deep import Trainings
from crowdzoo.comparison.setup import PARTS, Method
from crowdzoo.comparison.trained import lengths
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.kinds.parts import compared_by
from crowdzoo.quality.wilson import NORMAL_975
from crowdzoo.training.candidates import CANDIDATES, Candidates, check_candidates, compared, title_of
from crowdzoo.training.held_out_annotations import FEWEST
from crowdzoo.training.length import num_labelled, with_length
from crowdzoo.training.settings import InstanceSettings

ENOUGH = 200  # hidden tasks; further parts are hidden until there are as many


@dataclass(frozen=True)
class MethodCandidate:
    """A deep method that was tried.

    Attributes:
        settings: of its training, with the number of epochs that predicted best.
        score: mean log-probability of a hidden annotation, nats; with gold what `crowdzoo.compare` says.
        behind: how much less that is than the best candidate's.
        error: standard error of `behind`, where tasks are drawn again.
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
        failed: those that could not be trained, and why.
    """

    candidates: tuple[MethodCandidate, ...]
    num_hidden: int
    failed: Mapping[str, str]

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
    """Chooses a deep method and the length of its training: what `crowdzoo.compare` finds best.

    A fifth of the labelled tasks is hidden, and each candidate is trained on the others. Where that hides fewer than
    200 tasks, further fifths are hidden in turns. Then the model's class probabilities p of a hidden task i are asked
    for the probability of its annotations, `sum_k p_ik^(1/T) prod_r pi_r[k, y_ir]` (p to the power of 1/T normalised).
    The confusion matrices pi of the annotators are those of `hierarchical-dawid-skene` on all annotations, and so the
    same for each candidate. The temperature T of a candidate is the one that suits the hidden annotations of a fifth
    best, so that a model is not punished for being too sure. A training is looked at after a quarter, half, three
    quarters and all of its epochs. The candidate and the length with the highest score win.

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
        gold: by the rows of x, as for `crowdzoo.compare`. Where it is given, tasks with gold are hidden, and answers
            are scored against it.
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
    kind = compared_by(annotations, None)
    if annotations.kind != settings.kind or not compared(annotations.label_kind):
        raise DataError("choose_method: compares methods for classes or for ratings; these are labels of another kind.")
    number = num_labelled(annotations)
    if number < FEWEST:
        raise DataError(
            f"choose_method: {number} labelled tasks are too few to hide some; name a method, or label at least "
            f"{FEWEST}."
        )
    length = with_length(settings, number)
    tried = check_candidates(length, compared(annotations.label_kind) if candidates is None else candidates)
    setup = Trainings(kind, annotations, gold, x, None, length, tasks, None, callbacks)
    setup.num_parts, setup.lengths = _rounds(len(setup.asked)), lengths(length.epochs)
    methods = [Method(each.method, each.arguments) for each in tried]
    found = compared_on(setup, methods, [settings.seed], on_run=lambda done, total: on_training())
    best: dict[str, MethodCandidate] = {}
    for row in found.frame.dropna(subset="score").to_dict("records"):
        method = found.methods[row["method"]]
        chosen = replace(length, method=method.name, arguments=dict(method.arguments), epochs=method.epochs)
        error = (row["behind_best_high"] - row["behind_best_low"]) / (2 * NORMAL_975)
        best.setdefault(title_of(chosen), MethodCandidate(chosen, row["score"], -row["behind_best"], error))
    failed = found.frame[found.frame["score"].isna()]
    reasons = {found.methods[title].name: note for title, note in failed[["method", "notes"]].itertuples(index=False)}
    return MethodChoice(tuple(best.values()), found.num_tasks, reasons)


def _rounds(num_tasks: int) -> int:
    """How many of the parts are hidden in turns."""
    return min(PARTS, -(-ENOUGH * PARTS // max(1, num_tasks)))
