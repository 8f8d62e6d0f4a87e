"""Tagged sentences out of many annotators' ones: how well every method finds the true spans, and what it costs.

    CROWDZOO_THREADS=1 python benchmarks/sequence_aggregation.py            # what the results do not have
    CROWDZOO_THREADS=1 python benchmarks/sequence_aggregation.py --again    # everything, about a minute
    python benchmarks/sequence_aggregation.py --print                       # the tables of the saved results

Two sets. "ner" is the released part of the news of Rodrigues, Pereira and Ribeiro (2,845 different sentences, 47
workers of Mechanical Turk, 4.96 a sentence), read below CROWDZOO_DATA (see `crowdzoo.datasets.data_folder`) and left
out where that has none. "generated" is `generated_ner()` with its 20 annotators, who err in whole spans because they
were made to.

"published" is the majority vote that was released with the news, on all 5,985 sentences; Rodrigues, Pereira and Ribeiro
(2014) give 79.12, 58.50 and 67.27 for it.

Precision, recall and F1 are those of whole spans, as conlleval counts, in percent; "tokens" is the share of tokens with
the right tag. No method sees a true tag. Every method has its own settings as they come, and those of the sequence
models were fixed before they met these sets; other weights of words are shown as well. Methods for classes take tokens
as tasks: "each" gives every token its own label, as the literature does; "valid" takes the best path that keeps BIO,
which is what crowdzoo does unless told otherwise. Seconds are of one fit, after a smaller one that compiled the code.

Left out of the methods for classes: ebcc (minutes to hours for 202,000 annotations).
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
from load_ner_amt import FOLDER, load_ner_amt
from needed import need
from rows import Parts, run

from crowdzoo.aggregation import ConvergenceWarning, create
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.sequences import CrowdSequences, SpanScores, span_scores

RESULTS = Path(__file__).parent / "results" / "sequence_aggregation.json"
BY_TOKEN = ("majority-vote", "wawa", "dawid-skene", "one-coin", "glad", "mace", "ibcc")
# row -> name of the method and its settings
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{name}, {how}": (name, {"decoding": how}) for name in BY_TOKEN for how in ("each", "valid")},
    "span-majority-vote": ("span-majority-vote", {}),
    "span-majority-vote, share 0.3": ("span-majority-vote", {"share": 0.3}),
    "hmm-crowd, no words": ("hmm-crowd", {"words": 0}),
    "hmm-crowd": ("hmm-crowd", {}),
    "hmm-crowd, words 1": ("hmm-crowd", {"words": 1}),
    "bsc-seq, no words": ("bsc-seq", {"words": 0}),
    "bsc-seq": ("bsc-seq", {}),
    "bsc-seq, words 1": ("bsc-seq", {"words": 1}),
}
news = cache(load_ner_amt)
SETS: dict[str, Callable[[], CrowdSequences]] = {"ner": lambda: news().crowd, "generated": cache(generated_ner)}


def figures(scores: SpanScores) -> dict[str, float]:
    """What is kept of scores, in percent."""
    return {
        "tokens": round(100 * scores.token_accuracy, 2),
        "precision": round(100 * scores.precision, 2),
        "recall": round(100 * scores.recall, 2),
        "f1": round(100 * scores.f1, 2),
    }


def measure(name: str, row: str) -> Iterator[dict[str, Any]]:
    """One fit: figures and seconds."""
    crowd, (method, settings) = SETS[name](), ROWS[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        create(method, kind="sequence", **settings).fit(crowd.select(range(50)))
        begin = time.perf_counter()
        result = create(method, kind="sequence", **settings).fit(crowd)
        seconds = time.perf_counter() - begin
    yield {
        **figures(span_scores(crowd.gold_tags(), result.tags())),
        "seconds": round(seconds, 3),
    }


def published() -> Iterator[dict[str, Any]]:
    """The majority vote that was released."""
    yield figures(span_scores(news().published.gold_tags(), news().majority))


PARTS: Parts = {
    **{name: {row: partial(measure, name, row) for row in ROWS} for name in SETS},
    "published": {"majority vote": published},
}

if __name__ == "__main__":
    need(FOLDER, flag="--parts", values=("ner", "published"))
    run(RESULTS, PARTS, __doc__, keras=False)
