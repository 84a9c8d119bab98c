"""The profile: everything measured of one model, which prints, plots, tabulates and saves itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equisep.errors import InputError, MissingExtraError, did_you_mean
from equisep.results.records import ClassifierReading, ClassPair, GrainChoice, LawFit, Note, SampleOrder, SiteReading

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderResult

    from equisep.results.finding import Finding

CURVES = (
    "fuzziness",
    "fuzziness_test",
    "null",
    "nc1",
    "cdnv",
    "cdnv_test",
    "cdnv_directional",
    "ncc_train",
    "ncc_test",
)


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """Everything measured of one model on one data set; holds no samples.

    `law` is the law of D on the training data over `sites`; `laws` holds the others: `test`, `class 0` … of D_k, and where
    both grains were measured `layers` and `blocks`, with `grains` saying which of them `law` is and why.
    `effective_depth` is the first layer from which on nearest-center training accuracy stays at 1 − ε or more,
    `effective_depth_balanced` the same for the mean over classes, `network_depth` the first layer whose nearest centers come
    within ε of the network's own accuracy (on test data where there are any). `confused_train` and `confused_test` are the pairs
    (class, class it was taken for) that the network itself confuses most often, with the number of samples.
    `settings` are all choices that can change a number (ε among them); `provenance` says what produced it; `samples` tells
    whether another profile read the same ones.
    Where several readings were asked for, `reading` is the first, `other_readings` are profiles of the others, and `company`
    is for each of them D over D in `eval`, site by site: what the statistics of batches add. `whole` says whether the training
    data are all there are, so that D is theirs exactly, or a sample, so that D of the population (`SiteReading.corrected`, the
    law `corrected` of `laws`) is the question; test data are always a sample (`corrected_test`, the law `corrected test`).
    `peeled_cosines` are what the Layer-Peeled Model predicts for rare classes of these sizes (`equisep.findings.rare`); None
    where no class is rare.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> profile = equisep.measure(model, (x, y), name="small")
    >>> len(profile.curve()) == len(profile.sites) == 4
    True
    >>> profile.save("profile.json")
    PosixPath('profile.json')
    >>> equisep.Profile.load("profile.json") == profile
    True
    """

    model: str
    classes: int
    counts: tuple[int, ...]
    sites: tuple[SiteReading, ...]
    law: LawFit
    laws: Mapping[str, LawFit] = field(default_factory=dict)
    effective_depth: int | None = None
    classifier: ClassifierReading | None = None
    grains: GrainChoice | None = None
    accuracy_train: float | None = None
    accuracy_test: float | None = None
    counts_test: tuple[int, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    reading: str | None = None
    class_names: tuple[str, ...] | None = None
    effective_depth_balanced: int | None = None
    network_depth: int | None = None
    accuracy_class_train: tuple[float | None, ...] | None = None
    accuracy_class_test: tuple[float | None, ...] | None = None
    confused_train: tuple[ClassPair, ...] | None = None
    confused_test: tuple[ClassPair, ...] | None = None
    samples: SampleOrder | None = None
    whole: bool | None = None
    other_readings: Mapping[str, Profile] = field(default_factory=dict)
    company: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    peeled_cosines: tuple[float, ...] | None = None

    @property
    def readings(self) -> dict[str, Profile]:
        """Every reading that was asked for as a profile, this one first; readings that are one have the same."""
        asked = self.settings.get("readings") or (self.reading or "?",)
        return {str(name): self.other_readings.get(name, self) for name in asked}

    def __getitem__(self, site: str | int) -> SiteReading:
        """The reading of one site, by name or index."""
        if isinstance(site, int):
            if not -len(self.sites) <= site < len(self.sites):
                raise InputError(f"No site {site}: the profile has {len(self.sites)} sites, counted from 0.")
            return self.sites[site]
        readings = (*self.sites, *(self.grains.others if self.grains else ()))
        for reading in readings:
            if reading.name == site:
                return reading
        names = [reading.name for reading in readings]
        raise InputError(f"No site `{site}` among the {len(names)} of the profile.{did_you_mean(site, names)}")

    def curve(self, metric: str = "fuzziness") -> tuple[float | None, ...]:
        """One metric over depth, site 0 first."""
        if metric not in CURVES:
            raise InputError(f"No curve `{metric}`.{did_you_mean(metric, CURVES)} Known: {', '.join(CURVES)}.")
        return tuple(getattr(reading, metric) for reading in self.sites)

    def begin(self, metric: str = "fuzziness") -> int:
        """Where a curve begins among the sites: the law leaves out first sites without D."""
        values = self.curve(metric)
        return next((step for step, value in enumerate(values) if value is not None), 0)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the profile says, in at most seven sentences, the one that changes a decision first; see `equisep.findings`."""
        from equisep.findings import findings_of

        return findings_of(self)

    def explain(self, *, width: int = 80) -> str:
        """The findings as text, `width` columns wide: sentences, how sure they are, and what to do next."""
        from equisep.findings import explain

        return explain(self, width=width)

    def save(self, path: str | Path) -> Path:
        """Write versioned JSON; a reader never sees half a file."""
        from equisep.results.codec import save_profile

        return save_profile(self, path)

    @staticmethod
    def load(path: str | Path) -> Profile:
        """Read a profile that `save` wrote."""
        from equisep.results.codec import load_profile

        return load_profile(path)

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain JSON types, as `save` writes it."""
        from equisep.results.codec import profile_to_dict

        return profile_to_dict(self)

    def to_frame(self, *, classes: bool = False) -> pandas.DataFrame:
        """One row per site, one column per number (needs the extra `frame`); with `classes` also D of every class."""
        from equisep.report.columns import frame_values

        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError(needed_for="`Profile.to_frame`", package="pandas", extra="frame") from error
        return pandas.DataFrame(frame_values(self, classes=classes)).set_index("site")

    def scalars(self, prefix: str = "equisep", *, sites: bool = True) -> dict[str, float]:
        """Every number that exists under a flat name for loggers, such as `equisep/law/rho` or `equisep/fuzziness/03_fc3`.

        Without `sites` only those of the whole network: the law, depths, accuracies and the classifier.
        """
        from equisep.results.scalars import profile_scalars

        return profile_scalars(self, prefix=prefix, sites=sites)

    def show(self) -> None:
        """Print everything the profile says to the terminal: sites, law, curve, depth, notes."""
        from rich.console import Console

        Console(emoji=False).print(self)

    def plot(self, ax: Axes | str | Path | None = None, **options: Any) -> Axes:
        """Draw D against depth with the fitted law, onto `ax` or into a file; see `equisep.report.plots.plot_law`."""
        from equisep.report.plots import plot_profile

        return plot_profile(self, ax, **options)

    def report(self, path: str | Path, *, beside: Sequence[Profile] = ()) -> Path:
        """Write one self-contained HTML file about the profile, to open in any browser or to send; `beside` are compared."""
        from equisep.report.page import profile_page, write_page

        return write_page(path, profile_page([self, *beside]))

    def __repr__(self) -> str:
        law = self.law
        first, last = (self.sites[0].fuzziness, self.sites[-1].fuzziness) if self.sites else (None, None)
        parts = [f"{len(self.sites)} sites", f"{sum(self.counts)} samples", f"{self.classes} classes"]
        if first is not None and last is not None:
            parts.append(f"D {first:.4g} → {last:.4g}")
        if law.rho is not None:
            parts.append(f"ρ {law.rho:.3f}")
        if law.r is not None:
            parts.append(f"r {law.r:.4f} ({law.verdict})")
        parts.append(f"effective depth {self.effective_depth}")
        parts.append(f"reading `{self.reading or '?'}`")
        if self.notes:
            parts.append(f"{len(self.notes)} note{'s' if len(self.notes) > 1 else ''}")
        return f"<Profile of {self.model}: {', '.join(parts)}>"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from equisep.report.terminal import render_profile

        yield render_profile(self)

    def _repr_html_(self) -> str:
        from equisep.report.notebook import profile_html

        return profile_html(self)
