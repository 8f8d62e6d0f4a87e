"""What trains a model on labels from many annotators."""
