"""Every broken input of `broken_inputs.py` is refused with its place and a way out, and leaves nothing behind."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("broken_inputs", Path(__file__).with_name("broken_inputs.py"))
broken_inputs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(broken_inputs)

CASES = [case for cases in broken_inputs.SECTIONS.values() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_broken_input_is_refused_with_its_place_and_a_way_out(case, tmp_path):
    code, message = broken_inputs.run(case, tmp_path)
    assert code == case.exit_code, message
    for part in case.says:
        assert part in message
    assert "Traceback" not in message
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(case.files)
