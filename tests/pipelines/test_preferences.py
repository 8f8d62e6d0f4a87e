"""Task preference: the configuration and the check of its data."""

import pytest

from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config.load import load_config

CONFIG = """\
name: essays
kind: preference
data: {annotations: judgments.csv, instances: essays.csv, gold: known.csv}
model: {form: bag-of-words, hidden: [8], dropout: 0.0}
training: {epochs: 30, batch_size: 16, learning_rate: 0.05}
evaluation: {minimum_pair_accuracy: 0.6, tolerance: 0.1}
output: {root: out}
"""


@pytest.fixture
def inputs(here):
    """Sixty texts, of which three annotators judge 180 pairs, and what is known of these."""
    pairs = [(left, (left + step) % 60) for left in range(60) for step in (1, 4, 10)]
    known = [f"t{left},t{right},{('left', 'right')[left < right]}" for left, right in pairs]
    said = [
        f"{sides},a{code},{label}" for sides, _, label in (row.rpartition(",") for row in known) for code in range(3)
    ]
    (here / "judgments.csv").write_text("\n".join(["left,right,annotator,label", *said]))
    (here / "known.csv").write_text("\n".join(["left,right,gold", *known]) + "\n")
    texts = [f"t{task},a text of {task} words,{'eval' if task % 4 == 3 else 'train'}" for task in range(60)]
    (here / "essays.csv").write_text("\n".join(["task,text,split", *texts]))
    (here / "essays.yaml").write_text(CONFIG)
    return here


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("aggregation.method", "dawid-skene", "method 'dawid-skene': choose one of bradley-terry"),
        ("method.name", "deep-em", "method: method 'deep-em' is not for kind preference"),
        ("data.low", 1, "data.low is not for base text-regressor, where data has dataset, annotations, "),
        ("data.platform", "mturk", "data.platform: crowdzoo does not read preferences of Amazon Mechanical Turk"),
    ],
)  # fmt: skip
def test_what_is_not_for_preferences_is_said(inputs, key, value, message):
    with pytest.raises(ConfigError) as caught:
        load_config(inputs / "essays.yaml", {key: value})
    assert message in str(caught.value)


def test_the_check_reads_preferences_instances_and_gold(inputs, capsys):
    assert main(["run", "essays.yaml", "--check"]) == 0
    assert "fine, read 540 preferences, 60 instances" in capsys.readouterr().out
    with open("known.csv", "a") as file:
        file.write("t1,zed,left\n")
    assert main(["run", "essays.yaml", "--check"]) == 3
    assert "known.csv, row 182, column 'right': 'zed' is not one " in capsys.readouterr().err
    assert not (inputs / "out").exists()
