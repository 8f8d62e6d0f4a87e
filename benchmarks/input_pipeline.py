"""Examples a second of the Trainer's input, against tf.data that reads the same TFRecords and only parses them.

    python benchmarks/input_pipeline.py     # about a minute on two cores

Rounds in turn in one process: `ExampleDataset.batches` (shuffled, labels padded, texts as word ids), and bare tf.data
over the same files (shuffled and parsed alike; of texts once more with the ids, which is the work that cannot be left
out). Median ratios go to benchmarks/results/input_pipeline.json.
"""

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from crowdzoo.components.example_dataset import ExampleDataset
from crowdzoo.models.text_ids import TextIds
from crowdzoo.report.tables import print_table

TASKS, BATCH, ROUNDS, FEATURES, WORDS, CLASSES, REDUNDANCY = 20_000, 64, 9, 256, 60, 8, 5
VOCABULARY = [f"word{number}" for number in range(5_000)]
RESULT = Path(__file__).with_name("results") / "input_pipeline.json"


def write_records(path: str, of_texts: bool) -> None:
    """TFRecords as CrowdAggregator writes them."""
    rng = np.random.default_rng(0)
    with tf.io.TFRecordWriter(path, "GZIP") as file:
        for _ in range(TASKS):
            example = tf.train.Example()
            feature = example.features.feature
            if of_texts:
                feature["instances"].bytes_list.value.append(" ".join(rng.choice(VOCABULARY, WORDS)).encode())
            else:
                feature["instances"].float_list.value.extend(rng.normal(size=FEATURES))
            feature["annotator_ids"].int64_list.value.extend(rng.integers(1000, size=REDUNDANCY))
            feature["annotator_labels"].int64_list.value.extend(rng.integers(CLASSES, size=REDUNDANCY))
            file.write(example.SerializeToString())


def bare(path: str, of_texts: bool, encode: Callable[[Any], Any] | None) -> tf.data.Dataset:
    """Reads, shuffles, batches and parses."""
    instances = tf.io.FixedLenFeature([], tf.string) if of_texts else tf.io.FixedLenFeature([FEATURES], tf.float32)
    features = {name: tf.io.RaggedFeature(tf.int64) for name in ("annotator_ids", "annotator_labels")}

    def parse(records: Any) -> Any:
        parsed = tf.io.parse_example(records, features | {"instances": instances})
        return parsed if encode is None else {**parsed, "instances": encode(parsed["instances"])}

    records = tf.data.TFRecordDataset(path, "GZIP").cache().shuffle(10_000, seed=0).batch(BATCH)
    return records.map(parse, tf.data.AUTOTUNE).prefetch(2)


def rate(dataset: tf.data.Dataset) -> float:
    """Examples a second of one pass."""
    started = time.perf_counter()
    for _ in dataset:
        pass
    return TASKS / (time.perf_counter() - started)


def measure(of_texts: bool) -> dict[str, float]:
    """Median rates, and medians of the rounds' ratios."""
    encode = TextIds(VOCABULARY, splitting="scripts") if of_texts else None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/examples.gz"
        write_records(path, of_texts)
        info = {"num_features": None if of_texts else FEATURES, "classes": [*map(str, range(CLASSES))]}
        datasets = {
            "ours": ExampleDataset([path], TASKS, info, encode=encode).batches(BATCH, 0),
            "bare": bare(path, of_texts, None),
            "bare, encoded": bare(path, of_texts, encode),
        }
        rounds: dict[str, list[float]] = {name: [] for name in datasets}
        for number in range(ROUNDS + 1):
            for name, dataset in datasets.items():
                found = rate(dataset)
                if number:  # the first pass fills the cache
                    rounds[name].append(found)
    found = {f"{name}, examples a second": round(statistics.median(rates)) for name, rates in rounds.items()}
    for name in ("bare", "bare, encoded"):
        ratios = [one / other for one, other in zip(rounds["ours"], rounds[name], strict=True)]
        found[f"ours over {name}"] = round(statistics.median(ratios), 3)
    return found


def main() -> None:
    """Measure, print and save."""
    found: dict[str, Any] = {"features": measure(of_texts=False), "texts": measure(of_texts=True)}
    rows = [(part, name, f"{value:,}") for part, values in found.items() for name, value in values.items()]
    print_table("input of the Trainer", ("", "", ""), rows)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "tensorflow": tf.__version__}
    RESULT.write_text(json.dumps({**found, "machine": machine}, indent=2) + "\n")


if __name__ == "__main__":
    main()
