"""Compare several methods on the same annotations, with confidence intervals."""
