"""D against depth as a small inline picture (SVG): training and test points, the fitted line, labels on the lines, any theme."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from equisep.findings.facts import finite
from equisep.report.formatting import number, passed_words
from equisep.results import Profile

WIDTH, HEIGHT = 460, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 64, 12, 36
MOST_LABELS = 12  # layers with a number below the axis
TRAIN, TEST = "#0072B2", "#D55E00"  # Okabe & Ito: told apart with any color vision
_LABEL_GAP = 13


@dataclass(frozen=True, slots=True)
class Frame:
    """From layers and D to pixels."""

    first: int
    last: int
    low: float
    high: float

    def x(self, layer: float) -> float:
        """Pixels from the left."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (layer - self.first) / max(1, self.last - self.first)

    def y(self, log: float) -> float:
        """Pixels from the top, of a natural logarithm of D."""
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - log) / (self.high - self.low)


def curve_svg(profile: Profile) -> str:
    """The picture, or nothing where fewer than two layers have a D."""
    train, test = (_logs(profile, metric) for metric in ("fuzziness", "fuzziness_test"))
    if len(train) < 2:
        return ""
    logs = [*train.values(), *test.values()]
    pad = 0.06 * (max(logs) - min(logs)) or 1.0
    frame = Frame(min(train), max(train), min(logs) - pad, max(logs) + pad)
    each = passed_words(profile).removesuffix("s")
    first, last = (number(math.exp(train[end]), 3) for end in (frame.first, frame.last))
    words = escape(f"D against {each}, on a logarithmic axis: {first} to {last} on training data")
    parts = [
        *_axes(frame, each),
        *_line(profile, frame, [*train]),
        *_points(frame, test, TEST),
        *_points(frame, train, TRAIN),
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" style="max-width:100%" '
        f'role="img" aria-label="{words}" font-size="11" font-family="sans-serif" fill="currentColor">'
        f"{''.join(parts)}{''.join(_labels(frame, train, test))}</svg>"
    )


def _logs(profile: Profile, metric: str) -> dict[int, float]:
    """Ln D by layer, where D is a positive number."""
    values = {site.index: finite(getattr(site, metric)) for site in profile.sites}
    return {index: math.log(value) for index, value in values.items() if value is not None and value > 0}


def _axes(frame: Frame, each: str) -> Iterator[str]:
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    yield f'<path d="M{LEFT} {TOP}V{base}H{right}" fill="none" stroke="currentColor" opacity=".5"/>'
    for value in _ticks(frame):
        y = frame.y(math.log(value))
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="currentColor" opacity=".12"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    step = math.ceil((frame.last - frame.first + 1) / MOST_LABELS)
    for layer in range(frame.first, frame.last + 1, step):
        yield f'<text x="{frame.x(layer):.1f}" y="{base + 14}" text-anchor="middle">{layer}</text>'
    start = " (0: input)" if frame.first == 0 else ""
    yield f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{each}{start}</text>'
    yield f'<text x="12" y="{(TOP + base) / 2:.0f}" text-anchor="middle">D</text>'


def _ticks(frame: Frame) -> list[float]:
    """Powers of ten, with others between them where there are few."""
    tens = range(math.floor(frame.low / math.log(10)), math.ceil(frame.high / math.log(10)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [factor * 10.0**ten for ten in tens for factor in factors]
        inside = [tick for tick in ticks if frame.low <= math.log(tick) <= frame.high]
        if len(inside) >= 3:
            break
    if not inside:  # D that hardly changes: its middle
        return [float(f"{math.exp((frame.low + frame.high) / 2):.3g}")]
    return inside[:: math.ceil(len(inside) / 7)]


def _line(profile: Profile, frame: Frame, layers: Sequence[int]) -> Iterator[str]:
    """The fitted law: ln D = intercept + l ln ρ, l counted from the first layer of its curve."""
    rho, intercept = finite(profile.law.rho), finite(profile.law.intercept)
    if rho is None or intercept is None or rho <= 0:
        return
    begin = profile.sites[profile.begin()].index
    ends = [(frame.x(layer), frame.y(intercept + (layer - begin) * math.log(rho))) for layer in (layers[0], layers[-1])]
    (x1, y1), (x2, y2) = ends
    yield f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{TRAIN}" opacity=".6" stroke-width="1.5"/>'


def _points(frame: Frame, logs: dict[int, float], color: str) -> Iterator[str]:
    hollow = f'fill="none" stroke="{color}" stroke-width="1.5"' if color == TEST else f'fill="{color}"'
    for layer, log in logs.items():
        words = f"<title>{layer}: {number(math.exp(log), 3)}</title>"
        yield f'<circle cx="{frame.x(layer):.1f}" cy="{frame.y(log):.1f}" r="3.5" {hollow}>{words}</circle>'


def _labels(frame: Frame, train: dict[int, float], test: dict[int, float]) -> Iterator[str]:
    """The name of each curve behind its last point, kept apart where they meet."""
    ends = {"training": (TRAIN, frame.y(train[max(train)]))}
    if test:
        height = frame.y(test[max(test)])
        if abs(height - ends["training"][1]) < _LABEL_GAP:
            height = ends["training"][1] - _LABEL_GAP
        ends["test"] = (TEST, height)
    for name, (color, y) in ends.items():
        yield f'<text x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}" fill="{color}">{name}</text>'
