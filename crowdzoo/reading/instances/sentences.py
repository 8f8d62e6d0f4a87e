"""Sentences: tokens, which are in the file of annotations and have no table of their own."""

from crowdzoo.reading.instances.instance_kind import InstanceKind

__all__ = ["SENTENCES"]

SENTENCES = InstanceKind("sentences", {"sequence": "sequence-tagger"})
