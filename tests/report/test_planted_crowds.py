"""Whom the page, `quality` and `next` name in crowds of which is known who answers how."""

import csv
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from slow_cases import quick

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.commands import main as cli
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import ConfigError
from crowdzoo.quality import quality_report
from crowdzoo.quality.copies import fitted_skills
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.report.left_out import left_out
from crowdzoo.report.page import report_page
from crowdzoo.report.sheets import page_sheets
from crowdzoo.sequences import CrowdSequences, read_spans, write_spans

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import planted_crowds as planted  # noqa: E402  a script next to the package

sys.path.pop(0)
slow = pytest.mark.slow


def crowd(kind: str, name: str, seed: int = 0) -> planted.Crowd:
    return next(each for each in planted.KINDS[kind][0](seed) if each.name == name)


def named(found: planted.Crowd, kind: str, method: str | None = None) -> dict[str, set[str]]:
    return {who: notes for who, (notes, _) in planted.said_of(planted.page_of(found, kind, method)).items()}


@pytest.mark.parametrize("method", quick(None, slow=["majority-vote", "dawid-skene"]))
@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("a swapper, three a task", {"s0": {"exchange"}}),
        (
            "a swapper among many classes",
            {"s0": {"exchange"}, "r0": {"random"}, "r1": {"random"}, "r2": {"random"}},
        ),
        pytest.param("a swapper who errs", {"s0": {"exchange"}}, marks=slow),
        ("the opposite, two classes", {"o0": {"exchange"}}),
        pytest.param("constant spammers, a frequent class", {"c0": {"same"}}, marks=slow),
        ("a flagger and a constant spammer", {"c0": {"same"}}),
        ("clean, one class of nine in ten", {}),
        ("copies", {"h3": {"copy"}, "k0": {"copy"}, "k1": {"copy"}}),
    ],
)
def test_of_classes_those_are_named_who_are_planted_and_nobody_else(name, notes, method):
    if method == "majority-vote" and "many classes" in name:
        notes = {who: found for who, found in notes.items() if who != "s0"}  # votes are too often wrong to tell
    assert named(crowd("classes", name), "classification", method) == notes


@pytest.mark.parametrize(
    ("kind", "of", "name", "notes"),
    [
        ("ratings", "regression", "biased, half of the tasks each", {"d0": {"bias"}, "d1": {"bias"}}),
        ("ratings", "regression", "clean, half of the tasks each", {}),
        ("sentences", "sequence", "sloppy edges", {"e0": {"edges"}}),
        ("sentences", "sequence", "swapped types and random spammers", {"s0": {"exchange"}, "r0": {"apart"}}),
        pytest.param("ratings", "regression", "copies", {"h3": {"copy"}, "k0": {"copy"}, "k1": {"copy"}}, marks=slow),
        pytest.param("sentences", "sequence", "copies", {"h1": {"copy"}, "k0": {"copy"}, "k1": {"copy"}}, marks=slow),
        ("preferences", "preference", "copies", {"h3": {"copy"}, "k0": {"copy"}}),
        pytest.param("labels", "multi-label", "copies", {"h3": {"copy"}, "k0": {"copy"}}, marks=slow),
        ("labels", "multi-label", "two labels exchanged", {"s0": {"exchange"}}),
        ("labels", "multi-label", "one label reversed", {"o0": {"label"}}),
        ("texts", "free-text", "4, careless", {"b0": {"far"}}),
        ("texts", "free-text", "4, clean, hard", {}),
        ("regions", "region", "4, careless", {"b0": {"far"}}),
        ("regions", "region", "4, wide", {"b0": {"extent"}}),
        ("regions", "region", "4, clean, hard", {}),
        pytest.param("regions", "region", "8, invents", {"b0": {"far"}, "b1": {"far"}}, marks=slow),
    ],
)
def test_of_other_labels_too(kind, of, name, notes):
    assert named(crowd(kind, name), of) == notes


def test_who_misses_objects_is_far_from_others_also_where_the_extent_is_another():
    found = crowd("regions", "4, wide")
    table = found.annotations.to_frame()
    mine = table.index[(table["annotator"] == "b0") & (table.index % 12 < 4)]
    table.loc[mine, "label"] = MarkedImage(90, 120).text  # nothing, in every third image
    found = replace(found, annotations=Annotations.from_frame(table, kind="region"))
    assert named(found, "region") == {"b0": {"far"}}


def test_skills_are_numbers_whose_products_are_how_far_two_agree():
    skills = np.array([0.95, 0.8, 0.5, 0.1])
    one, other = np.nonzero(~np.eye(4, dtype=bool))
    found = fitted_skills(one, other, skills[one] * skills[other], np.ones(12), 4)
    assert found == pytest.approx(skills, abs=2e-3)


@pytest.mark.parametrize(("kind", "of"), [("texts", "free-text"), ("regions", "region")])
def test_where_most_are_bad_the_page_says_so_and_tasks_to_do_again_are_those_with_the_least_agreement(kind, of):
    assert not {"h3"} & named(found := crowd(kind, "4, a bad majority"), of).keys()
    assert "hardly" in {each.key for each in planted.page_of(found, of).numbers.warnings}
    page = planted.page_of(found := crowd(kind, "4, clean, hard"), of)
    tasks = page_sheets(page, found.annotations, None, None, None).tasks.to_pydict()
    near = [1 - each for each in tasks["error_rate"]] if of == "free-text" else tasks["dice"]
    again = [bool(re.fullmatch(r"agreement -?0\.\d\d, usually 0\.\d\d", why)) for why in tasks["redo"]]
    assert again == sorted([*map(bool, tasks["redo"])], reverse=True)
    assert 0 < sum(again) < 15
    assert max(near[: sum(again)]) < min(near[sum(again) :]) + 0.01


@pytest.mark.parametrize(
    ("kind", "of", "name", "unclear"),
    [
        ("classes", "classification", "clean, shared confusion", ["bat / cat"]),
        ("classes", "classification", "a swapper", []),
        ("classes", "classification", "random spammers, three a task", []),
        pytest.param("sentences", "sequence", "clean, shared confusion", ["LOC / ORG"], marks=slow),
        pytest.param("sentences", "sequence", "swapped types", [], marks=slow),
    ],
)
def test_a_definition_is_unclear_where_the_crowd_confuses_two_classes_and_not_where_one_annotator_does(
    kind, of, name, unclear
):
    page = planted.page_of(crowd(kind, name), of)
    assert [each.about for each in page.numbers.warnings if "definition" in each.finding] == unclear
    if not unclear:
        assert "the classes" not in page.numbers.verdict[-1]


def test_two_families_of_copies_are_told_apart_and_pairs_who_only_are_good_are_none():
    """Two who know the classes agree on nearly all, and tasks that are easy for all bring anybody to agree."""
    rng = np.random.default_rng(0)
    truth, easy = rng.integers(0, 3, 300), rng.random(300) < 0.5
    said = [np.where((rng.random(300) < skill) | easy, truth, rng.integers(0, 3, 300))
            for skill in (0.98, 0.97, 0.5, 0.4, 0.4, 0.3, 0.5)]  # fmt: skip
    said += [said[2], said[4], said[4]]
    names = np.array(["good", "best", *"abcde", "a2", "c2", "c3"], object)
    annotations = Annotations.from_dense(np.stack(said, axis=1), annotators=names)
    page = report_page(annotations, MajorityVote().fit(annotations), bootstrap=0, curve=0)
    (warned,) = [each for each in page.numbers.warnings if each.key == "copy"]
    assert "explains (a, a2; c, c2, c3); 50 % of" in warned.finding
    table = quality_report(annotations, bootstrap=0).annotators
    assert dict(zip(names, table["copies"].to_pylist(), strict=True)) == dict.fromkeys(names) | dict.fromkeys(
        ["a", "a2"], "a, a2") | dict.fromkeys(["c", "c2", "c3"], "c, c2, c3")  # fmt: skip


# === Leaving out ===


def test_the_page_advises_to_leave_out_where_that_pays_and_names_the_option_and_the_gain():
    found = crowd("classes", "bots of one source")
    page = planted.page_of(found, "classification", "majority-vote")
    (warned,) = [each for each in page.numbers.warnings if each.key == "random"]
    assert warned.about == "b0, b1, b2"
    advice = page.numbers.leave_out
    assert advice["annotators"] == ["b0", "b1", "b2"]
    assert advice["advised"] is True
    assert 0 < advice["low"] < advice["value"] < advice["high"]
    assert "leave them out (--exclude b0,b1,b2)" in warned.fix
    assert f"by +{100 * advice['value']:.1f} points" in warned.fix
    kept = found.annotations.select_rows(~np.isin(found.annotations.annotators, ["b0", "b1", "b2"])[
        found.annotations.annotator_ids])  # fmt: skip
    before, after = (MajorityVote().fit(each).accuracy(found.gold) for each in (found.annotations, kept))
    assert after > before + 0.02, "the advice is right"


def test_where_nothing_is_gained_the_page_does_not_advise_it():
    page = planted.page_of(crowd("classes", "random spammers"), "classification", "dawid-skene")
    (warned,) = [each for each in page.numbers.warnings if each.about == "r0, r1"]
    assert page.numbers.leave_out["advised"] is False
    assert "leaving out their answers makes no clear difference" in warned.fix
    assert "--exclude" not in warned.fix


def test_the_gain_of_leaving_out_is_that_of_the_answers_of_others():
    """By hand: two annotators are always right, three copy each other's wrong class on every second task."""
    tasks, size = np.arange(40), 40
    wrong = np.where(tasks % 2, 1, 0)
    said = np.stack([np.zeros(size, int)] * 4 + [wrong] * 5, axis=1)
    annotations = Annotations.from_dense(said)
    gone = np.arange(9) >= 4
    found = left_out(annotations, "majority-vote", gone)
    half = 1.96 * 0.5 / np.sqrt(40)  # half of the tasks gain all
    assert found == pytest.approx((0.5, 0.5 - half, 0.5 + half), abs=1e-4)
    assert left_out(annotations, "majority-vote", np.arange(9) >= 2) is None, "two annotators are left"
    assert left_out(annotations, "people-and-models", gone) is None, "not made by its name"


@pytest.mark.slow
def test_the_gain_of_several_labels_is_that_of_their_yes_and_no():
    """By hand: four annotators say "x" of each task, five copy each other, and say "x" and "y" of every second one."""
    rows = [(task, f"a{who}", "x") for who in range(9) for task in range(40)]
    rows += [(task, f"a{who}", "y") for who in range(4, 9) for task in range(1, 40, 2)]
    rows += [(40 + task, f"a{who}", "(none)") for who in range(9) for task in range(2)]
    annotations = Annotations.from_arrays(*zip(*rows, strict=True), on_duplicate="all")
    labels = np.array(["x", "y"], object)
    found = left_out(annotations, "majority-vote", np.arange(9) >= 4, labels=labels)
    assert found[0] == pytest.approx(20 / 42 / 2), "one of two labels of twenty of 42 tasks"
    assert found[1] > 0


@pytest.mark.slow
def test_hashed_names_have_their_own_words():
    annotations = crowd("classes", "bots of one source").annotations
    page = report_page(annotations, MajorityVote().fit(annotations), bootstrap=0, curve=0, hash_ids="key")
    (warned,) = [each for each in page.numbers.warnings if each.key == "random"]
    assert "leave them out (--exclude FILE, a name a line)" in warned.fix


# === One number, one name ===


@pytest.mark.slow
def test_report_quality_and_next_say_the_same_of_annotators_and_of_settled_labels(tmp_path, capsys):
    found = crowd("classes", "a swapper and random spammers")
    write_annotations(found.annotations, tmp_path / "a.csv")
    place = str(tmp_path / "a.csv")
    assert cli.main(["report", place, "--out", str(tmp_path / "r.html"), "--bootstrap", "0", "--curve", "0"]) == 0
    numbers = json.loads((tmp_path / "r.json").read_text())
    settled = numbers["values"]["settled"]
    assert f"{settled:.0%} of the labels are settled".replace("%", " %") in capsys.readouterr().out
    assert cli.main(["next", place]) == 0
    lines = dict(re.split(" {2,}", line, maxsplit=1) for line in capsys.readouterr().out.splitlines() if "  " in line)
    assert lines["settled labels (estimated)"] == f"{settled:.1%}"
    words = ["quality", place, "--bootstrap", "0", "--pay", "1", "--out", str(tmp_path / "q"), "--format", "csv"]
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    redo = re.search(r"tasks to redo +(\d+)", printed)[1]
    assert lines["tasks worth further answers"] == f"{redo} of 200"
    listed = printed.split("annotators to check")[1].split("\n\n")[0]
    for name, note in (("r0", "as by chance"), ("r1", "as by chance"), ("s0", "exchanges")):
        assert any(line.startswith(name) and line.endswith(note) for line in listed.splitlines())
    table = numbers["tables"]["annotators"]["values"]
    header, *rows = csv.reader((tmp_path / "q" / "annotators.csv").read_text().splitlines())
    rows.sort(key=lambda row: table["annotator"].index(row[header.index("annotator")]))  # flagged ones come first
    for key in ("reliability", "reliability_low", "reliability_high"):
        assert [float(row[header.index(key)]) for row in rows] == pytest.approx(table[key], abs=1e-4)


def test_people_judge_in_quality_as_on_the_page():
    annotations = crowd("classes", "random spammers").annotations
    models = ["h0", "h1", "h2", "h3"]
    result = DawidSkene().fit(annotations)
    report = quality_report(annotations, result, bootstrap=0, models=models)
    page = report_page(annotations, result, bootstrap=0, curve=0, models=models)
    own = report.annotators["reliability"].to_pylist()
    assert page.numbers.tables["annotators"].values["reliability"] == pytest.approx(own, abs=1e-4)
    assert own != quality_report(annotations, result, bootstrap=0).annotators["reliability"].to_pylist()


# === --exclude ===


@pytest.fixture
def answers():
    return crowd("classes", "bots of one source").annotations


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_annotators_who_are_excluded_leave_no_trace(answers, ending, tmp_path):
    place = tmp_path / f"a.{ending}"
    rows = list(zip(answers.tasks[answers.task_ids].tolist(), answers.annotators[answers.annotator_ids].tolist(),
                    answers.classes[answers.labels].tolist(), strict=True))  # fmt: skip
    if ending == "csv":
        lines = ["task,annotator,label", *(f"{task}, {who} ,{label}" for task, who, label in rows), "7,b1,"]
    else:
        lines = [json.dumps(dict(zip(("task", "annotator", "label"), row, strict=True))) for row in rows]
    if ending == "parquet":
        answers.to_parquet(place)
    else:
        place.write_text("\n".join(lines) + "\n")
    found = Annotations.read(place, exclude=["b0", "b1", "b2"])
    assert found.annotators.tolist() == [f"h{number}" for number in range(8)]
    assert len(found) == 1600
    assert found.num_rejected == 0
    with pytest.raises(ConfigError, match=r"^exclude: .* is by 'b9'\. The annotators are 'h0', 'h1'"):
        Annotations.read(place, exclude=["b0", "b9"])


def test_annotators_with_integers_and_other_names_are_excluded():
    rows = [0, 1, 2, 0, 1, 2], [7, 7, 7, 8, 8, 8], [0, 1, 0, 1, 1, 0]
    assert Annotations.from_arrays(*rows, exclude=[7]).annotators.tolist() == [8]
    assert Annotations.from_arrays(*rows, annotators=[7, 8, 9], exclude=["7"]).annotators.tolist() == [8, 9]
    pairs = rows[0], [(1, 2)] * 3 + [(1, 3)] * 3, rows[2]
    assert Annotations.from_arrays(*pairs, exclude=["(1, 2)"]).annotators.tolist() == [(1, 3)]


def test_every_command_that_reads_annotations_excludes_by_names_or_by_a_file(answers, tmp_path, capsys, refusal_of):
    write_annotations(answers, tmp_path / "a.csv")
    (tmp_path / "gone.txt").write_text("b0\nb1\n\n b2 \n")
    place, out = str(tmp_path / "a.csv"), str(tmp_path / "out")
    for given in ("b0,b1,b2", str(tmp_path / "gone.txt")):
        for words in (
            ["aggregate", place, "--out", out, "--method", "one-coin"],
            ["quality", place, "--bootstrap", "0", "--method", "none"],
            ["next", place, "--method", "one-coin"],
        ):
            assert cli.main([*words, "--exclude", given, *(["--force"] if "--out" in words else [])]) == 0
            assert "1,600" in capsys.readouterr().out
    assert "--exclude: no annotation of" in refusal_of("quality", place, "--exclude", "b0,bx")
    assert cli.main(["quality", place, "--exclude", ","]) == 4


def test_sentences_are_read_without_annotators(tmp_path):
    found = crowd("sentences", "sloppy edges").annotations
    write_spans(found, tmp_path / "s.jsonl")
    from crowdzoo.reading.sentences.sentence_files import read_sentences

    whole, part = read_spans(tmp_path / "s.jsonl"), read_sentences(tmp_path / "s.jsonl", exclude=["e0", "h2"])
    assert isinstance(part, CrowdSequences)
    assert part.annotations.annotators.tolist() == ["h0", "h1", "h3", "h4", "h5"]
    for task in (0, 100):
        expected = {who: tags for who, tags in whole.answers(task).items() if who not in ("e0", "h2")}
        assert part.answers(task) == expected
    with pytest.raises(ConfigError, match="is by 'zoe'"):
        read_sentences(tmp_path / "s.jsonl", exclude=["zoe"])


# === What changed ===


def test_a_warning_whose_percentage_changed_is_neither_new_nor_gone():
    annotations = crowd("classes", "random spammers, three a task").annotations
    less = annotations.select_rows((annotations.annotator_ids > 2) | (np.arange(len(annotations)) % 4 == 0))
    pages = [report_page(each, DawidSkene().fit(each), bootstrap=0, curve=0) for each in (annotations, less)]
    words = [[f"{each.about}: {each.finding}" for each in page.numbers.warnings] for page in pages]
    assert words[0] != words[1]
    before = json.loads(pages[0].to_json())
    for _ in range(2):
        changes = report_page(less, DawidSkene().fit(less), bootstrap=0, curve=0, before=before).changes
        assert changes["new"] == changes["gone"] == []
        for warned in before["warnings"]:  # as reports were written before warnings had a key
            warned.pop("key", None)
