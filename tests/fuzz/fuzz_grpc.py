"""Fuzzing of the gRPC API: tensors that lie, and any bytes as the message of any method."""

import functools

from hypothesis import strategies as st
from served_model import little_memory, once_it_runs, server, still_answers
from target import Target

_PREDICTION, _MODEL = "/tensorflow.serving.PredictionService/", "/tensorflow.serving.ModelService/"
_METHODS = [
    _PREDICTION + "Predict", _PREDICTION + "GetModelMetadata", _PREDICTION + "Classify", _MODEL + "GetModelStatus",
    _MODEL + "Nothing",
]  # fmt: skip
_sizes = st.integers(-2, 6) | st.sampled_from([2**31, 2**62, 30_000, 10**6])
_texts = st.binary(max_size=6) | st.sampled_from([b"ann", b"bob", b"\xff", b"x" * 200])
_numbers = st.floats(width=32) | st.sampled_from([1.0, 3e38])
_integers = st.integers(-(2**31), 2**31 - 1)
_tensors = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([1, 1, 1, 7, 7, 0, 2, 3, 9, 10, 14, 19, 20, 21, 101, 999]),
        "sizes": st.lists(_sizes, max_size=4),
    },
    optional={
        "tensor_content": st.binary(max_size=70),
        "float_val": st.lists(_numbers, max_size=8),
        "string_val": st.lists(_texts, max_size=4),
        "int_val": st.lists(_integers, max_size=4),
        "half_val": st.lists(_integers, max_size=4),
        "bool_val": st.lists(st.booleans(), max_size=4),
        "version_number": _integers,
    },
)
_good = st.builds(lambda rows: {"dtype": 1, "sizes": [rows, 4], "float_val": [0.5] * (4 * rows)}, st.integers(1, 3))
# One value, or none, for a large shape
_powers = st.integers(0, 26).map(lambda power: 2**power)
_spread = st.builds(
    lambda dtype, field, rows, more: {"dtype": dtype, "sizes": [rows, *more]} | field,
    st.sampled_from([1, 1, 1, 2, 3, 7, 9, 10, 14, 19]),
    st.sampled_from([
        {}, {"float_val": [0.5]}, {"float_val": [0.5]}, {"double_val": [1.0]}, {"int_val": [1]}, {"int64_val": [1]},
        {"half_val": [1]}, {"bool_val": [True]}, {"string_val": [b"x" * 5000]}, {"string_val": [b""]},
        {"tensor_content": b"\0\0\0\0"},
    ]),
    _powers | st.integers(1, 2**22) | st.sampled_from([2**18, 2**20, 3 * 2**20, 2**22]),
    st.sampled_from([[4], [4], [], [0], [512]]),
)  # fmt: skip
_output_names = st.sampled_from(["label", "class", "x", "é" * 9000])
_outputs = st.lists(_output_names, max_size=2) | st.builds(
    lambda name, count: [name] * count, st.sampled_from(["label", "label", "class", "x"]), st.sampled_from([2, 140_000])
)
_names = st.sampled_from(["instances", "instances", "annotator", "x", "é" * 9000])
_predicts = st.fixed_dictionaries(
    {"inputs": st.dictionaries(_names, _good | _spread | _tensors, max_size=3)},
    optional={
        "name": st.just("pets") | st.text(max_size=5),
        "signature_name": st.sampled_from(["", "serving_default", "annotators", "x", "é" * 9000]),
        "version": st.sampled_from([1, 2, -1, 2**63 - 1]),
        "version_label": st.sampled_from(["stable", "x", "é" * 9000]),
        "output_filter": _outputs,
        "repeat": st.sampled_from([1, 100, 4000]),
    },
)


def _message(described):
    from tensorflow_serving.apis.predict_pb2 import PredictRequest

    spec = {"name": "pets"} | {key: described[key] for key in ("name", "signature_name") if key in described}
    if "version" in described:
        spec["version"] = {"value": described["version"]}
    elif "version_label" in described:
        spec["version_label"] = described["version_label"]
    request = PredictRequest(model_spec=spec, output_filter=described.get("output_filter", ()))
    for name, fields in described["inputs"].items():
        tensor = request.inputs[name]
        for size in fields["sizes"]:
            tensor.tensor_shape.dim.add(size=size)
        for field, value in fields.items():
            if isinstance(value, list) and field != "sizes":
                getattr(tensor, field).extend(value * described.get("repeat", 1))
            elif field != "sizes":
                setattr(tensor, field, value)
    return request.SerializeToString()


@st.composite
def _messages(draw):
    message = draw(_predicts.map(_message) | st.binary(max_size=60))
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        if message:
            place = draw(st.integers(0, len(message) - 1))
            message = message[:place] + draw(st.binary(max_size=4)) + message[place + draw(st.integers(0, 4)) :]
    if draw(st.integers(0, 9)) == 0:  # many empty parts, two bytes each
        message += draw(st.sampled_from([b"\x12\x00", b"\x1a\x00", b"\x0a\x00", b"\x72\x00"])) * 100_000
    return draw(st.sampled_from([*_METHODS[:1] * 6, *_METHODS])), message


@functools.cache
def _channel():
    import grpc

    options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]
    return grpc.insecure_channel(f"127.0.0.1:{server().grpc_port}", options=options)


def _send(input_):
    import grpc

    method, message = input_
    with little_memory():
        try:
            _channel().unary_unary(method)(message, timeout=10)
        except grpc.RpcError as error:
            if error.code().name in ("INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED"):
                raise
        still_answers()


# === Few bytes for many ===

_large = st.builds(
    lambda inputs, outputs: (_METHODS[0], _message({"inputs": inputs, "output_filter": outputs})),
    st.dictionaries(st.sampled_from(["instances", "annotator"]), _spread, min_size=1, max_size=2)
    | st.just({"instances": {"dtype": 1, "sizes": [1, 4], "float_val": [0.5]}}),
    st.just([]) | _outputs,
)

TARGETS = {
    "grpc": Target(once_it_runs(_messages()), _send, examples=30),
    "grpc-expanded": Target(once_it_runs(_large), _send, examples=30),
}
