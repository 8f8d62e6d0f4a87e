"""What exports are read as."""

import pytest

from crowdzoo import Annotations


@pytest.fixture
def rows_of():
    """Reads an export; gives (task, annotator, label) of each annotation, in order."""

    def rows_of(path, platform, **options):
        annotations = Annotations.read(path, platform=platform, **options)
        frame = annotations.to_frame()
        return list(frame[["task", "annotator", "label"]].itertuples(index=False, name=None))

    return rows_of
