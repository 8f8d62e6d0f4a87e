"""Runs the pipeline on this machine: SQLite metadata, one process, one component at a time."""

import contextlib
import datetime
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from crowdzoo.components.lineage import COMMIT, commit_of
from crowdzoo.errors import BusyError, CrowdzooError, PipelineError, settings_as
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.config.sections import as_key
from crowdzoo.pipelines.console import Console, error_message
from crowdzoo.pipelines.metadata_file import check_metadata
from crowdzoo.pipelines.run_result import RunResult
from crowdzoo.process import Terminated


@settings_as(as_key)
def run(config: PipelineConfig, quiet: bool = False, file: Path | None = None) -> RunResult:
    """Runs the pipeline, reusing complete results of earlier runs in the same folder.

    To continue an interrupted run, start it again: complete results are reused, the rest is computed again. Incomplete
    folders of interrupted components remain below `artifacts/` and are never read.

    Args:
        config: result of `load_config`.
        quiet: whether to print no progress.
        file: path of the configuration. If it is in a Git checkout, the lineage of the trained model has the commit.

    Returns:
        The result of the run.

    Raises:
        ConfigError: the folders for results cannot be written.
        DataError: annotations or instances cannot be used.
        BusyError: another run uses the same folder.
        PipelineError: a component failed, or the metadata cannot be used; the message names the log.
    """
    started = time.monotonic()
    config.output.check()
    for folder in (config.output.root, config.output.serving):
        folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    console = Console(config.output.root / "logs" / f"{stamp}.log", quiet)
    with _lock(config.output.root), console.captured(), _commit(file), contextlib.ExitStack() as undo:
        undo.callback(setattr, sys, "argv", sys.argv)
        sys.argv = sys.argv[:1]  # TFX passes it to Beam as options
        try:
            check_metadata(config.output.root, console.say)
            console.say("Loading TFX …")
            # this takes seconds and writes dozens of lines, which go to the log here
            from crowdzoo.pipelines.local_runner import LocalRunner
            from crowdzoo.pipelines.pipeline import create_pipeline

            runner = LocalRunner(config, console)
            runner.run(create_pipeline(config))
            return runner.result(time.monotonic() - started)
        except PipelineError as error:
            raise PipelineError(f"{error}\nLog: {console.log}") from error
        except CrowdzooError:
            console.say(f"Log: {console.log}")
            raise
        except Exception as error:
            raise PipelineError(f"{error_message(error)}\nLog: {console.log}") from error
        except SystemExit as error:
            if isinstance(error, Terminated):
                raise
            # Beam's parser of options ends the process; its message is in the log
            raise PipelineError(f"Beam does not accept an option of beam.options.\nLog: {console.log}") from error


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Locks the folder against a second run. The system releases the lock when the process ends, however it ends."""
    with open(root / ".lock", "a+") as file:  # "w" would erase the other run's entry
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = f" ({text})" if (text := file.read(200).strip()) else ""
            raise BusyError(
                f"{root}: another run{holder} uses this folder, so this one did nothing. Wait for it, or choose "
                "another output.root."
            ) from None
        file.truncate(0)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(" ", "minutes")[:16]
        print(f"process {os.getpid()} since {now} UTC", file=file, flush=True)
        yield


@contextlib.contextmanager
def _commit(file: Path | None) -> Iterator[None]:
    """Passes the commit to the Trainer by an environment variable, as parameters would be part of TFX's cache key."""
    with contextlib.ExitStack() as undo:
        if file is not None and COMMIT not in os.environ and (commit := commit_of(file)):
            os.environ[COMMIT] = commit
            undo.callback(os.environ.pop, COMMIT)
        yield
