"""`crowdzoo.data.retokenized` under its older name."""

from crowdzoo.data.retokenized import *  # noqa: F403
