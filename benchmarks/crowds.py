"""Every aggregation method on every real crowd of classes: accuracy less majority vote's, by kind of crowd.

    python benchmarks/crowds.py                     # rows that the results do not have
    python benchmarks/crowds.py --methods robust    # these again
    python benchmarks/crowds.py --print             # the tables of the saved rows

Protocol, fixed before the first run of the candidates for the default:

- Crowds and families: real_crowds.py. A figure is the mean over families of the means over their crowds; beside it the
  mean over crowds. Accuracies count ties by chance, on the tasks with gold.
- What is learnt from gold of real crowds is shown on families that it was not learnt from: families are in six folds
  (`fold_of`), and each fold is shown with weights learnt from simulated crowds and the other five.
- `clearly below`: the upper end of the 95 % interval of a paired bootstrap over tasks (2,000 draws) of the difference
  to majority vote is under -.01.
- `off`: distance between the mean probability of the answers and their accuracy. `sure`: answers with a probability of
  .95 or more; how many there are, how many are right, and how many had divided votes.
- A candidate becomes the default if by families left out its mean over families is above the other candidates', it is
  clearly below majority vote on at most four crowds, and its probabilities are off by .12 or less on average. Within
  .002 the one that is clearly below on fewer crowds is taken, then the simpler one.
- Candidates: a step of EM that is learnt (one network, unrolled), with and without real crowds in its training; a pool
  of existing methods with equal weights; the vote. Sizes of the network are compared by the loss on held-out simulated
  crowds and by families left out, not by these tables.
- faithbench is shown and not learnt from: its tasks were picked because the annotators disagree, so the majority is
  below chance. Where a crowd's annotators made its gold they are left out (ecg).
"""
