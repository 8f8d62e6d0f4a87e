"""Files of exports, written by hand."""

import json

import pytest

from crowdzoo import Annotations


@pytest.fixture
def write(tmp_path):
    """Writes a file: text or bytes as they are, lists and dictionaries as JSON (.jsonl: a line an entry)."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, (list, dict)):
            lines = name.endswith(".jsonl")
            content = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def said():
    """Reads an export; gives (task, annotator, label) of each annotation, in order."""

    def said(path, platform, **options):
        annotations = Annotations.read(path, platform=platform, **options)
        frame = annotations.to_frame()
        return list(frame[["task", "annotator", "label"]].itertuples(index=False, name=None))

    return said
