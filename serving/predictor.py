"""The one place where a request's values are read, for REST and for gRPC, and answered."""

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.classification_pb2 import ClassificationResponse
from tensorflow_serving.apis.inference_pb2 import InferenceTask, MultiInferenceResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.regression_pb2 import RegressionResponse

from crowdzoo.errors import short_repr
from crowdzoo.serving.array_frames import pack_arrays, unpack_arrays
from crowdzoo.serving.batcher import Batcher
from crowdzoo.serving.batching_settings import BatchingSettings
from crowdzoo.serving.example_answers import METHODS, example_outputs, results_json, results_proto
from crowdzoo.serving.examples import examples_from_input, examples_from_json
from crowdzoo.serving.gate import Gate
from crowdzoo.serving.json_tensors import check_memory, read_request, to_json
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.loaded_model import DEFAULT_SIGNATURE, LoadedModel
from crowdzoo.serving.memory_budget import MemoryBudget, Share
from crowdzoo.serving.messages import own_message
from crowdzoo.serving.model_store import ModelStore
from crowdzoo.serving.model_stores import ModelStores
from crowdzoo.serving.proto_tensors import STRING_BYTES, arrays_from_protos, parsed
from crowdzoo.serving.reader_pool import ReaderPool
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.request_record import RequestRecord
from crowdzoo.serving.signature import Signature

__all__ = ["Predictor", "is_long"]

# A longer request is read in a process of its own, because Python reads only one at a time: bytes of JSON, of protobuf
_LONG_JSON, _LONG_PROTO = 1 << 19, 1 << 20
# An answer of more values is written there
_LONG_ANSWER = 1 << 14
# Signatures of one MultiInference request
_MOST_TASKS = 64
# Characters of one value in an answer, for the estimate
_TEXT_BYTES = 24


def is_long(size: int, *, json: bool) -> bool:
    """Whether a request of so many bytes is read in a process of its own."""
    return size > (_LONG_JSON if json else _LONG_PROTO)


class Predictor:
    """Answers requests, from the bytes as they came to those that go back.

    Args:
        stores: the models.
        limits: a request's memory and time, and how many requests.
        batching: how rows of several requests are computed together; None for each request by itself.

    Attributes:
        budget: the memory of all requests.
    """

    def __init__(self, stores: ModelStores, limits: Limits, batching: BatchingSettings | None = None):
        self.stores = stores
        self.limits = limits
        self.budget = MemoryBudget(limits)
        self.readers = ReaderPool(limits)
        self._batcher = None if batching is None else Batcher(batching)

    def gate(self) -> Gate:
        """The turns of one protocol; long requests have as many as there are readers, and one that waits for them."""
        return Gate(self.limits, self.readers.size + 1)

    def answer_json(self, model: LoadedModel, body: bytes, share: Share, record: RequestRecord) -> bytes:
        """The REST answer to a body.

        Raises:
            RequestError: the request is not valid; the message says why.
        """
        if is_long(len(body), json=True):
            share.hold("values", 2 * len(body))
            signatures = {key: dict(signature.inputs) for key, signature in model.signatures.items()}
            job = {"kind": "json", "signatures": signatures, "default": DEFAULT_SIGNATURE}
            header, parts = self.readers.run(job, [body])
            signature = model.signature(header["signature"])
            inputs, rows = unpack_arrays(header["arrays"], parts), header["rows"]
            share.hold("values", sum(map(len, parts)))
        else:
            check_memory(body, share.per_request)
            signature, inputs, rows = read_request(body, model.signature)
        outputs = self._run(signature, inputs, share, record)
        del inputs
        return self._text(outputs, rows, share)

    def _text(self, outputs: dict[str, np.ndarray], rows: bool, share: Share) -> bytes:
        values = sum(array.size for array in outputs.values())
        if values <= _LONG_ANSWER:
            return to_json(outputs, rows=rows)
        share.hold("text", values * _TEXT_BYTES, "the answer")
        described, parts = pack_arrays(outputs)
        text = self.readers.run({"kind": "write", "arrays": described, "rows": rows}, parts)[1][0]
        share.hold("text", len(text), "the answer")
        return text

    def answer_proto(self, message: bytes, share: Share, record: RequestRecord) -> PredictResponse:
        """The gRPC answer to a message.

        Raises:
            RequestError: the request is not valid; the message says why.
        """
        if is_long(len(message), json=False):
            header, parts = self.readers.run({"kind": "proto"}, [message])
            spec, wanted = ModelSpec.FromString(bytes.fromhex(header["spec"])), header["filter"]
            inputs, size = unpack_arrays(header["arrays"], parts), sum(map(len, parts))
        else:
            request = parsed(PredictRequest, message)
            spec, wanted = request.model_spec, list(request.output_filter)
            inputs = arrays_from_protos(request.inputs, max_bytes=share.per_request)
            size = sum(array.nbytes for array in inputs.values())
        store, model = self._asked(spec, record)
        signature = model.signature(spec.signature_name)
        share.hold("values", size)
        signature.check_names(inputs)
        for name, array in inputs.items():
            given = "string" if array.dtype == object else array.dtype.name
            if given != signature.inputs[name].dtype:
                raise RequestError(f"input {name!r}: is {given}, not {signature.inputs[name].dtype}")
        outputs = self._run(signature, inputs, share, record)
        response = PredictResponse()
        fill_spec(response.model_spec, store, model)
        response.model_spec.signature_name = spec.signature_name or DEFAULT_SIGNATURE
        for name in wanted or outputs:
            if name not in outputs:
                raise RequestError(
                    f"output_filter: {short_repr(name)} is not an output; there are {', '.join(outputs)}"
                )
            response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
        return response

    def results_json(self, model: LoadedModel, what: str, body: bytes, share: Share, record: RequestRecord) -> bytes:
        """The REST answer to a body of tf.Examples.

        Args:
            model: is asked.
            what: `classify` or `regress`.
            body: as it came.
            share: the request's memory.
            record: is filled.

        Raises:
            RequestError: the request is not valid, or the signature is of another method.
        """
        if is_long(len(body), json=True):
            share.hold("values", 2 * len(body))
            header, parts = self.readers.run({"kind": "examples"}, [body])
            name, examples = header["signature"], _examples(header, parts, share)
        else:
            name, examples = examples_from_json(body, functools.partial(share.hold, "values"))
        return results_json(_run_examples(what, model.signature(name), examples, share, record)).encode()

    def results_proto(
        self, what: str, message: bytes, share: Share, record: RequestRecord
    ) -> ClassificationResponse | RegressionResponse:
        """The gRPC answer to a message with tf.Examples.

        Args:
            what: `classify` or `regress`.
            message: as it came.
            share: the request's memory.
            record: is filled.

        Raises:
            RequestError: as `results_json`.
        """
        asked, examples = self._asked_of_examples(message, share)
        spec = parsed(ModelSpec, b"".join(asked))  # a field that is there twice is one message in protobuf
        store, model = self._asked(spec, record)
        signature = model.signature(spec.signature_name)
        outputs = _run_examples(what, signature, examples, share, record)
        response = (ClassificationResponse if what == "classify" else RegressionResponse)(result=results_proto(outputs))
        fill_spec(response.model_spec, store, model)
        response.model_spec.signature_name = spec.signature_name or DEFAULT_SIGNATURE
        return response

    def multi_inference(self, message: bytes, share: Share, record: RequestRecord) -> MultiInferenceResponse:
        """The gRPC answer to several signatures of one model on the same tf.Examples.

        Raises:
            RequestError: as `results_json`, or the tasks are of different models, or one twice.
        """
        asked, examples = self._asked_of_examples(message, share)
        if not 1 <= len(asked) <= _MOST_TASKS:
            raise RequestError(f"a request has 1 to {_MOST_TASKS} tasks, this one has {'more' if asked else 'none'}")
        tasks = [parsed(InferenceTask, task) for task in asked]
        first = tasks[0].model_spec
        store, model = self._asked(first, record)
        response = MultiInferenceResponse()
        names: set[str] = set()
        for task in tasks:
            spec = task.model_spec
            if spec.name != first.name or asked_version(spec) != asked_version(first):
                raise RequestError("all tasks of a request must ask the same model and version")
            name = spec.signature_name or DEFAULT_SIGNATURE
            if name in names:
                raise RequestError(f"Duplicate evaluation of signature: {short_repr(name)}")
            names.add(name)
            what = next((one for one, (method, *_) in METHODS.items() if method == task.method_name), None)
            if what is None:
                reason = f"Unsupported signature method_name: {short_repr(task.method_name)}"
                raise RequestError(reason, "UNIMPLEMENTED")
            result = results_proto(_run_examples(what, model.signature(name), examples, share, record))
            answer = response.results.add()
            fill_spec(answer.model_spec, store, model)
            answer.model_spec.signature_name = name
            (answer.classification_result if what == "classify" else answer.regression_result).CopyFrom(result)
            share.hold("answers", response.ByteSize(), "the answer")
        return response

    def _run(
        self, signature: Signature, inputs: Mapping[str, np.ndarray], share: Share, record: RequestRecord
    ) -> dict[str, np.ndarray]:
        first = next(iter(inputs.values()), None)
        record.rows = len(first) if first is not None and first.ndim else None
        with _timed(record, signature):
            return signature(inputs, share, batcher=self._batcher)

    def _asked_of_examples(self, message: bytes, share: Share) -> tuple[list[bytes], np.ndarray]:
        """Of a message with tf.Examples what is asked, no more than one too many, and the examples."""
        most = _MOST_TASKS + 1
        if is_long(len(message), json=False):
            share.hold("values", len(message))
            job = {"kind": "examples_proto", "most": most}
            header, parts = self.readers.run(job, [message])
            return [bytes.fromhex(asked) for asked in header["asked"]], _examples(header, parts, share)
        request = parsed(own_message("ExamplesRequest"), message)
        return list(request.asked[:most]), examples_from_input(request, functools.partial(share.hold, "values"))

    def _asked(self, spec: ModelSpec, record: RequestRecord) -> tuple[ModelStore, LoadedModel]:
        store = self.stores.get(spec.name)
        record.model = store.name
        model = store.get(**asked_version(spec))
        record.version = model.version
        return store, model

    def close(self) -> None:
        """Ends the readers."""
        self.readers.close()


def _examples(header: Mapping[str, Any], parts: Sequence[bytes], share: Share) -> np.ndarray:
    """The examples that a reader sent."""
    count = math.prod(header["arrays"][0]["shape"])
    share.hold("values", count * STRING_BYTES + sum(map(len, parts)))
    return unpack_arrays(header["arrays"], parts)["examples"]


def _run_examples(
    what: str, signature: Signature, examples: np.ndarray, share: Share, record: RequestRecord
) -> dict[str, np.ndarray]:
    record.rows = len(examples)
    with _timed(record, signature):
        return example_outputs(what, signature, examples, share)


@contextmanager
def _timed(record: RequestRecord, signature: Signature) -> Iterator[None]:
    record.signature = signature.name
    started = time.monotonic()
    yield
    record.model_seconds = (record.model_seconds or 0.0) + time.monotonic() - started


def asked_version(spec: ModelSpec) -> dict[str, Any]:
    """`version` or `label` that a gRPC request asks for."""
    choice = spec.WhichOneof("version_choice")
    if choice == "version":
        return {"version": spec.version.value}
    return {"label": spec.version_label} if choice == "version_label" else {}


def fill_spec(spec: ModelSpec, store: ModelStore, model: LoadedModel) -> None:
    """Writes which model answers."""
    spec.name = store.name
    spec.version.value = model.version
