"""docs/scikit-learn.md: its code runs as it stands, and the failing checks it names are those of the tests."""

import re
from pathlib import Path

import pytest

pytest.importorskip("sklearn")  # is not beside the other backends

GUIDE = (Path(__file__).parents[2] / "docs" / "scikit-learn.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_code_of_the_page_runs_from_top_to_bottom():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.S):
        exec(compile(block, "docs/scikit-learn.md", "exec"), names)
    assert names["model"].score(names["x"][names["test"]], names["labelme"].gold[names["test"]]) > 0.5
    assert names["search"].best_params_["crowdclassifier__method"] in ("deep-em", "crowdsourced-layer")
