"""The pipeline: one definition, and one file per orchestrator that runs or compiles it."""
