"""The page of `crowdzoo report` in headless Chromium: it renders, sorts, filters and follows links."""

import html
import json
import re
import shutil
import subprocess
from urllib.parse import quote

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, SpanMajorityVote, create
from crowdzoo.data.regions import MarkedImage
from crowdzoo.datasets import generated_ner
from crowdzoo.instances import TEXTS, Instances, Predictions
from crowdzoo.kinds import kind_of
from crowdzoo.report.page import report_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]
EVIL = ["<img src=x onerror=alert(1)>", "</script><script>document.title='taken'</script>", "犬 🐕", "ordinary"]
# Runs after the page's own script, and writes what it finds into the title
STEPS = """
const all = (selector) => [...document.querySelectorAll(selector)];
const names = (table) => all(`#${table} tbody button.open`).map((button) => button.textContent);
const found = { first: names("annotators"), tables: all("section[id]").map((section) => section.id) };
const sort = all("#annotators th button").find((button) => button.textContent === "agreement");
sort.click(); found.most = names("annotators"); found.order = sort.parentElement.getAttribute("aria-sort");
sort.click(); found.least = names("annotators");
const search = document.querySelector("#annotators input");
search.value = "DINARY"; search.dispatchEvent(new Event("input")); found.searched = names("annotators");
search.value = ""; search.dispatchEvent(new Event("input"));
const choice = document.querySelector("#annotators select");
choice.value = "random"; choice.dispatchEvent(new Event("change")); found.noted = names("annotators");
choice.value = ""; choice.dispatchEvent(new Event("change"));
const open = document.querySelector("#tasks button.open");
open.click(); found.opened = all("#tasks tr.detail").length;
found.text = document.querySelector("#tasks .detail").textContent;
document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
found.moved = document.activeElement === all("#tasks button.open")[1];
document.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
found.focused = document.activeElement === search;
found.images = all("img").length;
found.resources = performance.getEntriesByType("resource").length;
document.body.dataset.found = JSON.stringify(found);
"""


def crowd() -> Annotations:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 150)
    said = np.where(rng.random((4, 150)) < 0.95, truth, 1 - truth)
    said[0] = rng.integers(0, 2, 150)
    names = np.repeat(np.array(EVIL, object), 150)
    return Annotations.from_arrays(np.tile(np.arange(150), 4), names, np.array(EVIL[:2], object)[said.ravel()])


def browse(path, *words: str, link: str = "") -> tuple[str, str]:
    """What Chromium writes and logs."""
    profile = path.with_suffix(".profile")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        "--virtual-time-budget=10000", *words, f"{path.as_uri()}{link}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=300)
    return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def console(log: str) -> list[str]:
    """What the page said: errors, refused scripts and requests."""
    return [line for line in log.splitlines() if "CONSOLE" in line]


def with_steps(page, tmp_path):
    """The page with a second script, which its own policy would refuse."""
    text = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", page.to_html())
    (tmp_path / "steps.html").write_text(text.replace("</body>", f"<script>{STEPS}</script></body>"), "utf-8")
    return tmp_path / "steps.html"


def test_it_renders_sorts_filters_and_opens(tmp_path):
    annotations = crowd()
    page = report_page(annotations, DawidSkene().fit(annotations), bootstrap=20)
    dom, log = browse(with_steps(page, tmp_path), "--dump-dom")
    assert console(log) == []
    (found,) = re.findall(r'data-found="(.*?)"', dom)
    found = json.loads(html.unescape(found))
    assert set(found["first"]) == set(EVIL)
    assert {"verdict", "warnings", "classes", "pairs", "coincidences", "annotators", "tasks"} <= set(found["tables"])
    assert found["order"] == "descending"
    values = page.numbers.tables["annotators"].values
    agreement = dict(zip(values["annotator"], values["agreement"], strict=True))
    assert [agreement[name] for name in found["least"]] == sorted(agreement.values())
    assert [agreement[name] for name in found["most"]] == sorted(agreement.values(), reverse=True)
    assert found["searched"] == ["ordinary"]
    assert found["noted"] == [EVIL[0]]
    assert found["opened"] == 1
    assert "Who said what" in found["text"]
    assert found["moved"]
    assert found["focused"]
    assert found["images"] == 0  # the name of an annotator is none
    assert found["resources"] == 0


def test_a_script_that_got_into_the_page_would_not_run(write):
    annotations = crowd()
    text = report_page(annotations, DawidSkene().fit(annotations), bootstrap=20).to_html()
    text = text.replace("</body>", "<script>document.title = 'taken'</script></body>")
    dom, log = browse(write("a.html", text), "--dump-dom")
    assert "<title>annotations" in dom
    assert any("Content Security Policy" in line for line in console(log))


def test_a_page_of_preferences_renders_and_follows_links(tmp_path):
    left, right = np.nonzero(~np.eye(8, dtype=bool))
    names = np.array([EVIL[0], "犬 / 🐕", *"cdefgh"], object)
    better = left < right
    answers = [
        np.where(better, "left", "right"),
        np.where(better != (right == 7), "left", "right"),
        ["equal"] * len(left),
    ]
    said = np.concatenate(answers)
    annotations = Annotations.from_arrays(
        np.tile(names[left], 3), np.repeat(["ann", EVIL[1], "eve"], len(left)), said, right=np.tile(names[right], 3),
        kind="preference",
    )  # fmt: skip
    result = create("annotator-bradley-terry", kind="preference").fit(annotations)
    texts = Instances(annotations.tasks, TEXTS, np.array([f"text {place}" for place in range(8)], object))
    page = report_page(annotations, result, bootstrap=20, instances=texts)
    path = page.write(tmp_path / "a.html")
    pairs = page.numbers.tables["divided"].values["pair"]
    for link, heading in (
        ("annotator-ann", "who is ahead by the others' judgments"),
        (f"annotator-{quote(EVIL[1], safe='')}", "Least expected judgments"),
        (f"task-{quote(str(names[1]), safe='')}", "not preferred"),
        (f"pair-{quote(pairs[0], safe='')}", "on the left"),
    ):
        dom, log = browse(path, "--dump-dom", link=f"#{link}")
        assert console(log) == []
        (detail,) = re.findall(r'<tr class="detail">.*?link to this', dom, flags=re.S)
        assert heading in detail
    assert detail.count("<p><bdi>text ") == 2  # those of both sides
    assert {"annotators", "tasks", "divided"} <= set(re.findall(r'<section id="(\w+)"', dom))
    narrow, wide = (
        browse(path, "--dump-dom", f"--window-size={width},900")[0].split('id="annotators"')[1]
        for width in (1000, 1800)
    )
    # no pictures, so that no column is cut off
    assert narrow.split("<table")[0].count('class="scroll tight narrow') == 1
    assert wide.split("<table")[0].count('class="scroll"') == 1
    assert dom.count("<img") == 0
    assert "NaN" not in dom.split('id="data"')[0]


def test_a_page_of_sentences_renders_and_marks_what_differs(tmp_path):
    crowd = generated_ner(60, 6, redundancy=3, seed=1)
    result = SpanMajorityVote().fit(crowd)
    page = report_page(crowd, result, bootstrap=0)
    shown = page.numbers.tables["tasks"].rows[0]
    dom, log = browse(page.write(tmp_path / "a.html"), "--dump-dom", link=f"#task-{shown}")
    assert console(log) == []
    (detail,) = re.findall(r'<tr class="detail">.*?</tr>', dom, flags=re.S)
    parts = detail.split('<div class="sentence">')[1:]
    assert len(parts) == len(page.numbers.tables["tasks"].details[0]["marks"])
    for part in parts:  # each is the sentence, with the types of its spans between
        (text,) = re.findall(r"</h3><bdi>(.*)</bdi>", part, flags=re.S)
        assert (
            html.unescape(re.sub("<[^>]*>", "", re.sub("<small>.*?</small>", "", text))).strip() == crowd.texts[shown]
        )
    spans = re.findall(r"<mark>(.*?)<small>(.*?)</small></mark>", parts[0])
    assert [kind for _, kind in spans] == [span.type for span in result.spans_of(shown)]
    assert 'class="differs"' in "".join(parts[1:])
    assert 'class="null"' not in dom
    dom, log = browse(tmp_path / "a.html", "--dump-dom", link="#annotator-3")
    assert console(log) == []
    assert "Spans by type" in dom


def test_a_model_and_gold_are_drawn_and_tasks_are_linked(tmp_path):
    annotations = crowd()
    result = DawidSkene().fit(annotations)
    labels = np.where(np.arange(150) < 5, 1 - result.labels, result.labels)
    predictions = Predictions(labels, np.linspace(0.99, 0.5, 150))
    page = report_page(annotations, result, bootstrap=0, predictions=predictions, curve=0)
    listed = page.numbers.tables["model_tasks"].values["task"]
    assert listed
    dom, log = browse(page.write(tmp_path / "a.html"), "--dump-dom", link=f"#task-{listed[0]}")
    assert console(log) == []
    (section,) = re.findall(r'<section id="model_tasks".*?</section>', dom, flags=re.S)
    assert re.findall(r'<a href="#task-(.*?)"><bdi>', section) == [str(task) for task in listed]
    assert "&lt;img src=x onerror=alert(1)&gt;" in section
    assert dom.count('<tr class="detail">') == 1  # the link opens its task
    assert "<svg" not in dom
    assert "with --gold FILE" in dom
    page = report_page(annotations, result, bootstrap=0, predictions=predictions, gold=result.labels, curve=0)
    dom, log = browse(page.write(tmp_path / "b.html"), "--dump-dom")
    assert console(log) == []
    drawn = re.findall(r'<svg class="diagram".*?</svg>', dom, flags=re.S)
    calibration = json.loads(page.to_json())["calibration"]
    assert len(drawn) == 2
    for diagram, name in zip(drawn, ("aggregated", "model"), strict=True):
        assert 'role="img"' in diagram
        assert diagram.count("<circle") == diagram.count("<rect") == len(calibration[name]["bins"])
        assert "NaN" not in diagram
    assert f"Expected calibration error: {calibration['model']['ece']:.3f}." in dom


def test_it_draws_the_learning_curve_and_the_training(tmp_path):
    annotations = crowd()
    result = DawidSkene().fit(annotations)
    history = {
        "loss": [1.5, 0.75, 0.5],
        "val_loss": [1.25, float("nan"), 1.0],
        "same": [0.0, 0.0, 0.0],
        EVIL[0]: [1, 2, 3],
    }
    page = report_page(annotations, result, bootstrap=0, gold=result.labels, history=history)
    dom, log = browse(page.write(tmp_path / "a.html"), "--dump-dom")
    assert console(log) == []
    curve, training = (
        re.search(rf'<section id="{name}".*?</section>', dom, flags=re.S)[0] for name in ("curve", "training")
    )
    points = page.numbers.curve["points"]
    assert curve.count("<circle") == 2 * len(points)
    assert curve.count("<tr>") == 1 + len(points)
    assert "5 draws; means" in curve
    assert training.count("<svg") == 3
    assert "line: loss, at the end 0.5; dashed: val_loss, at the end 1" in training
    assert "&lt;img src=x onerror=alert(1)&gt;" in training
    for section in (curve, training):
        assert "NaN" not in section
        assert "Infinity" not in section
    assert "#curve" in dom
    assert "#training" in dom


def test_a_phone_shows_no_table_sideways_and_paper_repeats_heads(tmp_path):
    annotations = crowd()
    page = report_page(annotations, DawidSkene().fit(annotations), bootstrap=0, curve=0).to_html()
    page = re.sub("style-src '[^']*'", "style-src 'unsafe-inline'", page)
    (tmp_path / "a.html").write_text(page.replace("</style>", "@page { size: A6 landscape }</style>"), "utf-8")
    wide = "[...d.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel)"
    script = f"const d = frames[0].document; document.title = [d.documentElement.scrollWidth <= 390, ...{wide}]"
    frame = '<iframe src="a.html" width="390" height="900"></iframe>'
    (tmp_path / "phone.html").write_text(f"{frame}<script>setTimeout(() => {{ {script} }}, 2000)</script>")
    dom, _ = browse(tmp_path / "phone.html", "--dump-dom", "--allow-file-access-from-files")
    assert re.findall("<title>(.*?)</title>", dom) in (["true"], ["true,classes"])  # a matrix may be wider
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed")
    browse(tmp_path / "a.html", f"--print-to-pdf={tmp_path / 'a.pdf'}")
    text = subprocess.run(["pdftotext", tmp_path / "a.pdf", "-"], capture_output=True, check=True).stdout.decode()
    assert sum("probability" in each for each in text.split("\f")) >= 3
    assert f"25 of {annotations.num_tasks} shown" in text


@pytest.mark.parametrize(
    ("kind", "said", "shown"),
    [
        ("free-text", ["the cat sat", "the cat sat", "the hat sat"], "[hat ← cat]"),
        ("region", [MarkedImage.of((9, 9), [{"category": "cell", "bbox": [1, 1, 4, 4]}]).text] * 3, "1 cell"),
    ],
)
def test_a_task_with_texts_or_regions_opens(tmp_path, kind, said, shown):
    table = Annotations.from_arrays([0, 0, 0], ["a", "b", "c"], said, kind=kind)
    path = tmp_path / "page.html"
    result = kind_of(kind).aggregation.create("medoid" if kind == "free-text" else None).fit(table)
    model = ["the hat sat"] if kind == "free-text" else [MarkedImage.of((9, 9), [])]
    page = report_page(table, result, predictions=model)
    page.write(path)
    dom, log = browse(path, "--dump-dom", link="#task-0")
    assert not console(log)
    assert shown in html.unescape(dom)
    assert "Compared on 1 tasks; agreement is the" in dom
    people, tasks = (
        re.search(f'<section id="model_{name}".*?</section>', dom, re.S)[0] for name in ("people", "tasks")
    )
    assert people.count("<tr>") == 1 + 4
    assert '<a href="#task-0">' in tasks
    assert 'id="calibration"' not in dom


def test_a_narrower_page_hides_as_few_columns_as_it_has_to(tmp_path):
    rng = np.random.default_rng(0)
    sides = rng.integers(10, 40, (12, 5, 2))  # of 12 images by 5 annotators, who agree more on some than on others
    answers = [
        MarkedImage.of((60, 60), [{"category": name, "bbox": [5, 5, *size]} for name in ("mitochondrion", "nucleus")])
        for size in sides.reshape(-1, 2).tolist()
    ]
    texts = [image.text for image in answers]
    table = Annotations.from_arrays(np.repeat(np.arange(12), 5), list("abcde") * 12, texts, kind="region")
    page = report_page(table, kind_of("region").aggregation.create().fit(table), bootstrap=0)
    path = page.write(tmp_path / "page.html")
    titles = [column["title"] for column in json.loads(page.to_json())["tables"]["tasks"]["columns"]]
    shown = {}
    for width in (640, 800, 1800):
        dom, log = browse(path, "--dump-dom", f"--window-size={width},900", link="#task-0")
        assert console(log) == []
        (tasks,) = re.findall('<section id="tasks".*?</section>', dom, flags=re.S)
        heads = re.findall('<th class="(.*?)".*?>([^<>]+)</button></th>', tasks.split("<tbody>")[0])
        assert [title for _, title in heads] == titles
        shown[width] = [title for words, title in heads if "later" not in words]
        # what is hidden is in what opens under a row
        (others,) = re.findall('<dl class="others">(.*?)</dl>', tasks, flags=re.S)
        assert re.findall("<dt>(.*?)</dt>", others) == titles[len(shown[width]) :]
    assert shown[640] == titles[:3]
    assert 5 <= len(shown[800]) < len(titles)
    assert shown[1800] == titles
