"""Tagged text: tags and spans, their files, and how well spans are found. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.reading.sentences.conll_files": "read_conll read_gold write_conll write_gold",
        "crowdzoo.data.crowd_sequences": "CrowdSequences",
        "crowdzoo.quality.span_scores": "SpanScores TypeScores span_scores",
        "crowdzoo.reading.sentences.span_files": "read_spans",
        "crowdzoo.reading.sentences.span_writing": "write_spans",
        "crowdzoo.data.tags": "Span TagSet allowed_tags check_tags convert_tags mended spans_of tag_problems tags_of",
        "crowdzoo.data.tokens": "split_tokens",
        "crowdzoo.reading.sentences.word_vectors": "read_word_vectors",
    },
)
