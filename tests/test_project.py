"""The distribution: what is in the wheel, what importing costs, what leaks."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Folder in the repository -> import name in the wheel
MAPPED = {"crowdzoo": "crowdzoo", "components": "crowdzoo/components", "pipelines": "crowdzoo/pipelines",
          "serving": "crowdzoo/serving"}  # fmt: skip
HEAVY = {"tensorflow", "keras", "tfx", "apache_beam", "jax", "torch", "pandas", "matplotlib", "scipy"}


def loaded_by(statement: str) -> set[str]:
    """Top-level modules in a fresh process after the statement."""
    code = f"import sys\n{statement}\nprint('\\n'.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_crowdzoo_loads_nothing_heavy():
    assert not loaded_by("import crowdzoo") & (HEAVY | {"numpy", "pyarrow"})


def test_help_of_every_command_loads_nothing_heavy():
    code = (
        "import contextlib, crowdzoo.commands.main as cli\n"
        "for command in ('', *cli.COMMANDS):\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(None):\n"
        "        cli.main([*command.split(), '--help'])"
    )
    assert not loaded_by(code) & HEAVY


def test_aggregation_and_annotations_load_no_deep_learning():
    # Numba loads SciPy where it is installed
    assert not loaded_by("import crowdzoo.aggregation, crowdzoo.tables.annotations") & (HEAVY - {"pandas", "scipy"})


def test_every_lazy_name_resolves():
    import crowdzoo

    for name in crowdzoo.__all__:
        assert getattr(crowdzoo, name) is not None
    assert set(crowdzoo.__all__) == set(dir(crowdzoo))
    with pytest.raises(AttributeError, match="no attribute 'Anotations'"):
        crowdzoo.Anotations  # noqa: B018


@pytest.mark.parametrize("name", ["components", "pipelines", "serving"])
def test_top_level_folders_do_not_leak_as_import_names(name, tmp_path):
    done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, text=True, cwd=tmp_path)
    assert "ModuleNotFoundError" in done.stderr


def test_the_wheel_holds_exactly_the_files_of_the_folders(tmp_path):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    files = [Path(name) for name in listed if (ROOT / name).is_file()]
    source = tmp_path / "source"  # a copy, since a build leaves its scratch folders beside what it builds
    for file in files:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, source / file)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {
        str(Path(MAPPED[file.parts[0]], *file.parts[1:]))
        for file in files
        if file.parts[0] in MAPPED and len(file.parts) > 1
    }
    assert inside == expected
