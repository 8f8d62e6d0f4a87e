"""docs/platforms.md says what the code does."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest
from csv_files import read_csv
from studio_exports import annotation, choice, task

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
    (block,) = re.findall(r"```sh\n(crowdzoo aggregate answers.*?)```", PAGE, re.DOTALL)
    commands = [shlex.split(line) for line in block.splitlines()]
    assert [words[1] for words in commands] == ["aggregate", "quality", "report.json", "report", "next"]
    Path("answers").mkdir()
    draw, answers = random.Random(0), {number: {} for number in range(30)}
    for day in range(1, 4):
        for number, said in answers.items():
            who = f"ann{(number + day) % 4}@x.org"
            said[who] = ("cat", "dog")[(number + (draw.random() < 0.1)) % 2]
        answers[0] = dict.fromkeys(answers[0], "dog" if day == 3 else "cat")  # a correction, of what was said before
        export = [
            task(number, *(annotation({"email": who}, choice("animal", label)) for who, label in said.items()))
            for number, said in answers.items()
        ]
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
    assert read_csv("batch.csv")[0]["annotator"].endswith("@x.org")
    assert Path("sheets", "tasks.xlsx").stat().st_size > 0


def code_with(word):
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if word in block]
    return code


def test_the_code_for_surveys_leaves_the_lines_below_the_header_out(here):
    text = '\ufeffResponseId,Q1,Q2\nResponse ID,"Which\nanimal?",And this?\n"{""ImportId"":""_""}",{},{}\nR_1,cat,dog\n'
    Path("qualtrics.csv").write_text(text, encoding="utf-8")
    exec(code_with("qualtrics"), {})
    assert read_csv("answers.csv") == [{"ResponseId": "R_1", "Q1": "cat", "Q2": "dog"}]


def test_the_code_for_regions_of_prodigy_makes_a_table_of_them(here, capsys):
    pytest.importorskip("pycocotools.mask")
    span = {"label": "CAT", "type": "rect", "points": [[1, 1], [1, 3], [4, 3], [4, 1]]}
    shown = {"image": "a.jpg", "width": 8, "height": 6, "_input_hash": 5, "_task_hash": 6, "spans": [span]}
    lines = [{**shown, "_annotator_id": who, "answer": answer} for who, answer in
             (("ann", "accept"), ("bob", "accept"), ("cid", "reject"))]  # fmt: skip
    Path("export.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["aggregate", "export.jsonl", "--platform", "prodigy", "--kind", "region", "--out", "o"]) == 4
    assert "Write them as a table (docs/platforms.md has" in capsys.readouterr().err
    exec(code_with("MarkedImage"), {})
    words = ["aggregate", "regions.csv", "--kind", "region", "--method", "majority-vote", "--out", "o"]
    assert main(words) == 0
    (region,) = json.loads(Path("o", "regions.json").read_text())["annotations"]
    assert region["bbox"] == [1, 1, 3, 2]
