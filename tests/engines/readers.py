"""Other programs than TensorFlow's Python read exported models: TensorFlow for Java, and OpenVINO.

    python tests/engines/readers.py [KIND...]   # the table of docs/serving.md: largest differences by kind of model

`make engines` brings the programs.
"""

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from install import JAVA_JARS, OPENVINO

HERE = Path(__file__).parent
Answers = dict[str, dict[str, np.ndarray]]  # signature -> name -> array; texts are bytes


def by_tensorflow(model: Path, requests: Answers) -> Answers:
    """What TensorFlow answers in this process."""
    import tensorflow as tf

    from crowdzoo.files.served_model import load_saved_model

    signatures = load_saved_model(model).signatures
    return {
        signature: {
            name: tensor.numpy()
            for name, tensor in signatures[signature](
                **{name: tf.constant(array) for name, array in inputs.items()}
            ).items()
        }
        for signature, inputs in requests.items()
    }


def by_java(model: Path, requests: Answers, libraries: tuple[str, ...] = ()) -> tuple[Answers, dict[str, str]]:
    """What TensorFlow for Java answers, and its version and the signatures that it finds."""
    with tempfile.TemporaryDirectory() as name:
        asked, answered = Path(name, "requests"), Path(name, "answers")
        lines = []
        for signature, inputs in requests.items():
            lines += [f"signature {signature}", *(_line(name, array) for name, array in inputs.items()), "ask"]
        asked.write_text("\n".join(lines))
        # its shared objects are unpacked into a folder of ours, once
        options = [f"-Dorg.bytedeco.javacpp.cachedir={JAVA_JARS / 'cache'}", "-Xmx1g"]
        program = ["-cp", f"{JAVA_JARS}/*", str(HERE / "TensorFlowReader.java")]
        command = ["java", *options, *program, str(model), str(asked), str(answered), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return _read(answered.read_text("utf-8"))


def libraries_for(kind: str) -> tuple[str, ...]:
    """The shared objects of tensorflow-text with the operations that the graph of a kind of model has: a tagger's."""
    if not kind.startswith("tags"):
        return ()
    import tensorflow_text

    folder = Path(tensorflow_text.__file__).parent / "python" / "ops"
    return tuple(str(folder / f"{name}.so") for name in ("_regex_split_ops", "_unicode_script_tokenizer"))


def by_openvino(model: Path, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What OpenVINO answers, of the outputs that are numbers.

    It reads one signature, `serving_default`, and its process breaks down where an output is a text. So it is given a
    copy of the model in which the signature has that name, and only outputs of numbers.

    Raises:
        RuntimeError: with OpenVINO's own message.
    """
    from tensorflow.core.framework.types_pb2 import DT_STRING
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    with tempfile.TemporaryDirectory() as name:
        copy = Path(name, "1")
        shutil.copytree(model, copy)
        content = SavedModel.FromString((copy / "saved_model.pb").read_bytes())
        signatures = content.meta_graphs[0].signature_def
        signatures["serving_default"].CopyFrom(signatures[signature])
        for other in set(signatures) - {"serving_default"}:
            del signatures[other]
        outputs = signatures["serving_default"].outputs
        for output in [output for output, info in outputs.items() if info.dtype == DT_STRING]:
            del outputs[output]
        (copy / "saved_model.pb").write_bytes(content.SerializeToString())
        as_texts = {name: array if array.dtype != object else array.astype("S") for name, array in inputs.items()}
        np.savez(Path(name, "request.npz"), **as_texts)
        command = [OPENVINO, HERE / "openvino_reader.py", copy, Path(name, "request.npz"), Path(name, "answer.npz")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode < 0:
            raise RuntimeError(f"ended by signal {-done.returncode}. {done.stderr.strip()}")
        if done.returncode > 0:
            raise RuntimeError(done.stderr.strip())
        with np.load(Path(name, "answer.npz")) as found:
            return {name: found[name] for name in found.files}


def difference(found: Answers, wanted: Answers) -> float:
    """The largest difference of two programs' numbers, relative where they are above 1; texts must be equal.

    Raises:
        ValueError: other signatures, names, shapes or texts.
    """
    largest = 0.0
    if found.keys() != wanted.keys():
        raise ValueError(f"signatures {sorted(found)} for {sorted(wanted)}")
    for signature, outputs in wanted.items():
        if outputs.keys() != found[signature].keys():
            raise ValueError(f"{signature}: outputs {sorted(found[signature])} for {sorted(outputs)}")
        for name, array in outputs.items():
            other = found[signature][name]
            if other.shape != array.shape or (array.dtype.kind != "f" and other.tolist() != array.tolist()):
                raise ValueError(f"{signature}, {name}: {other.tolist()} for {array.tolist()}")
            if array.dtype.kind == "f" and array.size:
                scale = np.maximum(1.0, np.abs(array.astype(float)))
                largest = max(largest, float((np.abs(other.astype(float) - array) / scale).max()))
    return largest


def _line(name: str, array: np.ndarray) -> str:
    shape = ",".join(map(str, array.shape)) or "-"
    if array.dtype == object:
        data = b"".join(len(text).to_bytes(4, "little") + text for text in array.flat)
    else:
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    dtype = "string" if array.dtype == object else array.dtype.name
    return f"tensor {name} {dtype} {shape} {base64.b64encode(data).decode()}"


def _read(text: str) -> tuple[Answers, dict[str, str]]:
    answers: Answers = {}
    said: dict[str, str] = {}
    signature = ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "signature":
            signature = rest
            answers[signature] = {}
        elif word == "tensor":
            name, dtype, shape, data = rest.split(" ")
            answers[signature][name] = _array(dtype, shape, base64.b64decode(data))
        else:
            said[word] = rest
    return answers, said


def _array(dtype: str, shape: str, data: bytes) -> np.ndarray:
    sizes = () if shape == "-" else tuple(map(int, shape.split(",")))
    if dtype != "string":
        return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).reshape(sizes)
    texts, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        texts.append(data[at + 4 : end])
        at = end
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(sizes)


def of_numbers(requests: Answers) -> list[str]:
    """The signatures whose inputs are all numbers."""
    return [name for name, inputs in requests.items() if all(array.dtype != object for array in inputs.values())]


def numbers_only(answers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs that are no texts."""
    return {name: array for name, array in answers.items() if array.dtype != object}


def main() -> None:
    """Prints the table."""
    from exported_kinds import KINDS, export_kind

    print("| model | signatures | TensorFlow for Java | OpenVINO |\n|---|---|---|---|")
    for kind in sys.argv[1:] or KINDS:
        with tempfile.TemporaryDirectory() as name:
            model = Path(name, "1")
            requests = export_kind(kind, model)
            wanted = by_tensorflow(model, requests)
            java = difference(by_java(model, requests, libraries_for(kind))[0], wanted)
            numeric = of_numbers(requests)
            found = {signature: by_openvino(model, signature, requests[signature]) for signature in numeric}
            openvino = difference(found, {signature: numbers_only(wanted[signature]) for signature in numeric})
            read = f"{openvino:.0e} ({', '.join(f'`{one}`' for one in numeric)})" if numeric else "not read"
            print(f"| {kind} | {', '.join(f'`{one}`' for one in requests)} | {java:.0e} | {read} |", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))
    main()
