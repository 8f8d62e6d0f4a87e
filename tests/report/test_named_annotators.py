"""Who is named for what, whom nobody should accuse, and how to leave out a part of what one said."""

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import Robust
from crowdzoo.commands import main as cli
from crowdzoo.data.regions import MarkedImage
from crowdzoo.kinds import kind_of
from crowdzoo.quality import annotator_table, quality_report
from crowdzoo.quality.over_time import drift, worse_periods
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.report.page import report_page
from crowdzoo.report.sheets import with_sheets

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import planted_crowds as planted

sys.path.pop(0)


def noted(kind, name, seed=1):
    """Serious notes, and the text of how each differs, in a planted crowd."""
    makes, label = planted.KINDS[kind][:2]
    (crowd,) = [each for each in makes(seed) if each.name == name]
    page = planted.page_of(crowd, label)
    table = page.numbers.tables["annotators"].values
    differs = dict(zip(map(str, table["annotator"]), table.get("differs", ()), strict=False))
    return {who: (notes, differs.get(who)) for who, (notes, _) in planted.said_of(page).items()}


@pytest.mark.parametrize(
    ("kind", "name", "who", "note", "differs"),
    [
        ("classes", "a weak one", "w0", "far", r"usually 0\.8\d"),
        ("preferences", "calls pairs equal", "e0", "equal", None),
        ("sentences", "one who misses spans", "m0", "far", r"missed [56]\d %"),
        ("ratings", "a noisy one", "n0", "far", r"error 1\.\d+, usually 0\.6\d+"),
    ],
)
def test_those_who_differ_are_named_and_nobody_else(kind, name, who, note, differs):
    found = noted(kind, name)
    assert found.keys() == {who}
    notes, text = found[who]
    assert notes == {note}
    assert (text is None) if differs is None else re.fullmatch(differs, text)


def test_whose_few_answers_say_little_is_not_told_to_stop():
    """Of 17 answers each, of which half are right: at the start, two of four were as by chance."""
    assert noted("classes", "17 answers") == {}


@pytest.mark.parametrize("kind", ["regression", "free-text"])
def test_copies_of_other_kinds_are_judged_by_the_others(kind):
    """The second of eight copies the first: its agreement is that of the first without the second."""
    rng = np.random.default_rng(2)
    said = rng.normal(5, 1, (60, 1)) + rng.normal(0, 0.7, (60, 8))
    said[:, 1] = said[:, 0]
    if kind == "free-text":
        words = np.array([f"w{each}" for each in range(300)], object)
        right = rng.integers(0, 300, (60, 12))
        said = np.array([[" ".join(words[np.where(rng.random(12) < 0.8, one, rng.integers(0, 300, 12))])
                          for _ in range(8)] for one in right], object)  # fmt: skip
        said[:, 1] = said[:, 0]
    tasks, who = np.divmod(np.arange(480), 8)
    annotations = Annotations.from_arrays(tasks, who, said.ravel(), kind=kind)
    pages = []
    for part in (annotations, annotations.select_rows(annotations.annotator_ids != 1)):
        result = kind_of(kind).aggregation.create(None, seed=0).fit(part)
        pages.append(report_page(part, result, bootstrap=0).numbers)
    both, alone = (page.tables["annotators"].values for page in pages)
    assert both["copies"][:3] == ["0, 1", "0, 1", None]
    name = pages[0].annotator_column
    assert both[name][0] == both[name][1]
    assert both[name][0] == pytest.approx(alone[name][0], abs=0.01)


def boxes_of_two_classes(seed=0):
    """Six annotators of 40 images; the last one gives each box the other class."""
    rng, rows = np.random.default_rng(seed), []
    for task in range(40):
        true = [(40 * place + 5, 10, 20, 30, ("cell", "vein")[rng.integers(2)]) for place in range(2)]
        for who in range(6):
            regions = []
            for x, y, width, height, category in true:
                moved = rng.normal(0, 1, 4) - np.array([0, 0, 1, 1]) * (who == 5)
                name = category if who < 5 else {"cell": "vein", "vein": "cell"}[category]
                regions.append({"category": name, "bbox": [*(np.array([x, y, width, height]) + moved).tolist()]})
            rows.append((task, f"w{who}", MarkedImage.of((60, 100), regions).text))
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)), kind="region")


def test_regions_of_another_class_are_named_so_and_not_by_their_area():
    annotations = boxes_of_two_classes()
    page = report_page(annotations, kind_of("region").aggregation.create(None, seed=0).fit(annotations), bootstrap=0)
    table = page.numbers.tables["annotators"].values
    assert [bool(notes) for notes in table["notes"]] == [False] * 5 + [True]
    assert table["differs"][5].startswith("other class 100 %")


def timed(seconds, skill):
    """Six annotators of three classes, 60 tasks, with the time that each answer of the first one took."""
    rng, truth = np.random.default_rng(3), np.random.default_rng(4).integers(0, 3, 60)
    accuracy = np.array([skill, *[0.85] * 5])
    said = np.where(rng.random((60, 6)) < accuracy, truth[:, None], rng.integers(0, 3, (60, 6)))
    tasks, who = np.divmod(np.arange(360), 6)
    times = np.where(who == 0, seconds, 12.0)
    return Annotations.from_arrays(tasks, who, said.ravel(), seconds=times)


def test_a_short_time_is_told_with_another_reason_and_is_none_by_itself():
    guesses, words = timed(0.9, 0.0), "0.9 s per answer, usually 12 s"
    result = Robust().fit(guesses)
    page = report_page(guesses, result, bootstrap=0, curve=0)
    (warned,) = [each for each in page.numbers.warnings if each.about == "0"]
    assert warned.finding.endswith(f"; 0: {words}")
    sheet = with_sheets(quality_report(guesses, result, bootstrap=0), guesses, result).annotators.to_pylist()
    assert [row["annotator"] for row in sheet if words in row["reason"]] == [0]
    skilled = timed(0.9, 0.85)
    page = report_page(skilled, Robust().fit(skilled), bootstrap=0, curve=0)
    assert not any(planted.said_of(page))
    assert not any("s per answer" in each.finding for each in page.numbers.warnings)


@pytest.mark.parametrize("kind", ["regression", "free-text", "region"])
def test_a_short_time_is_told_of_other_labels_too(kind):
    rng, (tasks, who) = np.random.default_rng(0), np.divmod(np.arange(240), 6)
    places = np.where(who == 0, rng.integers(0, 40, 240), rng.integers(0, 40, 40)[tasks])
    answers = {
        "regression": places + rng.normal(0, 0.5, 240),
        "free-text": [f"{chr(97 + place // 8)} {chr(110 + place % 8)} {chr(97 + place % 5)}" for place in places],
        "region": [
            MarkedImage.of((20, 600), [{"category": "cell", "bbox": [14 * place, 2, 12, 12]}]).text for place in places
        ],
    }
    seconds = np.where(who == 0, 0.9, 12.0)
    annotations = Annotations.from_arrays(tasks, who, answers[kind], kind=kind, seconds=seconds)
    page = report_page(annotations, kind_of(kind).aggregation.create(None, seed=0).fit(annotations), bootstrap=0)
    (warned,) = [each for each in page.numbers.warnings if each.about == "0"]
    assert warned.key in ("random", "far")
    assert warned.finding.endswith("; 0: 0.9 s per answer, usually 12 s")


# === From a date on ===


def crowd_that_changes(to=0.2, later=True):
    """Ten annotators, one of whom is right less often in the second half, or in the first; a task a day."""
    rng, rows = np.random.default_rng(0), []
    for task in range(300):
        truth = rng.integers(2)
        for who in rng.choice(10, 4, replace=False):
            bad = who == 0 and (task >= 150) == later
            right = rng.random() < (to if bad else 0.9)
            rows.append((f"t{task}", f"w{who}", int(truth if right else 1 - truth), 86400.0 * (20000 + task) + who))
    tasks, who, said, when = (list(each) for each in zip(*rows, strict=True))
    return Annotations.from_arrays(tasks, who, said, timestamp=when)


@pytest.mark.parametrize("later", [True, False])
def test_the_advice_on_changes_over_time_can_be_pasted(tmp_path, capsys, later):
    annotations = crowd_that_changes(later=later)
    write_annotations(annotations, tmp_path / "a.csv")
    page = report_page(annotations, Robust().fit(annotations), bootstrap=0, curve=0)
    (warned,) = [each for each in page.numbers.warnings if each.key == "drift"]
    option = re.search(r"--exclude \S+", warned.fix)[0]
    assert re.fullmatch(r"--exclude w0:(\d{4}-\d\d-\d\d\.\.|\.\.\d{4}-\d\d-\d\d)", option)
    words = ["quality", str(tmp_path / "a.csv"), "--bootstrap", "0", *shlex.split(option)]
    assert cli.main(words) == 0
    day = 86400 * np.datetime64(re.search(r"\d[\d-]+", option)[0]).astype(int)
    gone = (annotations.annotator_ids == 0) & ((annotations.timestamp >= day) == later)
    assert re.search(rf"annotations +{len(annotations) - gone.sum():,}\n", capsys.readouterr().out)
    rest = annotations.select_rows(~gone)
    assert not any(drift(rest)["changes"].to_pylist()), "what is left does not change"
    report = with_sheets(quality_report(annotations, Robust().fit(annotations), bootstrap=0), annotations)
    assert "--exclude " + repr(shlex.split(option)[1]) in report.annotators["reason"][0].as_py()


def test_a_period_begins_with_its_day_or_within_it():
    annotations = crowd_that_changes()
    times = np.asarray(annotations.timestamp)
    table = annotator_table(annotations)
    assert table["period"].to_pylist()[1:] == [None] * 9
    assert re.fullmatch(r"2025-0[2-4]-\d\d\.\.", table["period"][0].as_py())
    within = replace(annotations, timestamp=86400.0 * 20000 + np.argsort(np.argsort(times)))
    (text,) = [each for each in worse_periods(drift(within), 10) if each]
    assert re.fullmatch(r"2024-10-04T00:\d\d:\d\d\.\.", text)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--exclude", "w0:2026-13-01.."), "--exclude w0:2026-13-01..: '2026-13-01' is not a date such as 2026-03-01."),
        (("--exclude", "bob:2026-02-01.."), "exclude: no annotation of"),
        (("--only", "w0", "--exclude", "w0:2001-01-01.."), "--only and --exclude leave no annotation of"),
    ],
)
def test_a_period_that_cannot_be_left_out_is_refused(tmp_path, capsys, words, told):
    write_annotations(crowd_that_changes(), tmp_path / "a.csv")
    assert cli.main(["quality", str(tmp_path / "a.csv"), *words]) in (2, 3, 4)
    assert told in capsys.readouterr().err


def test_a_period_needs_timestamps(tmp_path, capsys, refusal_of):
    (tmp_path / "a.csv").write_text("task,annotator,label\n1,a,x\n1,b,y\n")
    assert cli.main(["quality", str(tmp_path / "a.csv"), "--exclude", "a:2026-02-01.."]) == 3
    assert "has no timestamps, which a time in --exclude needs" in capsys.readouterr().err
    words = ["quality", str(tmp_path / "a.csv"), "--kind", "sequence", "--exclude", "a:2026-02-01.."]
    assert "--exclude a:2026-02-01..: sentences have no timestamps" in refusal_of(*words)
