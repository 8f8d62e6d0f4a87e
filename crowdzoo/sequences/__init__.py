"""Text labelled token by token: tags and spans, files of them, and how well spans are found."""

from crowdzoo.sequences.conll_files import read_conll, read_gold, write_conll, write_gold
from crowdzoo.sequences.crowd_sequences import CrowdSequences
from crowdzoo.sequences.scores import SpanScores, TypeScores, span_scores
from crowdzoo.sequences.span_files import read_spans, write_spans
from crowdzoo.sequences.tags import (
    Span,
    TagSet,
    allowed_tags,
    check_tags,
    convert_tags,
    mended,
    spans_of,
    tag_problems,
    tags_of,
)
from crowdzoo.sequences.tokens import split_tokens
from crowdzoo.sequences.word_vectors import read_word_vectors

__all__ = [
    "CrowdSequences",
    "Span",
    "SpanScores",
    "TagSet",
    "TypeScores",
    "allowed_tags",
    "check_tags",
    "convert_tags",
    "mended",
    "read_conll",
    "read_gold",
    "read_spans",
    "read_word_vectors",
    "span_scores",
    "spans_of",
    "split_tokens",
    "tag_problems",
    "tags_of",
    "write_conll",
    "write_gold",
    "write_spans",
]
