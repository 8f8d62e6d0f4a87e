"""span_numbers: what the page of a report says of sentences with marked spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.errors import ConfigError
from crowdzoo.quality import MarkedSpans, krippendorff_alpha, marked_spans
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.report.page_parts import (
    DIGITS,
    SURE,
    Column,
    Numbers,
    PageTable,
    Warned,
    alpha_sentence,
    alpha_values,
    annotators_first,
    basic_warnings,
    look_first,
    noted,
    notes_of,
    percent,
    plain,
    serious_notes,
    shares_of_flags,
    warned_of_flags,
    wilson,
)

__all__ = ["NO_SPAN", "span_numbers"]

NO_SPAN = "no span"  # as a class of the page; types of spans hold no space
MOST_TYPES = 24  # of a picture of who says what
MOST_CELLS = 60  # of an annotator's confusion matrix
MOST_MARKERS = 20  # of a sentence, by name
MOST_TOKENS = 160  # of a sentence that is shown
AROUND = 8  # tokens beside a span that differs, in a long sentence
MOST_LABEL = 200  # characters of the spans of a sentence in a table
MOST_PAIRS = 100  # of types
MOST_WARNED = 5
UNCLEAR = 0.75  # as of classes
MUCH = 0.1
EDGES = 0.2  # share of a type's spans that another annotator marked with other edges, from which it is warned of


def span_numbers(
    sequences: CrowdSequences,
    aggregation: SequenceAggregation,
    most: int,
    *,
    metric: str | None = None,
    bootstrap: int = 200,
    seed: int = 0,
    on_sample: Callable[[], None] | None = None,
) -> Numbers:
    """Everything that the page shows of a crowd that marks spans in sentences.

    Args:
        sequences: the sentences.
        aggregation: a result for the same sentences.
        most: annotators and sentences that the page shows.
        metric: None or "nominal": tags have no order.
        bootstrap: samples for the interval of alpha; whole sentences are drawn.
        seed: of the bootstrap.
        on_sample: is called after each sample.

    Raises:
        ConfigError: another metric.
        DataError: an aggregation of other sentences, annotators or tags.
    """
    if metric not in (None, "nominal"):
        raise ConfigError(f"metric {metric}: tags of sentences are equal or not; leave it out, or give nominal.")
    marked = marked_spans(sequences, aggregation)
    alpha = _alpha(sequences, bootstrap, seed, on_sample)
    annotators, tasks = _annotators(sequences, marked), _tasks(sequences, aggregation, marked)
    pairs, classes = _pairs(marked), _classes(marked)
    shared = _of_others(sequences, aggregation, marked, np.array(serious_notes(annotators), bool))
    first = annotators_first(annotators, most)
    shown = np.lexsort((tasks["probability"], -np.nan_to_num(marked.differing_of_tasks)))[:most].tolist()
    overall = _overall(sequences, aggregation, marked)
    values = _values(alpha, annotators, tasks, overall)
    few_types = len(marked.types) <= MOST_TYPES
    warned = _warnings(alpha, aggregation, annotators, overall, _pairs(shared), _classes(shared))
    return Numbers(
        kind="sequence",
        verdict=_verdict(alpha, aggregation, overall, values, _pairs(shared), warned),
        warnings=warned,
        values=values,
        facts=_facts(alpha, overall),
        classes=[*marked.types, NO_SPAN],
        coincidences=np.rint(marked.coincidences).astype(int).tolist() if few_types else None,
        tables={
            "classes": PageTable(_TYPE_COLUMNS, classes),
            "pairs": PageTable(_PAIR_COLUMNS, pairs),
            "annotators": PageTable(
                _ANNOTATOR_COLUMNS, annotators, first, _annotator_details(sequences, marked, first)
            ),
            "tasks": PageTable(_TASK_COLUMNS, tasks, shown, _task_details(sequences, aggregation, marked, shown)),
        },
        summary={**overall, "krippendorff_alpha": None if alpha is None else asdict(alpha)},
    )


_TYPE_COLUMNS = (
    Column("class", "type", "name"),
    Column("annotations", "spans", "count", "Spans of this type that annotators marked."),
    Column("share", "share", "share", "Share of all marked spans.", bar=True),
    Column(
        "agreement", "agreement", "share", "If one annotator marks a span of this type, how often another annotator of "
        "the sentence marks the same one: same type, first and last token.", bar=True,
    ),
    Column("other_edges", "other edges", "share", "How often the other one marks one of this type with other edges."),
    Column("aggregated", "aggregated", "count", "Aggregated spans, once for each annotator of their sentence."),
    Column("missed", "missed", "share", "Share of these that overlap no span of the annotator."),
    Column("wrong_edges", "wrong edges", "share", "Share of these that the annotator marked with other edges."),
    Column("wrong_type", "wrong type", "share", "Share of these that the annotator gave another type."),
    Column("invented", "invented", "share", "Share of the annotators' spans that overlap no aggregated span."),
)  # fmt: skip
_PAIR_COLUMNS = (
    Column("first", "type", "name"),
    Column("second", "and type", "name"),
    Column(
        "agreement", "agreement", "share", "Where two annotators of a sentence mark overlapping tokens, and both give "
        "one of the two types, how often they give the same. No span: how often the other marks anything there.",
        bar=True,
    ),
    Column("disagreement", "share of disagreement", "share", "Share of all disagreement on types.", bar=True),
)  # fmt: skip
_ANNOTATOR_COLUMNS = (
    Column("annotator", "annotator", "name"),
    Column("annotations", "sentences", "count"),
    Column("spans", "spans", "count"),
    Column(
        "reliability", "F1", "interval", "Of the annotator's spans against the aggregated ones, which contain the "
        "annotator's own vote. The interval holds with 95 % for the number of spans.",
    ),
    Column("notes", "notes", "flags"),
    Column(
        "agreement", "agreement", "share", "F1 of the annotator's spans against those of the others who tagged the "
        "same sentences, one by one.",
    ),
    Column("missed", "missed", "share", "Share of the aggregated spans that overlap no span of the annotator."),
    Column("wrong_edges", "wrong edges", "share", "Share of the aggregated spans that the annotator marked with other "
           "edges."),
    Column("wrong_type", "wrong type", "share", "Share of the aggregated spans that the annotator gave another type."),
    Column("invented", "invented", "share", "Share of the annotator's spans that overlap no aggregated span."),
)  # fmt: skip
_TASK_COLUMNS = (
    Column("task", "sentence", "name"),
    Column("annotations", "annotators", "count"),
    Column("tokens", "tokens", "count"),
    Column("label", "aggregated spans", "name"),
    Column("probability", "least probability", "share", "Of the aggregated tag, at the token where it is lowest."),
    Column("agreement", "agreement", "share", "F1 of the spans of two annotators of the sentence."),
    Column("differing", "spans that differ", "number", "Spans that one of two annotators marks and the other does not, "
           "mean over the pairs of annotators."),
)  # fmt: skip


# === Tables ===


def _alpha(sequences: CrowdSequences, bootstrap: int, seed: int, on_sample: Callable[[], None] | None) -> Alpha | None:
    """Krippendorff's alpha of the tags of tokens; None where it is not defined."""
    tokens = SequenceTable.of(sequences, "A page of a report").as_classification()
    several = (tokens.redundancy > 1)[tokens.task_ids]
    if not several.any() or len(np.unique(tokens.labels[several])) < 2:
        return None
    groups = np.repeat(np.arange(len(sequences)), sequences.lengths)
    return krippendorff_alpha(
        tokens, "nominal", bootstrap=bootstrap, seed=seed, groups=groups, on_sample=on_sample
    )  # fmt: skip


def _annotators(sequences: CrowdSequences, marked: MarkedSpans) -> dict[str, Any]:
    right, expected, said = (each.sum(axis=1) for each in (marked.right, marked.expected, marked.said))
    low, high = _f1_interval(right, expected + said)
    agreement = marked.agreement
    found: dict[str, Any] = {
        "annotator": sequences.annotations.annotators.tolist(),
        "annotations": marked.tasks_of.tolist(),
        "shared": marked.shared.tolist(),
        "spans": said.tolist(),
        "reliability": plain(_share(2 * right, expected + said)),
        "reliability_low": plain(low),
        "reliability_high": plain(high),
        "agreement": plain(agreement),
    }
    for name in ("missed", "wrong_edges", "wrong_type"):
        found[name] = plain(_share(getattr(marked, name).sum(axis=1), expected))
    found["invented"] = plain(_share(marked.invented.sum(axis=1), said))
    tags = SequenceTable.of(sequences, "A page of a report")
    found["copies"] = copies(sequences.annotations.annotators, tags.tokens, tags.annotators, tags.labels)
    found["notes"] = _flags(marked, agreement, np.array(found["copies"], bool))
    return found


def _flags(marked: MarkedSpans, agreement: NDArray[np.float64], copied: NDArray[np.bool_]) -> list[list[str]]:
    """Notes of each annotator, as keys of `FLAGS`."""
    said, expected = marked.said.sum(axis=1), marked.expected.sum(axis=1)
    shared, number = marked.shared, len(marked.shared)
    others = np.zeros(number)
    np.add.at(others, marked.annotators, (marked.heads - 1)[marked.sentences])
    # each pair of annotators counts in `compared`: as many independent spans as an annotator has with one other
    each = np.maximum(_share(others, said, 1.0), 1.0)
    high = _f1_interval(marked.same / each, marked.compared / each)[1]
    silent = (said == 0) & (expected >= FEW) & (shared > 0)
    taken = marked.right + marked.wrong_edges + marked.wrong_type
    exchanged = (marked.wrong_type >= FEW) & (wilson(_share(marked.wrong_type, taken), taken)[0] > 0.5)
    apart = (shared >= FEW) & ~silent & (high < (marked.overall or 0.0) / 2) & (agreement >= 0)
    wrong, touched = marked.wrong_edges.sum(axis=1), (marked.right + marked.wrong_edges).sum(axis=1)
    often = _share(wrong, touched, 0.0)
    usual = np.median(often[touched >= FEW]) if (touched >= FEW).any() else 0.0
    marks = {
        "edges": (touched >= FEW) & ~apart & (wilson(often, touched)[0] > np.maximum(EDGES, 2 * usual)),
        "silent": silent,
        "apart": apart,
        "exchange": (exchanged & (marked.wrong_type > marked.missed)).any(axis=1),  # not at random
        "copy": copied,
        "alone": (shared == 0) & (marked.tasks_of > 0),
        "few": (shared < FEW) & (shared > 0),
    }
    return notes_of(marks, number)


def _f1_interval(right: NDArray[Any], both: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of 95 % of F1, 2 right / both: Wilson's of the share of right ones of all spans of either side."""
    union = np.asarray(both - right, np.float64)
    low, high = wilson(_share(right, union), union)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _tasks(sequences: CrowdSequences, aggregation: SequenceAggregation, marked: MarkedSpans) -> dict[str, Any]:
    probability = aggregation.posteriors[np.arange(len(aggregation.labels)), aggregation.labels]
    lowest = np.minimum.reduceat(probability, sequences.starts[:-1]) if len(probability) else np.zeros(0)
    spans = _by_sentence(sequences, marked)
    return {
        "task": sequences.annotations.tasks.tolist(),
        "annotations": marked.heads.tolist(),
        "tokens": sequences.lengths.tolist(),
        "label": [_label(tokens, each, marked.types) for tokens, each in zip(sequences.tokens, spans, strict=True)],
        "spans": spans,
        "probability": plain(lowest),
        "agreement": plain(marked.agreement_of_tasks),
        "differing": plain(marked.differing_of_tasks),
    }


def _by_sentence(sequences: CrowdSequences, marked: MarkedSpans) -> list[list[list[int]]]:
    """The aggregated spans of each sentence, as [type, first token, the one after the last]."""
    found: list[list[list[int]]] = [[] for _ in range(len(sequences))]
    spans, sentences = marked.aggregated, marked.aggregated_sentences
    firsts = sequences.starts[sentences]
    for sentence, code, start, end in zip(
        sentences.tolist(), spans.types.tolist(), (spans.starts - firsts).tolist(), (spans.ends - firsts).tolist(),
        strict=True,
    ):  # fmt: skip
        found[sentence].append([code, start, end])
    return found


def _label(tokens: Sequence[str], spans: list[list[int]], types: list[str]) -> str:
    """The spans of a sentence as a text for a table."""
    text = ""
    for code, start, end in spans:
        text += f"{', ' if text else ''}{' '.join(tokens[start:end])} ({types[code]})"
        if len(text) > MOST_LABEL:
            return f"{text[: MOST_LABEL - 1]}…"
    return text


def _classes(marked: MarkedSpans) -> dict[str, Any]:
    said, expected = marked.said.sum(axis=0), marked.expected.sum(axis=0)
    found: dict[str, Any] = {
        "class": list(marked.types),
        "annotations": said.tolist(),
        "share": plain(_share(said, np.full(len(said), said.sum()))),
        "agreement": plain(marked.same_of_types),
        "other_edges": plain(marked.edges_of_types),
        "aggregated": expected.tolist(),
    }
    for name in ("missed", "wrong_edges", "wrong_type"):
        found[name] = plain(_share(getattr(marked, name).sum(axis=0), expected))
    found["invented"] = plain(_share(marked.invented.sum(axis=0), said))
    return found


def _of_others(
    sequences: CrowdSequences, aggregation: SequenceAggregation, marked: MarkedSpans, named: NDArray[np.bool_]
) -> MarkedSpans:
    """The spans of those who have no note: what they confuse is unclear to the crowd."""
    crowd = sequences.annotations
    if not named.any() or named[crowd.annotator_ids].all():
        return marked
    others = crowd.select_rows(~named[crowd.annotator_ids])
    return marked_spans(replace(sequences, annotations=others), aggregation)


def _pairs(marked: MarkedSpans) -> dict[str, Any]:
    """Pairs of types, and of a type and no span, the largest share of the disagreement first."""
    found: dict[str, list[Any]] = {"first": [], "second": [], "agreement": [], "disagreement": [], "pairs": []}
    counts, names = marked.coincidences, [*marked.types, NO_SPAN]
    total = counts.sum() - np.trace(counts)
    one, other = np.triu_indices(len(names), 1)
    between = 2 * counts[one, other]
    for place in np.argsort(-between, kind="stable")[:MOST_PAIRS].tolist():
        if between[place] <= 0:
            break
        first, second = one[place], other[place]
        both = counts[first, first] + counts[second, second]
        if names[second] == NO_SPAN:  # nobody counts where two mark nothing
            both = counts[first, : len(names) - 1].sum()
        found["first"].append(names[first])
        found["second"].append(names[second])
        found["agreement"].append(round(float(both / (both + between[place])), DIGITS))
        found["disagreement"].append(round(float(between[place] / total), DIGITS))
        found["pairs"].append(round(float(between[place]), DIGITS))
    return found


def _annotator_details(sequences: CrowdSequences, marked: MarkedSpans, shown: list[int]) -> list[dict[str, Any]]:
    """Of the annotators shown: errors by type, what they say where the aggregate says something, and their peers."""
    none = len(marked.types)
    place = np.full(len(marked.tasks_of), -1)
    place[shown] = np.arange(len(shown))
    details: list[dict[str, Any]] = []
    missed = marked.missed
    counts = (
        marked.expected,
        marked.right,
        missed,
        marked.wrong_type,
        marked.wrong_edges,
        marked.said,
        marked.invented,
    )
    for row in shown:
        errors = [[code, *(int(each[row, code]) for each in counts)] for code in range(none)]
        cells = [[code, none, number] for code, number in enumerate(missed[row].tolist()) if number]
        cells += [[none, code, number] for code, number in enumerate(marked.invented[row].tolist()) if number]
        details.append({"types": [each for each in errors if each[1] or each[6]], "confusion": cells, "peers": []})
    for who, true, said, number in marked.confusion.tolist():
        if place[who] >= 0:
            details[place[who]]["confusion"].append([true, said, number])
    for detail in details:
        detail["confusion"] = sorted(detail["confusion"], key=lambda cell: -cell[2])[:MOST_CELLS]
    if marked.peers is not None and marked.peer_counts is not None:
        names = sequences.annotations.annotators.tolist()
        for (one, other), (shared, both, same) in zip(marked.peers.tolist(), marked.peer_counts.tolist(), strict=True):
            if shared < FEW or not both:
                continue
            for who, peer in ((one, other), (other, one)):
                if place[who] >= 0:
                    details[place[who]]["peers"].append([round(2 * same / both, 3), str(names[peer]), shared])
        for detail in details:
            peers = sorted(detail["peers"], key=lambda peer: -peer[0])
            detail["peers"] = peers if len(peers) <= 6 else [*peers[:3], *peers[-3:]]
    return details


def _task_details(
    sequences: CrowdSequences, aggregation: SequenceAggregation, marked: MarkedSpans, shown: list[int]
) -> list[dict[str, Any]]:
    """Of the sentences shown: words, and who marked which spans."""
    crowd = sequences.annotations
    rows = np.asarray(crowd.positions) == 0
    order = np.lexsort((crowd.annotator_ids[rows], crowd.task_ids[rows]))
    tasks, who = crowd.task_ids[rows][order], crowd.annotator_ids[rows][order]
    names = crowd.annotators.tolist()
    by_sentence = np.argsort(marked.sentences, kind="stable")
    of_sentence = np.searchsorted(marked.sentences[by_sentence], np.arange(len(sequences) + 1))
    begins = np.searchsorted(tasks, np.arange(len(sequences) + 1))
    aggregated = _by_sentence(sequences, marked)
    details = []
    for task in shown:
        first = int(sequences.starts[task])
        said: dict[int, list[list[int]]] = {code: [] for code in who[begins[task] : begins[task + 1]].tolist()}
        for row in by_sentence[of_sentence[task] : of_sentence[task + 1]].tolist():
            code, start, end = (int(each[row]) for each in (marked.spans.types, marked.spans.starts, marked.spans.ends))
            said[int(marked.annotators[row])].append([code, start - first, end - first])
        groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}
        for code, spans in list(said.items())[:MOST_MARKERS]:
            groups.setdefault(tuple(map(tuple, spans)), []).append(str(names[code]))
        marks: list[dict[str, Any]] = [{"who": None, "spans": aggregated[task]}]
        same = sorted(groups.items(), key=lambda group: -len(group[1]))
        marks += [{"who": people, "spans": [list(span) for span in spans]} for spans, people in same]
        details.append({"pieces": _pieces(sequences, task, marks), "marks": marks})
    return details


def _pieces(sequences: CrowdSequences, task: int, marks: list[dict[str, Any]]) -> list[list[Any]]:
    """What is shown of a sentence: parts as [first token, tokens with what follows them]."""
    tokens = sequences.tokens[task]
    kept = np.ones(len(tokens), bool)
    if len(tokens) > MOST_TOKENS:
        kept[:] = False
        spans: list[set[Any]] = [{tuple(span) for span in mark["spans"]} for mark in marks]
        differing = set.union(*spans) - set.intersection(*spans) or {(0, 0, MOST_TOKENS)}
        for _, start, end in sorted(differing, key=lambda span: span[1]):
            kept[max(start - AROUND, 0) : end + AROUND] = True
            if kept.sum() >= MOST_TOKENS:
                break
        kept[np.flatnonzero(kept)[MOST_TOKENS:]] = False
    words = list(tokens)
    if sequences.texts is not None and sequences.offsets is not None:
        text, ends = sequences.texts[task], [*sequences.offsets[task][1:, 0].tolist(), None]
        words = [text[start:end] for start, end in zip(sequences.offsets[task][:, 0].tolist(), ends, strict=True)]
    else:
        words = [f"{word} " for word in words]
    found: list[list[Any]] = []
    for place in np.flatnonzero(kept).tolist():
        if not place or not kept[place - 1]:
            found.append([place, []])
        found[-1][1].append(words[place])
    return found


# === Words ===


def _overall(sequences: CrowdSequences, aggregation: SequenceAggregation, marked: MarkedSpans) -> dict[str, Any]:
    heads = marked.heads
    return {
        "annotations": int(heads.sum()),
        "rows_left_out": sequences.annotations.num_rejected,
        "tasks": len(sequences),
        "annotators": sequences.annotations.num_annotators,
        "tokens": int(sequences.starts[-1]),
        "types": len(marked.types),
        "spans": len(marked.annotators),
        "aggregated_spans": len(marked.aggregated.types),
        "tags_mended": sequences.num_mended,
        "tasks_without_annotations": int((heads == 0).sum()),
        "tasks_with_one": int((heads == 1).sum()),
        "span_agreement": marked.overall,
        "other_edges": _mean_edges(marked),
        "annotations_per_task": float(heads.mean()) if len(heads) else None,
        "aggregation": aggregation.method,
    }


def _mean_edges(marked: MarkedSpans) -> float | None:
    weights = marked.said.sum(axis=0)
    known = np.isfinite(marked.edges_of_types) & (weights > 0)
    return float(np.average(marked.edges_of_types[known], weights=weights[known])) if known.any() else None


def _values(
    alpha: Alpha | None, annotators: dict[str, Any], tasks: dict[str, Any], overall: dict[str, Any]
) -> dict[str, float | None]:
    labelled = max(overall["tasks"] - overall["tasks_without_annotations"], 1)
    sure = [each >= SURE for each, number in zip(tasks["probability"], tasks["annotations"], strict=True) if number]
    return {
        **alpha_values(alpha),
        **{name: overall[name] for name in ("annotations", "tasks", "annotators", "annotations_per_task")},
        "tasks_with_one_share": overall["tasks_with_one"] / labelled,
        "rows_left_out": overall["rows_left_out"],
        "spans": overall["spans"],
        "span_agreement": overall["span_agreement"],
        "sure_share": sum(sure) / len(sure) if sure else None,
        **shares_of_flags(annotators),
    }


def _facts(alpha: Alpha | None, overall: dict[str, Any]) -> list[list[Any]]:
    beside = "" if alpha is None or alpha.low is None else f"{alpha.low:.3f} to {alpha.high:.3f}"
    return [
        ["sentences tagged by one annotator", overall["annotations"], "count", ""],
        ["sentences", overall["tasks"], "count", ""],
        ["annotators", overall["annotators"], "count", ""],
        ["tokens", overall["tokens"], "count", ""],
        ["marked spans", overall["spans"], "count", ""],
        ["aggregated spans", overall["aggregated_spans"], "count", ""],
        ["F1 of two annotators", overall["span_agreement"], "share", ""],
        ["spans with other edges", overall["other_edges"], "share", ""],
        ["Krippendorff's alpha of tags", None if alpha is None else alpha.value, "number", beside],
        ["annotators a sentence", overall["annotations_per_task"], "number", ""],
        ["sentences with one annotator", overall["tasks_with_one"], "count", ""],
    ]


def _verdict(
    alpha: Alpha | None,
    aggregation: SequenceAggregation,
    overall: dict[str, Any],
    values: dict[str, float | None],
    pairs: dict[str, Any],
    warned: list[Warned],
) -> list[str]:
    agreement, sure = overall["span_agreement"], values["sure_share"]
    start = "" if agreement is None else f"The spans of two annotators of a sentence have an F1 of {agreement:.2f}; "
    second = f"A sentence has {overall['annotations_per_task'] or 0:.3g} annotators on average"
    if sure is not None:
        second += f"; {aggregation.method} is sure ({percent(SURE)} or more) of every tag of {percent(sure)} of the "
        second += "sentences"
    parts = []
    if pairs["first"] and pairs["disagreement"][0] >= MUCH:
        first, second_type, share = pairs["first"][0], pairs["second"][0], percent(pairs["disagreement"][0])
        what = f"spans of type {first} that others do not mark" if second_type == NO_SPAN else (
            f"the types {first} and {second_type}")  # fmt: skip
        parts.append(f"{what}, with {share} of all disagreement on types")
    none = "No annotator has to be checked, and no type stands out."
    third = look_first(warned, int(values["noted_annotators"] or 0), parts, none)
    return [alpha_sentence(alpha, start), f"{second}.", third]


def _warnings(
    alpha: Alpha | None,
    aggregation: SequenceAggregation,
    annotators: dict[str, Any],
    overall: dict[str, Any],
    pairs: dict[str, Any],
    classes: dict[str, Any],
) -> list[Warned]:
    found = basic_warnings(alpha, overall, aggregation.method, aggregation.converged)
    if not overall["spans"]:
        fix = "check that the file has them where they are looked for, and what annotators were asked to mark"
        nobody = Warned(True, "spans", "nobody marked one, so there is nothing to compare or to learn from", fix)
        found = [nobody, *(warned for warned in found if warned.about != "agreement")]
    found += [noted(note) for note in aggregation.notes]
    if mended := overall["tags_mended"]:
        finding = f"{mended:,} tags or spans of the file do not fit the tagging scheme; they were corrected"
        found.append(Warned(False, "tags", finding, "read the file with --on-bad-tags error, which names them"))
    found += _unclear(pairs)
    for name, share, number in zip(classes["class"], classes["other_edges"], classes["annotations"], strict=True):
        if share is not None and share >= EDGES and number >= FEW:
            finding = f"its edges are unclear; {percent(share)} of its spans have other edges where another annotator "
            finding += "marks them"
            fix = "say in the instructions what belongs to a span, such as titles, articles and punctuation"
            found.append(Warned(False, name, finding, fix, "classes"))
    found += warned_of_flags(annotators, overall["annotations"])
    return sorted(found, key=lambda warned: not warned.serious)


def _unclear(pairs: dict[str, Any]) -> list[Warned]:
    """Warnings of pairs of types that are confused, and one of the types that some mark and others do not."""
    keys = ("first", "second", "agreement", "disagreement")
    rows = [row for row in zip(*(pairs[key] for key in keys), strict=True) if row[2] < UNCLEAR and row[3] >= MUCH]
    seen = [(first, agreement) for first, second, agreement, _ in rows if second == NO_SPAN]
    found: list[Warned] = []
    if seen:
        shares = [agreement for _, agreement in seen]
        ends = percent(shares[0]) if len(seen) == 1 else f"{percent(min(shares))} to {percent(max(shares))}"
        finding = f"what is to be marked is unclear; where one annotator marks it, {ends} of the others mark something"
        fix = "say in the instructions what counts, with examples of what does not"
        found.append(Warned(False, ", ".join(first for first, _ in seen[:MOST_WARNED]), finding, fix, "pairs"))
    for first, second, agreement, _ in [row for row in rows if row[1] != NO_SPAN][:MOST_WARNED]:
        finding = f"the definition is unclear; {percent(agreement)} agreement between the two"
        fix = "say in the instructions what tells them apart, with examples; or merge them"
        found.append(Warned(False, f"{first} / {second}", finding, fix, "pairs"))
    return found


def _share(above: NDArray[Any], below: NDArray[Any], otherwise: float = np.nan) -> NDArray[np.float64]:
    top, bottom = np.asarray(above, np.float64), np.asarray(below, np.float64)
    return np.divide(top, bottom, out=np.full(bottom.shape, otherwise), where=bottom > 0)
