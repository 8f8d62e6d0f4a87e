"""Models of instances with classes, from files of Examples."""

from crowdzoo.records.training import train_on_instances as train_from_files

__all__ = ["train_from_files"]
