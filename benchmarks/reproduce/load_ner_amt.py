"""News of CoNLL-2003 with entities marked by workers on Amazon Mechanical Turk."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.tags import TagSet
from crowdzoo.datasets.crowd_dataset import data_folder
from crowdzoo.errors import DataError
from crowdzoo.reading.sentences.conll_files import read_conll, read_gold

FOLDER = "conll2003-ner-amt-izhx"
CLASSES = ("O", "B-LOC", "B-MISC", "B-ORG", "B-PER", "I-LOC", "I-MISC", "I-ORG", "I-PER")
# what was released of the answers, in three files that overlap
ANSWERS = ("small/answers.txt.gz", "one-third/answers.txt.gz", "answers-15.txt.gz")


@dataclass(frozen=True, eq=False)
class NerAmt:
    """The set in parts; all have the same nine classes.

    Attributes:
        crowd: sentences with the answers of 47 annotators, and gold.
        published: all 5,985 sentences that annotators once labelled, with gold and no annotators.
        majority: for `published`, the tags of the majority vote that were released with it, N lists [T_i] of strings;
            232 of those tags break the scheme.
        test: 3,250 sentences with gold, on which the papers report.
        rest: the other 3,453 sentences with gold that come with the set (CoNLL-2003's own test part).
    """

    crowd: CrowdSequences
    published: CrowdSequences
    majority: list[list[str] | None]
    test: CrowdSequences
    rest: CrowdSequences


def load_ner_amt(*, distinct: bool = True, folder: str | Path | None = None) -> NerAmt:
    """Loads the released part of the named entities of Rodrigues, Pereira and Ribeiro.

    The full file of answers is not available. The union of three released parts, each sentence as often as in the part
    that has it most often, is 3,082 sentences with 15,270 tagged copies. Some are the same text; `distinct` keeps the
    first of each, in the order of the parts. Tags that break BIO are corrected (the same spans by conlleval's rules).
    The text is Reuters news and may not be passed on, so it does not ship.

    Args:
        distinct: keep each sentence once: 2,845.
        folder: where the set lies; None is `conll2003-ner-amt-izhx` in `data_folder()`.

    Returns:
        Crowd, test set and the published majority vote. Gold of a sentence that occurs more than once in the published
        5,985 is that of its first place.

    Raises:
        DataError: the folder is not there, or a file in it is not the released one.

    Source:
        F. Rodrigues, F. Pereira, B. Ribeiro: Sequence labeling with multiple annotators. Machine Learning 95(2), 2014;
        E. Tjong Kim Sang, F. De Meulder: Introduction to the CoNLL-2003 shared task. CoNLL 2003.
    """
    place = (data_folder() / FOLDER if folder is None else Path(folder)) / "data"
    if not place.is_dir():
        raise DataError(
            f"{place} does not exist. The set may not be passed on with crowdzoo: get the data of izhx/crowd-NER, "
            f"and let CROWDZOO_DATA name the folder that holds {FOLDER}."
        )
    published = _gold(place / "ground_truth.txt.gz")
    majority = read_gold(place / "mv.txt.gz", classes=CLASSES, on_bad_tags="keep")
    if majority.tokens != published.tokens:
        raise DataError(f"{place}: mv.txt.gz and ground_truth.txt.gz do not hold the same sentences. Copy them again.")
    return NerAmt(
        crowd=_union(place, published, distinct),
        published=published,
        majority=majority.gold_tags(),
        test=_gold(place / "dev.bio.gz"),
        rest=_gold(place / "test.bio.gz"),
    )


def _gold(path: Path) -> CrowdSequences:
    return read_gold(path, classes=CLASSES, on_bad_tags="mend")


def _union(place: Path, published: CrowdSequences, distinct: bool) -> CrowdSequences:
    tag_set = TagSet(CLASSES)
    truths: dict[tuple[str, ...], np.ndarray | None] = {}
    assert published.gold is not None
    for tokens, codes in zip(published.tokens, published.gold, strict=True):
        truths.setdefault(tuple(tokens), codes)
    kept: Counter[tuple] = Counter()
    sentences: list[tuple[str, ...]] = []
    rows: list[tuple[int, int, np.ndarray]] = []
    known: set[tuple[str, ...]] = set()
    for name in ANSWERS:
        part = read_conll(place / name, annotators=range(1, 48), classes=CLASSES, on_bad_tags="mend")
        here: Counter[tuple] = Counter()
        for task, tokens in enumerate(part.tokens):
            own = tuple(tokens)
            answers = part.answers(task)
            key = (own, tuple((who, tuple(tags)) for who, tags in answers.items()))
            here[key] += 1
            if own not in truths:
                raise DataError(f"{place / name}: sentence {task} is not in ground_truth.txt.gz. Copy the files again.")
            if here[key] <= kept[key]:
                continue
            kept[key] = here[key]
            if distinct and own in known:
                continue
            known.add(own)
            rows += [(len(sentences), who - 1, tag_set.codes(tags)) for who, tags in answers.items()]
            sentences.append(own)
    crowd = sentence_annotations(rows, np.arange(len(sentences)), np.arange(1, 48), CLASSES)
    gold = [truths[tokens] for tokens in sentences]
    return CrowdSequences(sentences, crowd, gold)
