"""How a model is trained on labels from many annotators: settings and recipes. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.training.recipes": "register_recipe",
        "crowdzoo.training.recipes.descent": "descend",
        "crowdzoo.training.settings": "ImageSettings MaskSettings OwnSettings TableSettings "
        "TaggerSettings TextSettings TrainingSettings",
    },
)
