"""METHODS: the algorithms for classes by name."""

from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.ebcc import EBCC
from crowdzoo.aggregation.classes.glad import GLAD
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.classes.mace import MACE
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.classes.robust import Robust
from crowdzoo.aggregation.classes.wawa import Wawa

METHODS: dict[str, type] = {
    "majority-vote": MajorityVote,
    "wawa": Wawa,
    "dawid-skene": DawidSkene,
    "robust": Robust,
    "hierarchical-dawid-skene": HierarchicalDawidSkene,
    "one-coin": OneCoinDawidSkene,
    "glad": GLAD,
    "mace": MACE,
    "ibcc": IBCC,
    "ebcc": EBCC,
}
