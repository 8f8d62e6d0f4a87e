"""Bases for masks of images."""

from __future__ import annotations

from typing import Any

from crowdzoo.training.bases.base import Base, Batches, Sizes, fields_of
from crowdzoo.training.settings import MaskSettings


class MaskBase(Base):
    """`UNet`."""

    settings = MaskSettings

    def encoder(self, settings: Any, batches: Batches) -> Any:
        """Pixels of the wanted size, of all of an image: a mask is scaled as its image."""
        from crowdzoo.networks.image_pixels import ImagePixels

        return ImagePixels(settings.height, settings.width, "stretch")

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> Any:
        """See `Base.build`."""
        from crowdzoo.networks.unet import UNet

        size = fields_of(encoder, "height", "width")
        return UNet(
            **size, num_classes=sizes.num_classes, filters=settings.stages, dropout=settings.dropout, name="base"
        )

    def features(self, model: Any) -> str:
        """The last hidden map."""
        return "features"
