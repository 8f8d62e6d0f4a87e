"""Keras layers for labels from many annotators: one public layer per file, `keras.ops` only. Names load when used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.layers.conal": "CoNAL",
        "crowdzoo.layers.confusion_matrices": "ConfusionMatrices",
        "crowdzoo.layers.crf": "CRF",
        "crowdzoo.layers.cross_fitted_em": "CrossFittedEM",
        "crowdzoo.layers.crowd_layer": "CrowdLayer",
        "crowdzoo.layers.crowdsourced_layer": "CrowdsourcedLayer",
        "crowdzoo.layers.deep_em": "DeepEM",
        "crowdzoo.layers.doctor_net": "DoctorNet",
        "crowdzoo.layers.geo_crowd_net": "GeoCrowdNet",
        "crowdzoo.layers.label_unit": "LabelUnit",
        "crowdzoo.layers.lia": "LIA",
        "crowdzoo.layers.max_mig": "MaxMIG",
        "crowdzoo.layers.pair_annotators": "PairAnnotators",
        "crowdzoo.layers.pair_probabilities": "PairProbabilities",
        "crowdzoo.layers.pooled_confusions": "PooledConfusions",
        "crowdzoo.layers.rating_em": "RatingEM",
        "crowdzoo.layers.spatial_confusions": "SpatialConfusions",
        "crowdzoo.layers.standardization": "Standardization",
        "crowdzoo.layers.trace_regularization": "TraceRegularization",
        "crowdzoo.layers.union_net": "UnionNet",
        "crowdzoo.layers.waum": "WAUM",
    },
)
