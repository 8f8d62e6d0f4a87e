"""Client of a model server, over REST or gRPC."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from crowdzoo.errors import ServingError, Setting
from crowdzoo.files.served_model import served_name, stacked
from crowdzoo.reading.instances.images import check_no_paths
from crowdzoo.reading.instances.table import BESIDE
from crowdzoo.reading.instances.upright_image import opened

if TYPE_CHECKING:
    from crowdzoo.serving.grpc_connection import GrpcConnection
    from crowdzoo.serving.rest_connection import RestConnection


class Client:
    """Requests predictions from a model server: `crowdzoo serve` or TensorFlow Serving.

    Args:
        url: `http://host:port` (REST; TensorFlow is not needed) or `grpc://host:port`; with TLS `https://` and `grpcs://`.
        model: the model's name on the server.
        version: version to use; None is the newest.
        timeout: seconds to wait for an answer.
        ca_file: certificates of trusted authorities for TLS, in PEM format, or a server's self-signed certificate. None
            uses those that the machine trusts.

    Raises:
        ServingError: an invalid URL. All methods raise it as well, with the server's reason, if the server rejects the
            request or does not answer.

    Example:
        >>> with Client("http://127.0.0.1:8501", model="labelme") as client:  # doctest: +SKIP
        ...     client.predict(instances)["class"]
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8501",
        *,
        model: str = "model",
        version: int | None = None,
        timeout: float = 60.0,
        ca_file: str | os.PathLike[str] | None = None,
    ):
        scheme = urlsplit(url).scheme
        if scheme not in ("http", "https", "grpc", "grpcs") or not urlsplit(url).netloc:
            raise ServingError(f"{url}: write http://host:port for REST or grpc://host:port for gRPC")
        self.url = url.rstrip("/")
        self.model = model
        self._connection: RestConnection | GrpcConnection
        # imported here: REST works without TensorFlow, gRPC without httpx
        if scheme in ("grpc", "grpcs"):
            from crowdzoo.serving.grpc_connection import GrpcConnection

            self._connection = GrpcConnection(self.url, model, version, timeout, ca_file)
        else:
            from crowdzoo.serving.rest_connection import RestConnection

            self._connection = RestConnection(self.url, model, version, timeout, ca_file)
        self._signatures: dict[str, Any] | None = None

    def predict(
        self, instances: Any, *, signature: str = "serving_default", batch_size: int | None = None, **inputs: Any
    ) -> dict[str, np.ndarray]:
        """Predicts a batch.

        Args:
            instances: array `[n, ...]` for the input called `instances`, or all inputs as a mapping or a pandas
                DataFrame: name -> array `[n, ...]`. Names of columns are those of the training data. In a mapping or a
                    DataFrame, None, NaN and pandas' NA are missing values of a column, and columns task, gold and split
                    are ignored. For a model of images, paths (`Path`) or the bytes of files.
            signature: `serving_default` or `annotators`.
            batch_size: largest number of instances per request; None sends all in one.
            **inputs: further inputs, such as `annotator`, names `[n]`. A single text is used for all instances.

        Returns:
            An array `[n, ...]` for each output; text as `str`.

        Raises:
            ServingError: an error from the server, a number that is not finite (it is not sent; NaN is allowed where
                values may be missing), or inputs of different lengths.
        """
        if isinstance(instances, Mapping) or hasattr(instances, "columns"):
            known = self._signature(signature)["inputs"]
            # other columns in files of instances; the server names further columns that the model does not have
            body = {
                name if name in known else served_name(str(name)): instances[name]
                for name in instances
                if name in known or name not in BESIDE
            }
        else:
            body = {"instances": instances}
        arrays = self._arrays(signature, {**body, **inputs})
        size = len(next(iter(arrays.values())))
        step = batch_size or size or 1
        if step < 1:
            raise ServingError(f"{Setting('batch_size')}: must be at least 1, got {batch_size}")
        starts = range(0, max(size, 1), step)
        batches = ({name: opened(array[i : i + step]) for name, array in arrays.items()} for i in starts)
        dtypes = {name: spec["dtype"] for name, spec in self._signature(signature)["outputs"].items()}
        parts = [self._connection.predict(signature, batch, dtypes) for batch in batches]
        return {name: stacked([part[name] for part in parts]) for name in parts[0]}

    def metadata(self) -> dict[str, Any]:
        """Returns the inputs and outputs of the model.

        Returns:
            `name`, `version`, `signatures`: name -> `inputs` and `outputs`: name -> `dtype` and `shape`, where -1 is
            any size; and `features`, the names of the columns that the model was trained on, in its order (None if they
            had no names, and from TensorFlow Serving, which does not provide them).
        """
        return self._connection.metadata()

    def status(self) -> list[dict[str, Any]]:
        """Versions that the server knows, newest first, with `version`, `state` (`AVAILABLE`, ...) and `error`."""
        return self._connection.status()

    def close(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _signature(self, name: str) -> dict[str, Any]:
        if self._signatures is None or name not in self._signatures:
            self._signatures = self.metadata()["signatures"]
        if name not in self._signatures:
            there = ", ".join(map(repr, self._signatures))
            raise ServingError(f"{self.url}: signature {name!r} is not in model {self.model!r}; it has {there}")
        return self._signatures[name]

    def _arrays(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Inputs in the model's dtypes; texts as objects of type `str` or `bytes`."""
        specs = self._signature(signature)["inputs"]
        arrays = {name: _array(name, value, specs.get(name)) for name, value in inputs.items()}
        sizes = {name: len(array) for name, array in arrays.items() if array.ndim}
        size = next(iter(sizes.values()), 1)
        for name, array in arrays.items():
            if not array.ndim:
                arrays[name] = np.full(size, array.item(), dtype=array.dtype)
            elif sizes[name] != size:
                raise ServingError(f"input {name!r}: has {sizes[name]} rows, but {next(iter(sizes))!r} has {size}")
        return arrays


def _array(name: str, value: Any, spec: Mapping[str, Any] | None) -> np.ndarray:
    of_texts = spec is not None and spec["dtype"] == "str"
    # one value per instance, like a column of a table; texts and annotators are never missing
    of_column = spec is not None and len(spec["shape"]) == 1 and name not in ("instances", "annotator")
    try:
        array = np.asarray(value, dtype=object if of_texts else None)  # str and bytes next to each other
    except ValueError as error:
        raise ServingError(f"input {name!r}: lists of different lengths do not make an array") from error
    if of_column and array.dtype == object:
        array = _without_missing(array, "" if of_texts else np.nan)
    if spec is None:
        return array  # the server's error names the unknown input
    if of_texts:
        for place, cell in np.ndenumerate(array):
            if not isinstance(cell, str | bytes | os.PathLike):
                raise ServingError(f"input {name!r}: {cell!r} at {list(place)} is not a text (or image)")
        check_no_paths(name, array)
        return array
    if array.dtype.kind not in ("biu" if np.dtype(spec["dtype"]).kind in "iu" else "biuf"):
        raise ServingError(f"input {name!r}: holds {array.dtype.name}, not {spec['dtype']}")
    with np.errstate(over="ignore"):
        converted = array.astype(spec["dtype"])
    if converted.dtype.kind == "f":
        unfit = np.isinf(converted) if of_column else ~np.isfinite(converted)
        for place in np.argwhere(unfit)[:1].tolist():
            reason = "too large for " + spec["dtype"] if np.isfinite(array[tuple(place)]) else "not a finite number"
            raise ServingError(f"input {name!r}: {array[tuple(place)]} at {place} is {reason}")
    return converted


def _without_missing(array: np.ndarray, missing: Any) -> np.ndarray:
    """A column of Python objects with `missing` for None, NaN and pandas' NA; numbers if all values are numbers."""
    # comparing pandas' NA with itself returns NA
    named = [missing if cell is None or type(cell).__name__ in ("NAType", "NaTType") else cell for cell in array.flat]
    cells = [missing if isinstance(cell, float | np.floating) and cell != cell else cell for cell in named]
    numbers = missing != "" and all(isinstance(cell, bool | int | float | np.number) for cell in cells)
    return np.array(cells, dtype=float if numbers else object).reshape(array.shape)
