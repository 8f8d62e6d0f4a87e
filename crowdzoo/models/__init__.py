"""Models: any base with any crowd layer, and the zoo's ready ones. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.training.bases": "BASES Sizes",
        "crowdzoo.training.crowd_classifier": "CrowdClassifier",
        "crowdzoo.training.crowd_model": "CrowdModel",
        "crowdzoo.training.crowd_regressor": "CrowdRegressor",
        "crowdzoo.networks.feature_network": "FeatureClassifier FeatureRegressor",
        "crowdzoo.training.held_out_annotations": "HeldOutAnnotations",
        "crowdzoo.networks.instance_encoder": "InstanceEncoder",
        "crowdzoo.training.instance_training": "build_model train",
        "crowdzoo.networks.image_backbone": "load_backbone",
        "crowdzoo.networks.image_network": "ImageClassifier ImageRegressor",
        "crowdzoo.networks.image_pixels": "ImagePixels",
        "crowdzoo.networks.preprocessed": "Preprocessed",
        "crowdzoo.networks.reward_model": "RewardModel",
        "crowdzoo.networks.sequence_tagger": "SequenceTagger",
        "crowdzoo.training.tagger_training": "train_tagger",
        "crowdzoo.networks.text_network": "TextClassifier TextRegressor",
        "crowdzoo.networks.text_ids": "TextIds",
        "crowdzoo.networks.table_columns": "TableColumns",
        "crowdzoo.networks.token_encoder": "TokenEncoder",
        "crowdzoo.networks.unet": "UNet",
        "crowdzoo.training.batches": "CrowdBatches",
        "crowdzoo.training.data": "ArrayData TrainingData",
        "crowdzoo.training.mask_data": "MaskData",
        "crowdzoo.training.methods": "METHODS PREFERENCE_METHODS RATING_METHODS SEQUENCE_METHODS",
        "crowdzoo.training.multi_label": "label_pairs pair_instances",
        "crowdzoo.training.rating_units": "rating_unit",
        "crowdzoo.training.settings": "TableSettings TaggerSettings TextSettings TrainingSettings",
    },
)
