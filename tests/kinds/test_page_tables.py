"""The tables of columns, facts, notes and warnings beside the pages fit the pages that read them."""

import re
from pathlib import Path

from crowdzoo import kinds
from crowdzoo.kinds import KINDS
from crowdzoo.kinds.page_parts import FLAGS, WARNINGS

SOURCE = "".join(path.read_text(encoding="utf-8") for path in Path(kinds.__file__).parent.rglob("*.py"))
FORMS = {"name", "task", "count", "number", "share", "interval", "flags"}


def test_every_page_has_its_facts_and_tables_and_no_column_twice():
    tables = [kind.page.own_columns for kind in KINDS.values()]
    assert all({"facts", "annotators", "tasks"} <= {*table} for table in tables)
    for columns in (columns for table in tables for columns in table.values()):
        keys = [each.key for each in columns]
        assert len({*keys}) == len(keys)
        assert {each.form for each in columns} <= FORMS
        assert all(each.title for each in columns)


def test_every_warning_is_used_and_every_one_that_is_used_is_there():
    used = set(re.findall(r'\bwarning\(\s*"([\w-]+)"', SOURCE)) | {"all-equal"}  # one of two, in one call
    assert used == WARNINGS.keys()
    assert all(f'"{name}"' in SOURCE for name in WARNINGS)


def test_notes_say_what_was_found_and_serious_ones_what_to_do():
    for flag in FLAGS.values():
        assert flag.title
        assert flag.text
        assert bool(flag.fix) == flag.serious
        assert flag.serious or not (flag.out or flag.keep)
