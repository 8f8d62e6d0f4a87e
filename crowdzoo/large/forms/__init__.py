"""The algorithms as sums over blocks, whoever adds them up."""
