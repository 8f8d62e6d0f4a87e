"""PAGES: what the page of a report says of each kind of label, the `KindPage` in `page.py` of its folder."""

from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.kinds.kind_page import KindPage
from crowdzoo.kinds.parts import part_of

# By the kind of a result
PAGES: dict[str, type[KindPage]] = {name: part_of(name, "page").PAGE for name in (*LABEL_KINDS, "multi-label")}
