"""copy_families: who gives the answers of others as his own; counted_once: annotations without these."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.dependence import CHANCE, SharedTasks, dependent_groups, dependent_pairs
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.figures import wilson
from crowdzoo.quality.reliability import EDGE, LEAST, accuracies

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

COPIED = 0.7  # share of the answers that two would not have in common by themselves, which they have all the same
LEAST_SHARED = 7  # tasks of two annotators; fewer prove nothing
MOST_CELLS = 1 << 25  # of annotators, or pairs of them, by different answers
MOST_ANSWERS = 1_000_000  # that are compared; from more, tasks are drawn
ROUNDS = 5
NAMED = 5  # of a family


def copies(
    names: NDArray[np.generic], tasks: NDArray[np.int64], annotators: NDArray[np.int64], answers: NDArray[np.generic]
) -> list[str | None]:
    """Names of the family of each annotator; None for who answers alone. Arguments as for `copy_families`."""
    return family_names(names, copy_families(len(names), tasks, annotators, answers))


def family_names(annotators: NDArray[np.generic], families: NDArray[np.int64]) -> list[str | None]:
    """Names of the family of each annotator, the first five of them; None for who answers alone."""
    names: dict[int, str] = {}
    for family in np.flatnonzero(np.bincount(families) > 1).tolist():
        places = np.flatnonzero(families == family).tolist()
        rest = f" and {len(places) - NAMED:,} more" if len(places) > NAMED else ""
        names[family] = ", ".join(str(annotators[place]) for place in places[:NAMED]) + rest
    return [names.get(family) for family in families.tolist()]


def families_of(names: Sequence[str | None]) -> NDArray[np.int64]:
    """The families whose names `family_names` gives."""
    firsts = {name: place for place, name in reversed([*enumerate(names)])}
    return np.array([place if name is None else firsts[name] for place, name in enumerate(names)], np.int64)


def copy_families(
    number: int, tasks: NDArray[np.int64], annotators: NDArray[np.int64], answers: NDArray[np.generic]
) -> NDArray[np.int64]:
    """Families of annotators who copy each other, or answer from one source: of each the code of the family's first.

    Two annotators who answer by themselves agree as far as both are right. How often that would be is the largest of
    three estimates: the product of their skills, which are those that fit how far they agree with all others beyond
    chance; their accuracies as all outside their family judge them (see `judged_by_others`), where who copy each other
    count as one; and how often others agree on the same tasks. A pair copies that agrees so much more often that it is
    no chance (see `dependent_pairs`), and that has in common at least seven tenths of the answers which it need not
    have (by Wilson's interval). Who copied whom cannot be told from answers, nor whether half of the crowd copies: a
    family is smaller. Tasks with three answers or more count; from more than a million answers, tasks are drawn.

    Args:
        number: of annotators, R.
        tasks: task, or question, of each of A answers, [A].
        annotators: its annotator, [A].
        answers: code of what was said, [A].

    Returns:
        int64 [R]; the own code for all who answer by themselves, and where there are too many annotators and answers to
        compare.
    """
    several = np.bincount(tasks) > 2
    if (drawn := MOST_ANSWERS / max(len(tasks), 1)) < 1:
        several &= np.random.default_rng(0).random(len(several)) < drawn
    rows = several[tasks]
    tasks, annotators, codes = tasks[rows], annotators[rows], np.unique(answers[rows], return_inverse=True)[1]
    families = np.arange(number)
    width = int(codes.max(initial=0)) + 1
    block = Block(tasks, annotators, codes)
    shared = SharedTasks.of(block, number)
    pairs, agreed = np.bincount(shared.tasks), np.bincount(shared.tasks, shared.same)
    peers = (agreed[shared.tasks] - shared.same) / np.maximum(pairs[shared.tasks] - 1, 1)
    easy = np.bincount(shared.pairs, peers) / shared.shared
    some = shared.shared >= LEAST_SHARED
    if not some.any() or max(number, len(block.tasks), np.count_nonzero(some)) * width > MOST_CELLS:
        return families
    left, right, times, agreement = shared.left[some], shared.right[some], shared.shared[some], shared.agreement[some]
    shared = replace(shared, left=left, right=right, shared=times, agreement=agreement)
    shares = np.bincount(annotators * width + codes, minlength=number * width).reshape(number, width)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
    by_chance = np.clip((shares[left] * shares[right]).sum(axis=1), CHANCE, 1 - CHANCE)
    beyond = np.tile(np.maximum((agreement - by_chance) / (1 - by_chance), -1), 2)
    first, second = np.concatenate([left, right]), np.concatenate([right, left])
    expected = np.full(len(left), np.clip(np.average(agreement, weights=times), CHANCE, 1 - CHANCE))
    surely = wilson(agreement, times)[0]
    linked = np.ones(len(left), bool)
    for _ in range(ROUNDS):
        before = linked
        linked = dependent_pairs(shared, expected) & (surely - expected >= COPIED * (1 - expected))
        if np.array_equal(linked, before):
            break
        skill = fitted_skills(first, second, beyond, np.tile(times * ~linked, 2), number)
        by_skill = by_chance + (1 - by_chance) * skill[left] * skill[right]
        groups = dependent_groups(shared, expected, linked, number)
        right_of = _accuracies(block, groups.weights(block), groups.members, skill, width)
        both_right, both_wrong = right_of[left] * right_of[right], (1 - right_of[left]) * (1 - right_of[right])
        judged = both_right + both_wrong / max(width - 1, 1)
        expected = np.clip(np.maximum.reduce([by_skill, judged, easy[some]]), CHANCE, 1 - CHANCE)
    members = groups.members
    sizes = np.bincount(members)
    for family in np.flatnonzero((sizes > 1) & (2 * sizes < len(np.unique(annotators)))).tolist():
        places = np.flatnonzero(members == family)
        families[places] = places[0]
    return families


def _accuracies(
    block: Block, weights: NDArray[np.float64], family: NDArray[np.int64], skill: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Accuracies by the answers of all but the own family, each of whom is as good as the skill says, [R]."""
    annotators, accuracy = block.annotator_ids.astype(np.int64), np.clip(skill + (1 - skill) / size, EDGE, 1 - EDGE)
    odds = weights * np.maximum(np.log(accuracy * (size - 1) / (1 - accuracy) + LEAST), 0)[annotators]
    cells = block.index * size + block.labels
    evidence = np.bincount(cells, odds, len(block.tasks) * size).reshape(-1, size)
    evidence = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    mine = evidence.ravel()[cells]
    _, place = np.unique(cells * len(skill) + family[annotators], return_inverse=True)  # a family's equal votes
    kin = mine * np.exp(-np.bincount(place, odds)[place])
    share = kin / np.maximum(evidence.sum(axis=1)[block.index] - mine + kin, LEAST)
    estimates = accuracies(annotators, share, len(skill), size)[0]
    return np.where(np.isfinite(estimates), estimates, accuracy)


def counted_once(annotations: Annotations, families: NDArray[np.int64]) -> Annotations:
    """The annotations of each family as those of one annotator, who gives a task one of the family's labels.

    Args:
        annotations: of R annotators.
        families: code of the annotator who represents each one, [R], such as `copy_families` gives them.

    Returns:
        For each task the annotations of the family's member who comes first. Annotators who do not represent any family
        have none.
    """
    annotators = families[annotations.annotator_ids]
    cells = annotations.task_ids * len(families) + annotators
    _, first, place = np.unique(cells, return_index=True, return_inverse=True)
    if len(first) == len(cells):
        return replace(annotations, annotator_ids=annotators)
    rows = annotations.annotator_ids == annotations.annotator_ids[first][place]
    return replace(annotations.select_rows(rows), annotator_ids=annotators[rows])


def fitted_skills(first: Codes, second: Codes, agreement: Floats, weights: Floats, number: int) -> Floats:
    """Skills whose products fit the agreement of pairs of annotators best, by least squares, 0 to 1, [R].

    Those who answer by themselves agree as far as both are right. So skills are found without an aggregate, also where
    most annotators are bad, as long as they are bad each in their own way.

    Args:
        first: an annotator of each pair, each pair in both orders, [P].
        second: the other one, [P].
        agreement: beyond chance, 1 at most, [P].
        weights: of the pairs, [P].
        number: of annotators, R.
    """
    skill = np.full(number, 0.7)
    for _ in range(30):  # half a step: whole ones go to and fro
        product = np.bincount(first, weights * agreement * skill[second], number)
        square = np.bincount(first, weights * skill[second] ** 2, number)
        skill = (skill + np.clip(product / np.maximum(square, 1e-6), 0, 1)) / 2
    return skill
