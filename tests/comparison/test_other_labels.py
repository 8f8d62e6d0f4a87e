"""Methods for sentences, preferences and several labels compared on one's own data."""

import dataclasses

import keras
import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import f1_score

from crowdzoo import Annotations, ConfigError, DataError, compare
from crowdzoo.aggregation import MultiLabel, create
from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.quality.span_scores import span_scores
from crowdzoo.training.settings import TaggerSettings


def by_method(comparison):
    return comparison.frame.set_index("method")


def tagged(num_sentences=60, seed=0):
    """Sentences of six words with one person each; three annotators, the last of whom often sees nothing."""
    rng = np.random.default_rng(seed)
    names = np.array(["O", "B-PER", "I-PER"], object)
    tokens, gold, answers = [], [], []
    for task in range(num_sentences):
        start = int(rng.integers(0, 5))
        true = np.zeros(6, np.int64)
        true[start : start + 2] = 1, 2
        tokens.append([("Ann", "Lee")[code - 1] if code else f"word{rng.integers(9)}" for code in true])
        gold.append(true if task % 3 else None)
        for annotator, miss in enumerate((0.05, 0.1, 0.7)):
            answers.append((task, annotator, np.zeros(6, np.int64) if rng.random() < miss else true))
    annotations = sentence_annotations(answers, np.arange(num_sentences), np.arange(3), names.tolist())
    return CrowdSequences(tokens, annotations, gold)


def written(num_tasks=25):
    """Four annotators' texts of three words: one is right, two change a word in turn, one always drops the last."""
    rows = []
    for task in range(num_tasks):
        true = f"A{task} b{task} c{task}"
        said = [true, true.replace("b", "x" if task % 2 else "b"), true.replace("A", "A" if task % 2 else "y")]
        rows += [(task, f"w{who}", text) for who, text in enumerate([*said, true.rpartition(" ")[0]])]
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="free-text")


def test_free_texts_are_scored_by_their_errors_normalized_alike_for_all():
    crowd = written()
    gold = np.array([f"a{task} b{task} c{task} d" if task < 20 else "" for task in range(25)])  # four words each
    found = compare(crowd, gold=gold, methods="quick", normalize="case")
    table = by_method(found)
    assert table.loc["medoid", "score"] == pytest.approx(-1 / 4)  # the right text lacks a word; case does not count
    assert table.loc["medoid", "without error"] == 0
    assert found.num_tasks == 20
    assert set(table.index) == {"most-frequent", "medoid", "rover", "text-rasa", "text-hrrasa"}
    with_case = compare(crowd, gold=gold, methods=["medoid", "medoid normalize=case"])
    assert with_case.frame["score"].tolist()[1:] == pytest.approx([-2 / 4] * 2)  # one rule for all: blanks


def test_free_texts_without_gold_are_scored_by_hidden_texts():
    crowd = written()
    found = compare(crowd, methods=["medoid"], seeds=[3])
    assert found.measure == "error rate of hidden texts, negative"
    wrong = words = 0
    for part in range(5):  # by hand: the same rows hidden, errors counted word by word, as all texts have an order
        hidden = np.random.default_rng([3, 5]).permutation(len(crowd)) % 5 == part
        hidden &= np.bincount(crowd.task_ids[~hidden], minlength=25)[crowd.task_ids] > 0
        texts = create("medoid", kind="free-text").fit(crowd.select_rows(~hidden)).texts
        for task, said in zip(crowd.task_ids[hidden], crowd.values[crowd.labels[hidden]], strict=True):
            one, other = texts[task].split(), said.split()
            wrong += sum(a != b for a, b in zip(one, other, strict=False)) + abs(len(one) - len(other))
            words += len(other)
    assert by_method(found).loc["medoid", "score"] == pytest.approx(-wrong / words)
    with pytest.raises(ConfigError, match="no method learns from free texts"):
        compare(crowd, np.zeros((25, 2)))


def test_sentences_are_scored_by_spans_with_their_own_gold_and_ask_for_it():
    crowd = tagged()
    found = compare(crowd, methods=["bsc-seq", "span-majority-vote"])
    result = create("span-majority-vote", kind="sequence").fit(crowd)
    scores = span_scores(crowd.gold_tags(), result.tags())
    row = by_method(found).loc["span-majority-vote"]
    assert row[["score", "precision", "recall", "token accuracy"]].tolist() == pytest.approx(
        [scores.f1, scores.precision, scores.recall, scores.token_accuracy]
    )
    assert found.num_tasks == 40
    assert found.measure == "F1 of spans"
    named = compare(crowd, gold=crowd.gold_tags(), methods=["span-majority-vote"])
    assert by_method(named).loc["span-majority-vote", "score"] == row["score"]
    blind = dataclasses.replace(crowd, gold=None)
    with pytest.raises(DataError, match="sentences need gold; for spans lines with"):
        compare(blind)
    with pytest.raises(DataError, match="give the CrowdSequences, whose tokens the methods see"):
        compare(crowd.annotations)


@pytest.mark.usefixtures("eager")
def test_taggers_learn_from_sentences_that_are_not_hidden(answer_for_models):
    crowd, given = tagged(75), []

    def trained(settings, x, measure, kept, hidden, targets, *_, **__):
        given.append((settings.method, kept, hidden, targets))
        wrong = np.zeros(6) if settings.method == "deep-em" else None
        return np.concatenate([measure.gold[task] if wrong is None else wrong for task in hidden])[:, None]

    answer_for_models(trained)
    held_out = np.arange(75) >= 40
    found = compare(crowd, settings=TaggerSettings(epochs=1), held_out=held_out, methods=["deep-em", "gold"])
    assert [method for method, *_ in given] == ["aggregated", "deep-em", "aggregated"]
    assert all((kept < 40).all() and (hidden >= 40).all() for _, kept, hidden, _ in given)
    assert [len(kept) for _, kept, *_ in given] == [40, 40, 26]  # whose tags are known
    assert given[2][3][0].tolist() == np.eye(3)[crowd.gold[1]].tolist()
    assert by_method(found)["score"].to_dict() == {"majority-vote": 1, "gold": 1, "deep-em": 0}
    with pytest.raises(ConfigError, match="leave out instances and tasks"):
        compare(crowd, ["a text"])
    with pytest.raises(ConfigError, match="the settings name the network for sentences: leave it out"):
        compare(crowd, settings=TaggerSettings(), base=keras.Sequential())


def judged(num_tasks=40, number=700, seed=0):
    """Scores, and preferences by six annotators of different care; nobody judges a pair twice."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=num_tasks)
    left, who = rng.integers(0, num_tasks, number), rng.integers(0, 6, number)
    right = (left + rng.integers(1, num_tasks, number)) % num_tasks
    lead = np.array([3, 3, 2, 1, 0.3, 0])[who] * (quality[left] - quality[right]) + rng.logistic(size=number)
    said = np.where(np.abs(lead) < 0.3, "equal", np.where(lead > 0, "left", "right"))
    first = np.unique(np.stack([left, right, who]), axis=1, return_index=True)[1]
    columns = (each[first] for each in (left, who, said))
    crowd = Annotations.from_arrays(*columns, right=right[first], kind="preference", tasks=range(num_tasks))
    return crowd, quality


def test_preferences_are_scored_by_the_order_of_pairs_of_tasks():
    crowd, gold = judged()
    gold[:5] = np.nan
    found = by_method(compare(crowd, gold=gold))
    scores = create("crowd-bt", kind="preference").fit(crowd).scores[5:]
    agree = kendalltau(scores, gold[5:]).statistic
    assert found.loc["crowd-bt", "score"] == pytest.approx((1 + agree) / 2)
    assert found.loc["crowd-bt", "Spearman's rho"] == pytest.approx(spearmanr(scores, gold[5:]).statistic)
    # the interval is near that of drawing the tasks themselves
    both = [create(name, kind="preference").fit(crowd).scores[5:] for name in ("crowd-bt", "bradley-terry")]
    drawn = []
    for chosen in np.random.default_rng(0).integers(0, 35, (600, 35)):
        order = np.sign(gold[5:][chosen, None] - gold[5:][chosen])
        right = [(order * np.sign(one[chosen, None] - one[chosen]))[order != 0].mean() / 2 for one in both]
        drawn.append(right[0] - right[1])
    row = found.loc["crowd-bt"]
    width = row["against_baseline_high"] - row["against_baseline_low"]
    assert width == pytest.approx(np.subtract(*np.quantile(drawn, [0.975, 0.025])), rel=0.2)


def test_without_gold_preferences_are_scored_by_what_methods_say_of_hidden_ones(monkeypatch):
    monkeypatch.setattr("crowdzoo.training.held_out_annotations.TEMPERATURES", np.array([1.0]))
    crowd, _ = judged()
    found = by_method(compare(crowd))
    total = count = 0
    part_of = np.random.default_rng([0, 5]).permutation(len(crowd)) % 5
    for part in range(5):
        seen = crowd.select_rows(part_of != part)
        there = seen.redundancy > 0
        hidden = crowd.select_rows((part_of == part) & there[crowd.task_ids] & there[crowd.right_ids])
        share = create("annotator-bradley-terry", kind="preference").fit(seen).answer_probabilities(hidden)
        total += np.log(share[np.arange(len(hidden)), hidden.labels]).sum()
        count += len(hidden)
    assert found.loc["annotator-bradley-terry", "score"] == pytest.approx(total / count, rel=1e-4)
    assert found.index[-1] == "bradley-terry"


def test_true_scores_that_are_all_the_same_are_refused():
    crowd, _ = judged()
    with pytest.raises(DataError, match="gold tells no answers apart, as all of it is the same"):
        compare(crowd, gold=np.ones(crowd.num_tasks))


def test_several_labels_are_scored_by_the_labels_that_hold():
    rng = np.random.default_rng(0)
    holds = rng.random((120, 3)) < 0.3
    rows = []
    for task, annotator in np.ndindex(120, 4):
        said = holds[task] ^ (rng.random(3) < [0.05, 0.1, 0.2, 0.3][annotator])
        rows += [(task, annotator, "abc"[label]) for label in np.flatnonzero(said)] or [(task, annotator, "(none)")]
    crowd = Annotations.from_arrays(*zip(*rows, strict=True), tasks=range(120), on_duplicate="all")
    gold = {name: holds[:, place].astype(int) for place, name in enumerate("abc")}
    gold["b"][:40] = -1
    found = by_method(compare(crowd, gold=gold, methods=["wawa"]))
    chosen = MultiLabel("wawa").fit(crowd).chosen
    known = np.stack([gold[name] >= 0 for name in "abc"], axis=1)
    assert found.loc["wawa", "score"] == pytest.approx(f1_score(holds[known], chosen[known]))
    assert found.loc["wawa", "accuracy"] == pytest.approx((holds == chosen)[known].mean())
    each = [f1_score(holds[known[:, k], k], chosen[known[:, k], k]) for k in range(3)]
    assert found.loc["wawa", "mean F1"] == pytest.approx(np.mean(each))
    with pytest.raises(ConfigError, match="no deep method learns several labels at once"):
        compare(crowd, np.zeros((120, 2)), gold)
    with pytest.raises(DataError, match=r"gold of label 'd' has to be 1, 0 or -1 for each task"):
        compare(crowd, gold={"d": gold["a"]})
