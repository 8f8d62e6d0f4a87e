"""Several labels per task: one yes-or-no question per label."""
