"""RequestLog: logs instances of a share of the requests for `crowdzoo skew`."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import orjson

from crowdzoo.errors import ServingError, Setting
from crowdzoo.serving.limits import MIB
from crowdzoo.serving.loaded_model import LoadedModel

log = logging.getLogger("crowdzoo.serving")

_FILE_BYTES = 32 * MIB
# Size that one request may add, and number of requests that may wait for the disk: at most 64 MiB of memory
_ROWS, _BYTES, _WAITING = 64, MIB, 64


class RequestLog:
    """Writes sampled instances to `FOLDER/MODEL.jsonl`, one JSON object of inputs per line.

    A file of 32 MiB is renamed to `MODEL.1.jsonl`, replacing an earlier one, so that a model takes at most 64 MiB. Only
    the owner may read the files. A separate thread writes; instances are dropped if the disk is too slow or full.

    Args:
        folder: folder of the log, created if it does not exist.
        share: probability that an instance is logged, from 0 to 1.
        seed: seed of the sample.

    Raises:
        ServingError: the folder cannot be written, or the share is not a number from 0 to 1.
    """

    def __init__(self, folder: str | Path, share: float = 0.01, seed: int | None = None):
        if not 0 <= share <= 1:
            raise ServingError(f"{Setting('log_share')}: must be a number from 0 to 1, got {share!r}")
        self.folder, self._share, self._random = Path(folder), share, np.random.default_rng(seed)
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder.is_dir() and os.access(self.folder, os.W_OK | os.X_OK)):
            place = f"{Setting('log_requests')}: {folder}"
            raise ServingError(f"{place} is not a folder that can be written. Name another one")
        self._queue: queue.Queue[tuple[str, dict[str, np.ndarray]] | None] = queue.Queue(_WAITING)
        self._complaint = ""
        self._thread = threading.Thread(target=self._write_all, name="crowdzoo-request-log", daemon=True)
        self._thread.start()

    def add(self, name: str, model: LoadedModel, inputs: Mapping[str, np.ndarray]) -> None:
        """Samples the instances of an answered request; returns immediately, and never raises.

        Only the inputs of `serving_default` are logged, not the annotator or anything else of a request.

        Args:
            name: name of the model in requests.
            model: model that answered.
            inputs: arrays [B, ...] by name; strings as bytes.
        """
        try:
            columns = {key: inputs[key] for key in model.signature("").inputs if key in inputs}
            size = min(map(len, columns.values()), default=0)
            number = min(_ROWS, int(self._random.binomial(size, self._share)))
            if number and not self._queue.full():
                rows = self._random.choice(size, number, replace=False)
                picked = {key: column[rows] for key, column in columns.items()}
                if sum(map(_size, picked.values())) <= _BYTES:
                    self._queue.put_nowait((name, picked))
        except queue.Full:
            pass
        except Exception as error:  # requests are answered even if logging fails
            self._complain(str(error))

    def stop(self) -> None:
        """Writes waiting instances, for at most two seconds."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=1.0)
            self._thread.join(1.0)

    def _write_all(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._write(*item)
            except Exception as error:
                self._complain(str(error))

    def _write(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        content = b"".join(_lines(columns))
        file = self.folder / f"{name}.jsonl"
        if file.exists() and file.stat().st_size + len(content) > _FILE_BYTES:
            file.replace(self.folder / f"{name}.1.jsonl")
        with open(file, "ab", buffering=0, opener=partial(os.open, mode=0o600)) as end:
            before = end.tell()
            if (end.write(content) or 0) < len(content):
                end.truncate(before)  # no incomplete line
                raise OSError(f"{file}: no space left")

    def _complain(self, reason: str) -> None:
        """Warns of each new reason once."""
        if reason != self._complaint:
            self._complaint = reason
            log.warning("crowdzoo serve: instances are not logged: %s", reason)


def _size(array: np.ndarray) -> int:
    """Bytes of an array's values."""
    return array.nbytes if array.dtype != object else sum(map(len, array.flat))


def _lines(columns: Mapping[str, np.ndarray]) -> Iterator[bytes]:
    """One line per row; rows that are not text, such as images, are skipped."""
    for row in zip(*columns.values(), strict=True):
        with contextlib.suppress(orjson.JSONEncodeError):
            line = dict(zip(columns, row, strict=True))
            yield orjson.dumps(line, default=bytes.decode, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"
