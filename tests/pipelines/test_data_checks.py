"""What `crowdzoo run --check` says of the data, before TensorFlow is loaded."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.pipelines.config.data_checks import check_data
from crowdzoo.pipelines.config.load import load_config


def test_sound_files_are_counted(inputs, capsys):
    rows = len((inputs / "answers.csv").read_text().splitlines()) - 1
    tasks = pq.read_table(inputs / "instances.parquet").num_rows
    assert cli.main(["run", str(inputs / "tiny.yaml"), "--check"]) == 0
    assert capsys.readouterr().out.endswith(f"tiny.yaml: fine, read {rows} annotations, {tasks} instances\n")
    assert not (inputs / "out").exists()


def test_a_sample_is_the_first_block_and_all_is_all(inputs):
    with open(inputs / "answers.csv", "a") as file:
        file.write(f"t00,a0,{' ' * (9 << 20)}\nt00,,ape\n")
    config = load_config(inputs / "tiny.yaml")
    assert "(the first; --check=all reads all)" in check_data(config)
    with pytest.raises(DataError, match="column 'annotator': '' is empty"):
        check_data(config, whole=True)


def test_a_task_without_an_instance_is_named(inputs):
    label = (inputs / "answers.csv").read_text().splitlines()[1].split(",")[2]
    with open(inputs / "answers.csv", "a") as file:
        file.write(f"nowhere,a0,{label}\n")
    with pytest.raises(DataError, match=r"1 of the .* no row in .*instances.parquet: 'nowhere'"):
        check_data(load_config(inputs / "tiny.yaml"))


@pytest.mark.slow
def test_data_are_checked_without_tensorflow(inputs):
    program = (
        "import sys; from crowdzoo.commands.main import main; "
        f"assert main(['run', {str(inputs / 'tiny.yaml')!r}, '--check=all']) == 0; "
        "assert not {'tensorflow', 'keras', 'tfx', 'apache_beam'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["root", "serving"])
def test_folders_for_results_are_checked_and_not_made(inputs, monkeypatch, refusal_of, name):
    monkeypatch.chdir(inputs)
    (inputs / "file").write_text("")
    words = ["run", "tiny.yaml", "--check", "--set"]
    assert f"output.{name}: " in refusal_of(*words, f"output.{name}=file/deep")
    assert cli.main([*words, f"output.{name}=fresh/deep"]) == 0
    assert not (inputs / "fresh").exists()


@pytest.fixture
def photographs(tmp_path):
    """A folder of 80 photographs, each labelled by two annotators, and its configuration."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "photos").mkdir()
    for task in range(80):
        image.new("RGB", (4, 4), (task, 0, 0)).save(tmp_path / f"photos/{task}.jpg")
    said = [f"{task},{name},{'cat' if task % 2 else 'dog'}" for task in range(80) for name in ("ann", "bob")]
    (tmp_path / "answers.csv").write_text("\n".join(["task,annotator,label", *said]))
    (tmp_path / "pets.yaml").write_text(
        "name: pets\ndata: {annotations: answers.csv, instances: photos}\noutput: {root: out}\n"
    )
    return tmp_path


def test_of_images_some_are_opened_and_all_are_counted(photographs):
    config = load_config(photographs / "pets.yaml")
    assert "80 instances, of which 32 images were opened" in check_data(config)
    assert check_data(config, whole=True) == "160 annotations, 80 instances"
    (photographs / "photos/1.jpg").write_bytes(b"not in the sample")
    check_data(config)
    with pytest.raises(DataError, match=r"'1\.jpg' is not a readable image"):
        check_data(config, whole=True)
    (photographs / "photos/9.jpg").write_bytes(b"the last by name")
    with pytest.raises(DataError, match=r"'9\.jpg' is not a readable image"):
        check_data(config)


def test_a_table_names_no_images_from_elsewhere_unless_the_file_says_so(photographs):
    (photographs / "tables").mkdir()
    rows = "".join(f"{task},../photos/{task}.jpg\n" for task in range(80))
    (photographs / "tables/i.csv").write_text(f"task,image\n{rows}")
    text = (photographs / "pets.yaml").read_text().replace("photos}", "tables/i.csv}")
    (photographs / "pets.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"leads out of the table's folder") as refused:
        load_config(photographs / "pets.yaml")
    assert "allow such paths: data.outside_images: true." in str(refused.value)
    (photographs / "pets.yaml").write_text(text.replace("i.csv}", "i.csv, outside_images: true}"))
    assert check_data(load_config(photographs / "pets.yaml"), whole=True) == "160 annotations, 80 instances"


def test_a_task_without_an_image_is_named_where_only_some_are_opened(photographs):
    (photographs / "photos/40.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of the 80 tasks have no row in .*photos: '40'"):
        check_data(load_config(photographs / "pets.yaml"))


@pytest.mark.parametrize(("there", "missing"), [("train", "eval"), ("eval", "train")])
def test_a_column_split_that_leaves_a_split_empty_is_refused(inputs, there, missing):
    table = pq.read_table(inputs / "instances.parquet")
    place = table.schema.get_field_index("split")
    pq.write_table(table.set_column(place, "split", pa.array([there] * 60)), inputs / "instances.parquet")
    with pytest.raises(DataError, match=rf"instances\.parquet: column 'split' has no {missing}"):
        check_data(load_config(inputs / "tiny.yaml"))
