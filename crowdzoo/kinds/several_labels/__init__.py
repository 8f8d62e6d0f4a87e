"""Several labels a task: one question for each."""
