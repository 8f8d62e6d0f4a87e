"""What a release is made of: constraints in step with the lock, one version, citation, changelog, and the files."""

import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

import crowdzoo

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
# Folder in the repository -> import name in the wheel
MAPPED = {"crowdzoo": "crowdzoo", "components": "crowdzoo/components", "pipelines": "crowdzoo/pipelines",
          "serving": "crowdzoo/serving"}  # fmt: skip
# What work in a clone leaves behind, and no distribution may hold
LEFT_BEHIND = (
    ".coverage", ".ruff_cache/0/a", "benchmarks/.mypy_cache/3/a.json", "build/lib/crowdzoo/a.py", "components/a.pyc",
    "crowdzoo/__pycache__/a.py", "crowdzoo-runs/a.html", "docs/.DS_Store", "docs/install.md~",
    "docs/notebooks/.ipynb_checkpoints/a.ipynb", "examples/own_method/build/lib/a.py",
    "examples/own_method/own_method.egg-info/PKG-INFO", "tests/.coverage", "tests/.hypothesis/a/b",
    "tests/.pytest_cache/v/a", "tests/__pycache__/a.cpython-310.pyc", "tests/crowdzoo-runs/a.html",
)  # fmt: skip
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def locked(*left_out: str) -> dict[str, set[str]]:
    """Name -> versions of all that the extras but some need, directly or not, by the lock."""
    entries = defaultdict(list)
    for entry in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]:
        entries[entry["name"]].append(entry)
    extras = [extra for extra in entries["crowdzoo"][0]["optional-dependencies"] if extra not in left_out]
    found, waiting = defaultdict(set), [("crowdzoo", None, extra) for extra in ["", *extras]]
    seen = set()
    while waiting:
        name, version, extra = waiting.pop()
        if (name, version, extra) in seen:
            continue
        seen.add((name, version, extra))
        for entry in entries[name]:
            if version not in (None, entry.get("version")):
                continue
            if name != "crowdzoo":
                found[name].add(entry["version"])
            needs = entry.get("optional-dependencies", {}).get(extra, []) if extra else entry.get("dependencies", [])
            for need in needs:
                waiting += [(need["name"], need.get("version"), more) for more in ["", *need.get("extra", [])]]
    return found


def test_nvidias_libraries_come_by_the_extra_gpu_alone_and_it_brings_nothing_else():
    without, whole = locked("gpu"), locked()
    more = {*whole} - {*without}
    assert {name for name in whole if name.startswith("nvidia-")} == more
    assert {"nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12"} <= more
    assert all(whole[name] == without[name] for name in without)
    assert '"--no-extra",\n        "gpu",' in (ROOT / "bootstrap.py").read_text(), "`make setup` would install it"


def test_the_constraints_are_what_uv_exports():
    here = ROOT / ".venv-tools" / "bin" / "uv"
    uv = str(here) if here.exists() else shutil.which("uv")
    if uv is None:
        pytest.skip("there is no uv on this machine")
    command = re.search(r"^#    uv (.*) --output-file constraints.txt$", CONSTRAINTS, flags=re.M).group(1).split()
    done = subprocess.run([uv, *command], cwd=ROOT, capture_output=True, text=True, check=True)

    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("#")]

    assert lines(done.stdout) == lines(CONSTRAINTS), "run `make constraints`"


def test_the_extra_tensorflow_has_all_that_an_export_needs():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for version in ("<", ">="):  # both stacks
        needs = [need for need in extras["tensorflow"] if f"python_version {version} '3.11'" in need]
        assert {re.match(r"[\w-]+", need).group() for need in needs} == {"tensorflow", "tensorflow-serving-api"}


def test_the_citation_has_the_version_and_what_the_format_wants():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == crowdzoo.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"[{citation['version']}] - {citation['date-released']}" in changelog


def test_the_description_links_to_files_of_the_repository_at_the_tag(monkeypatch):
    keywords = {}
    monkeypatch.setattr("setuptools.setup", lambda **words: keywords.update(words))
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    links = re.findall(r"(!?)\[[^]]*\]\(([^)#]+)", keywords["long_description"])
    tag = f"crowdzoo/crowdzoo/{{}}v{crowdzoo.__version__}/"
    page, picture = f"https://github.com/{tag.format('blob/')}", f"https://raw.githubusercontent.com/{tag.format('')}"
    names = [link.removeprefix(picture if kind else page) for kind, link in links]
    names = [name for name in names if not name.startswith("https:")]
    assert {"docs/install.md", "docs/pictures/report.png"} <= {*names}
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert keywords["long_description_content_type"] == "text/markdown"


def test_the_changelog_has_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, flags=re.M)
    assert headings[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:]]
    assert all(released), headings
    assert not released or released[0].group(1) == crowdzoo.__version__
    kinds = set(re.findall(r"^### (.*)$", text, flags=re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def files_of_the_repository() -> list[str]:
    """What git tracks, or would."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone: git is what says which files belong to the repository")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with wheel and source distribution, made from a copy, since a build leaves folders beside its source."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    for name in files_of_the_repository():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    for name in LEFT_BEHIND:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("rubbish")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_wheel_holds_exactly_the_files_of_the_folders_and_the_licences(built):
    (wheel,) = built.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    files = [Path(name) for name in files_of_the_repository()]
    expected = {
        str(Path(MAPPED[file.parts[0]], *file.parts[1:]))
        for file in files
        if file.parts[0] in MAPPED and len(file.parts) > 1
    }
    assert {name for name in inside if ".dist-info/" not in name} == expected
    assert {"LICENSE", "NOTICE"} == {Path(name).name for name in inside if ".dist-info/licenses/" in name}


@pytest.mark.slow
def test_the_source_distribution_holds_exactly_the_repository(built):
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert "" not in inside
    made = {name for name in inside if name in ("PKG-INFO", "setup.cfg") or name.startswith("crowdzoo.egg-info/")}
    assert inside - made == set(files_of_the_repository())


@pytest.mark.slow
def test_pip_installs_the_wheel_in_an_empty_environment_and_it_works_there(built, tmp_path):
    """Without extras and with a light one; `make pip-installs` tries all of them."""
    (wheel,) = built.glob("*.whl")
    script = ROOT / ".ci" / "pip_installs"
    done = subprocess.run(
        [sys.executable, str(script), str(wheel), "--extras", "", "images", "--constraints", "with", "--folder",
         str(tmp_path)], capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    logs = "".join(log.read_text(encoding="utf-8") for log in tmp_path.glob("*.log"))
    if done.returncode and re.search("NewConnectionError|Name or service not known|name resolution", logs):
        pytest.skip("pip reaches no index of packages here")
    assert done.returncode == 0, done.stdout + done.stderr + logs[-5000:]
    assert done.stdout.count("| works |") == 2
