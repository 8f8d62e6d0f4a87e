import sys

import pytest

from crowdzoo.components.code_version import code_version


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package made for the test, `crowdzoo.zz_test`: `a` imports `b` inside a function, nobody imports `c`."""
    folder = tmp_path / "zz_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text("def f():\n    from crowdzoo.zz_test.b import g\n    return g()\n")
    (folder / "b.py").write_text("def g():\n    return 1\n")
    (folder / "c.py").write_text("x = 1\n")
    import crowdzoo

    monkeypatch.setattr(crowdzoo, "__path__", [*crowdzoo.__path__, str(tmp_path)])
    yield folder
    for name in [name for name in sys.modules if name.startswith("crowdzoo.zz_test")]:
        del sys.modules[name]


def test_a_change_in_what_a_module_imports_changes_its_version(package):
    before = code_version("crowdzoo.zz_test.a")
    assert before == code_version("crowdzoo.zz_test.a")
    (package / "b.py").write_text("def g():\n    return 2\n")
    assert code_version("crowdzoo.zz_test.a") != before


def test_a_change_elsewhere_does_not(package):
    before = code_version("crowdzoo.zz_test.a")
    (package / "c.py").write_text("x = 2\n")
    assert code_version("crowdzoo.zz_test.a") == before


def test_what_only_type_checkers_import_does_not_count(package):
    code = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crowdzoo.zz_test.c import x\n"
    (package / "a.py").write_text(code)
    before = code_version("crowdzoo.zz_test.a")
    (package / "c.py").write_text("x = 2\n")
    assert code_version("crowdzoo.zz_test.a") == before


def test_a_module_that_is_named_in_a_table_counts(package):
    (package / "a.py").write_text("NAMES = {'x': 'crowdzoo.zz_test.c', 'y': 'crowdzoo.zz_test.c is text'}\n")
    before = code_version("crowdzoo.zz_test.a")
    (package / "c.py").write_text("x = 2\n")
    assert code_version("crowdzoo.zz_test.a") != before


def test_a_change_of_a_page_that_a_module_names_changes_its_version(package):
    (package / "page.html").write_text("one")
    (package / "other.html").write_text("one")
    (package / "a.py").write_text('PAGE = "page.html"\n')
    before = code_version("crowdzoo.zz_test.a")
    (package / "other.html").write_text("two")
    assert code_version("crowdzoo.zz_test.a") == before
    (package / "page.html").write_text("two")
    assert code_version("crowdzoo.zz_test.a") != before
