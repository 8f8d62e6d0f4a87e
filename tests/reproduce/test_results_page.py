"""docs/methods-results.md and docs/methods-tables.md say what the saved results say."""

import importlib
import re

import pytest


@pytest.fixture(scope="module")
def page(reproduce):
    return reproduce("page")


def test_the_page_is_what_the_results_render_to(page):
    assert page.PAGE.read_text(encoding="utf-8") == page.render()
    assert page.TABLES.read_text(encoding="utf-8") == page.render_tables()


def test_every_row_of_a_simulated_crowd_stands_on_both_pages(page):
    results = page.json.loads(page.deep_methods.RESULTS.read_text(encoding="utf-8"))
    short, whole = page.PAGE.read_text(encoding="utf-8"), page.TABLES.read_text(encoding="utf-8")
    crowds = page.deep_methods.SIMULATED
    assert len(crowds) == 24
    matrix = short[short.index("#### Accuracy after the last epoch") :].splitlines()
    columns = matrix[2].strip("| ").split(" | ")
    for name in crowds:
        line = next(line for line in matrix if line.startswith(f"| {name} |"))
        cells = dict(zip(columns, line[1:-1].replace("|", " | ").split(" | "), strict=True))
        table = whole[whole.index(f"### {name};") :].partition("\n### ")[0]
        for row, one in results[name].items():
            accuracy = 100 * sum(run["last"] for run in one["runs"]) / len(one["runs"])
            assert float(cells[row].split("±")[0]) == pytest.approx(accuracy, abs=0.051)
            assert f"| {row} | {accuracy:.2f} " in table


@pytest.mark.parametrize("name", ["deep_methods", "lia", "waum", "ner", "movie_reviews"])
def test_the_saved_results_are_printed(page, name, capsys):
    """What `make reproduce` does for each."""
    module = importlib.import_module(name)
    results = getattr(module, "RESULTS", None) or module.RESULT
    module.show(page.json.loads(results.read_text(encoding="utf-8")))
    assert len(capsys.readouterr().out.splitlines()) > 10


def test_the_guide_to_ratings_has_the_tables_of_the_results(page):
    reviews = importlib.import_module("movie_reviews")
    text = reviews.GUIDE.read_text(encoding="utf-8")
    results = page.json.loads(reviews.RESULTS.read_text(encoding="utf-8"))
    other = re.sub(r"\| gold \| \.\d+ \|", "| gold | .9 |", text)
    assert reviews.guide(text, results) == reviews.guide(other, results) == text != other


def test_every_table_has_its_floor_and_its_ceiling(page):
    results = page.json.loads(page.deep_methods.RESULTS.read_text(encoding="utf-8"))
    for rows in results.values():
        assert {"gold", "DL-MV"} <= {*rows}
        for row in rows.values():
            assert len({run["seed"] for run in row["runs"]}) == len(row["runs"]) >= 3


def test_the_order_of_methods_is_compared_by_pairs(page):
    """Four methods, five seeds: by gold two neighbours are exchanged, by the crowd all are the other way round."""

    def rows(**accuracies):
        return {"runs": [{"seed": seed, **accuracies} for seed in range(5)]}

    results = {"labelme": {
        "gold": rows(last=0.1, chosen=0.9, best=0.1),
        "DL-MV": rows(last=0.5, chosen=0.8, best=0.5),
        "CCEM": rows(last=0.6, chosen=0.7, best=0.7),
        "LIA": rows(last=0.7, chosen=0.6, best=0.6),
        "WAUM": rows(last=0.8, chosen=0.5, best=0.8),
    }}  # fmt: skip
    _, header, lines = page.deep_methods.orders(results)
    found = dict(zip(header, lines[0], strict=True))
    assert found["methods"] == "4"
    assert found["fixed and by the crowd's labels"] == "-1.00"
    assert found["fixed and by gold"] == "0.67"  # of six pairs one is turned
    assert found["fixed, other seeds"] == "1.00"
    assert (found["first, fixed"], found["first, by the crowd's labels"]) == ("WAUM", "DL-MV")


def test_the_guide_has_the_shares_of_the_ranking_by_waum(page):
    results = page.json.loads(page.waum.RESULT.read_text(encoding="utf-8"))["ranking"]["rows"]
    guide = (page.PAGE.parent / "methods.md").read_text(encoding="utf-8")
    (worst, rest), entropy = (
        [round(100 * sum(row[name]) / len(row[name])) for name in ("worst 10%", "rest after 10%")]
        for row in (results["WAUM, top-2 margin"], results["vote entropy"])
    )
    assert f"right for {worst} %, of the rest for {rest} % (vote entropy: {entropy[0]} %, {entropy[1]} %)" in guide
