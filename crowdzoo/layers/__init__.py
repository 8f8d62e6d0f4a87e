"""Keras layers for labels from many annotators: one public layer per file, `keras.ops` only."""

from crowdzoo.layers.conal import CoNAL
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.crf import CRF
from crowdzoo.layers.cross_fitted_em import CrossFittedEM
from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.layers.crowdsourced_layer import CrowdsourcedLayer
from crowdzoo.layers.deep_em import DeepEM
from crowdzoo.layers.doctor_net import DoctorNet
from crowdzoo.layers.geo_crowd_net import GeoCrowdNet
from crowdzoo.layers.label_unit import LabelUnit
from crowdzoo.layers.lia import LIA
from crowdzoo.layers.max_mig import MaxMIG
from crowdzoo.layers.pooled_confusions import PooledConfusions
from crowdzoo.layers.rating_doctor_net import RatingDoctorNet
from crowdzoo.layers.rating_em import RatingEM
from crowdzoo.layers.standardization import Standardization
from crowdzoo.layers.trace_regularization import TraceRegularization
from crowdzoo.layers.union_net import UnionNet
from crowdzoo.layers.waum import WAUM

__all__ = [
    "CRF",
    "LIA",
    "WAUM",
    "CoNAL",
    "ConfusionMatrices",
    "CrossFittedEM",
    "CrowdLayer",
    "CrowdsourcedLayer",
    "DeepEM",
    "DoctorNet",
    "GeoCrowdNet",
    "LabelUnit",
    "MaxMIG",
    "PooledConfusions",
    "RatingDoctorNet",
    "RatingEM",
    "Standardization",
    "TraceRegularization",
    "UnionNet",
]
