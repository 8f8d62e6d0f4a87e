"""What `crowdzoo run --check` says of the data, before TensorFlow is loaded."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.config.data_checks import check_data
from crowdzoo.tables import sources


def test_sound_files_are_counted(inputs, capsys):
    rows = len((inputs / "answers.csv").read_text().splitlines()) - 1
    tasks = pq.read_table(inputs / "instances.parquet").num_rows
    assert cli.main(["run", str(inputs / "tiny.yaml"), "--check"]) == 0
    assert capsys.readouterr().out.endswith(f"tiny.yaml: fine, read {rows} annotations, {tasks} instances\n")
    assert not (inputs / "out").exists()


def test_the_file_may_stand_after_the_option(inputs):
    assert cli.main(["run", "--check", str(inputs / "tiny.yaml")]) == 0
    assert cli.main(["run", "--check=all", str(inputs / "tiny.yaml")]) == 0


def test_a_sample_is_the_first_block_and_all_is_all(inputs, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 256)
    with open(inputs / "answers.csv", "a") as file:
        file.write("t00,,ape\n")
    config = load_config(inputs / "tiny.yaml")
    assert "(the first; --check=all reads all)" in check_data(config)
    with pytest.raises(DataError, match="column 'annotator': '' is empty"):
        check_data(config, whole=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("t00,a0,ape,1\n", "has 4 values where the header has 3"),
        (
            "nowhere,a0,{label}\n",
            "1 of the .* tasks have no row in .*instances.parquet: 'nowhere'. Tasks there look like",
        ),
    ],
)
def test_rows_that_cannot_be_used_are_named(inputs, line, expected):
    label = (inputs / "answers.csv").read_text().splitlines()[1].split(",")[2]
    with open(inputs / "answers.csv", "a") as file:
        file.write(line.format(label=label))
    with pytest.raises(DataError, match=expected):
        check_data(load_config(inputs / "tiny.yaml"))


def test_gold_that_is_no_class_is_named(inputs):
    table = pq.read_table(inputs / "instances.parquet")
    gold = pa.array(["gnu", *table["gold"].to_pylist()[1:]])
    pq.write_table(table.set_column(table.column_names.index("gold"), "gold", gold), inputs / "instances.parquet")
    with pytest.raises(DataError, match="row 0, column 'gold': 'gnu' is not one of the classes"):
        check_data(load_config(inputs / "tiny.yaml"))


def test_data_are_checked_without_tensorflow(inputs):
    program = (
        "import sys; from crowdzoo.commands.main import main; "
        f"assert main(['run', {str(inputs / 'tiny.yaml')!r}, '--check=all']) == 0; "
        "assert not {'tensorflow', 'keras', 'tfx', 'apache_beam'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sentences_are_read_too(tmp_path, capsys):
    line = '{"task": "1", "annotator": "ann", "text": "Bob met", "spans": [{"start": 0, "end": 3, "label": "PER"}]}'
    (tmp_path / "s.jsonl").write_text(line + "\n")
    (tmp_path / "s.yaml").write_text("name: x\ntask: sequence\ndata: {annotations: s.jsonl}\noutput: {root: out}\n")
    assert cli.main(["run", str(tmp_path / "s.yaml"), "--check"]) == 0
    assert capsys.readouterr().out.endswith("s.yaml: fine, read 1 sentences\n")
