"""Questions of `crowdzoo next` about preferences."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr

from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import Opened, Questions
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.compared_tasks import pairs_either_way
from crowdzoo.quality.first_round import first_pairs
from crowdzoo.quality.next_annotation import FEWEST, Gains

PRIOR = 0.25  # information on a score before any answer: that of the methods' default prior
MOST_TASKS = 500  # tasks considered; if there are more, those with the fewest answers
SPARE, FEW, MOST_PAIRS = 2, 50, 1000  # pairs per question, additional pairs, and maximum: some may have answers already


class PreferenceQuestions(Questions[PreferenceAggregation]):
    """Choose questions, each about a pair of tasks, by the standard errors of the scores."""

    gain_meaning = "by how much the answer lowers the standard errors of the two scores"
    subject = "pairs of tasks"
    about_tasks = False

    def first(self, num_tasks: int, most: float, seed: int) -> Codes:
        """As many pairs as can be answered, chosen to connect the tasks, [P, 2]."""
        return first_pairs(num_tasks, max(1, int(most)), seed)

    def sides(self, table: Annotations, rows: Codes, num_tasks: int) -> Codes:
        """Left and right, [n, 2]; see `opened`."""
        return np.stack(np.divmod(table.tasks[rows], num_tasks), axis=1)

    def skills(self, result: PreferenceAggregation, places: list[int] | slice) -> Floats:
        """Slope of each annotator, and probability that an answer follows the scores, [R, 2]; 1 where not fitted."""
        ones = np.ones(len(result.annotators))
        return np.stack([ones if each is None else each for each in (result.slopes, result.shares)], axis=1)

    def opened(
        self, result: PreferenceAggregation, skills: Floats, crowd: Annotations, sure: Flags, number: int
    ) -> Opened:
        """See `Questions.opened`; a task of the table is a pair, named left x N + right by the codes of both.

        Pairs are chosen one by one: each is the one whose answer by a typical annotator reduces the sum of the standard
        errors of all scores most, given the pairs before it. An answer with information w on the difference d = s_i -
        s_j takes w u u' / (1 + w d'u) off the covariance C, with u = C d (a rank-one update). To first order, the sum
        of standard errors decreases by half of each variance's reduction divided by its standard error. Tasks of groups
        that no comparison links are not paired.
        """
        size, tasks = crowd.num_tasks, np.sort(np.argsort(result.annotations_per_task, kind="stable")[:MOST_TASKS])
        covariance, gap = (
            _covariance(result, skills, crowd, tasks),
            result.scores[tasks][:, None] - result.scores[tasks],
        )
        usual = _information(gap, *np.median(skills, axis=0))
        low, high = np.sort(np.stack([crowd.task_ids, np.asarray(crowd.right_ids)]), axis=0)
        answers = np.unique(np.stack([low * size + high, crowd.annotator_ids]), axis=1)
        pairs, counts = np.unique(answers[0], return_counts=True)
        everybody = np.isin(tasks[:, None] * size + tasks, pairs[counts >= crowd.num_annotators])
        groups, compared = result.groups[tasks], result.annotations_per_task[tasks] > 0
        apart = (groups[:, None] != groups) & compared[:, None] & compared  # for example, arguments on two topics
        possible = np.triu(~(everybody | apart | (sure[tasks][:, None] & sure[tasks])), 1)
        chosen = np.zeros((min(SPARE * number + FEW, MOST_PAIRS, int(possible.sum())), 2), np.int64)
        facts = np.zeros((len(chosen), 3))  # gap of a pair, its variance, half of all variances' slopes
        for row in range(len(chosen)):
            halves = 0.5 / np.sqrt(np.diag(covariance))
            spread, slope = _between(covariance), _between(covariance @ (halves[:, None] * covariance))
            gains = np.where(possible, usual * slope / (1 + usual * spread), -1.0)
            left, right = place = np.unravel_index(int(np.argmax(gains)), gains.shape)
            chosen[row], facts[row], possible[place] = place, (gap[place], spread[place], slope[place]), False
            moved = covariance[left] - covariance[right]
            covariance -= np.outer(moved, moved) * (usual[place] / (1 + usual[place] * spread[place]))
        first, second = tasks[chosen].T
        turned = (first + second) % 2 == 1  # each task is about as often on the left as on the right
        names, keys = np.where(turned, second * size + first, first * size + second), first * size + second
        order = np.argsort(keys)
        known = np.isin(answers[0], keys)
        rows = order[np.searchsorted(keys[order], answers[0][known])], answers[1][known]
        labels, classes = np.zeros(len(rows[0]), np.int64), np.array(["any"], object)
        table = Annotations("classification", *rows, labels, tasks=names, annotators=crowd.annotators, classes=classes)

        def reduced(pairs: Codes, annotators: Codes) -> Floats:
            gap, spread, slope = facts[pairs].T[:, :, None]
            told = _information(gap, *np.moveaxis(skills[annotators], -1, 0))
            return np.asarray(told * slope / (1 + told * spread))

        return Opened(table, reduced, np.zeros(len(names), bool))

    def gains(self, result: PreferenceAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected decrease in the sum of standard errors, log odds, for answers to pairs; see `opened`."""
        return self.opened(result, skills, crowd, np.zeros(crowd.num_tasks, bool), MOST_PAIRS).gains

    def find_sure(self, result: PreferenceAggregation, least: float, crowd: Annotations) -> Flags:
        """Tasks with at least two answers whose order to both neighbours has at least this probability."""
        errors = result.standard_errors(crowd)
        order = np.lexsort((-result.scores, result.groups))
        gaps = -np.diff(result.scores[order]) / np.hypot(errors[order][1:], errors[order][:-1])
        same = np.diff(result.groups[order]) == 0
        apart = np.where(same, ndtr(np.nan_to_num(gaps)) >= least, True)
        sure = np.zeros(len(order), bool)
        sure[order] = np.append(True, apart) & np.append(apart, True)
        return np.asarray(sure & ~np.isnan(errors) & (result.annotations_per_task >= FEWEST))

    def answers(self, crowd: Annotations) -> tuple[Codes, Codes, Codes]:
        """See `Questions.answers`; a question is a pair, regardless of sides."""
        _, pairs, answers = pairs_either_way(crowd)
        return pairs, crowd.annotator_ids, answers


def _covariance(result: PreferenceAggregation, skills: Floats, crowd: Annotations, tasks: Codes) -> Floats:
    """Covariance of some tasks' scores given the annotators, from the information of the answers, [M, M]."""
    place = np.full(crowd.num_tasks, -1)
    place[tasks] = np.arange(len(tasks))
    left, right = crowd.task_ids, np.asarray(crowd.right_ids)
    told = _information(result.scores[left] - result.scores[right], *skills[crowd.annotator_ids].T)
    information = PRIOR * np.eye(len(tasks))
    for one, other in ((place[left], place[right]), (place[right], place[left])):
        np.add.at(information, (one[one >= 0],) * 2, told[one >= 0])
        both = (one >= 0) & (other >= 0)
        np.add.at(information, (one[both], other[both]), -told[both])
    return np.asarray(np.linalg.inv(information))


def _information(gap: Floats, slope: Floats, share: Floats) -> Floats:
    """Fisher information of an answer on the difference of scores; answers not following scores are guesses."""
    follows = expit(slope * gap)
    prefers = share * follows + (1 - share) / 2
    return np.asarray((share * slope * follows * (1 - follows)) ** 2 / np.maximum(prefers * (1 - prefers), 1e-12))


def _between(matrix: Floats) -> Floats:
    """Quadratic form of the difference of each two tasks, [M, M]."""
    diagonal = np.diag(matrix)
    return np.asarray(diagonal[:, None] + diagonal - 2 * matrix)
