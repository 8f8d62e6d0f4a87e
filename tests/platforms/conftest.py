"""What exports are read as."""

import pytest

from crowdzoo import Annotations


@pytest.fixture
def said():
    """Reads an export; gives (task, annotator, label) of each annotation, in order."""

    def said(path, platform, **options):
        annotations = Annotations.read(path, platform=platform, **options)
        frame = annotations.to_frame()
        return list(frame[["task", "annotator", "label"]].itertuples(index=False, name=None))

    return said
