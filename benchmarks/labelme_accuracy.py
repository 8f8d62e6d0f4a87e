"""How often the base is right on held-out LabelMe images, by what it was trained on: the tables of docs/results.md.

    python benchmarks/labelme_accuracy.py               # about 15 minutes on two busy cores

`crowdzoo.compare` on the split that ships with five seeds, and on fifths of all images in turns with three; every
method on the same tasks with the same seeds. The settings are those of the demo: of Rodrigues and Pereira (AAAI 2018)
for their base (128 ReLU, dropout 0.5, Adam at 0.001, batches of 64) and 60 epochs, for every method alike. Nothing
stops early and nothing is chosen by gold.

The descriptors' codebook was learnt, without labels, from the shipped split's training images; most are held out in
turns.

The result goes to benchmarks/results/labelme_accuracy.json.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

sys.path.append(str(Path(__file__).parent / "reproduce"))
from stack import stack

from crowdzoo import compare
from crowdzoo.datasets import load_labelme
from crowdzoo.models import TrainingSettings
from crowdzoo.pipelines.demo import OF_CLASSES
from crowdzoo.report.tables import print_table

BETWEEN = ("behind_best", "behind_best_low", "behind_best_high", "level")  # which the page does not show
RESULT = Path(__file__).with_name("results") / "labelme_accuracy.json"


def main():
    labelme = load_labelme()
    arguments = {"methods": OF_CLASSES, "settings": TrainingSettings(epochs=60, batch_size=64)}
    arguments["on_run"] = lambda done, total: print(f"  {done} of {total} trainings", flush=True)
    held_out = labelme.split == "eval"
    training = labelme.annotations.select_tasks(~held_out)
    comparisons = {
        "shipped split, 5 seeds": compare(
            training, labelme.instances, labelme.gold, tasks=labelme.annotations.tasks, held_out=held_out,
            seeds=range(5), **arguments,
        ),
        "fifths in turns, 3 seeds": compare(
            labelme.annotations, labelme.instances, labelme.gold, seeds=range(3), **arguments
        ),
    }  # fmt: skip
    for title, comparison in comparisons.items():
        print_table(title, *comparison.table()[1:])
    record = {
        "figures": {
            title: json.loads(comparison.frame.drop(columns=[*BETWEEN, "notes"]).to_json(orient="records"))
            for title, comparison in comparisons.items()
        },
        "stack": stack(),
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"written: {RESULT}")


if __name__ == "__main__":
    main()
