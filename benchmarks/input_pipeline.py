"""Examples a second of the Trainer's input, against tf.data that reads the same TFRecords and only parses them.

    python benchmarks/input_pipeline.py                    # a few minutes on two cores
    python benchmarks/input_pipeline.py --parts images

Rounds in turn in one process: `ExampleDataset.batches` (shuffled, labels padded, texts as word ids, images as pixels),
and bare tf.data over the same files (shuffled and parsed alike; of texts once more with the ids, which is the work that
cannot be left out; images are decoded by `tf.io.decode_jpeg`, no more). Images are the photographs of LabelMe
that ship with crowdzoo, 64 x 64 pixels, which the model takes as they are, or
scaled to 48 x 48 as `tf.image.resize` does it in the bare data set. Median ratios go to
benchmarks/results/input_pipeline.json.
"""

import argparse
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

from crowdzoo import datasets
from crowdzoo.networks.image_pixels import ImagePixels
from crowdzoo.networks.text_ids import TextIds
from crowdzoo.reading.instances.opened import opened
from crowdzoo.records.example_dataset import ExampleDataset
from crowdzoo.report.tables import print_table

TASKS = {"features": 20_000, "texts": 20_000, "images": 5_000, "images, scaled": 5_000}
BATCH, ROUNDS, FEATURES, WORDS, CLASSES, REDUNDANCY = 64, 9, 256, 60, 8, 5
SIDES = {"images": 64, "images, scaled": 48}  # pixels that the model takes
VOCABULARY = [f"word{number}" for number in range(5_000)]
RESULT = Path(__file__).with_name("results") / "input_pipeline.json"


def write_records(path: str, part: str) -> None:
    """TFRecords as CrowdAggregator writes them."""
    rng = np.random.default_rng(0)
    photographs = opened(datasets.load("labelme-images").instances) if part in SIDES else []
    with tf.io.TFRecordWriter(path, "GZIP") as file:
        for number in range(TASKS[part]):
            example = tf.train.Example()
            feature = example.features.feature
            if part == "texts":
                feature["instances"].bytes_list.value.append(" ".join(rng.choice(VOCABULARY, WORDS)).encode())
            elif part in SIDES:
                feature["instances"].bytes_list.value.append(photographs[number % len(photographs)])
            else:
                feature["instances"].float_list.value.extend(rng.normal(size=FEATURES))
            feature["annotator_ids"].int64_list.value.extend(rng.integers(1000, size=REDUNDANCY))
            feature["annotator_labels"].int64_list.value.extend(rng.integers(CLASSES, size=REDUNDANCY))
            file.write(example.SerializeToString())


def bare(path: str, part: str, encode: Callable[[Any], Any] | None) -> tf.data.Dataset:
    """Reads, shuffles, batches and parses."""
    vectors = part == "features"
    instances = tf.io.FixedLenFeature([FEATURES], tf.float32) if vectors else tf.io.FixedLenFeature([], tf.string)
    features = {name: tf.io.RaggedFeature(tf.int64) for name in ("annotator_ids", "annotator_labels")}

    def parse(records: Any) -> Any:
        parsed = tf.io.parse_example(records, features | {"instances": instances})
        return parsed if encode is None else {**parsed, "instances": encode(parsed["instances"])}

    records = tf.data.TFRecordDataset(path, "GZIP").cache().shuffle(10_000, seed=0).batch(BATCH)
    return records.map(parse, tf.data.AUTOTUNE).prefetch(2)


def bare_images(path: str, side: int) -> tf.data.Dataset:
    """The same with each image decoded, as tutorials of tf.data do: one after the other, in parallel, then batched."""
    features = {name: tf.io.RaggedFeature(tf.int64) for name in ("annotator_ids", "annotator_labels")}
    features["instances"] = tf.io.FixedLenFeature([], tf.string)

    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, features)
        pixels = tf.io.decode_jpeg(parsed.pop("instances"), 3)
        if side != SIDES["images"]:
            pixels = tf.image.resize(pixels, [side, side], antialias=True)
        return tf.cast(tf.ensure_shape(pixels, [side, side, 3]), tf.float32), parsed

    records = tf.data.TFRecordDataset(path, "GZIP").cache().shuffle(10_000, seed=0)
    return records.map(parse, tf.data.AUTOTUNE).ragged_batch(BATCH).prefetch(2)


def rate(dataset: tf.data.Dataset, tasks: int) -> float:
    """Examples a second of one pass."""
    started = time.perf_counter()
    for _ in dataset:
        pass
    return tasks / (time.perf_counter() - started)


def measure(part: str) -> dict[str, float]:
    """Median rates, and medians of the rounds' ratios."""
    encode: Any = {"texts": TextIds(VOCABULARY, splitting="scripts")}.get(part)
    if part in SIDES:
        encode = ImagePixels(SIDES[part], SIDES[part])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/examples.gz"
        write_records(path, part)
        info = {"num_features": FEATURES if part == "features" else None, "classes": [*map(str, range(CLASSES))]}
        inputs = {"ours": ExampleDataset([path], TASKS[part], info, encode=encode).batches(BATCH, 0)}
        if part in SIDES:
            inputs |= {"bare, decoded": bare_images(path, SIDES[part])}
        else:
            inputs |= {"bare": bare(path, part, None), "bare, encoded": bare(path, part, encode)}
        rounds: dict[str, list[float]] = {name: [] for name in inputs}
        for number in range(ROUNDS + 1):
            for name, dataset in inputs.items():
                found = rate(dataset, TASKS[part])
                if number:  # the first pass fills the cache
                    rounds[name].append(found)
    found = {f"{name}, examples a second": round(statistics.median(rates)) for name, rates in rounds.items()}
    for name in inputs.keys() - {"ours"}:
        ratios = [one / other for one, other in zip(rounds["ours"], rounds[name], strict=True)]
        found[f"ours over {name}"] = round(statistics.median(ratios), 3)
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=TASKS, default=list(TASKS), help="only these are measured again")
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "tensorflow": tf.__version__}
    saved = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    found = {part: {**measure(part), "machine": machine} for part in parser.parse_args().parts}
    rows = [
        (part, name, value) for part, values in found.items() for name, value in values.items() if name != "machine"
    ]
    print_table("input of the Trainer", ("", "", ""), rows)
    RESULT.write_text(json.dumps({**saved, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
