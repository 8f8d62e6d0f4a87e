"""SentenceBlock: some sentences with all of their tags, as columns sorted by token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.errors import DataError


@dataclass(frozen=True, eq=False)
class SentenceBlock:
    """Some sentences with all of their annotations: S sentences of T tokens, A annotations.

    Attributes:
        tasks: codes of the sentences, ascending, int64 [S].
        starts: where each sentence begins among the block's tokens, and the end of the last, int64 [S + 1].
        tokens: the block's token of each annotation, rising, int32 [A].
        annotator_ids: int32 [A].
        labels: class codes, int32 [A].
        previous: what the same annotator said of the token before, int32 [A]; K at the first token of a sentence.
        words: code of each token's word, int32 [T]; -1 where it is not known.
        first_token: the block's first token among those of all sentences.
    """

    tasks: NDArray[np.int64]
    starts: NDArray[np.int64]
    tokens: NDArray[np.int32]
    annotator_ids: NDArray[np.int32]
    labels: NDArray[np.int32]
    previous: NDArray[np.int32]
    words: NDArray[np.int32]
    first_token: int = 0

    @classmethod
    def of(cls, table: SequenceTable, words: NDArray[np.int64]) -> SentenceBlock:
        """All sentences of a table.

        Args:
            table: T tokens.
            words: see the attribute, [T].
        """
        columns = (table.tokens, table.annotators, table.labels, table.previous, words)
        tokens, annotators, labels, previous, codes = (column.astype(np.int32) for column in columns)
        return cls(np.arange(len(table.starts) - 1), table.starts, tokens, annotators, labels, previous, codes)

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"SentenceBlock({len(self.tasks)} sentences, {len(self)} annotations)"

    @property
    def num_tokens(self) -> int:
        """T."""
        return int(self.starts[-1])

    @cached_property
    def labelled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokens of the sentences that somebody labelled, and where these begin if they stand one after the other."""
        labelled = np.zeros(len(self.tasks), bool)
        labelled[np.searchsorted(self.starts, self.tokens, side="right") - 1] = True
        lengths = np.diff(self.starts)
        starts = np.concatenate([[0], np.cumsum(lengths[labelled])]).astype(np.int64)
        return np.flatnonzero(np.repeat(labelled, lengths)), starts

    def check_codes(self, num_annotators: int, num_classes: int, num_words: int) -> None:
        """Refuses codes beyond the given numbers, which no kernel looks for.

        Raises:
            DataError: there is one.
        """
        columns = (
            ("annotator", self.annotator_ids, num_annotators),
            ("class", self.labels, num_classes),
            ("class before", self.previous, num_classes + 1),
            ("word", self.words, num_words),
        )
        for name, codes, number in columns:
            if (highest := int(codes.max(initial=-1))) >= number:
                raise DataError(f"A block has {name} {highest}, but there are {number} (codes count from 0).")

    def cut(self, max_annotations: int) -> list[SentenceBlock]:
        """The same sentences as smaller blocks, which share this one's memory.

        Args:
            max_annotations: most annotations a block, and most tokens; a sentence with more gets a block of its own.
        """
        blocks, begin, rows = [], 0, np.searchsorted(self.tokens, self.starts)
        while begin < len(self.tasks):
            ends = (
                int(np.searchsorted(counts, counts[begin] + max_annotations, side="right")) - 1
                for counts in (rows, self.starts)
            )
            end = max(begin + 1, min(len(self.tasks), *ends))
            blocks.append(self._sentences_between(begin, end, slice(int(rows[begin]), int(rows[end]))))
            begin = end
        return blocks

    def _sentences_between(self, begin: int, end: int, rows: slice) -> SentenceBlock:
        first, last = int(self.starts[begin]), int(self.starts[end])
        return SentenceBlock(
            self.tasks[begin:end],
            self.starts[begin : end + 1] - first,
            self.tokens[rows] - np.int32(first),
            self.annotator_ids[rows],
            self.labels[rows],
            self.previous[rows],
            self.words[first:last],
            self.first_token + first,
        )

    def renumbered(self, codes: NDArray[np.int64]) -> SentenceBlock:
        """The same block with annotators numbered as they stand in `codes`, which has all of them, ascending."""
        return replace(self, annotator_ids=np.searchsorted(codes, self.annotator_ids).astype(np.int32))
