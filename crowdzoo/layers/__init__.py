"""Keras layers for labels from many annotators: one public layer per file, `keras.ops` only."""

from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.layers.crowdsourced_layer import CrowdsourcedLayer
from crowdzoo.layers.standardization import Standardization

__all__ = ["CrowdLayer", "CrowdsourcedLayer", "Standardization"]
