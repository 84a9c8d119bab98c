"""The words of the page, each in a sentence or two, and whom to cite."""

from __future__ import annotations

from equisep.report.page.markup import Section, bullets, definitions, marked
from equisep.results.records import LAW_R, NO_LAW_R

WORDS = {
    "Layer": "Where features are read: after which module, counted from the raw input, 0. Of a network made of blocks, a block.",
    "D, separation fuzziness": (
        "The spread within classes over the distance between their means, Tr(SSw SSb⁺). Small is well separated."
    ),
    "Law of equi-separation": (
        "Every layer multiplies D by the same factor ρ, so that log D falls along a straight line. An observation of He & Su "
        "(2023), not a theorem: many networks do not follow it."
    ),
    "Factor ρ, half-life": "What each layer leaves of D; in how many layers D halves.",
    "Straightness r": (
        f"The correlation of log D with depth: −1 is a straight line. At or below −{-LAW_R:g} it is called a law, above "
        f"−{-NO_LAW_R:g} none."
    ),
    "Share of the work": "Of the whole fall of log D, the part that one layer takes. Evenness is 1 where all take the same.",
    "Chance level": "D with shuffled labels: what this many samples and features give where classes mean nothing.",
    "Corrected D": "D of the population behind the samples. Plain D of few samples lies too low.",
    "Nearest class mean (NCC)": (
        "A sample is given to the class whose training mean is nearest. The effective depth is the first layer from which on "
        "this is right for all training samples, or as many as the settings ask."
    ),
    "CDNV": "The variance within classes over the squared distance between their means, averaged over pairs of classes.",
    "Neural collapse (NC1 to NC4)": (
        "Late in training the samples of a class become one point (NC1), the class means a simplex (NC2), the classifier points "
        "along them (NC3) and decides as nearest class means do (NC4)."
    ),
    "Simplex (ETF)": "K directions at the same, widest possible angle to each other: every cosine is −1/(K − 1).",
    "Minority collapse": "Where classes are very unequal, the rare ones come to share one direction, and are lost.",
    "Reading": (
        "Which statistics BatchNorm used: `eval` its running ones, `mixed` those of class-mixed batches, `drawn` those of "
        "batches in the order in which samples were drawn."
    ),
}
CITATIONS = (
    "H. He, W. J. Su: A law of data separation in deep learning. PNAS 120 (36), 2023. doi:10.1073/pnas.2221704120",
    "C. Fang, H. He, Q. Long, W. J. Su: Exploring deep neural networks via layer-peeled model: Minority collapse in imbalanced "
    "training. PNAS 118 (43), 2021. doi:10.1073/pnas.2103091118",
    "T. Galanti, L. Galanti: On the implicit bias towards depth minimization in deep neural networks. arXiv 2202.09028, 2022",
    "V. Papyan, X. Y. Han, D. L. Donoho: Prevalence of neural collapse during the terminal phase of deep learning training. "
    "PNAS 117 (40), 2020. doi:10.1073/pnas.2015509117",
)


def glossary_section() -> Section:
    """The words, and whom to cite."""
    cited = f"<h3>Please cite</h3>{bullets(map(marked, CITATIONS), 'citations')}"
    return Section("glossary", "The words", definitions(WORDS.items(), "glossary") + cited, "Words")
