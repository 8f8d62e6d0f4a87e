"""The pages of docs/papers say what the saved results say, and on which stack they were computed."""

import json
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import MMCE
from crowdzoo.data.annotations import Annotations

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "reproduce"
PAGES = ["lia", "rodrigues", "conal", "waum", "ibrahim"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_results_render_to(reproduce, name):
    papers = reproduce("papers")
    assert set(papers.PAPERS) == set(PAGES)
    assert (papers.FOLDER / f"{name}.md").read_text(encoding="utf-8") == papers.written(name)


def test_the_page_of_all_papers_counts_what_their_pages_count(reproduce):
    papers = reproduce("papers")
    text = papers.INDEX.read_text(encoding="utf-8")
    assert papers.indexed(text) == text
    lines = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith(("| [", "| all |"))]
    counts = [[int(cell.strip(" |") or 0) for cell in line] for line in lines]
    assert len(counts) == len(PAGES) + 1
    for everything, *marks in (row[:5] for row in counts):
        assert everything == sum(marks)
    assert counts[-1] == [sum(column) for column in zip(*counts[:-1], strict=True)]
    assert counts[0][0] == 193  # LIA's table 2 and 3


def test_the_page_of_lia_names_the_stack(reproduce):
    page = (ROOT / "docs" / "papers" / "lia.md").read_text(encoding="utf-8")
    assert f"All rows were computed on {reproduce('stack').told()}." in " ".join(page.split())


def test_a_row_with_fewer_draws_is_compared_with_majority_vote_on_its_own(reproduce):
    """Published: 90 and 80 by majority vote. A row of two draws has 76 where the votes of these have 75, of all 80."""
    paper = reproduce("lia_paper")
    name = "wordsim"
    published = tuple(value + 10 for value in paper.PUBLISHED[name]["majority"])
    votes = [[74.0, 76.0, 85.0, 85.0]] * len(published)
    _, (marks,) = paper._judged(name, published, votes, [[[76.0, 76.0]] * len(published)])
    assert marks == ["order"] * len(published)
    _, (marks,) = paper._judged(name, published, votes, [[[74.0, 75.0]] * len(published)])
    assert marks == ["not"] * len(published)


def test_figures_that_changed_stand_on_the_page_that_has_them_today():
    folder = ROOT / "docs" / "papers"
    text = (folder / "README.md").read_text(encoding="utf-8")
    lines = text[text.index("## Figures that changed") :].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]
    assert len(rows) > 15
    for figure, _, now, _, link in rows:
        page = (folder / link.partition("](")[2].partition("#")[0].rstrip(")")).read_text(encoding="utf-8")
        for number in re.findall(r"\+?\d*\.\d+(?: ± \d*\.\d+)?", now):
            assert number in page, f"{figure}: {number}"


# files whose rows pages show
SAVED = (
    "annot_mix", "calibration", "conal", "coupled_confusions", "crf_ma", "crowd_layer", "deep_choice",
    "demo_images", "geo_crowd_net", "imagenet_features", "lia_annotators", "movie_reviews", "preferences", "recipe",
    "reproduce_deep", "reproduce_lia", "reproduce_ner", "starts", "text_forms", "waum", "waum_variants",
)  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_every_saved_row_is_of_the_stack_of_the_pages(reproduce, name):
    stack = reproduce("stack")
    file = ROOT / "benchmarks" / "results" / f"{name}.json"
    text = file.read_text(encoding="utf-8")
    rows = list(stack.recorded(json.loads(text)))
    assert rows
    assert not stack.elsewhere(rows)
    no_network = {"python", "numpy", "cores"}  # of `stack(keras=False)`
    assert all({*stack.PAGES} <= {*found} or {*found} == no_network for _, found in rows)
    assert '"versions"' not in text  # the name of what rows had before


def test_a_row_of_another_stack_is_refused_wherever_it_stands(reproduce):
    stack = reproduce("stack")
    row = {"runs": [{"last": 0.5}], "stack": {**stack.PAGES, "cores": 2}}
    older = {"runs": [], "stack": {**stack.PAGES, "keras": "3.9.0"}}
    found = list(stack.recorded({"music": {"CoNAL": row, "LIA": older}, "title": "x"}))
    assert [name for name, _ in found] == ["music: CoNAL", "music: LIA"]
    assert set(stack.elsewhere(found)) == {"music: LIA"}
    assert [name for name, _ in stack.recorded({"stack": dict(stack.PAGES), "rows": {}})] == ["all"]
    assert [name for name, _ in stack.recorded({"runs": [row, row]})] == ["runs 0", "runs 1"]


@pytest.mark.parametrize("part", ["python", "numpy", "keras", "tensorflow", "backend"])
def test_a_row_of_another_stack_is_found(reproduce, part):
    stack = reproduce("stack")
    same = {**stack.PAGES, "cores": 64}
    no_network = {"python": stack.PAGES["python"], "numpy": stack.PAGES["numpy"], "cores": 1}
    other = same | {part: "jax", "jax": "0.10.2"} if part == "backend" else same | {part: "9.9"}
    found = stack.elsewhere([("same", same), ("no network", no_network), ("other", other)])
    assert set(found) == {"other"}
    assert ("JAX 0.10.2" if part == "backend" else "9.9") in found["other"]


def test_a_row_says_what_it_is_computed_on_now(reproduce):
    stack = reproduce("stack")
    assert set(stack.stack()) == {*stack.PAGES, "cores"}
    assert set(stack.stack(keras=False)) == {"python", "numpy", "cores"}


def test_a_figure_is_reproduced_within_one_standard_deviation(reproduce):
    verdict = reproduce("papers").verdict
    draws = [70.0, 72.0, 74.0]  # 72 ± 2
    assert verdict(74.0, draws) == verdict(70.0, draws) == "reproduced"
    assert verdict(74.1, draws) == verdict(69.9, draws, order=False) == "not"
    assert verdict(74.1, draws, order=True) == "order"
    assert verdict(74.0, draws, order=False) == "reproduced"
    assert verdict(75.9, [75.93] * 5) == "reproduced"  # 82 of 108 in every draw
    assert verdict(88.6, [88.33] * 5) == "not"
    assert verdict(74.0, []) == "missing"


def test_the_larger_of_two_standard_deviations_counts(reproduce):
    verdict = reproduce("papers").verdict
    assert verdict(75.0, [71.9, 72.0, 72.1], spread=3.0) == "reproduced"
    assert verdict(75.1, [71.9, 72.0, 72.1], spread=3.0) == "not"
    assert verdict(74.0, [70.0, 72.0, 74.0], spread=0.1) == "reproduced"


def test_every_published_figure_is_counted_once(reproduce):
    papers, lia = reproduce("papers"), reproduce("lia")
    figures = sum(len(row) for rows in lia.PUBLISHED.values() for row in rows.values())
    figures += sum(map(len, lia.PUBLISHED_EM_ALONE.values()))
    page = papers.written("lia")
    assert f"of {figures} published figures are reproduced**" in page
    tables = page[page.index("## Table 2") : page.index("## Labels saved")]
    assert sum(tables.count(f" {mark} |") for mark in papers.MARKS.values()) == figures


@pytest.mark.parametrize(
    ("more", "scripts"), [((), 12), (("PAPER=lia",), 2), (("PAPER=rodrigues",), 5), (("PAPER=ibrahim",), 1)]
)
def test_make_reproduce_takes_one_paper_or_all(more, scripts):
    found = subprocess.run(
        ["make", "-n", "reproduce", *more], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    listed = found.split("for table in ")[1].split(";")[0].split()
    assert len(listed) == scripts
    assert all((FOLDER / f"{script}.py").exists() for script in listed)
    assert ("papers.py" in found) == bool(more)
    assert not more or f"papers.py {more[0].removeprefix('PAPER=')}\n" in found


def test_the_ridge_per_label_is_the_ridge_of_mmce_times_the_labels_where_all_have_as_many(reproduce):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    right = rng.random((60, 7)) < np.linspace(0.55, 0.95, 7)
    tasks, annotators = np.nonzero(np.ones((60, 7)))
    annotations = Annotations.from_arrays(
        tasks, annotators, np.where(right, truth[:, None], 1 - truth[:, None]).ravel()
    )
    found = reproduce("lia").ridge_per_label(annotations, 0.25, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = MMCE(gamma=0.25 * 60, class_prior="uniform", max_iter=2000, tol=1e-12).fit(annotations)
    np.testing.assert_allclose(found, other.posteriors, atol=1e-3)
    assert 0.6 < np.mean(found.argmax(axis=1) == truth) < 1
    few = reproduce("lia").ridge_per_label(annotations.restrict(redundancy=2, seed=0), 0.25, 5)
    np.testing.assert_allclose(few.sum(axis=1), 1)


def test_a_line_says_where_it_has_fewer_draws_than_the_protocol(reproduce):
    fewer = reproduce("lia_paper")._fewer
    whole, some = [70.0] * 5, [70.0] * 3
    assert fewer("wordsim", [whole, [], whole]) == ""
    assert fewer("wordsim", [some, some, some]) == " (3 draws)"
    assert fewer("wordsim", [whole, some, []]) == " (r=5: 3 draws)"
    assert fewer("medical-cause", [some, some, some]) == ""  # whose protocol has three


def test_shuffled_rows_are_each_row_once_an_epoch_in_another_order(reproduce):
    x = np.arange(10)
    batches = reproduce("lia")._ShuffledRows(x, -x, 3, seed=0)
    assert len(batches) == 3
    seen = []
    for _ in range(2):
        epoch = [batches[index] for index in range(3)]
        assert all((rows == -targets).all() for rows, targets in epoch)
        seen.append(np.concatenate([rows for rows, _ in epoch]).tolist())
        batches.on_epoch_begin()
    assert all(len(set(rows)) == 9 for rows in seen)
    assert seen[0] != seen[1]


@pytest.mark.slow
def test_a_network_that_is_compiled_once_learns_as_one_compiled_anew(reproduce, monkeypatch):
    """Rows of two steps reuse their network; weights and optimizer begin anew with each draw."""
    lia = reproduce("lia")
    rng = np.random.default_rng(0)
    tasks, annotators = np.divmod(np.arange(120), 3)
    annotations = Annotations.from_arrays(tasks, annotators, rng.integers(2, size=120), classes=[0, 1])
    data = lia.CrowdSet(rng.normal(size=(40, 5)).astype("float32"), annotations, rng.integers(2, size=40))
    monkeypatch.setattr(lia, "AUTHORS", {"steps_per_round": 50})
    monkeypatch.setattr(lia, "STEPS", 50)
    monkeypatch.setattr(lia, "_COMPILED", {})

    def said(seed):
        lia._two_steps("MAJ*", annotations, data, seed, lia.SMALL)
        network, _ = lia._COMPILED[False, data.x.shape]
        return network.predict(data.x, verbose=0)

    first, second, again = said(0), said(1), said(0)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - second).max() > 0.01
    lia._COMPILED.clear()
    np.testing.assert_array_equal(said(1), second)
