"""Agreement over time against loops and SciPy, and whom it names."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene
from crowdzoo.commands import main as cli
from crowdzoo.quality import annotator_table
from crowdzoo.quality.figures import wilson
from crowdzoo.quality.over_time import drift
from crowdzoo.report.page import report_page


def crowd(to=0.9, num_tasks=300, seed=0, times=True):
    """Six annotators of two classes, three a task; the first one is right in 90 % of cases, from the middle in `to`."""
    rng, rows = np.random.default_rng(seed), []
    for task in range(num_tasks):
        truth = rng.integers(2)
        for who in rng.choice(6, 3, replace=False):
            skill = (to if task >= num_tasks / 2 else 0.9) if who == 0 else 0.85
            rows.append((task, f"w{who}", int(truth if rng.random() < skill else 1 - truth), 86400.0 * task + who))
    order = rng.permutation(len(rows))
    tasks, who, said, when = (list(each) for each in zip(*(rows[row] for row in order), strict=True))
    return Annotations.from_arrays(tasks, who, said, timestamp=when if times else None)


def test_periods_are_those_of_a_loop():
    annotations = crowd(num_tasks=60)
    found = drift(annotations).to_pylist()
    rows = sorted(range(len(annotations)), key=lambda row: annotations.timestamp[row])
    for who in range(6):
        own = [row for row in rows if annotations.annotator_ids[row] == who]
        periods = [each for each in found if each["annotator"] == who]
        number = min(4, len(own) // 10)
        assert len(periods) == (number if number > 1 else 0)
        for place, each in enumerate(periods):
            part = [row for rank, row in enumerate(own) if rank * number // len(own) == place]
            shares = []
            for row in part:
                others = (annotations.task_ids == annotations.task_ids[row]) & (annotations.annotator_ids != who)
                shares.append(np.mean(annotations.labels[others] == annotations.labels[row]))
            assert each["annotations"] == len(part)
            assert each["agreement"] == pytest.approx(np.mean(shares))
            assert (each["start"], each["end"]) == tuple(annotations.timestamp[[part[0], part[-1]]])
            low, high = wilson(np.array([np.mean(shares)]), [len(part)])
            assert (each["agreement_low"], each["agreement_high"]) == pytest.approx((low[0], high[0]))


def test_the_test_is_kruskal_and_wallis_on_values(monkeypatch):
    annotations = crowd(0.55, 200)
    seen = []
    monkeypatch.setattr("crowdzoo.quality.over_time.chdtrc", lambda k, x: seen.append((k, x)) or stats.chi2.sf(x, k))
    found = drift(annotations)
    (freedom, statistic), rows = seen[0], np.argsort(annotations.timestamp)
    order = np.argsort(np.argsort(annotations.timestamp)) * 6 // len(rows)  # a step has a hundred annotations
    agreed = np.array([
        np.mean(annotations.labels[(annotations.task_ids == task) & (annotations.annotator_ids != who)] == said)
        for task, who, said in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True)
    ])  # fmt: skip
    for who in range(6):
        own = [row for row in rows if annotations.annotator_ids[row] == who]
        values = np.array([
            agreed[row] - agreed[(order == order[row]) & (annotations.annotator_ids != who)].mean() for row in own
        ])  # fmt: skip
        part = np.arange(len(own)) * 4 // len(own)
        groups = [values[part == each] - values.mean() for each in range(4)]
        between = sum(len(each) * each.mean() ** 2 for each in groups)
        assert statistic[who] == pytest.approx((len(own) - 1) * between / ((values - values.mean()) ** 2).sum())
        assert freedom[who] == 3
        chance = stats.chi2.sf(statistic[who], 3) * 6 < 0.05
        assert {each["changes"] for each in found.to_pylist() if each["annotator"] == who} == {chance}


def test_who_changes_is_noted_in_the_table_the_page_and_the_sheet(tmp_path, capsys):
    annotations = crowd(0.4)
    table = annotator_table(annotations)
    assert table["notes"].to_pylist() == ["drift", *[""] * 5]
    assert table["drift"].to_pylist()[0].count(",") == 3
    page = report_page(annotations, DawidSkene().fit(annotations), bootstrap=0)
    (warned,) = [each for each in page.numbers.warnings if each.key == "drift"]
    assert warned.about == "w0"
    assert f"({table['drift'][0]})" in warned.finding
    assert not warned.serious  # the answers before count as good
    periods = page.numbers.tables["periods"]
    assert periods.values["annotator"][periods.rows[0]] == "w0"
    assert periods.values["start"][0].startswith("1970-01-0")
    assert "Annotators over time" in page.to_html()
    rows = zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, annotations.timestamp, strict=True)
    (tmp_path / "a.csv").write_text(
        "task,annotator,label,timestamp\n" + "".join(f"{a},w{b},{c},{d}\n" for a, b, c, d in rows)
    )
    assert (
        cli.main(["quality", f"{tmp_path}/a.csv", "--out", f"{tmp_path}/s", "--format", "csv", "--bootstrap", "0"]) == 0
    )
    first = (tmp_path / "s" / "annotators.csv").read_text().splitlines()[1]
    assert f"agreement with others over time {table['drift'][0]}" in first


@pytest.mark.parametrize("annotations", [crowd(), crowd(0.4, times=False), crowd(0.4, num_tasks=30)])
def test_nobody_is_noted_without_a_change_times_or_enough_annotations(annotations):
    assert "drift" not in ",".join(annotator_table(annotations)["notes"].to_pylist())


def test_a_time_for_all_annotations_has_no_periods():
    annotations = crowd(0.4)
    alike = replace(annotations, timestamp=np.full(len(annotations), 5.0))
    assert drift(alike).num_rows == 0
