"""From a depth curve to the law: the fit, its intervals, breaks, robustness, and seeds; numpy only."""

from equisep.law.breaks import break_of, judged_by_folds, two_slopes
from equisep.law.curve import imbalance, loads, sensitivity
from equisep.law.emergence import Emergence, emergences
from equisep.law.fit import fit_law
from equisep.law.intervals import curve_intervals, law_intervals, standard_error, steadied
from equisep.law.quantiles import normal_quantile, student_quantile
from equisep.law.seeds import seed_interval, seed_mean, summarize_laws

__all__ = [
    "Emergence",
    "break_of",
    "curve_intervals",
    "emergences",
    "fit_law",
    "imbalance",
    "judged_by_folds",
    "law_intervals",
    "loads",
    "normal_quantile",
    "seed_interval",
    "seed_mean",
    "sensitivity",
    "standard_error",
    "steadied",
    "student_quantile",
    "summarize_laws",
    "two_slopes",
]
