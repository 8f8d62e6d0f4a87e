"""Aggregation of free texts: by hand, and equal to Crowd-Kit."""

import numpy as np
import pytest

from crowdzoo.aggregation import ROVER, TEXT_METHODS, TextAggregation, TextHRRASA, TextMedoid, TextRASA, create
from crowdzoo.aggregation.free_texts.edits import edits
from crowdzoo.aggregation.free_texts.tokens import Tokens
from crowdzoo.errors import DataError
from crowdzoo.tables import Annotations

WORDS = ["a", "man", "saw", "the", "big", "red", "dog", "run", "over", "his", "old", "hat"]


def crowd_of(texts, kind="free-text"):
    """Texts by task, one annotator after the other."""
    rows = [(task, f"w{who}", text) for task, of in texts.items() for who, text in enumerate(of)]
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind=kind)


def noisy_crowd(num_tasks=40, seed=0):
    """Sentences of which annotators lose, double and change words, each at a rate of their own; some tasks have one."""
    draw = np.random.default_rng(seed)
    rates = draw.uniform(0.02, 0.5, 9)
    rows = []
    for task in range(num_tasks):
        true = draw.choice(WORDS, draw.integers(3, 10)).tolist()
        for who in draw.choice(9, 1 if task % 13 == 0 else draw.integers(2, 7), replace=False).tolist():
            said = [draw.choice(WORDS) if draw.random() < rates[who] else word for word in true]
            said = [word for word in said for _ in range(draw.choice([0, 1, 2], p=[0.05, 0.9, 0.05]))] or ["a"]
            rows.append((task, f"w{who}", " ".join(said)))
    order = draw.permutation(len(rows))
    return [rows[row] for row in order]


def frame_of(rows):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(rows, columns=["task", "worker", "text"])


def vectors(texts):
    """Counts of words, and a number that depends on their order."""
    single = isinstance(texts, str)
    rows = []
    for words in map(str.split, [texts] if single else texts):
        order = sum(place * WORDS.index(word) for place, word in enumerate(words))
        rows.append([words.count(word) for word in WORDS] + [order / 50])
    return np.array(rows[0] if single else rows)


@pytest.mark.parametrize(
    ("said", "true", "counts"),
    [("a b c", "a b c", [0, 0, 0]), ("a x c", "a b c", [1, 0, 0]), ("a b c d", "a b c", [0, 1, 0]),
     ("b c", "a b c", [0, 0, 1]), ("", "a b", [0, 0, 2]), ("x b y z", "a b c", [2, 1, 0])],
)  # fmt: skip
def test_edits_are_counted_by_kind(said, true, counts):
    tokens = Tokens.of([said, true])
    assert edits(tokens, np.array([0]), np.array([1])).tolist() == [counts]


@pytest.mark.parametrize(
    ("normalize", "text"),
    [("blanks", "“Don’t”, he said: É-mail 5"), ("case", "“don’t”, he said: é-mail 5"),
     ("punctuation", "Don't he said É mail 5"), ("words", "don't he said é mail 5")],
)  # fmt: skip
def test_texts_are_compared_as_they_are_normalized(normalize, text):
    assert Tokens.of(["  “Don’t”,  he said: E\u0301-mail\t5 "], normalize=normalize).texts == [text]


def test_marks_of_other_scripts_belong_to_their_letters():
    assert Tokens.of(["हिन्दी, हाँ।"], normalize="words").texts == ["हिन्दी हाँ"]


def test_rover_equals_crowd_kit_letter_by_letter():
    kit = pytest.importorskip("crowdkit.aggregation")
    rows = noisy_crowd(40)
    expected = kit.ROVER(str.split, " ".join).fit_predict(frame_of(rows))
    found = ROVER().fit(Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="free-text"))
    assert dict(zip(found.tasks.tolist(), found.texts.tolist(), strict=True)) == expected.to_dict()


def likeness(said, other):
    from nltk import edit_distance

    said, other = said.split(), other.split()
    return 1 - edit_distance(said, other) / max(len(said), len(other))


@pytest.mark.parametrize(("seed", "out"), [pytest.param(0, 0.0, marks=pytest.mark.slow), (1, 0.5)])
def test_rasa_and_hrrasa_equal_crowd_kit(seed, out):
    kit = pytest.importorskip("crowdkit.aggregation")
    rows = noisy_crowd(60, seed)
    table = Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="free-text")
    pairs = [
        (kit.TextRASA(vectors), TextRASA(features=vectors, corrected=False)),
        (kit.TextHRRASA(vectors, lambda_emb=1 - out, lambda_out=out, output_similarity=likeness),
         TextHRRASA(features=vectors, lambda_emb=1 - out, lambda_out=out, corrected=False)),
    ]  # fmt: skip
    for theirs, ours in pairs:
        texts = theirs.fit_predict(frame_of(rows), None)
        found = ours.fit(table)
        assert dict(zip(found.tasks.tolist(), found.texts.tolist(), strict=True)) == texts.to_dict()
        skills = dict(zip(found.annotators.tolist(), found.skills.tolist(), strict=True))
        assert skills == pytest.approx(theirs.skills_.to_dict(), rel=1e-6)


def test_the_medoid_of_vectors_is_crowd_kits_closest_to_average():
    kit = pytest.importorskip("crowdkit.aggregation")
    rows = noisy_crowd(60, 3)
    sizes = np.bincount([row[0] for row in rows])
    rows = [row for row in rows if sizes[row[0]] != 2]  # two texts are equally far from their mean
    theirs = kit.ClosestToAverage(lambda one, other: float(((one - other) ** 2).sum()))
    frame = frame_of(rows).rename(columns={"text": "output"})
    frame["embedding"] = list(vectors([row[2] for row in rows]))
    found = TextMedoid(features=vectors).fit(
        Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="free-text")
    )
    average = frame.groupby("task")["embedding"].apply(lambda each: np.mean(list(each), axis=0))
    expected = theirs.fit_predict(frame, average)["output"].to_dict()
    assert dict(zip(found.tasks.tolist(), found.texts.tolist(), strict=True)) == expected


CAT = {1: ["a cat sat", "A cat, sat!", "the cat", "the cat", "a  cat sat"], 2: ["only one"]}


@pytest.mark.parametrize("method", [*TEXT_METHODS])
def test_every_method_gives_a_text_a_task_and_is_read_again(method, tmp_path):
    crowd = crowd_of(CAT)
    with_empty = crowd.select_tasks([1, 0])
    found = create(method, kind="free-text", normalize="words").fit(with_empty)
    assert found.texts.tolist() == ["only one", "a cat sat"]
    assert ((found.confidence > 0.4) & (found.confidence < 1)).all()
    assert found.confidence[0] == pytest.approx(2 / 3)  # neighbours of task 1: 1, 1 / 3, 1, 1 / 3
    assert found.agreement.min() == pytest.approx(1 / 3)
    again = TextAggregation.from_parquet(found.to_parquet(tmp_path / "out"))
    assert (again.texts.tolist(), again.normalize, again.unit) == (found.texts.tolist(), "words", "words")
    assert (again.skills is None) == (found.skills is None)
    assert found.to_frame()["text"].tolist() == found.texts.tolist()


def test_characters_are_aligned_where_a_script_has_no_blanks():
    crowd = crowd_of({1: ["東京都に住む", "東京に住む", "東京都に往む"]})
    assert ROVER(unit="characters").fit(crowd).texts.tolist() == ["東京都に住む"]
    assert ROVER().fit(crowd).texts.tolist() == ["東京都に往む"]  # three words, said once each: the later one


def test_tasks_that_nobody_answered_have_no_text():
    crowd = Annotations.from_arrays(["a"], ["x"], ["yes"], kind="free-text", tasks=["a", "b"])
    for method in TEXT_METHODS:
        found = create(method, kind="free-text").fit(crowd)
        assert (found.texts.tolist(), found.confidence.tolist()) == (["yes", ""], [0, 0])


def test_ngrams_are_those_counted_by_hand():
    texts = ["", "ab", "abab", "ab  ab", "xyz"]
    runs = [{}, {" ab": 1, "ab ": 1}, {" ab": 1, "aba": 1, "bab": 1, "ab ": 1},
            {" ab": 2, "ab ": 2, "b a": 1}, {" xy": 1, "xyz": 1, "yz ": 1}]  # fmt: skip
    found = Tokens.of(texts).ngrams().toarray()
    for one in range(5):
        for other in range(5):
            norms = np.sqrt(sum(n**2 for n in runs[one].values()) * sum(n**2 for n in runs[other].values()))
            inner = sum(number * runs[other].get(run, 0) for run, number in runs[one].items())
            assert found[one] @ found[other] == pytest.approx(inner / norms if norms else 0)


@pytest.mark.parametrize("method", [TextRASA, TextHRRASA, TextMedoid])
def test_ngrams_are_vectors_as_any_others(method):
    rows = noisy_crowd()
    crowd = Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="free-text")
    own = method(features=lambda texts: Tokens.of(texts).ngrams().toarray()).fit(crowd)
    found = method(features="ngrams").fit(crowd)
    assert found.texts.tolist() == own.texts.tolist()
    assert found.skills is own.skills is None or found.skills == pytest.approx(own.skills)


def test_effective_votes_are_kishs_number():
    crowd = crowd_of({1: ["a b", "a b", "c d"], 2: ["a b", "a b c"], 3: ["x"]}).select_tasks([0, 1, 2])
    found = TextRASA().fit(crowd)
    weights = [found.skills[:size] for size in (3, 2, 1)]
    assert found.effective_votes == pytest.approx([sum(own) ** 2 / sum(own**2) for own in weights])
    assert found.effective_votes[0] < 3
    assert TextMedoid().fit(crowd).effective_votes.tolist() == [3, 2, 1]


def test_annotators_with_high_skill_decide():
    """Three of five agree on every task but the last, where each of the other two has company."""
    texts = {task: [f"the {word} is here"] * 3 + [f"{word} no", f"nothing {word}"] for task, word in enumerate(WORDS)}
    texts[99] = ["left", "left", "right way", "right way", "right way"]
    found = TextRASA().fit(crowd_of(texts))
    assert found.skills[:3].min() > 5 * found.skills[3:].max()
    assert found.texts[-1] == "left"
    assert create("most-frequent", kind="free-text").fit(crowd_of(texts)).texts[-1] == "right way"


def test_skills_are_inverse_variances_also_of_a_few_annotators():
    rng, spread = np.random.default_rng(0), np.array([1.0, 1.0, 1.5, 2.0])
    drawn = rng.normal(3, 1, (300, 1, 20)) + spread[:, None] * rng.normal(size=(300, 4, 20))
    texts = {task: [f"{task} {who}" for who in range(4)] for task in range(300)}
    texts[300] = ["alone"]

    def vectors(said):
        return np.array([np.ones(20) if one == "alone" else drawn[tuple(map(int, one.split()))] for one in said])

    found, published = (TextRASA(features=vectors, corrected=own).fit(crowd_of(texts)).skills for own in (True, False))
    assert found * spread**2 / found[0] == pytest.approx(np.ones(4), rel=0.1)
    assert published[0] > 7 * published[3]  # who is 4 times as bad


def test_other_annotations_and_vectors_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="free-text"):
        ROVER().fit(crowd_of({1: ["yes", "no"]}, kind="classification"))
    with pytest.raises(DataError, match=r"finite numbers .5 texts, size., got shape \(5,\)"):
        TextRASA(features=lambda texts: np.ones(len(texts))).fit(crowd_of(CAT))
    twice = Annotations.from_arrays([1, 1], ["x", "x"], ["a", "b"], kind="free-text", on_duplicate="all")
    with pytest.raises(DataError, match="one label per annotator"):
        ROVER().fit(twice)
