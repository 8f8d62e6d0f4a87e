"""Writes docs/methods-results.md from the saved results; runs nothing.

python benchmarks/reproduce/page.py
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import deep_methods
import lia
import waum

PAGE = Path(__file__).parents[2] / "docs" / "methods-results.md"

HEAD = """# The papers' tables, beside ours

Written by `benchmarks/reproduce/page.py` from the saved results; `make reproduce` prints the same tables, and the three
scripts beside it run them anew. [methods.md](methods.md) says what follows from them. Rows of the first part whose
crowd layer is trained by gradients (all but deep EM, cross-fitted EM, WAUM and those on aggregated labels) were
computed before a correction of Adam's step on TensorFlow (`crowdzoo/layers/rows.py`) and will be recomputed.

How to read them. All rows of a table have the same network, optimiser, epochs, seeds and splits; "gold" is trained on
the true labels and bounds what the features can give, DL-MV on majority votes. Nothing is chosen by gold: *last* is the
accuracy after the last epoch, *chosen* at the epoch where the estimate agrees best with the crowd's own labels of a
held-out tenth of the training tasks (these trainings see nine tenths). *best (oracle)* is the highest of all epochs on
the test tasks, which nobody can know: it stands here because some papers print it. *against DL-MV* is paired by seed,
with a 95 % interval (Student's t); *of the gap* is the share of the way from DL-MV to gold; *own tasks*, how
many of the training tasks' labels the method itself infers from instance and annotations. Accuracies in per cent, mean
± standard deviation over seeds (every fifth is other tasks, so theirs is large; compare by the paired column). Costs
are of one training on a busy two-core machine, peak memory of the whole process.

**Why Music lies below the paper.** CoNAL's table 1 (column *paper*) has 84.06 for CoNAL and 81.46 for the crowd layer.
With the features that are distributed, the same network trained on the *true* labels gets 79, so those figures lie
above what these features can give; their code also takes the test set for validation. **LabelMe** there means VGG16
features and 1,188 test photographs, which are not to be had: here it is 512 descriptors of our own and 250 test
photographs, and only the order can be compared.

**CoNAL's simulated crowd.** The paper says neither how far its classes are apart nor what a noise of strength .7 is.
Here the best classifier knows 93 %, and *common* and *own* are the probabilities that an annotation of that kind is
wrong; own strengths of .3 and .7 are both shown. Its result is a figure, so there is no number to compare with.

**Why the medical relations lie far above the paper.** Its accuracies, 3 to 46 percent on questions of yes or no, follow
a definition that it does not give; here "no" to everything has 75 (causes) and 53 (treats). Sentences and features
differ as well, so there, too, only the order can be compared. As most answers are no, F1 of yes stands beside accuracy.
"""


def markdown(title: str, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table under a heading."""
    header = list(header)
    lines = [f"### {title}", "", "| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for heading, module, results in (
        ("## Deep methods on held-out tasks", deep_methods, deep_methods.RESULTS),
        ("## LIA: labels of the annotated tasks, with few and with many annotators", lia, lia.RESULTS),
        ("## WAUM: which tasks are bad, and whether leaving them out helps", waum, waum.RESULT),
    ):
        parts.append(heading + "\n")
        table = json.loads(results.read_text(encoding="utf-8"))
        parts += [markdown(*one) for one in module.tables(table)]
        if module is deep_methods:
            parts.append(markdown(*deep_methods.against_recipe(table)))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"written: {PAGE}")
