"""Labels with a bound on their error: how often the bound is broken, and how many labels are accepted.

    python benchmarks/accepted.py                  # the rows that the results do not have
    python benchmarks/accepted.py --print          # the tables of the saved results

**What is measured.** `accept` is given the answers of a crowd, the labels of a method, and gold of 200 tasks drawn at
random. It accepts some labels, so that with 95 % confidence at most .05 (or .10) of them are wrong. The labels of gold
tasks are their gold. Figures of a crowd, over the draws:

- broken: share of draws in which more than the limit of all accepted labels is wrong ("all": gold tasks are accepted
  and right), or of the accepted labels of tasks without gold ("others");
- accepted: mean share of the tasks without gold whose label is accepted;
- same order: the same of an oracle that knows all truths, and accepts the largest part of the same order in which at
  most the limit is wrong, of the tasks without gold;
- best order: the same of an oracle that has all correct labels of the method first;
- relative: mean accepted, divided by the mean of the oracle; of crowds where that mean is .05 or more.

**Crowds.** All sets of classes in CROWDZOO_DATA with 400 gold tasks or more, each cut to its gold tasks after the
method was fitted on all (`robust` with weights that were fitted without the crowd's family). Families count as one.

**Protocol.** What is tried: the order of the labels (probabilities of `robust`, of `hierarchical-dawid-skene`, their
mean, and these after `calibrate`, where each gold task is placed by models that did not see it); the test (a fixed
sequence of exact tests from the surest labels down, from a later start, from several starts, and a bound for all parts
of the order at once); whether gold tasks count as accepted. It is chosen on the families of folds 0, 2 and 4 of
`real_crowds.fold_of` and on simulated crowds, by: first broken at most 5 % on average over families and on each crowd
not above it by chance alone (binomial, one in a thousand); then accepted, relative to the oracle of the same order;
and the simpler rule where two differ by less than .02. It is shown on the other families, with other draws. It is a
success if there broken is at most 5 % over families, and relative to the oracle of the same order .6 or more.
"""
