"""Optimizers for models with very many annotators."""

from crowdzoo.optimizers.lazy_adam import LazyAdam

__all__ = ["LazyAdam"]
