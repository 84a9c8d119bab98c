"""One site's statistics in two passes over its features, which come from memory, from two readings, or from plain arrays."""

from equisep.separation.site.quick import PRECISIONS
from equisep.separation.site.records import Sampled, SiteStatistics, SiteTask, Spread, TestStatistics
from equisep.separation.site.second_pass import SampledSpread, SecondPass, estimated, rounding_of, same_for_collapse
from equisep.separation.site.train_and_test import TestSite, TrainSite, TwoPassSite, at_once, whole_sites

__all__ = [
    "PRECISIONS",
    "Sampled",
    "SampledSpread",
    "SecondPass",
    "SiteStatistics",
    "SiteTask",
    "Spread",
    "TestSite",
    "TestStatistics",
    "TrainSite",
    "TwoPassSite",
    "at_once",
    "estimated",
    "rounding_of",
    "same_for_collapse",
    "whole_sites",
]
