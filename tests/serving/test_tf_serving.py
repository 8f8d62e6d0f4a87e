"""TensorFlow Serving itself answers every kind of model as TensorFlow does, over REST and gRPC, where there is one.

    docker run --rm -p 8500-8501:8500-8501 -v /tmp/served:/models/crowdzoo -e MODEL_NAME=crowdzoo \\
        tensorflow/serving:2.16.1
    CROWDZOO_TF_SERVING=127.0.0.1:8501 CROWDZOO_TF_SERVED=/tmp/served pytest tests/serving/test_tf_serving.py -m slow

gRPC is asked on the port below that of REST, as TensorFlow Serving has them.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("tensorflow_text")

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))
from exported_kinds import KINDS, export_kind
from readers import by_tensorflow

from crowdzoo.errors import ServingError
from crowdzoo.files.version_folders import next_version
from crowdzoo.serving import Client

PLACE, FOLDER = os.environ.get("CROWDZOO_TF_SERVING"), os.environ.get("CROWDZOO_TF_SERVED")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (PLACE and FOLDER), reason="no TensorFlow Serving: set CROWDZOO_TF_SERVING and _SERVED"),
]


def wait_for(version):
    """Until the server answers with a version; it looks at the folder every second or so."""
    end = time.monotonic() + 60
    while True:
        try:
            with Client(f"http://{PLACE}", model="crowdzoo") as client:
                if int(client.metadata()["version"]) == version:
                    return
        except ServingError:
            pass
        assert time.monotonic() < end, f"version {version} is not served"
        time.sleep(0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_it_answers_every_signature_over_rest_and_grpc_as_tensorflow_does(kind):
    version = next_version(FOLDER)
    path = Path(FOLDER, str(version))
    requests = export_kind(kind, path)
    wanted = by_tensorflow(path, requests)
    wait_for(version)
    host, port = str(PLACE).rsplit(":", 1)
    for url in (f"http://{PLACE}", f"grpc://{host}:{int(port) - 1}"):
        with Client(url, model="crowdzoo") as client:
            for signature, inputs in requests.items():
                found = client.predict(inputs, signature=signature)
                assert found.keys() == wanted[signature].keys()
                for name, value in wanted[signature].items():
                    if value.dtype.kind == "f":
                        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=f"{url} {name}")
                    else:
                        expected = [
                            each.decode() if isinstance(each, bytes) else each for each in value.ravel().tolist()
                        ]
                        assert found[name].ravel().tolist() == expected, (url, signature, name)
