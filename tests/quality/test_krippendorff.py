import numpy as np
import pandas as pd
import pytest
import slow_measures as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import annotations as tables

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.commands import main as cli
from crowdzoo.quality import coincidence_matrix, krippendorff_alpha
from crowdzoo.quality.krippendorff import METRICS

few = settings(max_examples=40, deadline=None)

_ = -1
# Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011, example C and D: four observers, twelve units
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


def published():
    return Annotations.from_dense(np.array(OBSERVERS).T)


@pytest.mark.parametrize(
    ("metric", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_krippendorffs_own_example(metric, value):
    result = krippendorff_alpha(published(), metric)
    assert result.value == pytest.approx(value, abs=5e-4)
    assert float(result) == result.value
    assert (result.num_tasks, result.num_annotations) == (11, 40)
    assert result.value == 1 - result.observed / result.expected


@few
@given(tables(max_tasks=8), st.sampled_from(METRICS), st.data())
def test_the_fast_form_equals_pair_by_pair(table, metric, data):
    values = None
    if metric != "nominal":
        values = data.draw(st.lists(st.integers(0, 5), min_size=table.num_classes, max_size=table.num_classes))
    expected = slow.alpha(table, metric, values)
    if expected is None:
        with pytest.raises(DataError, match="not defined"):
            krippendorff_alpha(table, metric, values=values)
        return
    if metric == "ordinal" and len(set(values)) < len(values):  # equal values are one category
        merged = np.unique(values, return_inverse=True)[1]
        table = Annotations("classification", table.task_ids, table.annotator_ids, merged[table.labels], table.tasks,
                            table.annotators, np.arange(max(merged) + 1))  # fmt: skip
        expected = slow.alpha(table, metric)
        values = None
    assert krippendorff_alpha(table, metric, values=values).value == pytest.approx(expected, abs=1e-9)


@few
@given(tables(kind="regression", max_tasks=8), st.sampled_from(METRICS))
def test_numbers_need_no_pairs_either(table, metric):
    positive = np.abs(table.labels) if metric == "ratio" else table.labels
    table = Annotations("regression", table.task_ids, table.annotator_ids, np.float32(positive) % 8, table.tasks,
                        table.annotators)  # fmt: skip
    expected = slow.alpha(table, metric)
    if expected is None:
        with pytest.raises(DataError, match="not defined"):
            krippendorff_alpha(table, metric)
    else:
        assert krippendorff_alpha(table, metric).value == pytest.approx(expected, rel=1e-6, abs=1e-6)


@few
@given(tables(max_tasks=8))
def test_the_coincidence_matrix_equals_pair_by_pair(table):
    matrix = coincidence_matrix(table)
    np.testing.assert_allclose(matrix, slow.coincidences(table), atol=1e-12)
    assert matrix.sum() == pytest.approx(sum(len(x) for x in slow.by_task(table).values() if len(x) > 1))


def test_the_bootstrap_is_that_of_whole_tasks():
    """Each sample is alpha of a table that repeats the drawn tasks: made here row by row."""
    table = published()
    drawn = np.random.default_rng(7)
    pairable = [task for task in range(12) if (table.task_ids == task).sum() > 1]
    alphas = []
    for _sample in range(30):
        rows = []
        for new, place in enumerate(drawn.integers(0, len(pairable), len(pairable))):
            mine = table.task_ids == pairable[place]
            rows += [
                (new, who, label) for who, label in zip(table.annotator_ids[mine], table.labels[mine], strict=True)
            ]
        alphas.append(krippendorff_alpha(Annotations.from_arrays(*zip(*rows, strict=True)), "ordinal").value)
    result = krippendorff_alpha(table, "ordinal", bootstrap=30, confidence=0.8, seed=7)
    np.testing.assert_allclose((result.low, result.high), np.quantile(alphas, [0.1, 0.9]))
    assert (result.confidence, result.num_samples) == (0.8, 30)


def test_the_seed_decides_and_steps_are_counted():
    steps = []
    one = krippendorff_alpha(published(), bootstrap=50, seed=1, on_sample=lambda: steps.append(1))
    assert len(steps) == 50
    assert one == krippendorff_alpha(published(), bootstrap=50, seed=1)
    assert one != krippendorff_alpha(published(), bootstrap=50, seed=2)
    assert str(one) == f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"
    assert str(krippendorff_alpha(published())) == "0.743"


def test_far_away_numbers_lose_nothing():
    labels = np.array([1.0, 2.0, 8.0, 8.5, 3.0, 3.5])
    near, far = (
        Annotations.from_arrays([0, 0, 1, 1, 2, 2], [0, 1] * 3, labels + offset, kind="regression")
        for offset in (0, 2.0**33)
    )
    assert krippendorff_alpha(near).value == pytest.approx(krippendorff_alpha(far).value, rel=1e-9)


WORDS = Annotations.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], ["low", "high", "low", "low"])


@pytest.mark.parametrize(
    ("table", "options", "error", "message"),
    [
        (WORDS, {"metric": "nominl"}, ConfigError, "Did you mean 'nominal'"),
        (WORDS, {"metric": "interval"}, DataError, r"names such as 'high'.*values=\[...\]"),
        (WORDS, {"metric": "interval", "values": [1]}, DataError, "each of the 2 classes"),
        (WORDS, {"metric": "interval", "values": [1, np.nan]}, DataError, "finite"),
        (WORDS, {"metric": "interval", "values": [1, 1e200]}, DataError, "divide"),
        (WORDS, {"metric": "ratio", "values": [-1, 1]}, DataError, "0 or more, got -1"),
        (WORDS, {"values": [0, 1]}, ConfigError, "no meaning for the nominal"),
        (WORDS, {"bootstrap": -1}, ConfigError, "bootstrap must be an integer"),
        (WORDS, {"confidence": 1.0}, ConfigError, "above 0 and below 1"),
        (WORDS, {"seed": -1}, ConfigError, "seed"),
        (Annotations.from_arrays([0, 1], [0, 0], ["a", "b"]), {}, DataError, "no task has two annotations"),
        (Annotations.from_dense(np.full((2, 2), -1), classes=["a"]), {}, DataError, "no task has two annotations"),
        (Annotations.from_arrays([0, 0, 1], [0, 1, 0], ["a", "a", "b"]), {}, DataError, "all 2 annotations"),
        (
            Annotations.from_arrays([0, 0, 0], [0, 1, 2], [0.1, 0.1, 0.1], kind="regression"), {}, DataError,
            "all 3 annotations",
        ),
        (
            Annotations.from_arrays([0, 0], [0, 1], [0.1, 0.2], kind="regression"), {"values": [1, 2]}, ConfigError,
            "numbers already",
        ),
        (
            Annotations.from_arrays(np.arange(6000) // 2, np.arange(6000) % 2, np.arange(6000.0), kind="regression"),
            {"metric": "ratio"}, DataError, "6,000 different numbers",
        ),
        (
            Annotations.from_arrays([0, 0], [0, 1], ["a", "b"], kind="sequence", position=[0, 0]), {}, DataError,
            "kind 'classification' or 'regression', got kind 'sequence'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_said(table, options, error, message):
    with pytest.raises(error, match=message):
        krippendorff_alpha(table, **options)


def test_a_coincidence_matrix_of_too_many_classes_is_refused():
    with pytest.raises(DataError, match="5,000 classes"):
        coincidence_matrix(Annotations.from_arrays([0], [0], [1], classes=range(5000)))


GRADES = ["low", "medium", "high"]


def grades(seed=0):
    """Answers one step off at times, of words whose alphabet is not their order."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, 3, 60)
    said = np.clip(truth[:, None] + draw.choice([-1, 0, 0, 1], (60, 4)), 0, 2)
    task, annotator = np.divmod(np.arange(said.size), 4)
    return {"task": task, "annotator": annotator, "label": np.array(GRADES, object)[said.ravel()]}


def test_words_are_not_taken_in_the_order_of_the_alphabet(tmp_path, capsys, refusal_of):
    table = grades()
    pd.DataFrame(table).to_csv(tmp_path / "a.csv", index=False)
    as_numbers = Annotations.from_arrays(table["task"], table["annotator"], [GRADES.index(x) for x in table["label"]])
    expected = krippendorff_alpha(as_numbers, "ordinal").value
    for way in (Annotations.from_frame(table), Annotations.read(tmp_path / "a.csv")):
        with pytest.raises(DataError, match="sorted alphabetically: 'high', 'low', 'medium'"):
            krippendorff_alpha(way, "ordinal")
        assert krippendorff_alpha(way).value < krippendorff_alpha(way, "ordinal", values=[2, 0, 1]).value
    named = Annotations.from_frame(table, classes=GRADES)
    named.to_parquet(tmp_path / "named.parquet")
    Annotations.from_frame(table, classes=sorted(GRADES)).to_parquet(tmp_path / "sorted.parquet")
    assert krippendorff_alpha(Annotations.read(tmp_path / "named.parquet"), "ordinal").value == pytest.approx(expected)
    # who names them in the order of the alphabet means it, also after a file of one's own
    krippendorff_alpha(Annotations.read(tmp_path / "sorted.parquet"), "ordinal")
    words = ["quality", str(tmp_path / "a.csv"), "--metric", "ordinal", "--method", "none", "--bootstrap", "0"]
    assert "in their order: --classes LOWEST,...,HIGHEST." in refusal_of(*words, code=3)
    assert cli.main([*words, "--classes", ",".join(GRADES)]) == 0
    assert f"{expected:.3f}" in capsys.readouterr().out
