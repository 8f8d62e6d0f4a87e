"""Named entities of CoNLL-2003 from a crowd's tags: the NER table of the crowd layer's paper.

    python benchmarks/reproduce/ner.py                     # what is missing in the saved results
    python benchmarks/reproduce/ner.py --rows gold "CL MW" --again
    python benchmarks/reproduce/ner.py --print             # the tables of the saved results, no training

Reads the raw data below CROWDZOO_DATA (default: shared/data next to the repository). Learns from the 2,845 distinct
sentences whose annotators' tags are to be had (of the paper's 5,985), scores spans on the paper's 3,250 test sentences
as conlleval does, after the last epoch, whose number was fixed beforehand. Network and epochs are the paper's: Conv1D
512 x 5, dropout 0.5, GRU 50, Adam 1e-3, batches of 64; 20 epochs on gold, 10 on aggregated labels, 5 on the majority's
and 30 more with a crowd layer, 35 without the first phase and for EM. What differs: no GloVe vectors, which are not to
be had here, but 100 numbers a word from scratch and 16 for its shape (capitalised, all digits, ...); words that occur
once are unknown; sentences of like length share batches. So the row "gold" is what this set-up can reach at best.

"own" is another thing: the spans found in the *training* sentences, given their tags too where the method has a
posterior. Each row runs in a process of its own.
"""

import dataclasses
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import baselines  # noqa: F401 - so that crowd_baselines is found
import numpy as np
from load_ner_amt import load_ner_amt
from needed import need
from rows import Parts, run
from settings import AGGREGATORS, LAYERS

RESULTS = Path(__file__).parents[1] / "results" / "reproduce_ner.json"
SEEDS = 5
BATCH = 64


@dataclasses.dataclass(frozen=True)
class Row:
    """A crowd layer, or labels that the base is trained on.

    Attributes:
        layer: name of the crowd layer's class; "" for none.
        arguments: of the layer.
        labels: without a layer "gold", or a name in `crowdzoo.aggregation.SEQUENCE_METHODS`.
        soft: whether the aggregation's posteriors are learnt from, as `crowdzoo train` and the pipeline do, instead of
            its best tags.
        epochs: passes over the data, a first phase of the layer's own not counted.
    """

    layer: str = ""
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    labels: str = ""
    soft: bool = False
    epochs: int = 10


def crowd_layer(epochs: int = 30, **arguments: Any) -> Row:
    own = {"majority_epochs": 5, **arguments}
    return Row("CrowdsourcedLayer", {**LAYERS["crowdsourced-layer"], **own}, epochs=epochs)


TAGGER: dict[str, Any] = {
    "embedding": 100, "filters": 512, "kernel_size": 5, "units": 50, "dropout": 0.5, "bidirectional": False,
    "crf": False,
}  # fmt: skip
# settings of aggregations of sentences
CHAIN = {
    "max_iter": 200, "tol": 1e-6, "prior": 1.0, "diagonal": 3.0, "votes": 0.2, "transitions": 1.0, "words": 0.1,
    "scheme": "BIO", "seed": 0,
}  # fmt: skip
SENTENCES = {"hmm-crowd": CHAIN, "bsc-seq": CHAIN} | {
    name: {**AGGREGATORS[name], "decoding": "valid", "scheme": "BIO"} for name in ("majority-vote", "dawid-skene")
}


ROWS: dict[str, Row] = {
    "gold": Row(labels="gold", epochs=20),
    "CRF-MA": Row("CRFMA", {"first_epochs": 5}, epochs=35),  # examples/baselines
    "DL-MV": Row(labels="majority-vote"),
    "DL-DS": Row(labels="dawid-skene"),
    "DL-HMM": Row(labels="hmm-crowd"),
    "DL-BSC": Row(labels="bsc-seq"),
    "DL-BSC, posteriors": Row(labels="bsc-seq", soft=True),
    "DL-EM": Row("DeepEM", LAYERS["deep-em"], epochs=35),
    "DL-DN": Row("DoctorNet", LAYERS["doctor-net"], epochs=35),
    "DL-WDN": Row("DoctorNet", {**LAYERS["doctor-net"], "weighted": True, "weight_epochs": 10}, epochs=35),
    "CL VW": crowd_layer(connection="VW"),
    "CL VW+B": crowd_layer(connection="VW+B"),
    "CL MW": crowd_layer(connection="MW"),
    "CL MW, no majority first": crowd_layer(35, connection="MW", majority_epochs=0),
    "CL MW, 2 epochs of majority first": crowd_layer(connection="MW", majority_epochs=2),
    "CL MW, 10 epochs of majority first": crowd_layer(connection="MW", majority_epochs=10),
}  # fmt: skip
sentences = cache(load_ner_amt)


def measured(row_name: str) -> Iterator[dict[str, Any]]:
    """Trains one row with every seed."""
    import keras
    from crowd_baselines import crf_ma

    from crowdzoo import layers
    from crowdzoo.models import CrowdModel
    from crowdzoo.networks.sequence_tagger import SequenceTagger
    from crowdzoo.networks.token_encoder import TokenEncoder
    from crowdzoo.sequences import span_scores
    from crowdzoo.training.batches import CrowdBatches

    row, data = ROWS[row_name], sentences()
    crowd, test = data.crowd, data.test
    encoder = TokenEncoder.fit(crowd.tokens, tokenizer="whitespace", characters=False)
    x, x_test = encoder(crowd.tokens), encoder(test.tokens)
    ids = crowd.annotations.tasks
    for seed in range(SEEDS):
        keras.utils.set_random_seed(seed)
        arguments = {"kind": "sequence", "num_annotators": crowd.annotations.num_annotators, **row.arguments}
        if row.layer in ("DoctorNet", "CRFMA"):
            arguments["num_classes"] = len(crowd.classes)
        layer = getattr(crf_ma if row.layer == "CRFMA" else layers, row.layer)(**arguments) if row.layer else None
        head = None if layer is not None and layer.traits.needs_hidden_layer else len(crowd.classes)
        base = SequenceTagger(**encoder.sizes, num_classes=head, **TAGGER)
        model = CrowdModel(crf_ma.masked(base) if row.layer == "CRFMA" else base, layer)
        model.compile(keras.optimizers.Adam(1e-3))
        if layer is None:
            targets = distributions(row, data, seed)
            batches: Any = CrowdBatches(
                x, crowd.annotations, ids, batch_size=BATCH, seed=seed, inputs=(), targets=targets
            )
            batches = batches.as_tf_dataset() if keras.backend.backend() == "tensorflow" else batches
            model.fit_batches(batches, epochs=row.epochs, verbose=0)
        else:
            model.fit(x, crowd.annotations, tasks=ids, epochs=row.epochs, batch_size=BATCH, seed=seed, verbose=0)
        predicted = tagged(model, x_test)
        scores = span_scores(test.gold_tags(), [test.tag_set.tags(tags) for tags in predicted])
        own = own_tags(model, x, crowd)
        own_scores = span_scores(crowd.gold_tags(), [crowd.tag_set.tags(tags) for tags in own])
        print(f"  {row_name}, seed {seed}: F1 {scores.f1:.4f}, own {own_scores.f1:.4f}", flush=True)
        yield {
            "seed": seed, "precision": scores.precision, "recall": scores.recall, "f1": scores.f1,
            "token_accuracy": scores.token_accuracy, "own_f1": own_scores.f1,
        }  # fmt: skip


def distributions(row: Row, data: Any, seed: int) -> np.ndarray:
    """What a row without a layer learns from, float32 [N, T, K]: the true tags, or what an aggregation found."""
    from crowdzoo import aggregation

    crowd, labels = data.crowd, row.labels
    targets = np.zeros((len(crowd), int(crowd.lengths.max()), len(crowd.classes)), "float32")
    if labels == "gold":
        codes = crowd.gold
    else:
        seeded = {"seed": seed} if labels == "majority-vote" else {}
        result = aggregation.create(labels, kind="sequence", **{**SENTENCES[labels], **seeded}).fit(crowd)
        if row.soft:
            for task, posteriors in enumerate(np.split(result.posteriors, result.starts[1:-1])):
                targets[task, : len(posteriors)] = posteriors
            return targets
        codes = result.codes()
    for task, tags in enumerate(codes):
        targets[task, np.arange(len(tags)), tags] = 1
    return targets


def tagged(model: Any, x: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The model's tags of sentences; with a layer that makes the prediction itself, through the whole model."""
    if model.crowd is None or not model.crowd.traits.needs_hidden_layer:
        return model.base.tag(x)
    lengths = (x["words"] != 0).sum(axis=1)
    order, tags = np.argsort(lengths, kind="stable"), [np.zeros(0, int)] * len(lengths)
    for rows in np.array_split(order, -(-len(order) // 128)):
        batch = {name: array[rows, : lengths[rows].max()] for name, array in x.items()}
        for row, p in zip(rows, model.predict_on_batch(batch), strict=True):
            tags[row] = np.asarray(p)[: lengths[row]].argmax(axis=-1)
    return tags


def own_tags(model: Any, x: dict[str, np.ndarray], crowd: Any) -> list[np.ndarray]:
    """Tags of the training sentences: the posterior's where the layer has one."""
    if model.crowd is None or model.crowd.traits.needs_hidden_layer:
        return tagged(model, x)
    posteriors = model.posteriors(x, crowd.annotations, tasks=crowd.annotations.tasks)
    return [p[:length].argmax(axis=-1) for p, length in zip(posteriors, crowd.lengths, strict=True)]


PARTS: Parts = {"CoNLL-2003": {row: partial(measured, row) for row in ROWS}}


if __name__ == "__main__":
    need("conll2003-ner-amt-izhx")
    run(RESULTS, PARTS, __doc__, alone=True)
