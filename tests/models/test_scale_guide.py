"""docs/scale.md: its examples run, and its figures are those of the saved results (`python` this file prints them)."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
ANNOTATORS = (59, 10_000, 1_000_000)
FORMS = ("sparse", "sparse, Adam", "one-hot")


def results():
    return json.loads((ROOT / "benchmarks/results/layers.json").read_text())


def table():
    """Lines of the table of steps on TensorFlow, small head."""
    cells = results()["tensorflow"]["cells"]
    lines = []
    for annotators in ANNOTATORS:
        row = [f"{annotators:,}"]
        for form in FORMS:
            found = cells[f"small, {form}, {annotators}"]
            if "peak_mib" in found:
                time = found["milliseconds"]
                row.append(f"{time:,.{0 if time >= 100 else 1}f} ms, {found['peak_mib']:,.0f} MiB")
            else:
                row.append("too large")
        lines.append(f"| {' | '.join(row)} |")
    return lines


def test_the_table_is_that_of_the_saved_results():
    page = (ROOT / "docs/scale.md").read_text()
    for line in table():
        assert line in page


@pytest.mark.slow
def test_the_examples_run():
    page = (ROOT / "docs/scale.md").read_text()
    blocks = re.findall(r"((?:^    .*\n|^\n)+)", page.partition("## Many annotators")[2], flags=re.M)
    code = "\n".join(line[4:] for block in blocks for line in block.splitlines())
    names = {"num_annotators": 20}
    exec(code.replace("1_000_000", "20"), names)
    model = names["model"]
    x = {"instances": np.ones((2, 512), "float32"), "annotators": np.array([[0, 1], [2, -1]], "int32")}
    model.train_on_batch(x, np.array([[1, 2], [3, -1]], "int32"))
    assert type(model.optimizer).__name__ == "LazyAdam"


if __name__ == "__main__":
    print("\n".join(table()))
