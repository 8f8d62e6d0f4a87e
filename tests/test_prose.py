"""README, guides, messages, help and docstrings are in plain English, without phrases that readers stumbled over."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [path for room in ("crowdzoo", "components", "pipelines", "serving") for path in (ROOT / room).rglob("*.py")]
PLAIN = {
    r"\bmend (it|them|the|this|your)\b|\bmending\b": "fix",
    r"\bhangs? on\b": "depends on",
    r"\b(leave|leaves|leaving|left) ([\w.]+ ){0,2}away\b": "leave out",
    r"\bthere is no such\b|\bthat there is not\b": "does not exist; unknown x: choose one of a, b, c",
    r"\bturn(s|ed)? round\b": "invert",
    r"\bdraws? lots\b": "ties are broken at random",
    r"\bother guests\b": "other jobs were running",
    r"\bto be had\b": "available",
    r"\banew\b": "again",
    r"\bno better than\b": "not better than",
    r"\bwhom to (ask|look|name)\b": "which annotator to ask",
    r"\bbeside (it|this|that|people|experts)\b": "next to",
    r"\bstood on the\b|\bon the left stood\b|\bstands on the\b": "is on the left",
    r"\b(takes?|taking) another\b": "use another",
}
ANY = re.compile("|".join(PLAIN), re.I)


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every string of a module, docstrings among them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())


def stumbling(text: str) -> list[str]:
    """What to write instead of each phrase of `PLAIN` that a text has."""
    if not ANY.search(text):
        return []
    return [f"{found[0]!r}: {plain}" for words, plain in PLAIN.items() if (found := re.search(words, text, re.I))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_no_phrase_that_readers_stumbled_over(page):
    assert stumbling(" ".join(page.read_text(encoding="utf-8").split())) == []


def test_messages_help_and_docstrings_have_no_phrase_that_readers_stumbled_over():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase}"
        for path in CODE
        for line, text in strings(path.read_text(encoding="utf-8"))
        for phrase in stumbling(text)
    ]
    assert found == []


REPORT = [*sorted((ROOT / "crowdzoo" / "kinds").rglob("*.csv")), ROOT / "crowdzoo" / "report" / "report_page.html"]


@pytest.mark.parametrize("table", REPORT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_words_of_a_page_have_no_phrase_that_readers_stumbled_over(table):
    assert stumbling(" ".join(table.read_text(encoding="utf-8").split())) == []


def test_such_phrases_are_found():
    assert stumbling("It hangs\non taste.".replace("\n", " ")) == ["'hangs on': depends on"]
    assert stumbling("Leave data.gold away.") == ["'Leave data.gold away': leave out"]
    assert list(strings('"Mend\\n it"')) == [(1, "Mend it")]


def anchors_of(page):
    """Anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = [re.sub(r"[^\w\- ]", "", head.lower()).strip() for head in re.findall(r"^#+ +(.+)$", text, re.MULTILINE)]
    return {re.sub(r"[ ]+", "-", each) for each in words}


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]), ids=lambda page: page.stem
)
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for file, anchor in re.findall(r"\]\(((?!https?:|mailto:)[^)#\s]*)(?:#([^)\s]+))?\)", text):
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not anchor or target.suffix != ".md" or anchor in anchors_of(target), f"{file}#{anchor}"


def test_no_page_has_marks_of_a_merge():
    assert [page.name for page in PAGES if re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text("utf-8"), re.M)] == []
