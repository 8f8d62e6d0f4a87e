"""Aggregation of tags, for CrowdAggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.kinds.sentences.records import read_tokens
from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table
from crowdzoo.records.example_files import read_dataset_info, split_files


def aggregated(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Each split by its own annotations alone; tokens of sentences without annotations have "O".

    Args: see `crowdzoo.kinds.parts`.
    """
    info = read_dataset_info(examples)
    fitted, tables = {}, {}
    for split, annotations in crowds.items():
        tokens = read_tokens(split_files(examples, split))
        crowd = annotations.select_tasks(np.array([str(name) in tokens for name in annotations.tasks], bool))
        if len(crowd) == 0:
            tables[split] = answers_table(crowd.tasks[:0], np.zeros(0, np.int64))
            continue
        sentences = CrowdSequences([tokens[str(name)] for name in crowd.tasks], crowd, scheme=info["scheme"])
        found = fitted[split] = fit(sentences)
        table = answers_table(crowd.tasks, found.labels, found.posteriors, found.starts)
        tables[split] = table.filter(pa.array(crowd.redundancy > 0))
    return CrowdAnswers(fitted["train"], tables, [], info["classes"].index("O"))
