"""The list of the papers' rows is complete: each has a row that a script offers, or a reason."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = ("lia", "rodrigues", "conal", "waum", "ibrahim")


@pytest.fixture(scope="module")
def published(reproduce):
    return reproduce("published_rows")


@pytest.fixture(scope="module")
def pages(reproduce):
    return reproduce("pages")


def rows(published, paper):
    return {(table, row): how for table, found in published.ROWS[paper].items() for row, how in found.items()}


def measured(published):
    found = [(paper, *place, how) for paper in PAPERS for place, how in rows(published, paper).items()]
    return [each for each in found if isinstance(each[-1], published.Measured)]


def test_the_list_has_the_five_papers_and_a_command_or_a_reason_for_each_row(published):
    assert tuple(published.ROWS) == PAPERS
    reasons = [how for paper in PAPERS for how in rows(published, paper).values() if isinstance(how, str)]
    assert all(len(reason.split()) > 3 and "\n" not in reason for reason in reasons)
    assert len(measured(published)) > 60


def test_each_command_is_one_that_its_script_offers(published):
    offered = {script: published.offered(script) for script in {how.script for *_, how in measured(published)}}
    for paper, table, row, how in measured(published):
        for part in how.parts or ("",):
            assert how.row in offered[how.script].get(part, ()), (paper, table, row, part)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("lia", "--data bluebirds wordsim rte medical-cause medical-treat --rows 'MMCE, ridge per label'"),
        ("crowd_layer", '--parts "thirty runs" --rows DoctorNet'),
        ("ner", "--rows CRF-MA"),
    ],
)
def test_commands_are_written_as_the_scripts_take_them(published, script, words):
    assert f"{script}.py {words}" in {str(how) for *_, how in measured(published)}


def test_all_rows_that_pages_have_published_figures_of_are_in_the_list(published, pages, reproduce):
    names = {row: cells[0].replace("\\", "") for row, cells in pages.LIA.items()}
    figures = published.published
    sets = reproduce("lia").SETS
    assert {names[row] for name in sets for row in figures("lia", name)} == {*published.ROWS["lia"]["table 2"]}
    for row, how in published.ROWS["lia"]["table 2"].items():  # and the row that the page judges is a listed one
        (key,) = (key for key, name in names.items() if name == row)
        assert how.row in {label.removesuffix(", 2 rounds") for label, _ in pages.LIA[key][1:]}, row
    conal = published.ROWS["conal"]
    assert {*conal["table 1"], *conal["table 2"]} == {*figures("conal", "music")} == {*figures("conal", "labelme")}
    assert {*conal["open country"]} == {*figures("conal", "open country")}
    for table in ("CIFAR-10H", "three circles"):
        assert {*published.ROWS["waum"][table]} == {*figures("waum", table)}
    assert {*pages.REAL.values()} <= {*published.ROWS["ibrahim"]["LabelMe and Music"]}
    listed = {(table.rpartition(", ")[2], row) for table, row in rows(published, "rodrigues")}
    for table in pages.rodrigues_tables():
        assert {(table.title, cell.row) for cell in table.cells} <= listed


def test_the_methods_that_were_once_missing_have_code(published):
    scripts = {row: how.script for _, _, row, how in measured(published)}
    assert {row: scripts[row] for row in ("MMCE", "MMCE*-E", "Snorkel", "MeTaL", "LIA-ML")} == dict.fromkeys(
        ("MMCE", "MMCE*-E", "Snorkel", "MeTaL", "LIA-ML"), "lia"
    )
    assert (scripts["DL-WC"], scripts["CRF-MA"], scripts["DL-DN"]) == ("deep_methods", "ner", "ner")
    assert "topic model" in published.ROWS["rodrigues"]["table 1, LabelMe"]["MA-sLDAc"]


def test_no_row_of_the_crowds_is_of_a_method_that_cannot_be_run(reproduce):
    crowds = reproduce("pages").crowds
    saved = json.loads(crowds.RESULTS.read_text(encoding="utf-8"))
    assert {method for row in saved.values() for method in row} <= {*crowds.methods_of("music")}
    compared = json.loads((ROOT / "benchmarks" / "results" / "compare.json").read_text(encoding="utf-8"))
    methods = re.search(r"\nMETHODS = \((.*?)\)", (ROOT / "benchmarks" / "compare.py").read_text(encoding="utf-8"))[1]
    known = {*re.findall(r'"([\w-]+)"', methods), "majority-vote", "first without gold", "best in hindsight"}
    assert {name for row in compared["crowds"].values() for run in row["runs"] for name in run} <= known


def test_no_page_says_that_a_method_is_gone():
    pages = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
    assert not [str(path) for path, text in pages.items() if "no longer has" in text and "migration" not in path.name]
