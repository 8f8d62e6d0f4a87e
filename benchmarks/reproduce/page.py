"""Writes docs/methods-results.md and docs/methods-tables.md from the saved results; runs nothing.

python benchmarks/reproduce/page.py
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import annot_mix
import coupled_confusions
import deep_methods
import lia
import newer
import recipe
import waum
from papers import wrapped
from stack import elsewhere, recorded, told

PAGE = Path(__file__).parents[2] / "docs" / "methods-results.md"
TABLES = PAGE.with_name("methods-tables.md")

HEAD = """# Deep methods: results

This page has the tables of the deep methods, beside the figures of their papers. [Methods](methods.md) says which
method to take; these are the main results:

- **Held-out tasks.** On Music and LabelMe every crowd layer has a higher accuracy after the last epoch than training
  on majority votes, if sometimes within the error. Deep EM and cross-fitted EM are among the best on both sets.
  Compare by the column *against DL-MV*.
- **Many wrong labels.** In the four simulated crowds with the strongest noise no method finds the true classes. In the
  two of good annotators with common noise .8 deep EM finds them in most draws, and Dawid-Skene's labels on one of them.
- **LIA** with a ridge labels the tasks of the three small sets about as well as the best aggregation methods if each
  task has five labels or more; on the medical sets it is below them. Without a ridge it can be worse than majority
  vote.
- **WAUM** finds bad tasks; on Music Dawid-Skene's posterior finds as many without a network. As a training method it is
  not better than Dawid-Skene's labels.

How to read the tables:

| column or row | meaning |
|---|---|
| gold | trained on the true labels; the most that the features can give |
| DL-MV | trained on majority votes |
| DL-DS, DL-GLAD, DL-WC, DL-iBCC | trained on the labels of that aggregation method (WC: worker clustering) |
| soft | trained on the posteriors of the method |
| vote shares | trained on the vote shares of each task |
| CL | `CrowdsourcedLayer` with the connection MW, VW, VB, VW+B or S |
| DL-EM | `DeepEM` |
| WDN | `DoctorNet(weighted=True)` |
| Anno-Reg, CCEM, Pooled | `TraceRegularization`, `ConfusionMatrices`, `PooledConfusions` |
| CoNAL | started as by its authors (`scale: 2`). A number after it is `separation` |
| last | accuracy after the last epoch |
| chosen | accuracy at the epoch that agrees best with the crowd's labels of a held-out tenth of the training tasks |
| best (oracle) | the highest accuracy of all epochs on the test tasks; unknown in practice, but some papers print it |
| own tasks | accuracy of the labels that the method infers for the training tasks, from instance and annotations |
| against DL-MV | difference paired by seed, and its 95 % interval ([how](#how-it-was-measured)) |
| [a, b], ± a | interval for other test tasks, by bootstrap; interval for other runs |
| of the gap | share of the way from DL-MV to gold |
| cross-fitted EM, GeoCrowdNet | variant and strength were [chosen by gold](#how-it-was-measured) of these sets |
| paper | the published figure |

The column *chosen* trains on nine tenths of the tasks. Accuracies are in per cent, mean ± standard deviation over
seeds. The deviation is large for fifths, because each fifth has other tasks. How the figures were measured, and why
some differ from the papers, is at the [end](#how-it-was-measured).
"""

SIMULATED = """Mean ± standard deviation of 5 draws, a line for each crowd; [each crowd's own table](methods-tables.md)
has all other figures. Crowds with share 0 have no common noise, so they are the same with both patterns. Rows are as
above; an empty cell was not run.
"""

LIA = """[The page of the paper](papers/lia.md) has every row by the number of annotations a task, beside the published
figures. [All tables](methods-tables.md#lia-labels-of-the-annotated-tasks) have also the label by the network alone, the
F1 of the medical relations, seconds and memory.
"""

ORDERS = """Herde et al. (crowd-hpo, 2025) find that default settings and settings that are tuned by gold rank methods
differently. Here it can be looked at for one setting, the number of epochs: fixed beforehand (*last*), by the crowd's
labels of held-out tasks (*chosen*), or by gold of the test tasks (*best*). 1 is the same order, 0 none. *Fixed, other
seeds* compares two of the five seeds with the other three, mean over all such parts: an order that changes no more
than this changes by chance. Learning rates and the methods' own settings were not tuned.
"""

TABLES_HEAD = """# Deep methods: all tables

The tables that [the results](methods-results.md) show in short: each simulated crowd, and LIA's sets with every label
and cost. What the columns mean, and [how it was measured](methods-results.md#how-it-was-measured), is said there.
`benchmarks/reproduce/page.py` writes this page.
"""

RECIPE = """The head of `benchmarks/reproduce/recipe.py` has the protocol, which was committed before the first run:
sets, splits, seeds, settings (the defaults), intervals and the rule. Intervals are 95 % intervals over the sets, each
with the same weight; *least difference* is the set on which cross-fitted EM is worst against that row. Generated sets
have new draws for every round.
"""

ANNOT_MIX = """annot-mix (Herde, Lührs, Huseljic and Sick, ECAI 2024, arXiv:2405.03386) mixes each label with another of
the batch: instance, annotator and label alike. Its confusion matrices depend on instance and annotator. The rule, fixed
before the first run, was that it becomes a layer if it is above CCEM by an interval beyond zero. The head of
`benchmarks/reproduce/annot_mix.py` has the protocol.
"""

COUPLED = """Coupled confusion correction, CCC (Zhang, Li, Zeng, Yan and Ge, AAAI 2024, arXiv:2312.07331), trains two
networks with crowd layers. Each corrects the other's confusion matrices, by the labels that it fits best itself. The
rule was that of annot-mix. The head of `benchmarks/reproduce/coupled_confusions.py` has the protocol.
"""

TAIL = """## How it was measured

All rows of a table have the same network, optimizer, epochs, seeds and splits. Two things were chosen by looking at
gold of the same sets: the strength .01 of GeoCrowdNet's regularizers, and the recipe cross-fitted EM, one of about 25
variants. Their rows are therefore too good by an unknown amount. Nothing else is chosen by gold.

Intervals are 95 % intervals of the mean (`benchmarks/reproduce/intervals.py`). Fifths share training tasks, so their
variance has the term of Nadeau and Bengio (2003). Simulated crowds share their draws of instances and classes, so a
draw's mean over them counts as one value. Each fifth and each draw has test tasks of its own, so these intervals hold
for other test tasks, too. On Music and LabelMe all seeds have the same test tasks. There an interval in brackets is
from a bootstrap over the test tasks. One with ± is of a row (or of DL-MV) that does not say which tasks were right: it
says how much the seed matters, and nothing about other test tasks. How much those can add: for two methods that answer
one in ten test tasks differently the interval is ± 3.9 points at most on LabelMe (250 tasks), ± 3.6 on Music (300).

Costs are those of one training on a busy two-core machine; memory is the peak of the whole process.

{stacks}

`benchmarks/reproduce/page.py` writes this page from the saved results, and `make reproduce` prints the same tables.
The scripts beside it measure the figures again.

**Music: why the figures are below the paper's.** CoNAL's table 1 (column *paper*) has 84.06 for CoNAL and 81.46 for
the crowd layer. With the published features, the same network trained on the *true* labels reaches 79. So the paper's
figures are above what these features can give. The authors' code also validates on the test set.

**LabelMe.** The paper uses VGG16 features and 1,188 test photographs, which are not available. Here it is 512
descriptors of our own and 250 test photographs, so only the order of the rows can be compared. [The same methods on
ImageNet features](images-results.md) come closer to what teams have.

**CoNAL's simulated crowd.** The paper does not say how far its classes are apart, nor what a noise of strength .7 is.
Here the best possible classifier has 93 %, and *common* and *own* are the probabilities that an annotation of that
kind is wrong. Both .3 and .7 are shown for *own*. The paper shows its result as a plot, so there is no number to
compare with.

**Medical relations: why the figures are above the paper's.** The paper's accuracies are 3 to 46 percent on questions
of yes or no, by a definition that it does not give. Here the answer "no" to everything has 75 (causes) and 53
(treats). Sentences and features differ as well, so only the order of the rows can be compared. Most answers are no,
so the tables have the F1 of yes beside the accuracy.
"""


def markdown(title: str, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table under a heading."""
    header = list(header)
    lines = [f"### {title}", "", "| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def compared(results: dict[str, Any]) -> list[str]:
    """The part on sets that had no part in choosing the recipe; empty before every set has two rounds."""
    if not (outcome := recipe.outcome(results)):
        return []
    tables = [markdown(*one) for one in recipe.tables(results)]
    return [
        "## Cross-fitted EM on sets that had no part in its choice\n",
        wrapped(outcome) + "\n",
        wrapped(recipe.progress(results)) + "\n",
        RECIPE,
        *tables,
    ]


def newer_methods() -> list[str]:
    """Methods newer than the papers on the same sets; one is left out before every set is there."""
    parts = []
    for module, text in ((annot_mix, ANNOT_MIX), (coupled_confusions, COUPLED)):
        tables = [markdown(*one) for one in newer.tables(newer.read(module.RESULTS), module.ROWS, module.TITLE)]
        parts += [f"## {module.TITLE} on the same sets\n", text, *tables] if tables else []
    return parts


def computed_on(results: dict[str, Any]) -> str:
    """Which stack the rows are of, and which rows are of another.

    Args:
        results: of each file its title on the page and what it has.
    """
    others: dict[str, list[str]] = {}
    for title, found in results.items():
        rows = elsewhere(recorded(found))
        for words in dict.fromkeys(rows.values()):
            number = sum(each == words for each in rows.values())
            others.setdefault(words, []).append(
                title if "all" in rows else f"{title} ({number} rows, named on its page)"
            )
    text = f"All rows were computed on {told()}"
    if others:
        text += ", except on " + "; on ".join(f"{words}: {', '.join(titles)}" for words, titles in others.items())
    return wrapped(text + ".")


def render() -> str:
    """The whole page."""
    parts, files = [HEAD], {}
    for heading, module, results in (
        ("## Deep methods on held-out tasks", deep_methods, deep_methods.RESULTS),
        ("## LIA: labels of the annotated tasks", lia, lia.RESULTS),
        ("## WAUM: which tasks are bad, and whether leaving them out helps", waum, waum.RESULT),
    ):
        parts.append(heading + "\n")
        table = json.loads(results.read_text(encoding="utf-8"))
        files[heading[3:].partition(":")[0]] = table
        if module is lia:
            parts.append(LIA)
        elif module is deep_methods:
            parts += [markdown(*one) for one in deep_methods.tables(of_real_sets(table))]
            parts += ["### CoNAL's simulated crowds\n", SIMULATED]
            parts += [markdown(*one).replace("### ", "#### ", 1) for one in deep_methods.simulated(table)]
            parts.append(markdown(*deep_methods.against_recipe(table)))
            title, *rest = deep_methods.orders(table)
            parts += [f"### {title}\n", ORDERS, markdown(title, *rest).partition("\n\n")[2]]
            parts += [*compared(recipe.read()), *newer_methods()]
        else:
            parts += [markdown(*one) for one in module.tables(table)]
    return "\n".join([*parts, TAIL.format(stacks=computed_on({**files, "Recipe": recipe.read()}))])


def of_real_sets(results: dict[str, Any]) -> dict[str, Any]:
    """Without the simulated crowds."""
    return {name: rows for name, rows in results.items() if name not in deep_methods.SIMULATED}


def render_tables() -> str:
    """The page of all tables."""
    deep, of_lia = (json.loads(module.RESULTS.read_text(encoding="utf-8")) for module in (deep_methods, lia))
    crowds = {name: deep[name] for name in deep_methods.SIMULATED if name in deep}
    return "\n".join([
        TABLES_HEAD,
        "## CoNAL's simulated crowds\n",
        *(markdown(*one) for one in deep_methods.tables(crowds)),
        "## LIA: labels of the annotated tasks\n",
        *(markdown(*one) for one in lia.tables(of_lia)),
    ])  # fmt: skip


if __name__ == "__main__":
    for page, text in ((PAGE, render()), (TABLES, render_tables())):
        page.write_text(text, encoding="utf-8")
        print(f"written: {page}")
