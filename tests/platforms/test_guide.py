"""docs/platforms.md says what the code does."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest
from csv_files import read_csv

from crowdzoo.commands.main import main
from crowdzoo.reading.platforms.export import PLATFORMS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "platforms.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\|.*`(\S+) --platform (\S+)`", PAGE, re.MULTILINE)


def test_the_table_has_each_platform_with_a_file_of_its_ending():
    assert [name for _, name in ROWS] == list(PLATFORMS)
    for file, name in ROWS:
        assert file.endswith((*PLATFORMS[name].suffixes, ".zip", "/"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_a_project_that_goes_on_run_on_a_growing_folder(tmp_path, here, capsys):
    (block,) = re.findall(r"```sh\n(curl.*?)```", PAGE, re.DOTALL)
    commands = [shlex.split(line) for line in block.splitlines()[1:]]
    assert [words[1] for words in commands] == ["aggregate", "quality", "report.json", "report", "next"]
    Path("answers").mkdir()
    draw, answers = random.Random(0), {task: {} for task in range(30)}
    for day in range(1, 4):
        for task, said in answers.items():
            who = f"ann{(task + day) % 4}@x.org"
            said[who] = ("cat", "dog")[(task + (draw.random() < 0.1)) % 2]
        answers[0] = dict.fromkeys(answers[0], "dog" if day == 3 else "cat")  # a correction, of what was said before
        export = [
            {"id": task, "data": {"text": f"t{task}"}, "annotations": [
                {"completed_by": {"email": who}, "result": [
                    {"type": "choices", "from_name": "animal", "value": {"choices": [label]}}
                ]} for who, label in said.items()
            ]} for task, said in answers.items()
        ]  # fmt: skip
        Path("answers", f"2026-03-0{day}.json").write_text(json.dumps(export))
        for program, *words in commands:
            if program == "mv":
                if day > 1:
                    Path(words[0]).rename(words[1])
                continue
            left_out = ("--before", "before.json") if day == 1 else ()
            assert main([word for word in words if word not in left_out]) == 0, words
        labels = {row["task"]: row for row in read_csv("labels.csv")}
        assert len(labels) == 30
        assert {row["annotations"] for row in labels.values()} == {str(day)}
    assert labels["0"]["label"] == "dog"
    changes = json.loads(Path("report.json").read_text())["changes"]
    assert ["annotations", 60, 90] in changes["values"]
    assert changes["options"] == []
    assert json.loads(Path("batch.json").read_text())[0]["data"]["annotators"]
    assert Path("sheets", "tasks.xlsx").stat().st_size > 0
