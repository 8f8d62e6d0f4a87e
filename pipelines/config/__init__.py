"""The pipeline's settings: one YAML file, checked as a whole before anything starts."""
