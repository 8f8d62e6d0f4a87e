"""`crowdzoo.data.retokenized` under its older name."""

from crowdzoo.data.retokenized import retokenized

__all__ = ["retokenized"]
