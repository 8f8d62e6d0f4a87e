"""The tables of the pages are what the saved results give, and verdicts are those of the rule."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("results", "tables", "papers", "lia", "rodrigues", "conal", "waum", "ibrahim", "zhang")
# files whose rows pages show
SAVED = (
    "calibration", "conal", "crowd_layer", "crowds", "geo_crowd_net", "imagenet_features",
    "interval_coverage", "lia_annotators", "movie_reviews", "recipe", "reproduce_deep", "reproduce_lia",
    "reproduce_ner", "waum", "waum_variants",
)  # fmt: skip


@pytest.fixture(scope="module")
def pages(reproduce):
    return reproduce("pages")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_tables_of_the_results(pages, name):
    text = pages.PAGES[name].read_text(encoding="utf-8")
    assert len(pages.MARKED.findall(text)) == text.count("<!-- table: ") > 0
    assert pages.written(text) == text


def test_every_table_and_every_page_is_written(pages):
    assert set(pages.PAGES) == set(PAGES)
    shown = [name for page in pages.PAGES.values() for _, name, _ in pages.MARKED.findall(page.read_text("utf-8"))]
    assert sorted(shown) == sorted(pages.TABLES)


@pytest.mark.parametrize("name", SAVED)
def test_every_saved_row_is_of_the_stack_of_the_pages(reproduce, name):
    stack = reproduce("stack")
    text = (ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8")
    rows = list(stack.recorded(json.loads(text)))
    assert rows
    assert not stack.elsewhere(rows)


@pytest.mark.parametrize("part", ["python", "numpy", "keras", "tensorflow", "backend"])
def test_a_row_of_another_stack_is_found(reproduce, part):
    stack = reproduce("stack")
    same = {**stack.PAGES, "cores": 64}
    no_network = {"python": stack.PAGES["python"], "numpy": stack.PAGES["numpy"], "cores": 1}
    other = same | {part: "jax", "jax": "0.10.2"} if part == "backend" else same | {part: "9.9"}
    found = stack.elsewhere([("same", same), ("no network", no_network), ("other", other)])
    assert set(found) == {"other"}
    assert ("JAX 0.10.2" if part == "backend" else "9.9") in found["other"]


def test_a_figure_is_reproduced_within_the_larger_standard_deviation(pages):
    verdict = pages.verdict
    draws = [70.0, 72.0, 74.0]  # 72 ± 2
    assert verdict(74.0, draws) == verdict(70.0, draws) == "reproduced"
    assert verdict(74.1, draws) == verdict(69.9, draws, order=False) == "not"
    assert verdict(74.1, draws, order=True) == "order"
    assert verdict(75.9, [75.93] * 5) == "reproduced"  # 82 of 108 in every draw
    assert verdict(88.6, [88.33] * 5) == "not"
    assert verdict(74.0, []) == "missing"
    assert verdict(75.0, [71.9, 72.0, 72.1], spread=3.0) == "reproduced"
    assert verdict(75.1, [71.9, 72.0, 72.1], spread=3.0) == "not"


def test_the_order_is_judged_by_the_side_of_the_baseline_in_every_group(pages):
    def marks(same_data=True, **ours):
        cells = (
            pages.Cell("votes", 70.0, ((75.0,), (60.0,))),
            pages.Cell("ours", 80.0, tuple((value,) for value in ours["ours"])),
        )
        return pages.Table("", cells, "votes", "ours", same_data).verdicts()

    assert marks(ours=(90.0, 61.0)) == ["order", "order"]
    assert marks(ours=(90.0, 59.0)) == ["not", "not"]  # below in the second group
    assert marks(ours=(80.0, 80.0)) == ["order", "reproduced"]
    assert marks(ours=(80.0, 80.0), same_data=False) == ["order", "order"]


@pytest.mark.parametrize("more", [(), ("PAPER=conal",)])
def test_make_reproduce_takes_one_paper_or_all(more):
    words = ["make", "-n", "reproduce", *more]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # not below another
    found = subprocess.run(words, cwd=ROOT, env=alone, capture_output=True, text=True, check=True).stdout
    script, *asked = found.split("python ")[-1].split()
    assert (ROOT / script).is_file()
    assert asked == [word.removeprefix("PAPER=") for word in more]
