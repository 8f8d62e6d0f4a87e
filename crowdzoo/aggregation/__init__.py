"""Labels from votes: one algorithm per file, one result type."""
