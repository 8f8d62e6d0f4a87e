import os
import subprocess
import sys

import pytest

from crowdzoo.pipelines.console import Console


@pytest.fixture
def console(tmp_path):
    return Console(tmp_path / "logs" / "run.log")


def test_output_of_every_kind_goes_to_the_log_and_progress_to_the_terminal(console, capfd):
    with console.captured():
        print("from print")
        print("from stderr", file=sys.stderr)
        os.write(2, b"from C++\n")
        subprocess.run([sys.executable, "-c", "import sys; print('from a child', file=sys.stderr)"], check=True)
        console.say("progress")
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "progress\n"
    assert sorted(console.log.read_text().splitlines()) == ["from C++", "from a child", "from print", "from stderr"]


def test_streams_are_restored_after_an_error_and_its_traceback_is_in_the_log(console, capfd):
    with pytest.raises(ValueError, match="wrong"), console.captured():
        raise ValueError("wrong")
    os.write(2, b"2 is back\n")
    print("1 is back")
    out, err = capfd.readouterr()
    assert (out, err) == ("1 is back\n", "2 is back\n")
    log = console.log.read_text()
    assert log.startswith("Traceback")
    assert log.endswith("ValueError: wrong\n")


def test_a_step_has_one_line_with_its_time_or_cached_or_failed(console, capfd):
    with console.step(1, 3, "First"):
        pass
    with console.step(2, 3, "Second") as step:
        step.cached = True
    with pytest.raises(ValueError, match="wrong"), console.step(3, 3, "Third"):
        raise ValueError("wrong")
    with pytest.raises(KeyboardInterrupt), console.step(3, 3, "Third"):
        raise KeyboardInterrupt
    lines = capfd.readouterr().err.splitlines()
    assert lines[:2] == ["[1/3] First … 0.0 s", "[2/3] Second … cached"]
    assert lines[2:] == ["[3/3] Third … failed", "[3/3] Third … interrupted"]
