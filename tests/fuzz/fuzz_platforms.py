"""Fuzzing of the readers of platforms' exports: sound ones, and what can be done to their values and bytes."""

import contextlib
import csv
import io
import json
import re
import zipfile
from base64 import b64decode

from fuzz_annotations import TEXTS, changed, damaged, encoded, file_of, zipped
from hypothesis import strategies as st
from target import Target

from crowdzoo import Annotations
from crowdzoo.errors import CrowdzooError
from crowdzoo.reading.instances.export_instances import write_export_instances
from crowdzoo.reading.platforms.export import PLATFORMS, Export
from crowdzoo.reading.platforms.label_config import read_label_config
from crowdzoo.sequences import read_spans

TEXT = "Zoë 😀 met Bob in Rome"
SPAN = {"start": 6, "end": 9, "label": "PER"}
MASK = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAAC4HznGAAAAEElEQVR4nGNkYGRgYGBgAgAAGAAF5rOdagAAAABJRU5ErkJggg=="


def result(name, kind, **value):
    return {"from_name": name, "to_name": "text", "type": kind, "value": value}


LABEL_STUDIO = [
    {"id": 1, "data": {"text": TEXT, "n": 1}, "annotations": [
        {"completed_by": {"id": 3, "email": "ann@example.org"}, "result": [
            result("mood", "choices", choices=["glad"]), result("stars", "rating", rating=4),
            result("names", "labels", start=6, end=9, text="met", labels=["PER"]),
            result("tree", "taxonomy", taxonomy=[["a", "b"]]),
        ]},
        {"completed_by": 4, "was_cancelled": True, "result": []},
        {"completed_by": 5, "ground_truth": True, "result": [result("mood", "choices", choices=["sad"])]},
    ]},
    {"id": 2, "text": TEXT, "mood": "glad", "annotator": 3, "annotation_id": 4, "lead_time": 0.5},
    {"id": 3, "data": {"talk": [{"author": "A", "text": TEXT}], "items": [{"id": "a", "x": "b"}, {"id": "c"}]},
     "annotations": [{"completed_by": 3, "updated_at": "2026-11-29", "result": [
        result("kind", "pairwise", selected="left"), result("x", "ranker", ranker={"x": ["c", "a"]}),
        result("sure", "textarea", text=["b"]),
        result("names", "paragraphlabels", start="0", end="0", startOffset=0, endOffset=3, paragraphlabels=["PER"]),
        result("accept", "bitmasklabels", imageDataURL=f"data:image/png;base64,{MASK}", bitmasklabels=["cat"])
        | {"original_width": 3, "original_height": 2},
    ]}]},
]  # fmt: skip
PRODIGY = [
    {"text": TEXT, "_input_hash": 1, "_task_hash": 2, "_annotator_id": "ann", "answer": "accept", "accept": ["glad"],
     "options": [{"id": "glad"}], "spans": [SPAN], "tokens": [{"text": word} for word in TEXT.split()]},
    {"text": TEXT, "_input_hash": 1, "_task_hash": 3, "_session_id": "bob", "answer": "reject", "label": "SPAM"},
]  # fmt: skip
DOCCANO = [
    {"id": 1, "text": TEXT, "label": ["glad"], "Comments": []},
    {"id": 2, "text": TEXT, "entities": [{"start_offset": 6, "end_offset": 9, "label": "PER"}], "cats": ["a"]},
    {"id": 3, "text": TEXT, "labels": [[6, 9, "PER"]], "annotations": [{"label": 1, "user": 2}]},
]
ARGILLA = [
    {"id": "1", "fields": {"text": TEXT}, "responses": {"mood": [{"value": "glad", "user_id": "a"}],
     "names": [{"value": [SPAN], "user_id": "a"}]}},
    {"id": "2", "fields": {"text": TEXT}, "responses": [
        {"user_id": "a", "status": "submitted", "values": {"mood": {"value": "sad"}, "stars": {"value": 3}}}]},
    {"id": "3", "text": TEXT, "mood.responses": ["glad"], "mood.responses.users": ["b"],
     "mood.responses.status": ["discarded"]},
    {"id": "5", "text": TEXT, "mood": {"user_id": ["a"], "value": [["b", "a"]], "status": ["submitted"]}},
    {"id": 4, "text": TEXT, "annotation": [["PER", 6, 9]], "annotation_agent": "a", "status": "Validated"},
]  # fmt: skip
COCO = {
    "images": [{"id": 1, "file_name": "a.jpg", "height": 4, "width": 6, "annotators": ["ann"]}],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [
        {"image_id": 1, "category_id": 1, "attributes": {"sure": True}, "annotator": "bob", "bbox": [1, 1, 2, 2]},
        {"image_id": 1, "category_id": 1, "segmentation": [[1, 1, 3, 1, 3, 3]]},
        {"image_id": 1, "category_id": 1, "segmentation": {"size": [4, 6], "counts": [5, 2, 17]}},
        {"image_id": 1, "category_id": 1, "segmentation": {"size": [4, 6], "counts": "52a0"}},
    ],
}  # fmt: skip
PNG = b64decode(MASK)
CVAT = (
    '<?xml version="1.0" encoding="utf-8"?><annotations><meta><task><id>1</id><assignee><username>ann</username>'
    '</assignee></task></meta><image id="0" name="a.jpg" task_id="2"></image>'
    '<image id="0" name="a.jpg"><tag label="cat"><attribute name="sure">yes</attribute></tag><box label="b"/></image>'
    '<image id="1" name="b.jpg"></image></annotations>'
)
MTURK = [
    {"HITId": "H1", "WorkerId": "W1", "AssignmentStatus": "Approved", "Input.url": "a.jpg", "Answer.kind.cat": "true",
     "Answer.kind.dog": "false", "Answer.taskAnswers": '[{"mood": {"label": "glad"}}]', "Reject": ""},
    {"HITId": "H1", "WorkerId": "W2", "AssignmentStatus": "Rejected", "Input.url": "a.jpg", "Answer.kind.cat": "false",
     "Answer.kind.dog": "true", "Answer.taskAnswers": "", "Reject": "x"},
]  # fmt: skip
TOLOKA = [
    {"INPUT:image": "a.jpg", "OUTPUT:result": "OK", "OUTPUT:like": '["a", 1]', "GOLDEN:result": "BAD",
     "ASSIGNMENT:worker_id": "w1", "ASSIGNMENT:task_id": "t1", "ASSIGNMENT:status": "APPROVED"},
]  # fmt: skip
PANOPTES = [
    {"user_name": "ann", "user_ip": "a1", "workflow_id": "1", "workflow_version": "2.3", "created_at": "2026-03-01",
     "gold_standard": "", "metadata": {"started_at": "2026-03-01T10:00:00.000Z", "subject_dimensions": [
         {"naturalWidth": 6, "naturalHeight": 4}]},
     "annotations": [
         {"task": "mood", "value": "glad"}, {"task": "stars", "value": 3}, {"task": "kind", "value": ["a", "b"]},
         {"task": "names", "value": [{"choice": "LION", "answers": {"N": "1", "DO": ["a"]}}]},
         {"task": "x", "value": [{"task": "label", "value": "a"}, {"task": "sure", "value": [
             {"select_label": "s", "option": True, "value": "c", "label": "d"}]}]},
         {"task": "result", "value": [
             {"x": 1, "y": 1, "width": 2, "height": 2, "tool": 0, "frame": 0, "details": [{"value": 0}]},
             {"x": 2, "y": 2, "rx": 1, "ry": 1, "angle": 9, "tool": 1}, {"x": 1, "y": 1, "tool": 0},
             {"points": [{"x": 1, "y": 1}, {"x": 3, "y": 1}, {"x": 3, "y": 3}], "tool_label": "a"},
             {"pathX": [1, 3, 3], "pathY": [1, 1, 3], "toolIndex": 0, "frame": 1}]},
     ],
     "subject_data": {"7": {"retired": None, "text": TEXT, "n": 1}}, "subject_ids": "7"},
]  # fmt: skip


@st.composite
def as_json(draw, entries):
    """JSON or JSON lines of changed entries."""
    entries = draw(changed(entries))
    ascii_only = draw(st.booleans())
    if isinstance(entries, list) and draw(st.booleans()):
        return encoded("\n".join(json.dumps(entry, ensure_ascii=ascii_only) for entry in entries))
    return encoded(json.dumps(entries, ensure_ascii=ascii_only, indent=draw(st.sampled_from([None, 1]))))


@st.composite
def as_table(draw, rows, separator):
    """CSV of changed rows."""
    rows = [row for row in draw(changed(rows)) if isinstance(row, dict)]
    text = io.StringIO()
    header = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(text, delimiter=separator)
    for cells in (header, *([row.get(name, "") for name in header] for row in rows)):
        # before Python 3.11 the csv module writes no NUL
        cells = [json.dumps(cell) if isinstance(cell, (list, dict)) else cell for cell in cells]
        writer.writerow([str(cell).replace("\0", "\ufffd") for cell in cells])
    return encoded(text.getvalue())


@st.composite
def as_archive(draw, contents, ending):
    """A zip archive of one to three files."""
    names = draw(st.lists(st.sampled_from(["ann", "bob", "a/b", "../c", "/d"]), max_size=3, unique=True))
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    return zipped([(f"{name}{ending}", draw(contents)) for name in names], method)


FIELDS = st.sampled_from(
    [None, None, "mood", "stars", "names", "result", "kind", "accept", "label", "SPAM", "sure", "x"]
)


def reads(name, platform):
    """The export is read as each kind of label and written as instances, or refused."""

    def check(given):
        content, field = given
        with file_of(content, name) as path:
            for columns in (None, "left=text,right=n", "task=x"):
                _try(Annotations.read, path, kind="preference", platform=platform, field=field, columns=columns)
            for kind in ("classification", "regression", "region", "free-text"):
                for options in (
                    {},
                    {"on_bad_rows": "reject", "on_duplicate": "last", "rejects": path.with_name("r.csv")},
                ):
                    _try(Annotations.read, path, kind=kind, platform=platform, field=field, **options)
            _try(read_spans, path, platform=platform, field=field)
            _try(lambda: write_export_instances(Export(path, platform, field=field), path.with_name("instances.csv")))

    return check


def _try(read, *words, **options):
    with contextlib.suppress(CrowdzooError):
        read(*words, **options)


def with_field(contents):
    return st.tuples(damaged(contents), FIELDS)


WEBANNO = """#FORMAT=WebAnno TSV 3.3
#T_SP=a.b.Name|value
#T_RL=a.b.Link|kind|BT_a.b.Name

#Text=Ann Lee, 😀
1-1\t0-3\tAnn\tPER[1]|X\t_\t_
1-2\t4-7\tLee\tPER[1]\t_\t1-1[1_0]
1-2.1\t4-6\tLe\t*\t_\t_
1-3\t7-8\t,\t\\_\t_\t_
1-4\t9-11\t😀\t_\t_\t_
"""
FORM = {"pet": {"label": "cat"}, "glad": {"on": True}}
SAGEMAKER = [
    {"answers": [{"workerId": "w", "answerContent": FORM, "timeSpentInSeconds": 9.1, "submissionTime": "2026-05-01"}]},
    {"source": TEXT, "a": {"annotationsFromAllWorkers": [
        {"workerId": "w", "annotationData": {"content": json.dumps(FORM)}}]}},
]  # fmt: skip
LABELBOX = [{
    "data_row": {"id": "c1", "row_data": TEXT}, "projects": {"p": {"labels": [{
        "label_details": {"created_by": "a", "created_at": "2026-05-01"},
        "performance_details": {"seconds_to_create": 2},
        "annotations": {"classifications": [
            {"name": "mood", "radio_answer": {"name": "glad"}}, {"name": "kind", "checklist_answers": [{"name": "a"}]},
            {"name": "x", "text_answer": {"content": "b"}},
        ]},
    }]}},
}]  # fmt: skip
POTATO = [{"id": "1", "displayed_text": TEXT, "user_id": "a", "label_annotations": {
    "mood": {"glad": "1", "sad": False}, "stars": {"scale_3": "3"}
}}]  # fmt: skip
CONTENTS = {
    "sagemaker": (".json", as_json(SAGEMAKER)),
    "labelbox": (".json", as_json(LABELBOX)),
    "potato": (".jsonl", as_json(POTATO)),
    "label-studio": (".json", as_json(LABEL_STUDIO)),
    "prodigy": (".jsonl", as_json(PRODIGY)),
    "doccano": (".jsonl", as_json(DOCCANO)),
    "argilla": (".json", as_json(ARGILLA)),
    "coco": (".json", as_json(COCO)),
    "cvat": (".xml", st.just(CVAT.encode())),
    "mturk": (".csv", as_table(MTURK, ",")),
    "toloka": (".tsv", as_table(TOLOKA, "\t")),
    "png-masks": (".png", st.just(PNG)),
    "brat": (".ann", st.just(b"T1\tLOC 0 4\tRome\nT2\tPER 9 12;14 17\tAnn Lee\n")),
    "webanno": (".tsv", st.just(WEBANNO.encode())),
    "panoptes": (".csv", as_table(PANOPTES, ",")),
}
CONFIG = """<View><!-- a --><Text name="text" value="$text"/><Image name="image" value="$a.b"/>
<Choices name="mood" toName="text" choice="multiple"><Choice value="glad" alias="1"><Choice value="b"/></Choice>
</Choices>
<Rating name="stars" toName="text" maxRating="10"/><Number name="n" toName="text,image" min="1"/>
<Labels name="names" toName="image" perRegion="true"><Label value="PER"/></Labels><Rectangle name="box" toName="image"/>
<Taxonomy name="tree" toName="text" leafsOnly="true"/></View>"""


@st.composite
def as_config(draw):
    """A labelling configuration in which words are replaced."""
    words, others = re.split(r"([\w$.]+|.)", CONFIG), st.sampled_from([*'<>"', "", "name", "toName", "1e999"])
    for _ in range(draw(st.integers(0, 4))):
        words[draw(st.integers(0, len(words) - 1))] = draw(TEXTS | others)
    return "".join(words)


assert set(CONTENTS) == set(PLATFORMS)
TARGETS = {
    f"platform-{name}": Target(with_field(contents), reads(f"a{ending}", name), 12)
    for name, (ending, contents) in CONTENTS.items()
} | {"label-config": Target(as_config(), lambda given: _try(read_label_config, given), 200)}
TARGETS |= {"platform-zip": Target(with_field(as_archive(as_json(DOCCANO), ".jsonl")), reads("a.zip", "doccano"), 12)}
