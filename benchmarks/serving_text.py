"""Requests a second of a served tagger that takes raw text, one sentence and thirty-two sentences a request.

    python benchmarks/serving_text.py [--requests 300] [--out benchmarks/results/serving_text.json]
    python benchmarks/serving_text.py --print

The tagger has the size of the paper's (Conv1D 512 x 5, GRU 50, 100 numbers a word) and generated sentences of about
fourteen tokens; its weights are untrained, which costs the same. Every row is the same signature, `serving_default`:
string in; tokens, tags, scores and byte offsets out. The client is one thread in a process of its own. The ratios are
to the same call in the process; "encoder" is the part of the graph that cuts text and looks ids up.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parent / "results" / "serving_text.json"
BATCHES = (1, 32)
CLIENT = """
import json, sys, time
from crowdzoo.serving import Client

url, size, requests, texts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.load(open(sys.argv[4]))
batches = [texts[i : i + size] for i in range(0, len(texts) - size + 1, size)]
with Client(url) as client:
    for batch in batches[:5]:
        client.predict(batch)
    seconds = []
    for number in range(requests):
        started = time.perf_counter()
        client.predict(batches[number % len(batches)])
        seconds.append(time.perf_counter() - started)
print(json.dumps(seconds))
"""


def build(folder: Path, texts_file: Path) -> tuple[Path, list[str], Any]:
    """An exported tagger, the texts to ask with, and its encoder."""
    import keras

    from crowdzoo.datasets import generated_ner
    from crowdzoo.export.saved_model import export_model
    from crowdzoo.models import CrowdModel, SequenceTagger, TokenEncoder

    keras.utils.set_random_seed(0)
    sequences = generated_ner()
    encoder = TokenEncoder.fit(sequences.tokens)
    model = CrowdModel(SequenceTagger(**encoder.sizes, num_classes=len(sequences.classes)))
    texts = list(sequences.texts or ())
    export_model(model, folder / "1", classes=sequences.classes, encoder=encoder, warmup_instances=texts[:16])
    texts_file.write_text(json.dumps(texts), encoding="utf-8")
    return folder, texts, encoder


def in_process(call: Callable[[Any], Any], batches: list[Any], requests: int) -> dict[str, float]:
    for batch in batches[:5]:
        call(batch)
    seconds = []
    for number in range(requests):
        started = time.perf_counter()
        call(batches[number % len(batches)])
        seconds.append(time.perf_counter() - started)
    return summary(seconds)


def summary(seconds: list[float]) -> dict[str, float]:
    return {
        "requests": len(seconds),
        "requests_per_second": round(len(seconds) / sum(seconds), 1),
        "median_ms": round(1000 * float(np.median(seconds)), 3),
        "p99_ms": round(1000 * float(np.quantile(seconds, 0.99)), 3),
    }


def measure(requests: int) -> dict[str, Any]:
    import tensorflow as tf

    from crowdzoo.files.served_model import load_saved_model
    from crowdzoo.serving.server import Server

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder, texts, encoder = build(Path(scratch) / "served", Path(scratch) / "texts.json")
        loaded = load_saved_model(folder / "1")
        answer = loaded.signatures["serving_default"]
        encode = tf.function(
            lambda given: encoder.encode(encoder.tokenize(given)[0]), input_signature=[tf.TensorSpec([None], tf.string)]
        )
        for size in BATCHES:
            batches = [tf.constant(texts[i : i + size]) for i in range(0, len(texts) - size + 1, size)]
            found[f"encoder alone, batch {size}"] = in_process(encode, batches, requests)
            found[f"in process, batch {size}"] = in_process(lambda given: answer(instances=given), batches, requests)
        with Server(folder, rest_port=0, grpc_port=0) as server:
            urls = {"REST": f"http://127.0.0.1:{server.rest_port}", "gRPC": f"grpc://127.0.0.1:{server.grpc_port}"}
            for name, url in urls.items():
                for size in BATCHES:
                    command = [sys.executable, "-c", CLIENT, url, str(size), str(requests), f"{scratch}/texts.json"]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                    found[f"{name}, batch {size}"] = summary(json.loads(done.stdout))
    return {
        "requests": requests,
        "machine": {
            "cores": os.cpu_count(), "processor": platform.machine(), "load": os.getloadavg()[0],
            "python": platform.python_version(), "tensorflow": version("tensorflow"),
            "tensorflow-text": version("tensorflow-text"),
        },
        "results": found,
    }  # fmt: skip


def show(saved: dict[str, Any]) -> None:
    rows = []
    for name, one in saved["results"].items():
        size = int(name.rsplit(" ", 1)[1])
        alone = saved["results"][f"in process, batch {size}"]["median_ms"]
        rows.append((
            name, f"{one['requests_per_second']:,.0f}", f"{size * one['requests_per_second']:,.0f}",
            f"{one['median_ms']:.2f}", f"{one['p99_ms']:.2f}", f"{one['median_ms'] / alone:.2f}",
        ))  # fmt: skip
    header = ("", "requests/s", "sentences/s", "median ms", "99 % ms", "to the call in the process")
    print_table("raw text in, tags and byte offsets out; one client", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Requests a second of a tagger that takes raw text.")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if not args.only_print:
        args.out.write_text(json.dumps(measure(args.requests), indent=2) + "\n", encoding="utf-8")
    show(json.loads(args.out.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
