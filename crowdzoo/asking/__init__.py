"""What to ask annotators next, for labels of every kind."""
