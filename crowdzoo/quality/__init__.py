"""Agreement and data quality of annotations: how far to trust the crowd, which tasks and annotators to look at.

Names load when first used.
"""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "Alpha": "crowdzoo.quality.krippendorff",
        "NextAnnotations": "crowdzoo.quality.next_annotation",
        "QualityReport": "crowdzoo.quality.report",
        "Redundancy": "crowdzoo.quality.spread",
        "Spread": "crowdzoo.quality.spread",
        "Waum": "crowdzoo.quality.aum",
        "annotator_table": "crowdzoo.quality.annotators",
        "area_under_margin": "crowdzoo.quality.aum",
        "cohen_kappa": "crowdzoo.quality.kappa",
        "cohen_kappas": "crowdzoo.quality.kappa",
        "coincidence_matrix": "crowdzoo.quality.krippendorff",
        "fleiss_kappa": "crowdzoo.quality.kappa",
        "gini": "crowdzoo.quality.spread",
        "information_gain": "crowdzoo.quality.next_annotation",
        "krippendorff_alpha": "crowdzoo.quality.krippendorff",
        "next_annotations": "crowdzoo.quality.next_annotation",
        "quality_report": "crowdzoo.quality.report",
        "raw_agreement": "crowdzoo.quality.kappa",
        "redundancy": "crowdzoo.quality.spread",
        "spam_free_dawid_skene": "crowdzoo.quality.spam_free",
        "spammer_scores": "crowdzoo.quality.spammers",
        "task_table": "crowdzoo.quality.tasks",
        "waum": "crowdzoo.models.waum",
    },
)
