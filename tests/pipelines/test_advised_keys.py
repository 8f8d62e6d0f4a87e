"""Advice that a run of the pipeline gives: it is taken, as it stands, as --set, and works."""

import re

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.pipelines.config.sections import as_key
from crowdzoo.pipelines.yaml_files import read_value

HEAD = "task,annotator,label\n"
ROWS = "".join(f"{task},{who},{'yes' if task % 2 else 'no'}\n" for task in range(8) for who in "ab")
INSTANCES = "task,x,y,split\n" + "".join(f"{n},{n}.5,{7 - n},{'eval' if n > 5 else 'train'}\n" for n in range(8))
CONFIG = """\
name: advised
data: {annotations: answers.csv, instances: instances.csv}
output: {root: out}
"""
# what is wrong -> answers, instances, further settings, the advice
ADVICE = {
    "an empty label": (HEAD + ROWS + "3,c,\n", INSTANCES, {}, "data.on_bad_rows: reject"),
    "two labels": (HEAD + ROWS + "3,a,no\n", INSTANCES, {}, "data.on_duplicate: first"),
    "no header": (
        ROWS, INSTANCES, {"data.header": "false"}, "data.columns: {task: '1', annotator: '2', label: '3'}",
    ),
    "numbers with a word": (HEAD + ROWS, INSTANCES.replace("3.5", "much"), {}, "model.inputs: {x: category}"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ADVICE)
def test_advice_is_in_keys_of_the_file_and_works(case, tmp_path, capsys, here):
    answers, instances, settings, advice = ADVICE[case]
    (tmp_path / "advised.yaml").write_text(CONFIG)
    (tmp_path / "answers.csv").write_text(answers)
    (tmp_path / "instances.csv").write_text(instances)
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = ["run", "advised.yaml", "--check=all", *words]
    assert cli.main(command) in (3, 4)
    said = capsys.readouterr().err
    assert advice in said
    assert not re.search(r"\b(on_\w+|header|columns|inputs|rejects)=", said)
    key, value = advice.split(": ", 1)
    assert cli.main([*command, "--set", f"{key}={value}"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("classes", ["LOWEST", "...", "HIGHEST"], "data.classes: [LOWEST, '...', HIGHEST]"),
        ("missing", ["-1", "no"], "data.missing: ['-1', no]"),
        ("platform", "label-studio", "data.platform: label-studio"),
        ("columns", {"task": "HIT id", "annotator": "A,B"}, "data.columns: {task: HIT id, annotator: 'A,B'}"),
        ("separator", ";", "data.separator: ;"),
        ("label_separator", "\n", 'data.label_separator: "\\n"'),
        ("wide", True, "data.wide: true"),
        ("batch_size", ..., "training.batch_size"),
    ],
)
def test_a_setting_is_written_as_a_key_that_yaml_reads_back(name, value, text):
    assert as_key(name, value) == text
    if value is not ...:
        assert read_value(text, "a setting") == {text.partition(":")[0]: value}
