"""PreferenceAggregation: the result of every aggregator of preferences."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Columns, Result, check_annotations, names_and_counts
from crowdzoo.aggregation.engine.clusters import linked_groups
from crowdzoo.aggregation.engine.comparisons import FORMS, PairParams, answer_probabilities
from crowdzoo.data.label_kinds import PREFERENCE
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.result_files import ReadResult
    from crowdzoo.data.annotations import Annotations


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PreferenceAggregation(Result):
    """Result for preferences: one score per task, and what was learned about the annotators.

    `to_parquet` writes `tasks.parquet` (task, score, rank, group, annotations), `pairs.parquet` (left, right,
    annotations, and the probabilities of the answers), `annotators.parquet` and `summary.json`.

    With N tasks, R annotators, P compared pairs, K answers (left, right and, if anybody gave it, equal):

    Attributes:
        scores: log odds of being preferred to a task of score 0, [N]; higher is better. Tasks that were never compared
            have 0.
        ranks: rank of a task within its group, int64 [N]; 1 is the best, equal scores (to 1e-9) have the same rank.
        groups: group of a task, int64 [N]; chains of comparisons link all tasks of a group. Scores and ranks of
            different groups are not comparable.
        pairs: the compared pairs, task codes on the left and on the right, int64 [P, 2].
        annotations_per_pair: int64 [P].
        ties: "none" (nobody said "equal", or it is half a win for each), "davidson" or "rao-kupper".
        tie: parameter of "equal" shared by all annotators: log of Davidson's nu, or log of Rao and Kupper's t.
        bias: position bias shared by all annotators, in units of the scores; above 0 they prefer the left.
        slopes: how strongly an annotator's answers follow the scores, [R]; like the following, None if the method has
            none.
        biases: position bias of each annotator, in addition to `bias`, [R].
        tie_biases: parameter of "equal" of each annotator, in addition to `tie`, [R].
        shares: probability that an annotator's answer follows the scores, [R].
        guesses: probabilities of the answers of an annotator that do not follow the scores, [R, K].
        log_likelihood: log-probability of the annotations, without priors, nats.
        effects: effects of covariates by name: log odds per unit of difference between left and right, and the standard
            error, from the curvature of the posterior in all parameters. A 95 % interval is 1.96 standard errors on
            either side. Probabilities are for sides with equal covariates.
        annotations_per_task: number of comparisons per task, int64 [N].
        annotations_per_annotator: int64 [R].
        skills: `slopes` or `shares`, whichever the method has, [R].
        method: name of the method, as in `crowdzoo.aggregation.PREFERENCE_METHODS`.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import BradleyTerry
        >>> preferences = Annotations.from_arrays(
        ...     ["a", "a", "b"], ["ann", "bob", "cem"], ["left"] * 3, right=["b", "c", "c"], kind="preference"
        ... )
        >>> result = BradleyTerry().fit(preferences)
        >>> result.ranks.tolist()  # of a, b and c
        [1, 2, 3]
        >>> bool(result.probabilities([0], [2])[0, 0] > 0.5)  # whether a is likely to be preferred to c
        True
    """

    files: ClassVar[tuple[str, ...]] = ("tasks.parquet", "pairs.parquet", "annotators.parquet", "summary.json")
    kind: ClassVar[str] = "preference"
    answered: ClassVar = (["task"], "score", "agg_score")

    scores: NDArray[np.float64]
    groups: NDArray[np.int64]
    pairs: NDArray[np.int64]
    annotations_per_pair: NDArray[np.int64]
    ties: str = "none"
    tie: float = 0.0
    bias: float = 0.0
    slopes: NDArray[np.float64] | None = None
    biases: NDArray[np.float64] | None = None
    tie_biases: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None
    guesses: NDArray[np.float64] | None = None
    log_likelihood: float = 0.0
    effects: dict[str, tuple[float, float]] = field(default_factory=dict)
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        method: str,
        annotations: Annotations,
        params: PairParams,
        ties: str,
        fitted: Collection[str],
        **fields: Any,
    ) -> PreferenceAggregation:
        """Creates the result for a table of annotations, adding its names and counts.

        Args:
            method: name of the method.
            annotations: N tasks, R annotators.
            params: parameters of the model.
            ties: one of `FORMS`.
            fitted: names of the parameters that the method fits; "common" is the position bias.
            **fields: other attributes by name, such as `history`.
        """
        assert annotations.right_ids is not None
        pairs, table = annotations.pairs()
        groups = linked_groups(annotations.task_ids, annotations.right_ids, annotations.num_tasks)
        of_annotators: dict[str, Any] = {name: getattr(params, name) for name in fitted if name != "common"}
        if "shares" in of_annotators:
            of_annotators["shares"] = 1 / (1 + np.exp(-np.clip(params.shares, -700, 700)))
        if "guesses" in of_annotators:
            logs = params.guesses - np.logaddexp.reduce(params.guesses, axis=1, keepdims=True)
            of_annotators["guesses"] = np.exp(logs)
        return cls(
            method=method,
            scores=params.scores,
            groups=groups,
            pairs=pairs,
            annotations_per_pair=table.redundancy,
            ties=ties,
            tie=float(params.common[1]),
            bias=float(params.common[0]),
            **of_annotators,
            skills=of_annotators.get("slopes", of_annotators.get("shares")),
            notes=_notes(groups, annotations.redundancy),
            **names_and_counts(annotations),
            **fields,
        )

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Rank of a task within its group, int64 [N]."""
        order = np.lexsort((-self.scores, self.groups))
        group, score, place = self.groups[order], self.scores[order], np.arange(len(order))
        starts = np.maximum.accumulate(np.where(np.diff(group, prepend=-1) != 0, place, 0))
        new = (np.diff(group, prepend=-1) != 0) | ~(np.abs(np.diff(score, prepend=np.nan)) <= TIED)
        first = np.maximum.accumulate(np.where(new, place, 0))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = first - starts + 1
        return ranks

    @property
    def answers(self) -> tuple[str, ...]:
        """Names of the answers with a probability."""
        return ("left", "right") if self.ties == "none" else ("left", "right", "equal")

    def probabilities(self, left: ArrayLike, right: ArrayLike) -> NDArray[np.float64]:
        """Returns how likely a typical annotator without position bias prefers the left, the right, or neither.

        Args:
            left: task codes, int [n].
            right: task codes, int [n].

        Returns:
            [n, K], in the order of `answers`; rows sum to one.
        """
        lead = self.scores[np.asarray(left)] - self.scores[np.asarray(right)]
        return answer_probabilities(lead, self.tie, self.ties)

    def of_pairs(self, annotations: Annotations) -> NDArray[np.float64]:
        """Returns `probabilities` of the pairs that preferences compare.

        Args:
            annotations: preferences for tasks of this result, K answers, P distinct pairs.

        Returns:
            [P, K], in the order of `annotations.pairs()`; 0 for an answer that this result does not have.
        """
        probabilities = self.probabilities(*annotations.pairs()[0].T)
        return np.pad(probabilities, [(0, 0), (0, annotations.num_classes - probabilities.shape[1])])

    def answer_probabilities(self, annotations: Annotations) -> NDArray[np.float64]:
        """Returns how likely each annotator gives each answer to the pair of an annotation.

        Args:
            annotations: A preferences for tasks of this result by its annotators, such as held-out ones.

        Returns:
            [A, K], in the order of `answers`; rows sum to one.

        Raises:
            DataError: wrong kind, no annotations, or other tasks or annotators.
        """
        left, right = self._sides(annotations, "answer_probabilities")
        return self._answer_probabilities(annotations.annotator_ids, self.scores[left] - self.scores[right])

    def standard_errors(self, annotations: Annotations) -> NDArray[np.float64]:
        """Returns standard errors of the scores around the mean of their group, [N], in log odds.

        They follow from the expected information of the judgments at the estimated scores, with the annotators'
        parameters taken as known. The prior is ignored, so that a task that always won has a wide interval. The time is
        cubic in the number of tasks of a group.

        Args:
            annotations: the annotations used in the fit.

        Returns:
            [N]; NaN for tasks that were not compared, in groups of more than 2,000 tasks, and if the judgments are
            uninformative.

        Raises:
            DataError: wrong kind, no annotations, or other tasks or annotators.
        """
        left, right = self._sides(annotations, "standard_errors")
        who, gap, step = annotations.annotator_ids, self.scores[left] - self.scores[right], 1e-4
        below, at, above = (self._answer_probabilities(who, gap + shift) for shift in (-step, 0.0, step))
        slopes = (above - below) / (2 * step)
        weights = (slopes**2 / np.maximum(at, 1e-300)).sum(axis=1)
        errors = np.full(len(self.scores), np.nan)
        order = np.argsort(self.groups, kind="stable")
        for tasks in np.split(order, np.flatnonzero(np.diff(self.groups[order])) + 1):
            if not 1 < len(tasks) <= MOST_IN_GROUP:
                continue
            place = np.full(len(self.scores), -1)
            place[tasks] = np.arange(len(tasks))
            rows = place[left] >= 0
            errors[tasks] = _errors(place[left[rows]], place[right[rows]], weights[rows], len(tasks))
        return errors

    def position_biases(self) -> NDArray[np.float64] | None:
        """Returns an annotator's log odds of left against right for tasks of equal score, [R]; None if not fitted."""
        if self.guesses is None and self.biases is None and not self.bias:
            return None
        size = len(self.annotators)
        same = self._answer_probabilities(np.arange(size), np.zeros(size))
        return np.log(same[:, 0] / same[:, 1])

    def _sides(self, annotations: Annotations, what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Task codes on the left and on the right; raises an error for other tasks or annotators."""
        check_annotations(annotations, what, PREFERENCE, "comparison")
        for name in ("tasks", "annotators"):
            if not np.array_equal(getattr(self, name), getattr(annotations, name)):
                raise DataError(f"The annotations have other {name} than this result.")
        assert annotations.right_ids is not None
        return annotations.task_ids, annotations.right_ids

    def _answer_probabilities(self, who: NDArray[np.int64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities [n, K] of the answers of annotators `who` [n], if the left score is higher by `gap` [n]."""

        def own(values: NDArray[np.float64] | None, default: float) -> Any:
            return default if values is None else values[who]

        lead = own(self.slopes, 1.0) * gap + self.bias + own(self.biases, 0.0)
        guess = None if self.guesses is None else self.guesses[who]
        return answer_probabilities(lead, self.tie + own(self.tie_biases, 0.0), self.ties, own(self.shares, 1.0), guess)

    def _tables(self) -> tuple[Columns, ...]:
        return self._answer_columns(), self._pair_columns(), self._annotator_columns()

    def _answer_columns(self) -> Columns:
        return {
            "task": self.tasks,
            "score": self.scores,
            "rank": self.ranks,
            "group": self.groups,
            "annotations": self.annotations_per_task,
        }

    def _pair_columns(self) -> Columns:
        left, right = self.pairs.T
        probabilities = self.probabilities(left, right)
        return {
            "left": self.tasks[left],
            "right": self.tasks[right],
            "annotations": self.annotations_per_pair,
            **{f"probability_{answer}": column for answer, column in zip(self.answers, probabilities.T, strict=True)},
        }

    def _of_annotators(self) -> Columns:
        return {
            "skill": self.skills,
            "position_bias": self.position_biases(),
            **{name: getattr(self, name) for name in _OF_ANNOTATORS},
            "guesses": self.guesses,
        }

    @classmethod
    def _read(cls, stored: ReadResult) -> dict[str, Any]:
        tasks, pairs, annotators, _ = cls.files
        names = stored.names(tasks, "task")
        codes = {name: code for code, name in enumerate(names.tolist())}
        sides = [[codes.get(name, -1) for name in stored.names(pairs, side).tolist()] for side in ("left", "right")]
        if any(-1 in side for side in sides):
            raise DataError(f"{stored.folder / pairs} holds a task that {tasks} does not have. Aggregate again.")
        ties = stored.value("ties", str)
        if ties not in FORMS:
            raise DataError(f"{stored.folder / cls.files[-1]}: 'ties' is {ties!r}. Aggregate again.")
        return {
            "scores": stored.numbers(tasks, "score"),
            "groups": stored.numbers(tasks, "group", whole=True),
            "pairs": np.array(sides, np.int64).T,
            "annotations_per_pair": stored.numbers(pairs, "annotations", whole=True),
            "ties": ties,
            "tie": stored.value("tie", float),
            "bias": stored.value("bias", float),
            **{name: stored.optional(annotators, name) for name in _OF_ANNOTATORS},
            "guesses": stored.optional(annotators, "guesses", 2 if ties == "none" else 3),
            "log_likelihood": stored.value("log_likelihood", float),
            "effects": _stored_effects(stored),
            **stored.names_and_counts(tasks, annotators),
        }

    def _more(self) -> dict[str, Any]:
        kept = ("ties", "tie", "bias", "log_likelihood")
        effects = {"covariates": [*self.effects], "effects": [[*pair] for pair in self.effects.values()]}
        return {"kind": self.kind, **{name: getattr(self, name) for name in kept}, **(effects if self.effects else {})}

    def _summary(self) -> dict[str, Any]:
        return {**super()._summary(), "num_annotations": int(self.annotations_per_pair.sum())}


TIED = 1e-9  # log odds, up to which scores differ only by rounding
MOST_IN_GROUP = 2000  # tasks whose standard errors are computed
_OF_ANNOTATORS = ("slopes", "biases", "tie_biases", "shares")


def _notes(groups: NDArray[np.int64], comparisons: NDArray[np.int64]) -> tuple[str, ...]:
    """Note on groups of tasks that cannot be compared, because no chain of comparisons links them; or none."""
    number = len(np.unique(groups[comparisons > 0]))
    if number < 2:
        return ()
    return (
        f"No comparison links the {number:,} groups of tasks (column 'group'): scores and ranks are only comparable "
        "within a group.",
    )


def _stored_effects(stored: ReadResult) -> dict[str, tuple[float, float]]:
    """Reads the effects of covariates from a summary, if any."""
    if "covariates" not in stored.summary:
        return {}
    names = [str(name) for name in stored.list_of_names("covariates")]
    pairs = stored.list_of_numbers("effects", len(names), 2).tolist()
    return {name: (effect, error) for name, (effect, error) in zip(names, pairs, strict=True)}


def _errors(
    left: NDArray[np.int64], right: NDArray[np.int64], weights: NDArray[np.float64], number: int
) -> NDArray[np.float64]:
    """Standard errors of linked tasks around their mean, [n]: from the pseudoinverse of the graph's Laplacian."""
    information = np.zeros((number, number))
    np.add.at(information, (left, right), -weights)
    information += information.T
    information[np.diag_indices(number)] = -information.sum(axis=1)
    scale = np.trace(information) / number  # fixes the mean about as firmly as a task; differences are unaffected
    if not scale > 0:
        return np.full(number, np.nan)
    try:
        inverse = np.linalg.inv(information / scale + 1 / number)
    except np.linalg.LinAlgError:  # uninformative judgments do not link tasks
        return np.full(number, np.nan)
    variances = (np.diag(inverse) - 1 / number) / scale
    return np.sqrt(np.where(variances > 0, variances, np.nan))
