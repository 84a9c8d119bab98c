"""Draw the README's picture, docs/images/law.png, from the profile that `equisep demo` wrote: labels on the lines, no legend.

equisep demo && python scripts/readme_picture.py equisep-demo/profile.json
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from equisep import Profile
from equisep.report.plots import LINE_COLORS, plot_law, save_figure

TARGET = Path(__file__).parents[1] / "docs" / "images" / "law.png"


def draw(profile: Profile, target: Path = TARGET) -> Path:
    """D against depth on training and test data, each named where it ends."""
    law, last = profile.law, profile.sites[-1]
    assert law.rho is not None and law.r is not None and last.fuzziness and last.fuzziness_test
    axes = plot_law(replace(profile, other_readings={}))
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    axes.set_title(f"Each layer leaves {100 * law.rho:.0f} % of D, the overlap of the classes")
    axes.set_xlim(right=last.index + 2.1)
    axes.set_xticks([site.index for site in profile.sites])
    test = next(line for line in axes.lines if line.get_marker() == "s")
    test.set_color(LINE_COLORS[1])
    test.set_alpha(1.0)
    words = f"training data\n×{law.rho:.2f} per layer\nr = −{abs(law.r):.3f}"
    for text, value, color, lift in (
        (words, last.fuzziness, LINE_COLORS[0], 14),
        ("test data", last.fuzziness_test, LINE_COLORS[1], 0),
    ):
        axes.annotate(
            text, (last.index, value), xytext=(12, lift), textcoords="offset points", va="center", color=color
        )
    return save_figure(axes, target)


if __name__ == "__main__":
    print(draw(Profile.load(sys.argv[1])))
