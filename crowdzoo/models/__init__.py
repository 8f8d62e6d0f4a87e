"""Models: any base with any crowd layer, and the zoo's ready ones. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "ArrayData": "crowdzoo.training.data",
        "CrowdBatches": "crowdzoo.training.batches",
        "CrowdModel": "crowdzoo.models.crowd_model",
        "FeatureClassifier": "crowdzoo.models.feature_classifier",
        "FeatureRegressor": "crowdzoo.models.feature_regressor",
        "METHODS": "crowdzoo.training.methods",
        "RATING_METHODS": "crowdzoo.training.methods",
        "SEQUENCE_METHODS": "crowdzoo.training.methods",
        "SequenceTagger": "crowdzoo.models.sequence_tagger",
        "TaggerSettings": "crowdzoo.training.settings",
        "TextIds": "crowdzoo.models.text_ids",
        "TextRegressor": "crowdzoo.models.text_regressor",
        "TextSettings": "crowdzoo.training.settings",
        "TokenEncoder": "crowdzoo.models.token_encoder",
        "TrainingData": "crowdzoo.training.data",
        "TrainingSettings": "crowdzoo.training.settings",
        "build_model": "crowdzoo.models.feature_training",
        "label_pairs": "crowdzoo.training.multi_label",
        "pair_instances": "crowdzoo.training.multi_label",
        "rating_unit": "crowdzoo.training.rating_units",
        "train": "crowdzoo.models.feature_training",
        "train_tagger": "crowdzoo.models.tagger_training",
        "train_text_regressor": "crowdzoo.models.text_training",
    },
)
