"""Several labels per task: one question for each."""
