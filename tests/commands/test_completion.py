"""What a shell is told when somebody presses Tab."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("argcomplete")


def completed(line, tmp_path):
    """Words that may stand at the end of the line, as argcomplete's function for bash asks for them."""
    answer = tmp_path / "answer"
    environment = {
        **os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "IFS": "\n",
        "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "crowdzoo"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [word.strip() for word in answer.read_text().splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("crowdzoo agg", ["aggregate"]),
        ("crowdzoo aggregate --rank", ["--rankings"]),  # --help has it with --kind preference only
        pytest.param("crowdzoo methods --kind c", ["classification"], marks=pytest.mark.slow),
    ],
)
def test_commands_options_and_choices_are_completed(line, words, tmp_path):
    assert completed(line, tmp_path) == words
