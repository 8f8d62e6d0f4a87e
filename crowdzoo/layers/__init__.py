"""Keras layers for labels from many annotators: one public layer per file, `keras.ops` only. Names load when used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "CoNAL": "crowdzoo.layers.conal",
        "ConfusionMatrices": "crowdzoo.layers.confusion_matrices",
        "CRF": "crowdzoo.layers.crf",
        "CrossFittedEM": "crowdzoo.layers.cross_fitted_em",
        "CrowdLayer": "crowdzoo.layers.crowd_layer",
        "CrowdsourcedLayer": "crowdzoo.layers.crowdsourced_layer",
        "DeepEM": "crowdzoo.layers.deep_em",
        "DoctorNet": "crowdzoo.layers.doctor_net",
        "GeoCrowdNet": "crowdzoo.layers.geo_crowd_net",
        "LabelUnit": "crowdzoo.layers.label_unit",
        "LIA": "crowdzoo.layers.lia",
        "MaxMIG": "crowdzoo.layers.max_mig",
        "PooledConfusions": "crowdzoo.layers.pooled_confusions",
        "RatingDoctorNet": "crowdzoo.layers.rating_doctor_net",
        "RatingEM": "crowdzoo.layers.rating_em",
        "Standardization": "crowdzoo.layers.standardization",
        "TraceRegularization": "crowdzoo.layers.trace_regularization",
        "UnionNet": "crowdzoo.layers.union_net",
        "WAUM": "crowdzoo.layers.waum",
    },
)
