"""What `crowdzoo next` asks where annotators write texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.next_annotation import Gains, agreement_gains, known_agreement, sure_answers

UNIT = "error rates"
NAMES = None
known, sure = known_agreement, sure_answers


def gains(result: TextAggregation, agreement: NDArray[np.float64], crowd: Annotations) -> Gains:
    """How much nearer a further text is expected to bring the task's, as an error rate; confidence lacks the spread."""
    return agreement_gains(1 - result.confidence, result, agreement, crowd)
