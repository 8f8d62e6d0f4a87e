"""`crowdzoo run`: run the pipeline of a YAML file."""

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

from crowdzoo.commands.options import add_options, add_values, named_values, path
from crowdzoo.errors import ConfigError, shorten
from crowdzoo.files.paths import check_output_file
from crowdzoo.process import use_tensorflow
from crowdzoo.training.bases import is_own

NOT_PUSHED, UNDECIDED = 8, 9  # exit codes of --fail-unless pushed


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("config", type=path, help="the pipeline's YAML file")
    # argparse matches the whole option before it looks for a value, so "--check FILE.yaml" keeps its meaning
    checks = {
        "--check=all": "as --check, but read all rows of the input files and all images",
        "--check": "check the configuration and the input files and stop: the first rows of long files, and some of "
        "the images",
    }
    for (flag, text), amount in zip(checks.items(), ("all", "sample"), strict=True):
        add_options(command, {flag: text}, dest="check", action="store_const", const=amount)
    add_values(command, "--set", "replace a setting, such as training.epochs=20", "overrides")
    platform = {"--on": "compile the pipeline for this platform instead of running it here; needs --out"}
    add_options(command, platform, choices=("kubeflow", "vertex"))
    out = {
        "--out FILE": "with --on: the file that Kubeflow (FILE.yaml) or Vertex AI (FILE.json) takes; an earlier one is "
        "replaced",
    }
    add_options(command, out, type=path)
    fail = {
        "--fail-unless": f"end with exit code {NOT_PUSHED} if the model was not pushed, and with {UNDECIDED} if "
        "there were too few tasks to decide"
    }
    add_options(command, fail, choices=("pushed",))
    command.add_argument("--force", action="store_true", help="with --on: replace any file that --out names")


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline, compile it, or only check its configuration."""
    from crowdzoo.pipelines.config.load import load_config
    from crowdzoo.pipelines.yaml_files import read_value

    pairs = named_values(arguments.overrides, "training.epochs=20")
    overrides = {key: read_value(value, f"--set {shorten(key)}") for key, value in pairs}
    if arguments.on is not None:
        if arguments.fail_unless is not None:
            raise ConfigError("--fail-unless is for a run on this machine, and --on runs nothing. Leave it out.")
        return _compile(arguments, overrides)
    if arguments.out is not None:
        raise ConfigError("--out is for --on kubeflow and --on vertex. The folder of a run is the setting output.root.")
    if arguments.fail_unless is not None and arguments.check:
        raise ConfigError("--fail-unless is for a run, and --check runs nothing. Leave one of them out.")
    if arguments.force:
        raise ConfigError("--force is for --on kubeflow and --on vertex; a run replaces no file.")
    config = load_config(arguments.config, overrides)
    if arguments.check:
        from crowdzoo.pipelines.config.data_checks import check_data, check_own_base

        config.output.check()
        read = check_data(config, arguments.check == "all")
        if is_own(config.base):
            use_tensorflow()
            check_own_base(config)
        print(f"{arguments.config}: fine, read {read}")
        return 0
    use_tensorflow()
    from crowdzoo.pipelines.local import run

    result = run(config, file=arguments.config)
    print(result.summary())
    if arguments.fail_unless is None or result.pushed is not None:
        return 0
    return UNDECIDED if result.undecided else NOT_PUSHED


def _is_pipeline(path: Path) -> bool:
    """Whether a file is a compiled pipeline."""
    return re.search(r'^\s*"?schemaVersion"?: ', path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def _compile(arguments: argparse.Namespace, overrides: dict[str, Any]) -> int:
    """Write the pipeline for Kubeflow or Vertex AI without running it."""
    from crowdzoo.pipelines.config.load import load_config

    where, endings = {"kubeflow": ("Kubeflow", (".yaml", ".yml")), "vertex": ("Vertex AI", (".json",))}[arguments.on]
    if arguments.check == "all":
        raise ConfigError("--check=all reads files, which are not on this machine with --on. Use --check.")
    if not arguments.check:
        if arguments.out is None:
            raise ConfigError(f"--on {arguments.on} needs --out FILE{endings[0]}, where the pipeline is written.")
        if arguments.out.suffix not in endings:
            raise ConfigError(f"--out {arguments.out}: must end in {' or '.join(endings)}, as {where} takes the file.")
        check_output_file(arguments.out, "--out", inputs=[arguments.config], is_own=_is_pipeline, force=arguments.force)
    config = load_config(arguments.config, overrides, on=arguments.on)
    use_tensorflow()
    from crowdzoo.pipelines.kubeflow import compile_pipeline

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "checked" if arguments.check else arguments.out
        compile_pipeline(config, out, vertex=arguments.on == "vertex")
    checked = f"{arguments.config}: fine for {where}, no input file was read"
    print(checked if arguments.check else f"{arguments.out}: the pipeline {config.name} for {where}")
    return 0
