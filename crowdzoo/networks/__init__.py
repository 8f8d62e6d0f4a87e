"""Networks and encoders of instances; no training."""
