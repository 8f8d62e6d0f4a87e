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
    for name in ("c.py", "page.html", "other.html"):
        (folder / name).write_text("x = 1\n")
    import crowdzoo

    monkeypatch.setattr(crowdzoo, "__path__", [*crowdzoo.__path__, str(tmp_path)])
    yield folder
    for name in [name for name in sys.modules if name.startswith("crowdzoo.zz_test")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("source", "changed", "counts"),
    [
        (None, "b.py", True),
        (None, "c.py", False),
        ("if TYPE_CHECKING:\n    from crowdzoo.zz_test.c import x\n", "c.py", False),
        ("NAMES = {'x': 'crowdzoo.zz_test.c', 'y': 'crowdzoo.zz_test.c is text'}\n", "c.py", True),
        ('PAGE = "page.html"\n', "page.html", True),
        ('PAGE = "page.html"\n', "other.html", False),
    ],
    ids=["imported", "elsewhere", "for type checkers", "named in a table", "page that is named", "another page"],
)
def test_a_version_changes_with_what_a_module_needs(package, source, changed, counts):
    if source is not None:
        (package / "a.py").write_text("from typing import TYPE_CHECKING\n" + source)
    before = code_version("crowdzoo.zz_test.a")
    assert before == code_version("crowdzoo.zz_test.a")
    (package / changed).write_text("x = 2\n")
    assert (code_version("crowdzoo.zz_test.a") != before) == counts
