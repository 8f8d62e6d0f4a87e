"""Models: any base with any crowd layer, and the zoo's ready ones. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.models.bases": "BASES Sizes",
        "crowdzoo.models.crowd_classifier": "CrowdClassifier",
        "crowdzoo.models.crowd_model": "CrowdModel",
        "crowdzoo.models.crowd_regressor": "CrowdRegressor",
        "crowdzoo.models.feature_classifier": "FeatureClassifier",
        "crowdzoo.models.feature_regressor": "FeatureRegressor",
        "crowdzoo.models.held_out_annotations": "HeldOutAnnotations",
        "crowdzoo.models.instance_encoder": "InstanceEncoder",
        "crowdzoo.models.instance_training": "build_model train",
        "crowdzoo.models.image_backbone": "load_backbone",
        "crowdzoo.models.image_classifier": "ImageClassifier",
        "crowdzoo.models.image_pixels": "ImagePixels",
        "crowdzoo.models.image_regressor": "ImageRegressor",
        "crowdzoo.models.method_choice": "choose_method",
        "crowdzoo.models.reward_model": "RewardModel",
        "crowdzoo.models.sequence_tagger": "SequenceTagger",
        "crowdzoo.models.tagger_training": "train_tagger",
        "crowdzoo.models.text_classifier": "TextClassifier",
        "crowdzoo.models.text_ids": "TextIds",
        "crowdzoo.models.text_regressor": "TextRegressor",
        "crowdzoo.models.table_columns": "TableColumns",
        "crowdzoo.models.token_encoder": "TokenEncoder",
        "crowdzoo.training.batches": "CrowdBatches",
        "crowdzoo.training.data": "ArrayData TrainingData",
        "crowdzoo.training.methods": "METHODS PREFERENCE_METHODS RATING_METHODS SEQUENCE_METHODS",
        "crowdzoo.training.multi_label": "label_pairs pair_instances",
        "crowdzoo.training.rating_units": "rating_unit",
        "crowdzoo.training.settings": "TableSettings TaggerSettings TextSettings TrainingSettings",
    },
)
