"""Labels from votes: one file per algorithm or family of algorithms, one result type per kind of labels.

Names load when first used.
"""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.aggregation.acceptance": "accept",
        "crowdzoo.aggregation.calibration": "calibrate",
        "crowdzoo.aggregation.classes.dawid_skene": "DawidSkene",
        "crowdzoo.aggregation.classes.ebcc": "EBCC",
        "crowdzoo.aggregation.classes.glad": "GLAD",
        "crowdzoo.aggregation.classes.hierarchical_dawid_skene": "HierarchicalDawidSkene",
        "crowdzoo.aggregation.classes.ibcc": "IBCC",
        "crowdzoo.aggregation.classes.mace": "MACE",
        "crowdzoo.aggregation.classes.majority_vote": "MajorityVote",
        "crowdzoo.aggregation.named": "METHODS",
        "crowdzoo.aggregation.classes.one_coin": "OneCoinDawidSkene",
        "crowdzoo.aggregation.classes.robust": "Robust",
        "crowdzoo.aggregation.classes.wawa": "Wawa",
        "crowdzoo.aggregation.free_texts.chosen_text": "MostFrequentText TextMedoid",
        "crowdzoo.aggregation.free_texts.rover": "ROVER",
        "crowdzoo.aggregation.free_texts.text_aggregation": "TextAggregation",
        "crowdzoo.aggregation.free_texts.text_rasa": "TextHRRASA TextRASA",
        "crowdzoo.aggregation.base": "Aggregator ConvergenceWarning VotesWarning",
        "crowdzoo.aggregation.registry": "PREFERENCE_METHODS RATING_METHODS REGION_METHODS SEQUENCE_METHODS "
        "TEXT_METHODS create",
        "crowdzoo.aggregation.engine.block": "Block blocks_of",
        "crowdzoo.aggregation.multi_label": "MultiLabel",
        "crowdzoo.aggregation.multi_label_aggregation": "MultiLabelAggregation",
        "crowdzoo.aggregation.preferences.bradley_terry": "AnnotatorBradleyTerry BradleyTerry CrowdBT "
        "NoisyBradleyTerry",
        "crowdzoo.aggregation.preferences.plackett_luce": "PlackettLuce",
        "crowdzoo.aggregation.preferences.preference_aggregation": "PreferenceAggregation",
        "crowdzoo.aggregation.ratings.rating_aggregation": "RatingAggregation",
        "crowdzoo.aggregation.ratings.rating_em": "RatingEM",
        "crowdzoo.aggregation.ratings.plain_ratings": "RatingMean RatingMedian",
        "crowdzoo.aggregation.regions.matched_objects": "MatchedObjects",
        "crowdzoo.aggregation.regions.pixel_vote": "PixelVote",
        "crowdzoo.aggregation.regions.region_aggregation": "RegionAggregation",
        "crowdzoo.aggregation.regions.staple": "STAPLE",
        "crowdzoo.aggregation.result": "Aggregation with_median_labels",
        "crowdzoo.aggregation.sentences.chain_method": "BayesianSequenceCombination HMMCrowd",
        "crowdzoo.aggregation.sentences.sequence_aggregation": "SequenceAggregation",
        "crowdzoo.aggregation.sentences.span_majority_vote": "SpanMajorityVote",
        "crowdzoo.aggregation.sentences.span_votes": "SpanVotes",
        "crowdzoo.aggregation.sentences.token_aggregation": "TokenAggregation",
    },
)
