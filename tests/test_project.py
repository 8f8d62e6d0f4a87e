"""What importing costs, and what leaks."""

import importlib
import subprocess
import sys

import pytest

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
    assert not loaded_by("import crowdzoo.aggregation, crowdzoo.data.annotations") & (HEAVY - {"pandas", "scipy"})


def test_every_lazy_name_resolves():
    import crowdzoo

    for name in crowdzoo.__all__:
        assert getattr(crowdzoo, name) is not None
    assert set(crowdzoo.__all__) == set(dir(crowdzoo))
    with pytest.raises(AttributeError, match="no attribute 'Anotations'"):
        crowdzoo.Anotations  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("crowdzoo.beam", "fit"),
        ("crowdzoo.instances", "read_instances"),
        ("crowdzoo.models", "CrowdModel"),
        ("crowdzoo.sequences", "read_spans"),
        ("crowdzoo.tables", "Rankings"),
    ],
)
def test_a_name_is_found_where_earlier_guides_imported_it(module, name):
    found = getattr(importlib.import_module(module), name)
    assert found.__module__ != module, "the name stands in another room now"


@pytest.mark.parametrize("name", ["components", "pipelines", "serving"])
def test_top_level_folders_do_not_leak_as_import_names(name, tmp_path):
    done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, text=True, cwd=tmp_path)
    assert "ModuleNotFoundError" in done.stderr
