"""The real crowds of classes below CROWDZOO_DATA: annotations, gold, family and kind of each.

A family is one source with the same annotators or the same laboratory. Its crowds are not independent, so figures count
a family as one, and what is chosen on some crowds is shown on other families.
"""

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation.classes import robust
from crowdzoo.datasets import data_folder

__all__ = [
    "CROWDS", "FOLDS", "OLD", "UNSEEN", "Crowd", "family_mean", "fold_of", "read", "real_sets", "weights_without",
]  # fmt: skip

Read = tuple[Annotations, np.ndarray]


@dataclass(frozen=True)
class Crowd:
    """Where a crowd is, and what it is.

    Attributes:
        name: as the tables have it.
        family: crowds of one source.
        kind: people, doctors, models (mostly language models) or rules (label functions, which abstain).
        place: below `CROWDZOO_DATA`.
        read: gives annotations and gold codes [N], -1 where unknown.
    """

    name: str
    family: str
    kind: str
    place: str
    read: Callable[[Path], Read]


def codes(annotations: Annotations, truth: dict) -> np.ndarray:
    """Gold class codes, -1 where unknown, in the order of the tasks."""
    code = {str(name): code for code, name in enumerate(annotations.classes.tolist())}
    names = {str(task): str(name) for task, name in truth.items()}
    return np.array([code.get(names.get(str(task), ""), -1) for task in annotations.tasks.tolist()])


def _rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.DictReader(data.decode().splitlines(), delimiter=delimiter))


def _table(rows: list[dict[str, str]], task: str, annotator: str, label: str) -> Annotations:
    columns = ([row[name] for row in rows] for name in (task, annotator, label))
    return Annotations.from_arrays(*columns, on_duplicate="first")


def plain(folder: Path, answers: str = "answers.csv") -> Read:
    """Columns task,annotator,label and task,gold."""
    annotations = _table(_rows(folder / answers), "task", "annotator", "label")
    return annotations, codes(annotations, {row["task"]: row["gold"] for row in _rows(folder / "gold.csv")})


def truth_inference(folder: Path) -> Read:
    """Columns item,worker,label and item,truth."""
    labels = next(path for path in (folder / "label.csv", folder / "label.csv.gz") if path.exists())
    annotations = Annotations.from_arrays(
        *np.loadtxt(labels, np.int64, delimiter=",", skiprows=1).T, on_duplicate="first"
    )
    return annotations, codes(annotations, dict(np.loadtxt(folder / "truth.csv", np.int64, delimiter=",", skiprows=1)))


def music(folder: Path) -> Read:
    """Lines end in a bare carriage return."""
    with open(folder / "mturk_answers.csv", newline=None) as file:
        rows = list(csv.DictReader(file.read().splitlines()))
    annotations = _table(rows, "Input.song", "WorkerID", "Answer.pred_label")
    return annotations, codes(annotations, {row["Input.song"]: row["Input.true_label"] for row in rows})


def labelme(folder: Path) -> Read:
    """A matrix of answers, -1 where missing."""
    answers = np.loadtxt(folder / "clasda" / "answers.txt", np.int64)
    annotations = Annotations.from_dense(answers[:, (answers >= 0).any(axis=0)])
    return annotations, np.loadtxt(folder / "clasda" / "labels_train.txt", np.int64)


def snow(path: Path) -> Read:
    """A table of Snow et al. 2008, one row an annotation."""
    rows = _rows(path, "\t")
    annotations = _table(rows, "orig_id", "!amt_worker_ids", "response")
    return annotations, codes(annotations, {row["orig_id"]: row["gold"] for row in rows})


def ducks(folder: Path) -> Read:
    """Photographs; a duck is a mallard or an American black duck."""
    text = (folder / "classes.yaml").read_text(encoding="utf-8")
    species = {int(task): int(code) for task, code in re.findall(r"(\d+): (\d+)", text.partition("}")[0])}
    rows = np.loadtxt(folder / "labels.txt", np.int64, skiprows=1)
    annotations = Annotations.from_arrays(*rows.T, classes=(0, 1), on_duplicate="first")
    return annotations, np.array([int(species[int(task)] in (0, 2)) for task in annotations.tasks])


def medical(folder: Path, relation: str, tag: str) -> Read:
    """Sentences; whether one of two terms causes (treats) the other, with the gold of experts."""
    rows = _rows(folder / "raw_RelEx_noip.csv.gz")
    expert = {
        row["SID"]: {"1": 1, "-1": 0}.get(row["expert"], -1)
        for row in _rows(folder / f"ground_truth_{relation}.csv.gz")
    }
    tasks = [row["sent_id"].partition("-")[0] for row in rows]
    labels = [int(f"[{tag}]" in row["step_1_select_the_valid_relations"]) for row in rows]
    who = [row["_worker_id"] for row in rows]
    annotations = Annotations.from_arrays(tasks, who, labels, classes=(0, 1), on_duplicate="first")
    return annotations, np.array([expert.get(str(task), -1) for task in annotations.tasks])


TI, SNOW, CUBAM = "truth-inference", "snow2008/all_collected_data", "bluebirds-ducks-cubam/demo/ducks"
MEDICAL = "medical-relation-extraction"
OLDER = (
    ("bluebird", "cubam", "people", f"{TI}/bluebird", truth_inference),
    ("dog", "dog", "people", f"{TI}/dog", truth_inference),
    ("rte", "snow", "people", f"{TI}/rte", truth_inference),
    ("trec", "trec", "people", f"{TI}/trec", truth_inference),
    ("web", "web", "people", f"{TI}/web", truth_inference),
    ("d_sentiment", "d_sentiment", "people", f"{TI}/d_sentiment", truth_inference),
    ("face", "face", "people", f"{TI}/s4_Face-Sentiment-Identification", truth_inference),
    ("music", "music", "people", "music-genre-amt", music),
    ("labelme", "labelme", "people", "labelme-amt", labelme),
    ("CF", "CF", "people", f"{TI}/CF", truth_inference),
    ("ZenCrowd_in", "zencrowd", "people", f"{TI}/ZenCrowd_in", truth_inference),
    ("fact_eval", "fact_eval", "people", f"{TI}/fact_eval", truth_inference),
    ("temporal", "snow", "people", f"{SNOW}/temp.standardized.tsv", snow),
    ("wsd", "snow", "people", f"{SNOW}/wsd.standardized.tsv", snow),
    ("llm-judges", "llm-judges", "models", "llm-judges", partial(plain, answers="annotations.csv")),  # gold is NIST's
    ("ducks", "cubam", "people", CUBAM, ducks),
    ("causes", "medical", "people", MEDICAL, partial(medical, relation="cause", tag="CAUSES")),
    ("treats", "medical", "people", MEDICAL, partial(medical, relation="treat", tag="TREATS")),
    ("product", "product", "people", "crowds/product", plain),
    ("s4_Relevance", "trec", "people", "crowds/s4_Relevance", plain),
)
NEWER = {  # family, kind -> names
    ("approval", "people"): "approval_animals approval_languages approval_textures",
    ("llmcss", "models"): "llmcss_conv_go_awry llmcss_discourse llmcss_implicit_hate llmcss_persuasion llmcss_raop "
    "llmcss_semeval_stance llmcss_talklife llmcss_tempowic llmcss_wiki_corpus",
    ("mvh", "people"): "mvh_contrast mvh_edge mvh_eidolonII mvh_low_pass mvh_silhouette mvh_sketch mvh_uniform_noise",
    ("mbic", "people"): "mbic_bias mbic_opinion",
    ("mrmc", "doctors"): "mrmc_franken mrmc_nico mrmc_vandyke",
    ("oke", "people"): "oke2015 oke2016",
    ("ws", "rules"): "ws_sms ws_sst2 ws_youtube",
    ("babe_llm", "models"): "babe_llm",
    ("faithbench", "models"): "faithbench",
    ("brain_tumour", "doctors"): "brain_tumour",
    ("chexpert", "doctors"): "chexpert",
    ("ecg", "doctors"): "ecg",
    ("ct_events", "people"): "ct_events",
    ("dices350", "people"): "dices350",
    ("hatecheck", "people"): "hatecheck",
    ("imagenet15n", "people"): "imagenet15n",
    ("leaves", "people"): "leaves",
    ("metaphor_ordinal", "people"): "metaphor_ordinal",
    ("newsgroups", "people"): "newsgroups",
    ("proton_beam", "people"): "proton_beam",
}
UNSEEN = {  # nothing that ships was fitted to these
    ("nlu", "people"): "nlu_baseline nlu_crowd nlu_justification",
    ("blimp", "people"): "blimp",
    ("immigration", "people"): "immigration",
    ("mmlu_pro", "models"): "mmlu_pro",
    ("tennis_rules", "rules"): "tennis_rules",
    ("viper", "doctors"): "viper",
}
OLD = tuple(row[0] for row in OLDER)
CROWDS = {row[0]: Crowd(*row) for row in OLDER} | {
    name: Crowd(
        name,
        family,
        kind,
        f"crowds/{name}",
        partial(plain, answers="answers_independent.csv") if name == "ecg" else plain,  # two others made its gold
    )
    for (family, kind), names in (NEWER | UNSEEN).items()
    for name in names.split()
}
FOLDS = 6


def fold_of(family: str) -> int | None:
    """Families in turn, largest first, so that each fold has some crowds of many sorts; None for UNSEEN ones."""
    unseen = {name for name, _ in UNSEEN}
    if family in unseen:
        return None
    families = [crowd.family for crowd in CROWDS.values() if crowd.family not in unseen]
    return sorted(set(families), key=lambda name: (-families.count(name), name)).index(family) % FOLDS


@contextmanager
def weights_without(family: str) -> Iterator[None]:
    """`robust` has weights that were fitted to other families, by `learned/train.py folds`."""
    shipped, fold = robust.WEIGHTS, fold_of(family)
    if fold is not None:
        robust.WEIGHTS = Path(__file__).parents[1] / "build" / "robust" / f"fold{fold}.npz"
    try:
        yield
    finally:
        robust.WEIGHTS = shipped


def family_mean(values: dict[str, float]) -> float:
    """Mean over families of the means over their crowds, by the crowds' names."""
    families = defaultdict(list)
    for name, value in values.items():
        families[CROWDS[name].family].append(value)
    return float(np.mean([np.mean(family_values) for family_values in families.values()]))


def read(names: tuple[str, ...] = tuple(CROWDS)) -> Iterator[tuple[Crowd, Annotations, np.ndarray]]:
    """The crowds that are there."""
    for name in names:
        crowd = CROWDS[name]
        if (data_folder() / crowd.place).exists():
            yield crowd, *crowd.read(data_folder() / crowd.place)


def real_sets(names: tuple[str, ...] = OLD[:9]) -> Iterator[tuple[str, Annotations, np.ndarray]]:
    """The same by the crowds' names; nine that other papers have figures of by default."""
    for crowd, annotations, gold in read(names):
        yield crowd.name, annotations, gold
