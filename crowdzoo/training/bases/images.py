"""Bases on images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from crowdzoo.training.bases.base import Base, Batches, Sizes, fields_of
from crowdzoo.training.settings import ImageSettings, MaskSettings, Settings

if TYPE_CHECKING:
    import keras

    from crowdzoo.networks.instance_encoder import InstanceEncoder


class ImageBase(Base):
    """`ImageClassifier` and `ImageRegressor`."""

    settings: ClassVar[type[Settings]] = ImageSettings

    def encoder(self, settings: Any, batches: Batches) -> InstanceEncoder | None:
        """Pixels of the wanted size; independent of the training images."""
        from crowdzoo.networks.image_pixels import ImagePixels

        return ImagePixels(settings.height, settings.width, settings.fit)

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """See `Base.build`."""
        from crowdzoo.networks.image_backbone import load_backbone, pixel_scale_of
        from crowdzoo.networks.image_network import ImageClassifier, ImageRegressor

        size = {"height": encoder.height, "width": encoder.width}
        network = {**size, **fields_of(settings, "hidden", "dropout", "augment")}
        network |= {"filters": settings.stages, "name": "base"}
        if settings.backbone is not None:
            network["backbone"] = load_backbone(settings.backbone, settings.backbone_weights, **size)
            network["pixel_scale"] = settings.pixel_scale or pixel_scale_of(settings.backbone)
            network["fine_tune"] = settings.fine_tune
        if sizes.num_classes:
            return ImageClassifier(num_classes=sizes.num_classes if sizes.head else None, **network)
        return ImageRegressor(center=sizes.center, unit=sizes.unit, head=sizes.head, **network)

    def features(self, model: keras.Model) -> str:
        """The output of the convolutions or of the backbone."""
        return "features"


class MaskBase(ImageBase):
    """`UNet`."""

    settings = MaskSettings

    def build(self, settings: Any, sizes: Sizes, encoder: Any) -> keras.Model:
        """See `Base.build`."""
        from crowdzoo.networks.unet import UNet

        size = encoder.height, encoder.width
        return UNet(*size, sizes.num_classes, filters=settings.stages, dropout=settings.dropout, name="base")
