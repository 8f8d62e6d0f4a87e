"""Drift of features and of the crowd, by TensorFlow Data Validation's comparators."""

import numpy as np
import pandas as pd
import pytest
import tensorflow_data_validation as tfdv

from crowdzoo.components.drift_validator import crowd_statistics, fetch_baseline, find_drift, statistics_digest
from crowdzoo.data.annotations import Annotations

LIMITS = {"jensen_shannon": 0.1, "infinity_norm": 0.1}


def frame(size=400, seed=0, shares=(0.5, 0.3, 0.2)):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "task": [f"t{seed}-{row}" for row in range(size)],
            "instances": generator.normal(size=size),
            "crowd.label": generator.choice(["cat", "dog", "eel"], size, p=shares),
        }
    )


def keep(folder, table):
    """The statistics and the schema of an earlier run."""
    folder.mkdir(parents=True)
    statistics = tfdv.generate_statistics_from_dataframe(table)
    (folder / "statistics.pb").write_bytes(statistics.SerializeToString())
    tfdv.write_schema_text(tfdv.infer_schema(statistics), str(folder / "schema.pbtxt"))
    return folder


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return keep(tmp_path_factory.mktemp("drift") / "before", frame())


def drift(table, before, **limits):
    return find_drift(tfdv.generate_statistics_from_dataframe(table), before, LIMITS | limits)


def test_another_sample_of_the_same_data_does_not_drift_although_all_tasks_are_new(before):
    for seed in range(1, 4):
        assert drift(frame(seed=seed), before) == []


def test_features_of_another_scale_drift(before):
    table = frame(seed=1)
    table["instances"] = 50 * table["instances"] + 10
    (anomaly,) = drift(table, before)
    assert anomaly.startswith("instances: ")
    assert "Jensen-Shannon divergence" in anomaly
    assert drift(table, before, jensen_shannon=1.0) == []


def test_other_shares_of_classes_and_new_classes_drift(before):
    (anomaly,) = drift(frame(seed=1, shares=(0.2, 0.6, 0.2)), before)
    assert anomaly.startswith("crowd.label: ")
    assert "maximum difference is: " in anomaly
    table = frame(seed=1)
    table.loc[:5, "crowd.label"] = "fox"
    (anomaly,) = drift(table, before)
    assert "fox" in anomaly


def test_new_texts_do_not_drift_and_new_words_of_a_column_do_where_they_are_many(tmp_path):
    def table(prefix, strange):
        column = ["red", "blue"] * 100
        column[:strange] = ["green"] * strange
        return pd.DataFrame({"instances": [f"{prefix} {row}" for row in range(200)], "instances/colour": column})

    earlier = keep(tmp_path / "before", table("first", 0))
    assert drift(table("second", 0), earlier) == []
    assert drift(table("second", 10), earlier) == []
    assert any(anomaly.startswith("instances/colour: ") for anomaly in drift(table("second", 30), earlier))


def test_a_missing_column_and_another_type_are_anomalies(before):
    (anomaly,) = drift(frame(seed=1).drop(columns="instances"), before)
    assert anomaly.startswith("instances: ")
    table = frame(seed=1)
    table["instances"] = table["instances"].astype(str)
    assert any("Expected data of type: FLOAT but got STRING" in anomaly for anomaly in drift(table, before))


def test_of_few_values_distributions_are_not_compared(before):
    table = frame(size=60, seed=1)
    table["instances"] = 50 * table["instances"] + 10
    assert drift(table, before) == []


def feature(statistics, name):
    (found,) = (each for each in statistics.datasets[0].features if each.path.step[0] == name)
    return found


def counts(statistics, name):
    buckets = feature(statistics, name).string_stats.rank_histogram.buckets
    return {bucket.label: bucket.sample_count for bucket in buckets}


def test_statistics_of_a_crowd_count_what_a_hand_counts():
    crowd = Annotations.from_arrays(
        ["a", "a", "a", "b", "b", "c"], ["1", "2", "3", "1", "2", "1"], ["x", "x", "y", "x", "x", "y"]
    )
    statistics = crowd_statistics(crowd)
    assert counts(statistics, "crowd.label") == {"x": 4, "y": 2}
    assert counts(statistics, "crowd.annotations") == {"3": 1, "2": 1, "1": 1}
    assert counts(statistics, "crowd.agreement") == {"0.3": 1, "1.0": 1}, "1 of 3 pairs of a, 1 of 1 of b; c has none"
    ratings = Annotations.from_arrays(["a", "a", "b"], ["1", "2", "1"], [1.0, 3.0, 5.0], kind="regression")
    assert feature(crowd_statistics(ratings), "crowd.label").num_stats.mean == 3


def test_equal_statistics_are_recognized_wherever_they_are_and_changed_ones_in_the_same_place(tmp_path):
    def digest(folder, content):
        (tmp_path / folder / "Split-train").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "Split-train" / "FeatureStats.pb").write_bytes(content)
        return statistics_digest(str(tmp_path / folder))

    first = digest("2", b"first")
    assert digest("7", b"first") == first
    assert digest("2", b"second") != first


def test_the_newest_version_of_other_data_is_the_baseline(tmp_path):
    for number, source in ((1, "s1"), (2, "s2"), (3, None)):
        version = tmp_path / str(number)
        (version / "assets.extra" / "drift").mkdir(parents=True)
        (version / "saved_model.pb").touch()
        if source:
            (version / "assets.extra" / "drift" / "source.txt").write_text(source)
    assert fetch_baseline(str(tmp_path), "s4", "").parts[-3] == "2"
    assert fetch_baseline(str(tmp_path), "s2", "").parts[-3] == "1", "its own data, which were pushed before"
    assert fetch_baseline(str(tmp_path / "nowhere"), "s2", "") is None
