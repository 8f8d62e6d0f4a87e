"""CrowdModel and the ready models, one per file."""
