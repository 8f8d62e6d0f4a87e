"""How many labels of a crowd are correct, without gold: an interval that comes from other real crowds.

    python benchmarks/learned/train.py simulated && python benchmarks/learned/train.py folds   # weights, once
    python benchmarks/expected_accuracy.py --measure   # what is seen of each real crowd, and how many labels are correct
    python benchmarks/expected_accuracy.py             # intervals for families left out, from the saved measures
    python benchmarks/expected_accuracy.py --fit       # the constants of crowdzoo/quality/expected_accuracy.py
    python benchmarks/expected_accuracy.py --print     # the tables of the saved results

**What is predicted.** The share of `robust`'s labels that are correct, on the tasks with gold, of a crowd of a family
that was seen neither by the weights of `robust` nor by the regression. The interval is to hold it in 90 % of cases; it
includes the sampling error of the gold of the crowds that it is learned from.

**Model.** Ridge regression of the log odds of a label to be correct on standardised features of the crowd; families
count as one, and so do the crowds within a family. The width is conformal (jackknife): the 90 % quantile over families
left out of the residual over its scale, with the correction (n + 1) / n for n families. The scale is an exponential
function of the prediction (`slope`) or the same for all.

**Protocol**, written before the first run. Candidates: the sets of features in `SETS`, three penalties, and both kinds
of scale. The one with the least interval score (width, plus 20 times the distance of a value outside; Gneiting and
Raftery, JASA 2007) on average over families is taken. For the figures this choice is made again for every family left
out, without it (nested). UNSEEN families (real_crowds.py) serve neither the choice nor the constants: what ships is
fitted to the other families, and shown on them. Success: coverage of .90 or more over families left out, median width
.30 or less; the same on UNSEEN, where six families can only show a gross failure. A pilot, before the weights for
families left out were there, used the shipped weights of `robust` on the families that are not UNSEEN; nothing of it
is saved.
"""
