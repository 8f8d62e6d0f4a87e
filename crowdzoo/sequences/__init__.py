"""Tagged text: tags and spans, their files, and how well spans are found. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "CrowdSequences": "crowdzoo.sequences.crowd_sequences",
        "Span": "crowdzoo.sequences.tags",
        "SpanScores": "crowdzoo.sequences.scores",
        "TagSet": "crowdzoo.sequences.tags",
        "TypeScores": "crowdzoo.sequences.scores",
        "allowed_tags": "crowdzoo.sequences.tags",
        "check_tags": "crowdzoo.sequences.tags",
        "convert_tags": "crowdzoo.sequences.tags",
        "mended": "crowdzoo.sequences.tags",
        "read_conll": "crowdzoo.sequences.conll_files",
        "read_gold": "crowdzoo.sequences.conll_files",
        "read_spans": "crowdzoo.sequences.span_files",
        "read_word_vectors": "crowdzoo.sequences.word_vectors",
        "span_scores": "crowdzoo.sequences.scores",
        "spans_of": "crowdzoo.sequences.tags",
        "split_tokens": "crowdzoo.sequences.tokens",
        "tag_problems": "crowdzoo.sequences.tags",
        "tags_of": "crowdzoo.sequences.tags",
        "write_conll": "crowdzoo.sequences.conll_files",
        "write_gold": "crowdzoo.sequences.conll_files",
        "write_spans": "crowdzoo.sequences.span_files",
    },
)
