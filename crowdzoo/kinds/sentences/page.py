"""SpanPage: page of a report on sentences with marked spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.data.label_kinds import SEQUENCE
from crowdzoo.data.tags import spans_of
from crowdzoo.errors import DataError
from crowdzoo.kinds import page_parts as parts
from crowdzoo.kinds.model_answers import ModelAnswers
from crowdzoo.kinds.page import MOST_VOTES, KindPage
from crowdzoo.kinds.page_parts import Details, PageTable, PageWarning, as_lists, percent, warning
from crowdzoo.kinds.scoring import Floats, Sums
from crowdzoo.quality import MarkedSpans, marked_spans
from crowdzoo.quality.annotators import FAR, FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.figures import interval, ratio, wilson
from crowdzoo.quality.next_annotation import SURE

NO_SPAN = "no span"  # a class on the page; types of spans contain no space
MOST_TYPES = 24  # in the figure of coincidences
MOST_CELLS = 60  # shown of an annotator's confusion matrix
MOST_TOKENS = 160  # shown of a sentence
AROUND = 8  # tokens shown before the first differing span in a long sentence
MOST_LABEL = 200  # characters of the spans of a sentence in a table
MOST_WARNED = 5
EDGES = 0.2  # share of a type's spans that another annotator marked with other edges, from which the page warns
SOME = 0.1  # share of errors of a kind, from which an annotator's errors are described
ERRORS = ("missed", "wrong_edges", "wrong_type")


class SpanPage(KindPage):
    """Page of a report on sentences with marked spans."""

    kind, labels, subject = "sequence", SEQUENCE, "sentences"
    own_columns = parts.read_columns(__package__)
    not_metric = "tags of sentences are equal or not; leave it out, or give nominal."
    own_values = ("spans", "span_agreement", "position_agreement", "sure_share")
    task_column, model_value = "spans", "model_agreement"
    calm = "No annotator has to be checked, and no type is often confused."

    def measure(self) -> None:
        """See `KindPage.measure`."""
        crowd, result, settings = self.crowd, self.aggregation, self.settings
        self.marked = marked = marked_spans(crowd, result)
        tokens = SequenceTable.of(crowd, "A page of a report").as_classification()
        self.alpha = self.alpha_of(tokens, groups=np.repeat(np.arange(len(crowd)), crowd.lengths))  # of sentences
        self.measure_annotators()
        self.measure_sentences()
        order = np.lexsort((self.tasks["probability"], -np.nan_to_num(marked.differing_of_tasks)))
        self.rows = order[: settings.most].tolist()
        # confusions of annotators without a note show what is unclear to the crowd
        named, annotators = np.array(parts.serious_notes(self.annotators), bool), self.table.annotator_ids
        self.others = marked
        if named.any() and not named[annotators].all():
            rest = replace(crowd, annotations=self.table.select_rows(~named[annotators]))
            self.others = marked_spans(rest, result)
        self.unclear = _pairs(self.others)
        weights = marked.marks.sum(axis=0)
        edges = marked.edges_of_types
        known = np.isfinite(edges) & (weights > 0)
        sure = [value >= SURE for value, number in zip(self.tasks["probability"], marked.heads, strict=True) if number]
        self.count(
            marked.heads,
            tokens=int(crowd.starts[-1]),
            types=len(marked.types),
            spans=len(marked.annotators),
            aggregated_spans=len(marked.aggregated.types),
            tags_mended=crowd.num_mended,
            span_agreement=marked.overall,
            position_agreement=marked.position_agreement,
            other_edges=float(np.average(edges[known], weights=weights[known])) if known.any() else None,
            sure_share=sum(sure) / len(sure) if sure else None,
            aggregation=result.method,
        )
        if crowd.drawn is None:
            self.hidden = {"near_agreement", "drawn_spans"}
        else:
            near = float(2 * marked.near.sum() / max(marked.compared.sum(), 1))
            self.overall |= {"near_agreement": near, "drawn_spans": int(marked.spans_of_tasks.sum())}
            self.annotators["near_agreement"] = parts.plain(ratio(2 * marked.near, marked.compared))
        counts = np.rint(marked.coincidences).astype(int).tolist() if len(marked.types) <= MOST_TYPES else None
        self.extras = {"classes": [*marked.types, NO_SPAN], "coincidences": counts}

    def model_answers(self, predictions: Any) -> ModelAnswers:
        """See `KindPage.model_answers`; tags of each sentence, None without a prediction."""
        crowd = self.crowd
        for task, (tags, tokens) in enumerate(zip(predictions, crowd.tokens, strict=True)):
            if tags is not None and len(tags) != len(tokens):
                raise DataError(f"predictions: sentence {task} has {len(tokens)} tokens. Received: {len(tags)} tags.")

        def sets(sentences: Iterable[Any]) -> NDArray[np.object_]:
            spans = [None if tags is None else {*spans_of(tags, crowd.scheme)} for tags in sentences]
            return np.array([*spans, None], object)[:-1]

        def words(task: int, spans: set[Any]) -> str:
            return _label(crowd.tokens[task], sorted(spans, key=itemgetter(1)))

        model = sets(predictions)
        people = [crowd.answers_of(code) for code in range(self.table.num_annotators)]
        tasks = np.concatenate([np.empty(0, np.int64), *(of_annotator for of_annotator, _ in people)])
        answers = sets(tags for _, of_annotator in people for tags in of_annotator)
        labels, known = sets(self.aggregation.tags()), np.array([spans is not None for spans in model], bool)
        return ModelAnswers("F1 of spans", _same_spans, model, known, labels, tasks, answers, words)

    def measure_annotators(self) -> None:
        """Set the table of annotators."""
        marked = self.marked
        right, expected, number = (counts.sum(axis=1) for counts in (marked.right, marked.expected, marked.marks))
        shared, agreement = marked.shared, marked.agreement
        peers = np.zeros(len(shared))
        np.add.at(peers, marked.annotators, (marked.heads - 1)[marked.sentences])
        # `compared` counts each pair of annotators; the independent spans are those with one other annotator
        repeats = np.maximum(ratio(peers, number, 1.0), 1.0)
        high = _f1_interval(marked.same / repeats, marked.compared / repeats)[1]
        silent = (number == 0) & (expected >= FEW) & (shared > 0)
        apart = (shared >= FEW) & ~silent & (high < (marked.overall or 0.0) / 2) & (agreement >= 0)
        matched = marked.right + marked.wrong_edges + marked.wrong_type
        exchanged = (marked.wrong_type >= FEW) & (wilson(ratio(marked.wrong_type, matched), matched)[0] > 0.5)
        wrong, touched = marked.wrong_edges.sum(axis=1), (marked.right + marked.wrong_edges).sum(axis=1)
        often = ratio(wrong, touched, 0.0)
        usual = np.median(often[touched >= FEW]) if (touched >= FEW).any() else 0.0
        edges = (touched >= FEW) & ~apart & (wilson(often, touched)[0] > np.maximum(EDGES, 2 * usual))
        exchange = (exchanged & (marked.wrong_type > marked.missed)).any(axis=1)  # not at random
        errors, known = _errors(marked, 1), (shared >= FEW) & (expected >= FEW)
        far = np.zeros(len(shared), bool)
        for name, of in (("missed", expected), ("wrong_type", expected), ("invented", number)):
            if known.any():
                far |= known & (wilson(errors[name], of)[0] > np.nanmedian(errors[name][known]) + FAR)
        far &= ~(edges | silent | apart | exchange)
        shares = [(name.replace("_", " "), errors[name].tolist()) for name in errors]
        differs: list[str | None] = [None] * len(shared)
        for place in np.flatnonzero(far).tolist():
            differs[place] = ", ".join(f"{name} {percent(of[place])}" for name, of in shares if of[place] > SOME)
        marks = {"edges": edges, "silent": silent, "apart": apart, "exchange": exchange, "far": far}
        tags = SequenceTable.of(self.crowd, "A page of a report")
        total = expected + number
        reliability = interval("reliability", ratio(2 * right, total), *_f1_interval(right, total))
        copied = copies(self.table.annotators, tags.tokens, tags.annotators, tags.labels)
        columns = {"spans": number, "agreement": agreement, **reliability, **errors, "differs": differs}
        self.annotators = self.of_annotators(marked.tasks_of, shared, marks, **columns, copies=copied)

    def measure_sentences(self) -> None:
        """Set the table of sentences."""
        crowd, marked, result = self.crowd, self.marked, self.aggregation
        probability = result.posteriors[np.arange(len(result.labels)), result.labels]
        spans: list[list[list[int]]] = [[] for _ in range(len(crowd))]
        firsts = crowd.starts[marked.aggregated_sentences]
        columns = marked.aggregated.types, marked.aggregated.starts - firsts, marked.aggregated.ends - firsts
        for sentence, *span in np.stack([marked.aggregated_sentences, *columns], axis=1).tolist():
            spans[sentence].append(span)
        named = [[(marked.types[code], *ends) for code, *ends in each] for each in spans]
        self.tasks = as_lists(
            task=self.table.tasks,
            annotations=marked.heads,
            tokens=crowd.lengths,
            label=[_label(*each) for each in zip(crowd.tokens, named, strict=True)],
            spans=spans,
            probability=np.minimum.reduceat(probability, crowd.starts[:-1]) if len(probability) else np.zeros(0),
            agreement=marked.agreement_of_tasks,
            differing=marked.differing_of_tasks,
        )

    def tables(self) -> dict[str, PageTable]:
        """See `KindPage.tables`."""
        types, pairs = _types(self.marked), _pairs(self.marked)
        return {"classes": self.table_of("classes", types), "pairs": self.table_of("pairs", pairs), **super().tables()}

    def annotator_details(self, codes: list[int]) -> Details:
        """Errors by type, and confusion matrix of each annotator against the aggregate."""
        marked, none = self.marked, len(self.marked.types)
        counts = [marked.expected, marked.right, marked.missed, marked.wrong_type, marked.wrong_edges]
        counts += [marked.marks, marked.invented]
        cells: dict[int, list[list[int]]] = {row: [] for row in codes}
        for row in codes:
            cells[row] += [[code, none, number] for code, number in enumerate(marked.missed[row].tolist()) if number]
            cells[row] += [[none, code, number] for code, number in enumerate(marked.invented[row].tolist()) if number]
        for annotator, *cell in marked.confusion.tolist():
            if annotator in cells:
                cells[annotator].append(cell)
        for row in codes:
            errors = [[code, *(int(line[row, code]) for line in counts)] for code in range(none)]
            confusion = sorted(cells[row], key=lambda cell: -cell[2])[:MOST_CELLS]
            yield {"types": [line for line in errors if line[1] or line[6]], "confusion": confusion}

    def task_details(self) -> Details:
        """Words, and annotators' spans."""
        crowd, marked = self.crowd, self.marked
        heads = np.flatnonzero(np.asarray(self.table.positions) == 0)
        tasks, annotators = self.table.task_ids[heads], self.table.annotator_ids[heads]
        people = parts.rows_of(tasks, np.lexsort((annotators, tasks)), self.rows, MOST_VOTES)
        number = len(marked.sentences)
        spans_of = parts.rows_of(marked.sentences, np.arange(number), self.rows, number)
        for task, heads_of, rows in zip(self.rows, people, spans_of, strict=True):
            answers: dict[int, list[tuple[int, ...]]] = {annotator: [] for annotator in annotators[heads_of].tolist()}
            for row in rows:
                start, end = (int(edge[row] - crowd.starts[task]) for edge in (marked.spans.starts, marked.spans.ends))
                answers.get(int(marked.annotators[row]), []).append((int(marked.spans.types[row]), start, end))
            groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}
            for annotator, spans in answers.items():
                groups.setdefault(tuple(spans), []).append(self.names[annotator])
            marks: list[dict[str, Any]] = [{"who": None, "spans": self.tasks["spans"][task]}]
            same = sorted(groups.items(), key=lambda group: -len(group[1]))
            marks += [{"who": names, "spans": [list(span) for span in spans]} for spans, names in same]
            yield {"pieces": self.pieces(task, marks), "marks": marks}

    def pieces(self, task: int, marks: list[dict[str, Any]]) -> list[list[Any]]:
        """Part of a sentence to show: [first token, tokens with following space]; long sentences are cut."""
        crowd, number = self.crowd, len(self.crowd.tokens[task])
        begin = 0
        if number > MOST_TOKENS:
            spans: list[set[Any]] = [{tuple(span) for span in mark["spans"]} for mark in marks]
            differing = set.union(*spans) - set.intersection(*spans)
            begin = max(min((start for _, start, _ in differing), default=0) - AROUND, 0)
        words = [f"{word} " for word in crowd.tokens[task]]
        if crowd.texts is not None and crowd.offsets is not None:
            text, starts = crowd.texts[task], crowd.offsets[task][:, 0].tolist()
            words = [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
        return [[begin, words[begin : begin + MOST_TOKENS]]]

    # === Words ===

    def headline(self) -> str:
        """See `KindPage.headline`."""
        agreement = self.overall["span_agreement"]
        start = f"the spans of two annotators of a sentence have an F1 of {agreement or 0:.2f}; "
        return parts.alpha_sentence(self.alpha, "" if agreement is None else start)

    def background(self) -> str:
        """See `KindPage.background`."""
        text = f"A sentence has {self.overall['annotations_per_task'] or 0:.3g} annotators on average"
        if (sure := self.overall["sure_share"]) is not None:
            text += f"; {self.aggregation.method} is sure ({percent(SURE)} or more) of every tag of {percent(sure)} "
            text += "of the sentences"
        return text

    def standing_out(self) -> list[str]:
        """The most confused types."""
        pairs = self.unclear
        if not pairs["first"] or pairs["disagreement"][0] < parts.MUCH:
            return []
        first, second, share = (pairs[key][0] for key in ("first", "second", "disagreement"))
        what = f"the types {first} and {second}"
        if second == NO_SPAN:
            what = f"spans of type {first} that others do not mark"
        return [f"{what}, with {percent(share)} of all disagreement on types"]

    def of_agreement(self) -> Iterable[PageWarning]:
        """See `KindPage.of_agreement`; also warns if there are no spans."""
        if self.overall["spans"]:
            return super().of_agreement()
        return [warning("no-spans", True), *(item for item in super().of_agreement() if item.about != "agreement")]

    def own_warnings(self) -> Iterable[PageWarning]:
        """Warnings about corrected tags, confused types, spans that only some mark, and unclear edges."""
        if corrected := self.overall["tags_mended"]:
            yield warning("tags", number=corrected)
        if self.crowd.drawn is not None:
            lost = self.overall["drawn_spans"] - self.overall["spans"]
            yield warning("drawn", number=lost, share=percent(lost / self.overall["drawn_spans"]))
        rows = parts.rows_confused(self.unclear)
        if seen := [(first, agreement) for first, second, agreement, _ in rows if second == NO_SPAN]:
            shares = [agreement for _, agreement in seen]
            ends = percent(shares[0]) if len(seen) == 1 else f"{percent(min(shares))} to {percent(max(shares))}"
            about = ", ".join(first for first, _ in seen[:MOST_WARNED])
            yield warning("what-to-mark", about=about, ends=ends)
        for first, second, agreement, _ in [row for row in rows if row[1] != NO_SPAN][:MOST_WARNED]:
            yield warning("types", about=f"{first} / {second}", agreement=percent(agreement))
        types = _types(self.others)
        for name, share, number in zip(types["class"], types["other_edges"], types["annotations"], strict=True):
            if share is not None and share >= EDGES and number >= FEW:
                yield warning("edges", about=name, share=percent(share))


def _types(marked: MarkedSpans) -> parts.Columns:
    """Values of the table of types."""
    counts = marked.marks.sum(axis=0)
    return as_lists(
        **{"class": list(marked.types)},
        annotations=counts,
        share=ratio(counts, np.full(len(counts), counts.sum())),
        agreement=marked.same_of_types,
        other_edges=marked.edges_of_types,
        aggregated=marked.expected.sum(axis=0),
        **_errors(marked, 0),
    )


def _errors(marked: MarkedSpans, axis: int) -> dict[str, Any]:
    """Shares of errors among aggregated and marked spans, by annotator (axis 1) or type (0)."""
    expected, marks = marked.expected.sum(axis=axis), marked.marks.sum(axis=axis)
    shares = {name: ratio(getattr(marked, name).sum(axis=axis), expected) for name in ERRORS}
    return {**shares, "invented": ratio(marked.invented.sum(axis=axis), marks)}


def _pairs(marked: MarkedSpans) -> parts.Columns:
    """Pairs of types, and of a type and no span, largest share of the disagreement first."""
    return parts.confused_pairs(marked.coincidences, [*marked.types, NO_SPAN], nothing=True)


def _f1_interval(right: NDArray[Any], both: NDArray[Any]) -> tuple[Floats, Floats]:
    """95 % interval of F1, 2 right / both, from Wilson's interval for the share of correct spans in the union."""
    union = np.asarray(both - right, np.float64)
    low, high = wilson(ratio(right, union), union)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _same_spans(first: Iterable[set[Any]], second: Iterable[set[Any]]) -> Sums:
    """For pairs of sets, twice the number of common spans, and the total number of spans."""
    counts = [(2 * len(one & other), len(one) + len(other)) for one, other in zip(first, second, strict=True)]
    totals, weights = np.array(counts, np.float64).reshape(-1, 2).T
    return totals, weights


def _label(tokens: Sequence[str], spans: Iterable[Sequence[Any]]) -> str:
    """Format the spans of a sentence (type, start, end) for a table."""
    text = ", ".join(f"{' '.join(tokens[start:end])} ({type_})" for type_, start, end in spans)
    return text if len(text) <= MOST_LABEL else f"{text[: MOST_LABEL - 1]}…"
