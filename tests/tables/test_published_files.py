"""Published crowd sets are read in the files that their authors wrote, with one command each."""

import os
import shlex
from pathlib import Path

import pytest

from crowdzoo.commands import main as cli

# from the data sets' own papers and pages: annotations, tasks, annotators
SIZES = {
    "music-genre-amt/mturk_answers.csv": (2945, 700, 44),
    "truth-inference/dog/label.csv": (8070, 807, 109),
    "truth-inference/ZenCrowd_in/label.csv": (11205, 2040, 25),
    "snow2008/rte.standardized.tsv": (8000, 800, 164),
    "snow2008/valence.standardized.tsv": (1000, 100, 38),
    "llm-judges/annotations.csv": (95203, 2885, 33),
    "dawid-skene-1979/anaesthetists.csv": (315, 45, 5),
    "medical-relation-extraction/raw_RelEx_noip.csv.gz": (59443, 3231, 468),
    "convincing-arguments/annotations.csv": (64872, 13003, 3773),
}
LONG = (  # read in `make test-all`; of their kind are shorter ones
    "medical-relation-extraction/raw_RelEx_noip.csv.gz",
    "llm-judges/annotations.csv",
    "convincing-arguments/annotations.csv",
)
MOVED = {"snow2008": "snow2008/all_collected_data"}
# words after `crowdzoo aggregate FILE`
COMMANDS = {
    "music-genre-amt/mturk_answers.csv": "--columns task=Input.song,annotator=WorkerID,label=Answer.pred_label",
    "truth-inference/dog/label.csv": "",
    "truth-inference/ZenCrowd_in/label.csv": "--on-duplicate all --method dawid-skene",
    "snow2008/rte.standardized.tsv": '--columns "task=orig_id,annotator=!amt_worker_ids"',
    "snow2008/valence.standardized.tsv": (
        '--columns "task=orig_id,annotator=!amt_worker_ids" --kind regression --method mean'
    ),
    "llm-judges/annotations.csv": "",
    "dawid-skene-1979/anaesthetists.csv": (
        "--columns task=patient,annotator=observer --on-duplicate all --method dawid-skene"
    ),
    "medical-relation-extraction/raw_RelEx_noip.csv.gz": (
        "--columns task=sent_id,annotator=_worker_id,label=step_1_select_the_valid_relations --label-separator '\\n' "
        "--on-duplicate all --method dawid-skene"
    ),
    "convincing-arguments/annotations.csv": "",
}


@pytest.mark.skipif("CROWDZOO_DATA" not in os.environ, reason="CROWDZOO_DATA names no folder of data")
@pytest.mark.filterwarnings("default::crowdzoo.errors.DataWarning")  # columns found by usual names
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in SIZES]
)
def test_a_published_file_is_read_with_one_command(name, tmp_path, capsys):
    folder, _, file = name.rpartition("/")
    path = Path(os.environ["CROWDZOO_DATA"], MOVED.get(folder, folder), file)
    words = shlex.split(COMMANDS[name])
    method = [] if "--method" in words else ["--method", "majority-vote"]
    assert cli.main(["aggregate", str(path), *words, *method, "--out", str(tmp_path / "out")]) == 0
    printed = " ".join(capsys.readouterr().out.replace(",", "").split())
    what = "ratings" if "regression" in words else "annotations"
    for title, count in zip((what, "tasks", "annotators"), SIZES[name], strict=True):
        assert f"{title} {count}" in printed
