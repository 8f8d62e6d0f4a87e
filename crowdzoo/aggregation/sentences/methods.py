"""SEQUENCE_METHODS: the algorithms for tagged sentences by name."""

from crowdzoo.aggregation.classes.methods import METHODS
from crowdzoo.aggregation.sentences.bayesian_sequence_combination import BayesianSequenceCombination
from crowdzoo.aggregation.sentences.hmm_crowd import HMMCrowd
from crowdzoo.aggregation.sentences.span_majority_vote import SpanMajorityVote
from crowdzoo.aggregation.sentences.span_votes import SpanVotes
from crowdzoo.aggregation.sentences.token_aggregation import TokenAggregation

SEQUENCE_METHODS: dict[str, type] = {
    **dict.fromkeys(METHODS, TokenAggregation),  # every token is a task
    "span-majority-vote": SpanMajorityVote,
    "span-votes": SpanVotes,
    "hmm-crowd": HMMCrowd,
    "bsc-seq": BayesianSequenceCombination,
}
