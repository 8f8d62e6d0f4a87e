"""Labels from votes: one algorithm per file, one result type for each kind of labels."""

from crowdzoo.aggregation.against_votes import VotesWarning
from crowdzoo.aggregation.calibrate import calibrate
from crowdzoo.aggregation.classes.bwa import BWA
from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.dependent_dawid_skene import DependentDawidSkene
from crowdzoo.aggregation.classes.ebcc import EBCC
from crowdzoo.aggregation.classes.glad import GLAD
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.classes.kos import KOS
from crowdzoo.aggregation.classes.label_model import LabelModel
from crowdzoo.aggregation.classes.mace import MACE
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.classes.methods import METHODS
from crowdzoo.aggregation.classes.mmce import MMCE
from crowdzoo.aggregation.classes.mmsr import MMSR
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.classes.robust import Robust
from crowdzoo.aggregation.classes.wawa import Wawa
from crowdzoo.aggregation.classes.worker_clustering import WorkerClustering
from crowdzoo.aggregation.classes.zero_based_skill import ZeroBasedSkill
from crowdzoo.aggregation.convergence import ConvergenceWarning
from crowdzoo.aggregation.create import create
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.multi_label import MultiLabel
from crowdzoo.aggregation.multi_label_aggregation import MultiLabelAggregation
from crowdzoo.aggregation.preferences.annotator_bradley_terry import AnnotatorBradleyTerry
from crowdzoo.aggregation.preferences.bradley_terry import BradleyTerry
from crowdzoo.aggregation.preferences.crowd_bt import CrowdBT
from crowdzoo.aggregation.preferences.methods import PREFERENCE_METHODS
from crowdzoo.aggregation.preferences.noisy_bradley_terry import NoisyBradleyTerry
from crowdzoo.aggregation.preferences.plackett_luce import PlackettLuce
from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.aggregation.ratings.methods import RATING_METHODS
from crowdzoo.aggregation.ratings.ordinal_thresholds import OrdinalThresholds
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.aggregation.ratings.rating_em import RatingEM
from crowdzoo.aggregation.ratings.rating_mean import RatingMean
from crowdzoo.aggregation.ratings.rating_median import RatingMedian
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.aggregation.sentences.bayesian_sequence_combination import BayesianSequenceCombination
from crowdzoo.aggregation.sentences.hmm_crowd import HMMCrowd
from crowdzoo.aggregation.sentences.methods import SEQUENCE_METHODS
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.span_majority_vote import SpanMajorityVote
from crowdzoo.aggregation.sentences.token_aggregation import TokenAggregation
from crowdzoo.aggregation.stored.aggregate_blocks import StoredAggregation, aggregate_blocks
from crowdzoo.aggregation.stored.aggregate_file import aggregate_file
from crowdzoo.aggregation.stored.stored_blocks import StoredBlocks
from crowdzoo.aggregation.stored.write_blocks import write_blocks

__all__ = [
    "BWA",
    "EBCC",
    "GLAD",
    "IBCC",
    "KOS",
    "MACE",
    "METHODS",
    "MMCE",
    "MMSR",
    "PREFERENCE_METHODS",
    "RATING_METHODS",
    "SEQUENCE_METHODS",
    "Aggregation",
    "AnnotatorBradleyTerry",
    "BayesianSequenceCombination",
    "Block",
    "BradleyTerry",
    "ConvergenceWarning",
    "CrowdBT",
    "DawidSkene",
    "DependentDawidSkene",
    "HMMCrowd",
    "HierarchicalDawidSkene",
    "LabelModel",
    "MajorityVote",
    "MultiLabel",
    "MultiLabelAggregation",
    "NoisyBradleyTerry",
    "OneCoinDawidSkene",
    "OrdinalThresholds",
    "PlackettLuce",
    "PreferenceAggregation",
    "RatingAggregation",
    "RatingEM",
    "RatingMean",
    "RatingMedian",
    "Robust",
    "SequenceAggregation",
    "SpanMajorityVote",
    "StoredAggregation",
    "StoredBlocks",
    "TokenAggregation",
    "VotesWarning",
    "Wawa",
    "WorkerClustering",
    "ZeroBasedSkill",
    "aggregate_blocks",
    "aggregate_file",
    "calibrate",
    "create",
    "write_blocks",
]
