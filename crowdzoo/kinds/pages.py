"""PAGES: what the page of a report says of each kind of label."""

from crowdzoo.kinds.classes.page import ClassPage
from crowdzoo.kinds.kind_page import KindPage
from crowdzoo.kinds.preferences.page import PreferencePage
from crowdzoo.kinds.ratings.page import RatingPage
from crowdzoo.kinds.sentences.page import SpanPage
from crowdzoo.kinds.several_labels.page import LabelPage

__all__ = ["PAGES"]

# By the kind of a result
PAGES: dict[str, type[KindPage]] = {
    page.kind: page for page in (ClassPage, RatingPage, SpanPage, PreferencePage, LabelPage)
}
