"""Agreement and quality of annotations: how reliable the crowd is, and which tasks and annotators to check.

Names load when first used.
"""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.quality.alternative_annotators": "AlternativeAnnotator alternative_annotator_test",
        "crowdzoo.quality.annotators": "annotator_table spammer_scores",
        "crowdzoo.quality.aum": "Waum",
        "crowdzoo.quality.camps": "Camps camps_of",
        "crowdzoo.quality.compared_tasks": "CircularTriads circular_triads order_of_others",
        "crowdzoo.quality.dependence": "effective_votes effective_votes_interval",
        "crowdzoo.quality.error_correlation": "ErrorCorrelation",
        "crowdzoo.quality.first_round": "first_annotations first_pairs",
        "crowdzoo.quality.comparable_crowds": "expected_accuracy",
        "crowdzoo.quality.figures": "Estimate",
        "crowdzoo.quality.intraclass": "intraclass_correlations",
        "crowdzoo.quality.kappa": "cohen_kappa cohen_kappas fleiss_kappa gwet_ac1 raw_agreement",
        "crowdzoo.quality.krippendorff": "Alpha coincidence_matrix krippendorff_alpha",
        "crowdzoo.quality.mixed_crowd": "PeopleAndModels people_and_models",
        "crowdzoo.quality.model_agreement": "class_agreement",
        "crowdzoo.quality.next_annotation": "NextAnnotations information_gain next_annotations sure_tasks",
        "crowdzoo.quality.settled": "Consensus Settlement consensus_of settlement with_settled worth_asking",
        "crowdzoo.quality.notes": "data_notes",
        "crowdzoo.quality.over_time": "drift",
        "crowdzoo.quality.rates": "Rate rate",
        "crowdzoo.quality.reliability": "judged_by_others",
        "crowdzoo.quality.report": "QualityReport quality_report",
        "crowdzoo.quality.span_differences": "MarkedSpans marked_spans",
        "crowdzoo.quality.spread": "Redundancy Spread gini redundancy",
        "crowdzoo.quality.tasks": "task_table",
    },
)
