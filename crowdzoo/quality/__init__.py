"""Agreement and data quality of annotations: how far to trust the crowd, which tasks and whom to look at."""

from crowdzoo.quality.annotators import annotator_table
from crowdzoo.quality.aum import Waum, area_under_margin, waum
from crowdzoo.quality.kappa import cohen_kappa, cohen_kappas, fleiss_kappa, raw_agreement
from crowdzoo.quality.krippendorff import Alpha, coincidence_matrix, krippendorff_alpha
from crowdzoo.quality.next_annotation import NextAnnotations, information_gain, next_annotations
from crowdzoo.quality.report import QualityReport, quality_report
from crowdzoo.quality.spam_free import spam_free_dawid_skene
from crowdzoo.quality.spammers import spammer_scores
from crowdzoo.quality.spread import Redundancy, Spread, gini, redundancy
from crowdzoo.quality.tasks import task_table

__all__ = [
    "Alpha",
    "NextAnnotations",
    "QualityReport",
    "Redundancy",
    "Spread",
    "Waum",
    "annotator_table",
    "area_under_margin",
    "cohen_kappa",
    "cohen_kappas",
    "coincidence_matrix",
    "fleiss_kappa",
    "gini",
    "information_gain",
    "krippendorff_alpha",
    "next_annotations",
    "quality_report",
    "raw_agreement",
    "redundancy",
    "spam_free_dawid_skene",
    "spammer_scores",
    "task_table",
    "waum",
]
