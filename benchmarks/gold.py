"""What 20 to 500 random gold tasks do for labels and probabilities, on real crowds and on independent ones.

    python benchmarks/gold.py                      # the rows that the results do not have
    python benchmarks/gold.py --fit                # the constants of PRIOR in crowdzoo/aggregation/calibration.py
    python benchmarks/gold.py --print              # the tables of the saved results

**Protocol, fixed before the first run of figures.** `calibrate` is given `robust` and 50 gold tasks (also 20, 200 and
500) that are drawn at random from those of known class. All is measured on the other tasks of known class, on every
crowd of `real_crowds.py` that has at least 50 of them; 20 draws per crowd.

- *Families left out.* `robust` has weights, and the prior of `calibrate` has constants, that were fitted without the
  crowd's family (six folds). Families of UNSEEN are never fitted to. Constants are fitted, and forms compared, on the
  other families, by draws with other seeds (1,000 and up) than those that are shown (0 to 19). Families count as one.
- *Labels are not made worse.* For each task, the share of the draws (in which it is not gold) with a correct calibrated
  label, less the same for the label without gold. Mean over tasks; 95 % interval by 2,000 bootstrap samples of tasks. A
  crowd is clearly below if the upper end is under -.01. Goal: none.
- *Sure.* Labels with a probability of .95 or more: the share that is correct (pooled over a crowd's draws; crowds with
  20 sure labels or more in all), goal .95 or more; and their share of all labels, goal .35 or more. Both over families.
- *Probabilities.* Log loss, and the gap between mean probability and accuracy, before and after.
- *The interval of the accuracy*: share of draws in which it contains the accuracy on the other tasks, goal about .95.
- *Independent crowds*: annotators with matrices of their own, as `interval_coverage.py` simulates them, and the crowd of
  equal annotators that are correct with probability .85 (5 classes, 300 tasks, 4 labels per task, 12 annotators). Log
  loss of calibrated posteriors above that of the posterior under the true matrices and class shares, in nats per task;
  goal .03 or less. Seeds 20,000 and up; forms are compared on seeds 30,000 and up.
- *More gold.* With 200 and 500 gold tasks the accuracy and the log loss are not worse than those of the calibration
  before (kernel logistic regression alone), over families; paired, by the same draws.
"""
