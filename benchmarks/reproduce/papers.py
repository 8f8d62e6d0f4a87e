"""Writes docs/papers/<name>.md from the saved results, and their counts into docs/papers/README.md; runs nothing.

    python benchmarks/reproduce/papers.py lia      # or "all"

A page has every table and figure of a paper, ours beside it. Its first lines count the published figures: how many are
reproduced, of how many only the order is, and how many are not.
"""

import argparse
import importlib
import json
import re
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["FOLDER", "INDEX", "PAPERS", "counted", "grid", "indexed", "shown", "verdict", "wrapped", "written"]

FOLDER = Path(__file__).parents[2] / "docs" / "papers"
INDEX = FOLDER / "README.md"
START, END = "<!-- papers.py writes this table -->\n", "<!-- the end of the table -->\n"
# name of the page -> module with `RESULTS` and `render(results)`
PAPERS = {
    "lia": "lia_paper", "rodrigues": "rodrigues_paper", "conal": "conal_paper", "waum": "waum_paper",
    "ibrahim": "geo_crowd_net",
}  # fmt: skip
MARKS = {"reproduced": "✓", "order": "~", "not": "✗", "missing": "–"}
ROUNDING = 0.05  # published figures have one decimal


def verdict(published: float, found: Sequence[float], order: bool | None = None, spread: float = 0.0) -> str:
    """Whether a published mean is reproduced.

    Args:
        published: the paper's figure.
        found: ours, one a draw.
        order: whether the row is on the paper's side of the baseline; None where it is the baseline itself.
        spread: the published standard deviation; 0 where there is none.

    Returns:
        "reproduced": the difference of the means is at most one standard deviation (of the draws or the published one,
        whichever is larger), or a rounding error; "order": not so, but `order` holds; "not"; or "missing" where
        nothing was found.
    """
    if not found:
        return "missing"
    ours = statistics.stdev(found) if len(found) > 1 else 0.0
    if abs(statistics.mean(found) - published) <= max(ours, spread, ROUNDING) + 1e-9:
        return "reproduced"
    return "order" if order else "not"


def shown(values: Sequence[float], digits: int = 1) -> str:
    """A cell: "71.5 ± 2.0", empty where there are no values."""
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def counted(verdicts: Iterable[str], deviation: str = "of our draws") -> str:
    """The line of counts; `deviation` says which standard deviation the verdicts have."""
    found = Counter(verdicts)
    line = (
        f"**{found['reproduced']} of {found.total()} published figures are reproduced** (within one standard deviation "
        f"{deviation}), of {found['order']} only the order is, {found['not']} are not reproduced, and for "
        f"{found['missing']} there is no row here."
    )
    return wrapped(line)


def wrapped(text: str) -> str:
    """A paragraph in lines of the pages' length."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def grid(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|---" * 2 + "|---:" * (len(header) - 2) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def written(name: str) -> str:
    """The page as the saved results have it."""
    module = importlib.import_module(PAPERS[name])
    page: str = module.render(json.loads(module.RESULTS.read_text(encoding="utf-8")))
    return page


COUNTS = re.compile(
    r"\*\*(\d+) of (\d+) published figures are reproduced\*\* .*? of (\d+) only the order is, (\d+) are not "
    r"reproduced, and for (\d+) there is no row here"
)
CLAIMS = re.compile(r"can be seen here \(✓\), or cannot: ✓ (\d+), ✗ (\d+), – (\d+)")


def indexed(index: str) -> str:
    """The page of all papers with the counts that their pages have.

    Args:
        index: its text.
    """
    rows, total = [], Counter[int]()
    for name in PAPERS:
        text = " ".join((FOLDER / f"{name}.md").read_text(encoding="utf-8").split())
        figures, claims = COUNTS.search(text), CLAIMS.search(text)
        found = list(map(int, figures.groups())) if figures else [0] * 5
        seen = list(map(int, claims.groups())) if claims else [0] * 3
        cells = [found[1], found[0], *found[2:], *seen[:2]]
        total.update(dict(enumerate(cells)))
        shown_claims = cells[5:] if claims else ["", ""]
        rows.append([f"[{name}]({name}.md)", *cells[:5], *shown_claims])
    rows.append(["all", *(total[place] for place in range(7))])
    head = ["page", "published figures", "reproduced", "order only", "not reproduced", "no row here"]
    before, rest = index.split(START)
    table = grid([*head, "claims seen here", "not seen"], rows)
    return before + START + "\n" + table.replace("|---|---|", "|---|---:|", 1) + "\n" + END + rest.split(END)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=[*PAPERS, "all"])
    paper = parser.parse_args().paper
    for name in PAPERS if paper == "all" else [paper]:
        page = FOLDER / f"{name}.md"
        page.write_text(written(name), encoding="utf-8")
        module = importlib.import_module(PAPERS[name])
        if hasattr(module, "plot"):
            module.plot(json.loads(module.RESULTS.read_text(encoding="utf-8")))
        print(next(part for part in page.read_text(encoding="utf-8").split("\n\n") if part.startswith("**")))
        print(f"written: {page}")
    INDEX.write_text(indexed(INDEX.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
