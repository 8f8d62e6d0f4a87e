"""annotator_table: statistics of each annotator's labels, compared with the others and the aggregate."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.quality.camps import Camps
from crowdzoo.quality.copies import copy_families, family_names
from crowdzoo.quality.figures import NORMAL_975, defined, interval, name_column, wilson
from crowdzoo.quality.over_time import drift, worse_periods
from crowdzoo.quality.ratings import Ratings, ratings_of
from crowdzoo.quality.reliability import MOST_CELLS, judged_answers, judged_by_others
from crowdzoo.quality.settled import judging_matrices
from crowdzoo.quality.tasks import check_same, entropies

FEW = 10  # annotators with fewer annotations are not judged: their figures are noise
ONE_ANSWER = 0.9  # share of one answer from which it is noted
FAR = 0.2  # below the usual reliability, from which on an annotator is noted
VAGUE = 0.1  # spammer score below which labels say little about the class
MOST_LIKELY = 0.5  # share from which an answer is the usual one
LEAST_SEEN = 5.0  # tasks of a class, by the others
LEAST_PER_CLASS = 10  # annotations of an annotator from which the score counts
# notes that may only say that camps contradict each other
BY_OTHERS = ("exchange", "against", "random", "far", "vague", "copy")


def annotator_table(
    annotations: Annotations,
    aggregation: Aggregation | None = None,
    people: NDArray[np.bool_] | None = None,
    camps: Camps | None = None,
) -> pa.Table:
    """One row per annotator, in the order of the codes.

    Columns, null if undefined (without annotations; `agreement` without shared ones):

    - `annotator`: name; `annotations`: number of annotations; `shared`: number of those on tasks that others labelled;
    - `agreement`: share of the task's other annotations that are equal, averaged over shared annotations. It needs no
      aggregate and does not count the annotator's own vote. Annotators who copy each other (see `copy_families`) do not
      judge each other: here, in `reliability` and in the notes, the other annotations are those from outside the
      family;
    - `notes`: anomalies, as words separated by commas; usually empty. For annotators with at least ten shared
      annotations: `exchange` (swaps two classes, see `exchanged_classes`), `against` (agrees with others less often
      than random labels with the annotator's shares would), `same` (nearly always one answer, unless others give it as
      well), `random` (agreement at chance level, and clearly below that of the crowd; the interval of the reliability
      is closer to chance than to the usual one), `vague` (a spammer score below .1), `far` (none of these, and the
      interval of the reliability is .2 below the usual one); `copy` (the answers of another annotator, see
      `copy_families`); `drift` (agreement changes over time, see `drift`); `alone` (shares no task), `few` (fewer than
      ten shared);
    - `exchanges`: which class is given for which, in words (for swapped classes: "cat and dog"); null without that
      note;
    - `copies`: names of the annotators with the same answers; null without the note `copy`;
    - `drift`: agreement with others in each period, in words ("92, 90, 61, 60 %"); null without timestamps, or with
    fewer
      than twenty shared annotations; `period`: for annotators with the note, the period of lower agreement, in the
      format of `--exclude` ("2026-02-14.." for from that day on);
    - `differs`: the usual reliability, in words; null without the note `far`;
    - `camp`: 1 or 2 for annotators of two camps, null for others; only if camps are passed. Members do not get the
    notes
      `exchange`, `against`, `random` and `vague`, nor `copy` if the other camp agrees as much internally, as these may
      only reflect that the camps contradict each other;
    - `labels`: number of distinct classes; `top_label` (name) and `top_share`: the most frequent class and its share.
    Near
      1 the annotator repeats one answer, unless the tasks really are of one class;
    - `label_entropy`: entropy of the annotator's label shares, nats (at most ln K).

    With an aggregation also `reliability`, `reliability_low` and `reliability_high`: the accuracy from
    `judged_by_others` with the matrices of `judging_matrices` (with those of the aggregation if only some annotators
    judge), and its 95 % interval (`agreement` if the method has no confusion matrices); `aggregate_agreement`: share of
    labels equal to the aggregate's, `aggregate_probability`: mean probability of the annotator's labels in the
    aggregate (both include the annotator's own influence on the aggregate, so a task's only annotator always agrees);
    and, if the method has confusion matrices, `spammer_score` (see `spammer_scores`; null without annotations, when the
    matrix is only the prior, and for a single class).

    Args:
        annotations: kind classification; R annotators.
        aggregation: a result for the same annotations.
        people: annotators who judge the others, for `reliability` and `notes`, bool [R]: models with common errors are
            no evidence against people. None: all.
        camps: result of `camps_of`.

    Raises:
        DataError: wrong kind, or an aggregation of other tasks, annotators or classes.
    """
    ratings = ratings_of(annotations, "The table of annotators")
    if aggregation is not None:
        check_same(annotations, aggregation)
    number, annotators = annotations.num_annotators, ratings.annotator_ids
    judges = np.ones(number, bool) if people is None else people
    families = copy_families(number, ratings.tasks, annotators, ratings.codes)
    peers, same = _by_others(ratings, families, np.ones(len(annotators), bool))
    shared = np.bincount(annotators[peers > 0], minlength=number)
    agreement = np.bincount(annotators, same / np.maximum(peers, 1), number) / np.maximum(shared, 1)
    order = np.argsort(annotators, kind="stable")
    counts = np.bincount(annotators, minlength=number)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    of_annotator = Ratings(starts, annotators[order], ratings.codes[order], ratings.num_values)
    some = counts > 0
    top_count = of_annotator.most_votes()
    # the lowest code of those that were said most
    leaders = np.where(of_annotator.same == np.repeat(top_count, counts), of_annotator.codes, ratings.num_values)
    top_label = of_annotator.reduce(np.minimum, leaders)
    named = np.asarray(annotations.classes)
    columns: dict[str, Any] = {
        "annotator": name_column(annotations.annotators),
        "annotations": pa.array(counts),
        "shared": pa.array(shared),
        "agreement": defined(agreement, shared > 0),
        "labels": pa.array(np.rint(of_annotator.task_sums(1 / of_annotator.same)).astype(np.int64)),
        "top_label": name_column(named).take(defined(top_label, some)),
        "top_share": defined(top_count / np.maximum(counts, 1), some),
        "label_entropy": defined(entropies(of_annotator), some),
    }
    worth: NDArray[Any] = shared
    reliability = np.where(shared > 0, agreement, np.nan)
    if aggregation is not None and aggregation.confusions is not None and aggregation.class_prior is not None:
        judging = aggregation
        if judges.all() and aggregation.confusions.size <= MOST_CELLS:
            judging = replace(aggregation, confusions=judging_matrices(annotations, aggregation, families))
        reliability, worth = judged_by_others(annotations, judging, judges, families)
    low, high = wilson(reliability, worth)
    repeats, top = of_annotator.same[np.argsort(order)], top_count / np.maximum(counts, 1)
    copied = family_names(annotations.annotators, families)
    periods = drift(annotations)
    moved, shares = np.zeros(number, bool), dict[int, list[str]]()
    columns_of = (periods[name].to_pylist() for name in ("annotator", "agreement", "changes"))
    for place, agreed, changes in zip(*columns_of, strict=True):
        moved[place] = changes
        shares.setdefault(place, []).append(f"{100 * agreed:.0f}")
    over_time = [f"{', '.join(shares[place])} %" if place in shares else None for place in range(number)]
    notes, words, usual = _notes(
        annotations, aggregation, judges, ratings, repeats, top, (reliability, high), families, moved
    )
    if camps is not None:
        for place in np.flatnonzero(camps.camp).tolist():
            copied[place] = copied[place] if camps.copies[place] else None
            notes[place] = [
                note for note in notes[place] if note not in BY_OTHERS or (note == "copy" and copied[place])
            ]
            words[place] = None
        columns["camp"] = defined(camps.camp, camps.camp > 0)
    texts = {
        "notes": [",".join(names) for names in notes],
        "exchanges": words,
        "copies": copied,
        "drift": over_time,
        "period": worse_periods(periods, number),
        "differs": [f"usually {usual:.2f}" if "far" in names else None for names in notes],
    }
    columns |= {name: pa.array(values, pa.string()) for name, values in texts.items()}
    if aggregation is not None:
        known = np.isfinite(reliability)
        columns |= interval("reliability", *(defined(values, known) for values in (reliability, low, high)))
        equal = np.bincount(annotators, ratings.codes == aggregation.labels[ratings.tasks], minlength=number)
        believed = np.bincount(annotators, aggregation.posteriors[ratings.tasks, ratings.codes], minlength=number)
        columns["aggregate_agreement"] = defined(equal / np.maximum(counts, 1), some)
        columns["aggregate_probability"] = defined(believed / np.maximum(counts, 1), some)
        if aggregation.confusions is not None and annotations.num_classes > 1:
            columns["spammer_score"] = defined(spammer_scores(aggregation), some)
    return pa.table(columns)


def _notes(
    annotations: Annotations,
    aggregation: Aggregation | None,
    judges: NDArray[np.bool_],
    ratings: Ratings,
    repeats: NDArray[np.int32],
    top: NDArray[np.float64],
    judged: tuple[NDArray[np.float64], NDArray[np.float64]],
    families: NDArray[np.int64],
    moved: NDArray[np.bool_],
) -> tuple[list[list[str]], list[str | None], float]:
    """Returns the notes of each annotator, the column `exchanges`, and the usual reliability.

    `repeats`: number of annotations by the same annotator with the label of each row, [A]; `top`: share of the most
    frequent label, `judged`: reliability and upper end of its interval, `families`: see `copy_families`, and `moved`:
    annotators whose agreement changes over time, [R].
    """
    number, size = annotations.num_annotators, annotations.num_classes
    annotators, codes = ratings.annotator_ids, ratings.codes
    reliability, high = judged
    counts, judging = np.bincount(annotators, minlength=number), judges[annotators]
    peers, same = _by_others(ratings, families, judging)
    # how much more often than by chance: the share of the others' labels elsewhere that are this one
    usual = np.bincount(codes[judging], minlength=size)[codes] - repeats * judging
    usual = usual / np.maximum(judging.sum() - (counts * judges)[annotators], 1)
    beyond = (same / np.maximum(peers, 1) - usual)[peers > 0]
    placed = annotators[peers > 0]
    shared = np.bincount(placed, minlength=number)
    mean = np.bincount(placed, beyond, number) / np.maximum(shared, 1)
    spread = np.bincount(placed, (beyond - mean[placed]) ** 2, number) / np.maximum(shared - 1, 1)
    half = NORMAL_975 * np.sqrt(spread / np.maximum(shared, 1))
    crowd = judges[placed]
    overall = beyond[crowd].mean() if crowd.any() else 0.0
    enough = shared >= FEW
    answers = judged_answers(annotations, aggregation, judges, enough, families) if size > 1 else None
    pairs = {} if answers is None else exchanged_classes(answers)
    exchange = np.isin(np.arange(number), [*pairs])
    against = enough & (mean + half < 0) & ~exchange
    often = np.zeros(number)
    np.maximum.at(often, annotators, np.where(repeats == np.rint(top * counts)[annotators], usual, 0.0))
    by_chance = (mean - half <= 0) & ~exchange
    # someone who gives the 90 % class 90 % of the time is not repeating one answer
    constant = (counts >= FEW) & (top >= ONE_ANSWER) & (wilson(top, counts)[0] > often)
    same_answer = constant & enough & by_chance
    known = enough & np.isfinite(reliability)
    usually = float(np.median(reliability[known])) if known.any() else np.nan
    guessed = np.bincount(placed, usual[peers > 0], number) / np.maximum(shared, 1)  # right so often by chance
    random = enough & by_chance & ~against & ~same_answer & (mean + half < overall)
    by_matrices = aggregation is not None and aggregation.confusions is not None
    random &= ~(high >= ((guessed + usually) / 2 if by_matrices else usually))  # nor where that is not known
    vague = np.zeros(number, bool)
    if aggregation is not None and by_matrices and size > 1:
        vague = (counts >= LEAST_PER_CLASS * size) & (spammer_scores(aggregation) < VAGUE)
        tells = reliability - guessed >= np.sqrt(VAGUE) * (1 - guessed)  # of two classes the score again, by the others
        vague &= ~(exchange | against | same_answer | random | (constant & ~by_chance) | tells)
    far = known & (high < usually - FAR) & ~(exchange | against | same_answer | random | vague)
    far &= (known & ~far).sum() > 1  # one alone may be the one who errs
    alone = (shared == 0) & (counts > 0)
    copied = np.bincount(families, minlength=number)[families] > 1
    marks = {
        "exchange": exchange,
        "against": against & ~same_answer,
        "random": random,
        "same": same_answer,
        "vague": vague,
        "far": far,
        "copy": copied,
        "drift": moved,
        "alone": alone,
        "few": ~enough & ~alone,
    }
    names = [str(name) for name in np.asarray(annotations.classes).tolist()]
    words = {
        place: "; ".join(
            f"{names[true]} and {names[label]}" if (label, true) in swaps else f"{names[label]} for {names[true]}"
            for true, label in swaps
            if (label, true) not in swaps or true < label
        )
        for place, swaps in pairs.items()
    }
    return notes_of(marks, number), [words.get(place) for place in range(number)], usually


def _by_others(
    ratings: Ratings, families: NDArray[np.int64], judging: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of judging annotations of each row's task from other families, and of those with the row's label, [A].

    `judging` marks the annotations of those who judge, [A].
    """
    tasks, cells = ratings.tasks, ratings.tasks * ratings.num_values + ratings.codes
    peers, same = np.repeat(ratings.sizes, ratings.sizes), ratings.same
    if not judging.all():
        peers, same = (np.bincount(of[judging], minlength=of.max() + 1)[of] for of in (tasks, cells))
    kin = kin_same = judging.astype(np.int64)
    if (families != np.arange(len(families))).any():
        rows = families[ratings.annotator_ids]
        kin, kin_same = (
            np.bincount(place, judging)[place].astype(np.int64)
            for place in (np.unique(of * len(families) + rows, return_inverse=True)[1] for of in (tasks, cells))
        )
    return peers - kin, same - kin_same


def notes_of(marks: Mapping[str, NDArray[np.bool_]], number: int) -> list[list[str]]:
    """Returns the notes of each annotator, as keys of the page's `FLAGS`.

    Args:
        marks: annotators with each note, bool [R].
        number: R, number of annotators.
    """
    notes: list[list[str]] = [[] for _ in range(number)]
    for name, marked in marks.items():
        for place in np.flatnonzero(marked).tolist():
            notes[place].append(name)
    return notes


def exchanged_classes(answers: NDArray[np.float64]) -> dict[int, list[tuple[int, int]]]:
    """Finds pairs (true, said) of classes that an annotator confuses systematically, by annotator; most have none.

    If the others say the first class, the annotator usually says the second (clearly in more than half of the cases, by
    Wilson's interval), and says it for little else and not where the others do. If one class is used for another, the
    reverse is also a pair if it occurs in more than half of the cases. Such labels are as informative as right ones,
    once the matrix is known.

    Args:
        answers: result of `judged_answers`, [R, K, K].
    """
    seen, totals = answers.sum(axis=2), answers.sum(axis=1)
    true = np.maximum(seen, 1e-12)[:, :, None]
    usual = (wilson(answers / true, true)[0] > MOST_LIKELY) & (seen[:, :, None] >= LEAST_SEEN)
    only = answers / np.maximum(totals, 1e-12)[:, None, :] > MOST_LIKELY
    correct = np.diagonal(answers / true, axis1=1, axis2=2) > MOST_LIKELY
    pairs: dict[int, list[tuple[int, int]]] = {}
    clear = usual & only & ~correct[:, None, :] & ~np.eye(answers.shape[1], dtype=bool)
    back = clear.transpose(0, 2, 1) & (answers / true > MOST_LIKELY)
    for code, true_class, label in np.argwhere(clear | back).tolist():
        pairs.setdefault(code, []).append((true_class, label))
    return pairs


def spammer_scores(aggregation: Aggregation | ArrayLike) -> NDArray[np.float64]:
    """Distance of each annotator's confusion matrix from a spammer's, [R]: 0 is a spammer, 1 distinguishes all classes.

    A spammer's answers do not depend on the truth, so all rows of the matrix are equal. The score is the squared
    distance of the rows from their mean, over K - 1, which is 1 for a permutation matrix:
    1/(K (K - 1)) sum over pairs of classes c < d of |row_c - row_d|^2. For two classes that is
    (sensitivity + specificity - 1)^2. An annotator who swaps classes consistently also scores high: such answers are
    informative, once the matrix is known.

    The score is only as good as the matrix. With few annotations per class, an estimated matrix is far from its mean by
    chance or close to the prior's; check the number of annotations as well.

    Args:
        aggregation: a result with confusions, or the confusions themselves, `[annotator, true, said]` [R, K, K].

    Raises:
        DataError: the aggregation has no confusions, they have the wrong shape, or there is only one class.

    Source:
        V. C. Raykar, S. Yu: Eliminating Spammers and Ranking Annotators for Crowdsourced Labeling Tasks. JMLR 13, 2012,
        section 3.
    """
    if isinstance(aggregation, Aggregation):
        if aggregation.confusions is None:
            raise DataError(
                f"Spammer scores need confusion matrices, and the method {aggregation.method!r} gives none: use one "
                f"that does, such as 'dawid-skene'."
            )
        aggregation = aggregation.confusions
    confusions = np.asarray(aggregation, np.float64)
    if confusions.ndim != 3 or confusions.shape[1] != confusions.shape[2]:
        raise DataError(f"Confusions have shape [R, K, K], got {list(confusions.shape)}.")
    num_classes = confusions.shape[1]
    if num_classes < 2:
        raise DataError("Spammer scores need two classes or more, got one.")
    centred = confusions - confusions.mean(axis=1, keepdims=True)
    return np.minimum(np.einsum("rkl,rkl->r", centred, centred) / (num_classes - 1), 1.0)
