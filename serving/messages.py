"""Messages of TensorFlow and TF Serving that Python's packages lack, or that are needed without TensorFlow."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

__all__ = ["message_class", "own_message"]

# Message -> field -> its number and type; a star marks a repeated field
_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    # tf.Example; a map is on the wire a list of its entries
    "BytesList": {"value": (1, "bytes*")},
    "FloatList": {"value": (1, "float*")},
    "Int64List": {"value": (1, "int64*")},
    "Feature": {"bytes_list": (1, "BytesList"), "float_list": (2, "FloatList"), "int64_list": (3, "Int64List")},
    "FeatureEntry": {"key": (1, "string"), "value": (2, "Feature")},
    "Features": {"feature": (1, "FeatureEntry*")},
    "Example": {"features": (1, "Features")},
    # What Classify, Regress and MultiInference are asked: a model, or tasks, which stay bytes as the examples do
    "SerializedExampleList": {"examples": (1, "bytes*"), "context": (2, "bytes")},
    "SerializedInput": {
        "example_list": (1, "SerializedExampleList"),
        "example_list_with_context": (2, "SerializedExampleList"),
    },
    "ExamplesRequest": {"asked": (1, "bytes*"), "input": (2, "SerializedInput")},
    # Settings of TF Serving: google/protobuf/wrappers.proto, servables/tensorflow/session_bundle_config.proto
    "Int64Value": {"value": (1, "int64")},
    "StringValue": {"value": (1, "string")},
    "BatchingParameters": {
        "max_batch_size": (1, "Int64Value"),
        "batch_timeout_micros": (2, "Int64Value"),
        "max_enqueued_batches": (3, "Int64Value"),
        "num_batch_threads": (4, "Int64Value"),
        "thread_pool_name": (5, "StringValue"),
        "allowed_batch_sizes": (6, "int64*"),
        "pad_variable_length_inputs": (7, "bool"),
    },
    # Settings of TF Serving: config/monitoring_config.proto
    "PrometheusConfig": {"enable": (1, "bool"), "path": (2, "string")},
    "MonitoringConfig": {"prometheus_config": (1, "PrometheusConfig")},
}


def own_message(name: str) -> Any:
    """The class of a message of `_FIELDS`."""
    return _CLASSES[name]


def message_class(pool: descriptor_pool.DescriptorPool, name: str) -> Any:
    """The class of a message that a pool describes, in all versions of protobuf."""
    described = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(described)
    return message_factory.MessageFactory(pool).GetPrototype(described)  # protobuf 3


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="crowdzoo_serving.proto", package="crowdzoo", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            field = message.field.add(name=field_name, number=number)
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED if kind[-1] == "*" else FieldDescriptorProto.LABEL_OPTIONAL
            )
            plain = kind.rstrip("*")
            if plain in _FIELDS:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".crowdzoo.{plain}"
            else:
                field.type = getattr(FieldDescriptorProto, f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_class(pool, f"crowdzoo.{name}") for name in _FIELDS}


_CLASSES = _classes()
