"""docs/scale.md: its examples run."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


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
