"""Trained models as TensorFlow SavedModels. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.export.predict": "load_and_predict",
        "crowdzoo.export.pretrained": "save_pretrained",
        "crowdzoo.export.saved_model": "export_model",
        "crowdzoo.files.served_model": "MODEL_CARD_FILE WARMUP_FILE load_saved_model",
        "crowdzoo.files.version_folders": "newest_version",
    },
)
