"""Asks the signature `serving_default` of a SavedModel with OpenVINO: MODEL REQUEST.npz ANSWER.npz

Run by the Python that `make engines` makes. Prints OpenVINO's version.
"""

import sys

import numpy as np
import openvino


def main(model: str, request: str, answer: str) -> None:
    core = openvino.Core()
    read = core.read_model(model)
    with np.load(request) as inputs:
        # a processor that has bfloat16 computes in it by default
        found = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(dict(inputs))
    np.savez(answer, **{port.get_any_name(): array for port, array in found.items()})
    print(openvino.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])
