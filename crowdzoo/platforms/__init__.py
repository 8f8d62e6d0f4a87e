"""Exports of labelling platforms, one file for each platform: from a file to what each annotator said of each task."""

from crowdzoo.platforms.export import PLATFORMS, Export

__all__ = ["PLATFORMS", "Export"]
