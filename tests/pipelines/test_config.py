import gzip
import os

import pyarrow.parquet
import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config.data_checks import check_data
from crowdzoo.pipelines.config.load import load_config
from crowdzoo.training.methods import SEQUENCE_METHODS

DATA = "data: {annotations: answers.csv, instances: instances.parquet}\n"


def refused(folder, text, **overrides):
    path = folder / "bad.yaml"
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, overrides)
    assert str(caught.value).startswith(str(path)), "the message begins with the file"
    return str(caught.value).removeprefix(str(path))


def test_paths_are_relative_to_the_file_but_those_in_overrides_to_the_current_folder(inputs, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = load_config(inputs / "tiny.yaml")
    assert config.data.annotations == inputs / "answers.csv"
    assert config.output.root == inputs / "out"
    assert config.output.serving == inputs / "out" / "serving"
    moved = load_config(inputs / "tiny.yaml", {"output.root": "here"})
    assert moved.output.root == tmp_path / "elsewhere" / "here"
    assert moved.output.serving == tmp_path / "elsewhere" / "here" / "serving"


def test_defaults_fill_what_is_not_said(inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    (inputs / "short.yaml").write_text("name: short\n" + DATA + "training:\n")
    config = load_config(inputs / "short.yaml")
    assert config.output.root == inputs / "runs" / "short"
    assert config.method.name == "ccem"
    assert config.aggregation.method == "robust"
    assert (config.training.epochs, config.training.batch_size) == (None, None)  # by the number of tasks


def test_overrides_win_by_dotted_key(inputs):
    config = load_config(inputs / "tiny.yaml", {"training.epochs": 5, "aggregation.max_iter": 7, "seed": 3})
    assert config.training.epochs == 5
    assert config.training.batch_size == 16
    assert config.aggregation.arguments == {"tol": 0.01, "max_iter": 7}
    assert config.seed == 3


@pytest.mark.parametrize(
    ("given", "runner"),
    [("flink", "FlinkRunner"), ("FLINKRUNNER", "FlinkRunner"), ("FnApiRunner", "FnApiRunner"), ("my.Own", "my.Own")],
)
def test_runners_are_spelt_as_beam_does(inputs, given, runner):
    (inputs / "c.yaml").write_text("name: c\n" + DATA + f"beam: {{runner: {given}}}\n")
    assert load_config(inputs / "c.yaml").beam.runner == runner


X = "name: x\n" + DATA
SENTENCES = "name: x\nkind: sequence\n"
SPANS = SENTENCES + "data: {annotations: spans.jsonl}\n"
BROKEN = {
    "unknown key": (X + "trainning: {epochs: 1}\n", ", unknown key 'trainning': choose one of name, kind, seed, "),
    "unknown key below": (X + "training: {epoch: 1}\n", ", training: unknown key 'epoch': choose one of checkpoint, "),
    "unknown runner": (X + "beam: {runner: FlinkRuner}\n", ", beam.runner: unknown Beam runner 'FlinkRuner'"),
    "Beam option without dashes": (X + "beam: {options: [direct_num_workers=2]}\n", ", beam.options: each must begin"),
    "component without Beam": (X + "beam: {components: [Trainer]}\n", ", beam.components.0: must be one of Stat"),
    "runner among the options": (X + "beam: {options: [--runner=FlinkRunner]}\n", ", beam.options: set beam.runner in"),
    "missing section": ("name: x\n", ", data: is missing."),
    "missing name": (DATA, ", name: is missing."),
    "no instances": ("name: x\ndata: {annotations: answers.csv}\n", ", data needs 'annotations' and 'instances', or"),
    "both sources": (X.replace("}", ", dataset: labelme}"), ", data: 'dataset' replaces 'annotations' and"),
    "unknown dataset": ("name: x\ndata: {dataset: labelmee}\n", ", data: unknown dataset 'labelmee': choose one of l"),
    "zero epochs": (X + "training: {epochs: 0}\n", ", training.epochs: must be an integer from 1 to 1,000,000,000"),
    "section is a value": (X + "training: 5\n", ", training: must be a section (lines of 'key: value', indented)"),
    "list is a value": (X + "model: {hidden: 128}\n", ", model.hidden: must be a list in square brackets"),
    "unknown method": (X + "method: {name: crowdsourced_layer}\n", ", method: unknown method 'crowdsourced_layer'"),
    "unknown aggregation": (X + "aggregation: {method: dawid-sken}\n", ", aggregation: unknown aggregation method 'da"),
    "aggregation argument out of range": (
        X + "aggregation: {method: dawid-skene, max_iter: -3}\n",
        ", aggregation: DawidSkene: max_iter must be an in",
    ),
    "name with a space": ("name: my run\n" + DATA, ", name: must begin with a letter and hold letters, digits"),
    "classes as one text": (X.replace("}", ", classes: abcdefgh}"), ", data.classes: must be a list in square"),
    "a bucket": (X.replace("answers.csv", "'gs://bucket/answers.csv'"), ", data.annotations: path gs://bucket/answers"),
    "the home of nobody": (
        X + "output: {root: ~nobody-of-this-name/x, serving: '?'}\n",
        ", output.serving: must not hold * ? or [, which Beam takes for patterns, got '{folder}/?'.",
    ),
    "key of sentences in the data": (X.replace("}", ", scheme: BIO}"), ", data.scheme is not for kind classification,"),
    "base of another task": (X + "model: {base: sequence-tagger}\n", ", model.base 'sequence-tagger' is not for kind"),
    "a list": ("- name: x\n", ": holds a list; a configuration is a mapping that begins like 'name: labelme'."),
    "nothing": ("", ": is empty; a configuration is a mapping that begins like 'name: labelme'."),
    "an open bracket": ("name: [x\n", ", line 2, column 1: not valid YAML: expected ',' or ']', but got "),
    # for sentences
    "key of classes in the data": (SPANS.replace("}", ", separator: x}"), ", data.separator is not for kind sequence,"),
    "key of the classifier": (SPANS + "model: {hidden: [8]}\n", ", model.hidden is not for kind sequence, where model"),
    "no annotations": (SENTENCES + "data: {gold: gold.txt}\n", ", data needs 'annotations', or 'dataset' "),
    "gold next to a set": (
        SENTENCES + "data: {dataset: generated-ner, gold: gold.txt}\n",
        ", data: 'dataset' has its own gold: leave out 'gold'.",
    ),
    "method for classes only": (
        SPANS + "method: {name: lia}\n",
        f", method: method 'lia' is not for kind sequence; choose one of {', '.join(SEQUENCE_METHODS)}.",
    ),
    "a CRF under DoctorNet": (
        SPANS + "method: {name: doctor-net}\nmodel: {crf: true}\n",
        ", model: doctor-net has a softmax for each annotator, so crf must be false.",
    ),
}


def test_defaults_for_sentences(inputs):
    (inputs / "spans.jsonl").write_text("{}\n")
    (inputs / "s.yaml").write_text(SPANS + "evaluation: {minimum_f1: 0.25}\n")
    config = load_config(inputs / "s.yaml")
    assert (config.data.annotations, config.data.gold) == (inputs / "spans.jsonl", None)
    assert (config.data.scheme, config.data.on_bad_tags) == ("BIO", "error")
    assert config.aggregation.method == "bsc-seq"
    assert config.method.name == "crowdsourced-layer"
    assert config.base_arguments == {
        "base": "sequence-tagger", "dropout": 0.5, "embedding": 100, "filters": 512, "units": 50,
        "bidirectional": False, "characters": False, "crf": False,
    }  # fmt: skip
    assert config.minimum == 0.25


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_configuration_is_refused_with_its_place_and_a_way_out(inputs, case):
    for name in ("spans.jsonl", "gold.txt"):
        (inputs / name).write_text("{}\n")
    text, message = BROKEN[case]
    assert refused(inputs, text).startswith(message.replace("{folder}", str(inputs)))


def test_confidence_is_for_the_aggregation_and_not_for_the_method_of_a_pipeline(inputs):
    message = refused(inputs, "name: x\n" + DATA + "method: {name: deep-em, confidence: true}\n")
    assert message.startswith(", method: confidence is for a training from annotations")
    (inputs / "c.yaml").write_text("name: c\n" + DATA + "method: {name: deep-em, confidence: false}\n")
    assert load_config(inputs / "c.yaml").method.arguments == {"confidence": False}
    (inputs / "c.yaml").write_text("name: c\n" + DATA + "aggregation: {method: dawid-skene, confidence: true}\n")
    assert load_config(inputs / "c.yaml").aggregation.arguments == {"confidence": True}


def test_true_and_false_as_classes_need_quotes_and_yes_and_no_do_not(inputs):
    message = refused(inputs, "name: x\n" + DATA.replace("}", ", classes: [true, no]}"))
    assert message.startswith(", data.classes.0: must be text (put quotes round true")
    (inputs / "c.yaml").write_text("name: c\n" + DATA.replace("}", ", classes: [yes, no]}"))
    assert load_config(inputs / "c.yaml").data.classes == ("yes", "no")


def test_all_problems_come_at_once_and_ten_are_shown(inputs):
    keys = "".join(f"zz{number}: 1\n" for number in range(12))
    lines = refused(inputs, "name: x\n" + DATA + keys).splitlines()
    assert lines[0] == ": 12 settings cannot be used."
    assert len(lines) == 12
    assert lines[-1] == "  ... and 2 more"


def test_inputs_that_are_not_regular_files_are_refused_and_heads_that_are_no_table_named(inputs):
    os.mkfifo(inputs / "pipe.csv")
    for name, content, message in (
        ("pipe.csv", None, "pipe.csv is a pipe. Give the path of a file."),
        ("nul.csv", b"task,annot\0ator,label\n", "nul.csv"),
        ("deep.jsonl", b"[" * 100_000 + b"\n", "deep.jsonl: a JSON list, not one object a line; let its name end in ."),
        ("cut.csv.gz", gzip.compress(b"task,annotator,label\n" * 99)[:12], "cut.csv.gz"),
        ("answers.jsonl.csv", b"task,annotator\n", "column 'label' is missing. The columns are 'task', 'annotator'."),
    ):
        if content is not None:
            (inputs / name).write_bytes(content)
        said = refused(inputs, "name: x\n" + DATA.replace("answers.csv", name))
        assert message in said, name


def test_options_of_reading_have_keys(inputs):
    options = {"data.annotator_separator": ";", "data.rename": {"tie (bothbad)": "tie"}}
    layout = load_config(inputs / "tiny.yaml", options).data.layout
    assert (layout.annotator_separator, layout.rename) == (";", {"tie (bothbad)": "tie"})
    with pytest.raises(ConfigError, match="sheet is an option of Excel workbooks"):
        load_config(inputs / "tiny.yaml", {"data.sheet": "answers"})
    with pytest.raises(ConfigError, match=r"data\.annotator_separator must be text"):
        load_config(inputs / "tiny.yaml", {"data.annotator_separator": ""})


def test_columns_under_other_names_are_given_or_found_by_usual_names(inputs):
    text = (inputs / "answers.csv").read_text().replace("task,annotator,label", "HITId,worker_id,Choice made", 1)
    (inputs / "answers.csv").write_text(text)
    table = pyarrow.parquet.read_table(inputs / "instances.parquet")
    renamed = table.rename_columns(["image" if name == "task" else name for name in table.column_names])
    pyarrow.parquet.write_table(renamed, inputs / "instances.parquet")
    config = (inputs / "tiny.yaml").read_text()
    message = refused(inputs, config)
    assert "answers.csv: column 'label' is missing. The columns are 'HI" in message
    assert message.endswith("data.columns: {label: NAME}.")
    data = "data: {columns: {label: Choice made}, instance_columns: {task: image}, "
    (inputs / "tiny.yaml").write_text(config.replace("data: {", data))
    assert load_config(inputs / "tiny.yaml").data.layout.columns == {"label": "Choice made"}
    wrong = config.replace("data: {", "data: {columns: {lable: x}, ")
    assert ", data.columns: unknown column 'lable': choose one of task, " in refused(inputs, wrong)


def test_files_are_checked_as_their_readers_take_them(inputs):
    """A workbook of annotations, and instances whose tasks are named after two columns."""
    rows = [line.split(",") for line in (inputs / "answers.csv").read_text().splitlines()]
    book = pytest.importorskip("openpyxl").Workbook()
    for task, *rest in rows:
        book.active.append([task if task == "task" else f"{task} | 1", *rest])
    book.save(inputs / "answers.xlsx")
    tasks = sorted({task for task, *_ in rows[1:]})
    (inputs / "pages.csv").write_text("topic,page,text\n" + "".join(f"{task},1,about {task}\n" for task in tasks))
    more = '{annotations: answers.xlsx, instances: pages.csv, instance_columns: {task: "topic,page"}}'
    (inputs / "pages.yaml").write_text(f"name: pages\ndata: {more}\nmodel: {{base: text-classifier}}\n")
    assert check_data(load_config(inputs / "pages.yaml")) == f"{len(rows) - 1} annotations, {len(tasks)} instances"
    message = refused(inputs, f"name: x\ndata: {more.replace('xlsx', 'ods')}\n")
    assert message.startswith(f", data.annotations: {inputs}/answers.ods: files of annotations end in .csv, .tsv,")


@pytest.mark.parametrize(
    ("name", "task"),
    [("labelme", "classification"), ("generated-ner", "sequence"), ("generated-ratings", "regression")],
)
def test_the_shipped_configurations_are_valid(tmp_path, here, name, task):
    from pathlib import Path

    from crowdzoo.pipelines import config

    loaded = load_config(Path(config.__file__).parents[1] / "configs" / f"{name}.yaml")
    assert loaded.data.dataset == name
    assert loaded.kind == task
    assert loaded.output.root == tmp_path / "runs" / name


def test_an_export_is_checked_by_its_platform(inputs, tmp_path):
    text = "name: e\n" + DATA.replace("answers.csv", "export.json, platform: label-studio, field: mood")
    (inputs / "export.json").write_text("[]")
    (inputs / "e.yaml").write_text(text)
    assert load_config(inputs / "e.yaml").data.platform == "label-studio"
    assert "choose one of label-studio, mturk" in refused(inputs, text.replace("label-studio", "labelstudio"))
    assert "exports of Toloka end in .tsv or .csv" in refused(inputs, text.replace("label-studio", "toloka"))
    assert "give its 'platform' as well" in refused(inputs, text.replace("platform: label-studio, ", ""))


@pytest.mark.parametrize(
    ("overrides", "end"),
    [
        ({"data.header": 1}, "data.header: must be true or false, without quotes, got 1."),
        ({"aggregation.tol": True}, "tol must be a number from 0 to 1e+12, got true."),
        ({"aggregation.True": 1}, "'True'"),
        ({"data.classes": [None, "b"]}, "data.classes.0: must be text (put quotes round it), got null."),
    ],
)
def test_messages_have_the_words_of_yaml_and_leave_names_as_they_are(inputs, overrides, end):
    with pytest.raises(ConfigError) as error:
        load_config(inputs / "tiny.yaml", overrides)
    assert end in str(error.value)
