"""What the rules read of a profile: numbers that exist, layers by number, shares of the work with their noise, rare classes."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from equisep.results import Profile, SiteReading
from equisep.results.records import work_shares
from equisep.results.wording import class_labels, one_line, passed_words

Z = 1.96  # limits at 95 %
RARE = 0.5  # a class of at most this share of the largest one is rare
MOST_NAMED = 4  # classes named in one sentence
LONGEST_NAME = 24
SAME_DATA = "test-is-training"  # the Note on test data that are the training data
CLASS_MIX = "class-mix"  # the Note on class shares so different that D of training and test data do not compare


def finite(value: float | None) -> float | None:
    """The number, None where there is none or it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Limits of a share of n samples at 95 % (Wilson 1927)."""
    if n < 1:
        return 0.0, 1.0
    center = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    reach = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return center - reach, center + reach


def difference_noise(one: float, two: float, n: int) -> float:
    """How far two shares of n samples differ by chance, at 95 %; of the same samples they differ by less."""
    return Z * math.sqrt((one * (1 - one) + two * (1 - two)) / n) if n else math.inf


@dataclass(frozen=True)
class ClassRow:
    """One class on the data that tell: test data where there are any, else the training data."""

    label: int
    count: int  # training samples
    seen: int  # samples that the accuracies are of
    accuracy: float | None  # of the network
    nearest: float | None  # of nearest class means at the last layer
    rare: bool


@dataclass(frozen=True)
class Fit:
    """A share of training samples that is judged: of how many, and whether rare classes are left out of it."""

    share: float
    n: int
    kept: bool


def without_test(profile: Profile) -> Profile:
    """The profile without what was read on test data."""
    sites = tuple(
        replace(
            site,
            fuzziness_test=None,
            cdnv_test=None,
            ncc_test=None,
            ncc_class_test=None,
            confused_test=None,
            corrected_test=None,
        )
        for site in profile.sites
    )
    bare = replace(profile, sites=sites, counts_test=None, accuracy_test=None, accuracy_class_test=None)
    head = profile.classifier
    return replace(bare, classifier=None if head is None else replace(head, margins_test=None))


@dataclass(frozen=True)
class Facts:
    """A profile as rules read it. Nothing here raises: what is missing or not finite is None or empty."""

    profile: Profile

    @classmethod
    def of(cls, profile: Profile) -> Facts:
        """Those of a profile; test data that are the training data are taken for none."""
        same = any(note.code == SAME_DATA for note in profile.notes)
        return cls(without_test(profile) if same else profile)

    @property
    def tested_on_training(self) -> bool:
        """Whether the data given as test data were the training data."""
        return any(note.code == SAME_DATA for note in self.profile.notes)

    @cached_property
    def each(self) -> str:
        """What D is read after: `layer` or `block`."""
        return passed_words(self.profile).removesuffix("s")

    @cached_property
    def names(self) -> list[str]:
        """What the classes are called."""
        names = class_labels(self.profile)
        words = [f"class {name}" if name.isdigit() else name for name in names]
        return [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in words]

    @property
    def sites(self) -> tuple[SiteReading, ...]:
        """The layers, the raw input first where it was read."""
        return self.profile.sites

    @property
    def last(self) -> SiteReading | None:
        """The last layer."""
        return self.sites[-1] if self.sites else None

    @property
    def n_train(self) -> int:
        """Training samples."""
        return sum(self.profile.counts)

    @property
    def n_test(self) -> int:
        """Test samples."""
        return sum(self.profile.counts_test or ())

    @property
    def accuracy_train(self) -> float | None:
        """Of the network, on training data."""
        return finite(self.profile.accuracy_train)

    @property
    def accuracy_test(self) -> float | None:
        """Of the network, on test data."""
        return finite(self.profile.accuracy_test)

    @cached_property
    def per_class(self) -> int:
        """Samples of the smallest class that has any."""
        return min((count for count in self.profile.counts if count), default=0)

    # --- classes

    @cached_property
    def rare_labels(self) -> frozenset[int]:
        """The classes with at most half of the training samples of the largest one."""
        counts = self.profile.counts
        return frozenset(k for k, count in enumerate(counts) if 0 < count <= RARE * max(counts))

    @property
    def classes_tested(self) -> float:
        """The share of the classes with training samples that stand in the data that tell."""
        return len(self.class_rows) / max(1, sum(count > 0 for count in self.profile.counts))

    @property
    def unlearned(self) -> bool:
        """Whether test data hold a class that training data have no samples of."""
        return any(
            seen and not count for count, seen in zip(self.profile.counts, self.profile.counts_test or (), strict=False)
        )

    @property
    def curves_compare(self) -> bool:
        """Whether D of training and of test data weigh the classes alike, as far as a Note says."""
        return all(note.code != CLASS_MIX for note in self.profile.notes)

    @cached_property
    def class_rows(self) -> tuple[ClassRow, ...]:
        """Every class that has samples, with what the network and nearest class means get of it."""
        profile, counts = self.profile, self.profile.counts
        seen = profile.counts_test if self.accuracy_test is not None and profile.counts_test else counts
        tested = seen is not counts
        accuracy = profile.accuracy_class_test if tested else profile.accuracy_class_train
        nearest = None if self.last is None else self.last.ncc_class_test if tested else self.last.ncc_class_train
        return tuple(
            ClassRow(
                label=k,
                count=counts[k],
                seen=seen[k],
                accuracy=_entry(accuracy, k),
                nearest=_entry(nearest, k),
                rare=k in self.rare_labels,
            )
            for k in range(len(counts))
            if counts[k] and k < len(seen) and seen[k]
        )

    @cached_property
    def usual_accuracy(self) -> float | None:
        """The median over the classes that are not rare."""
        values = [row.accuracy for row in self.class_rows if not row.rare and row.accuracy is not None]
        return median(values) if values else None

    def class_words(self, rows: Sequence[ClassRow]) -> str:
        """Classes by name, the first few of many."""
        words = [self.names[row.label] for row in rows[:MOST_NAMED]]
        rest = len(rows) - len(words)
        if rest:
            words.append(f"{rest} more")
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

    # --- how well it fits

    @property
    def fit(self) -> Fit | None:
        """How much of its training data the network has fitted, by its head or by nearest class means, whichever is more."""
        found = [each for each in (self.fit_network, self.fit_nearest) if each is not None]
        return max(found, key=lambda each: each.share, default=None)

    @cached_property
    def fit_network(self) -> Fit | None:
        """What the network gets of its training data."""
        return self._fit(self.accuracy_train, self.profile.accuracy_class_train)

    @cached_property
    def fit_nearest(self) -> Fit | None:
        """What nearest class means at the last layer get of them."""
        return None if self.last is None else self._fit(finite(self.last.ncc_train), self.last.ncc_class_train)

    def _fit(self, whole: float | None, by_class: Sequence[float | None] | None) -> Fit | None:
        """Where classes are rare, of the others, if these are known: a class that is lost is another finding."""
        rare, counts = self.rare_labels, self.profile.counts
        share = self.mean_without(rare, by_class, counts) if rare else None
        if share is not None:
            return Fit(share, sum(count for k, count in enumerate(counts) if k not in rare), kept=True)
        return None if whole is None else Fit(whole, self.n_train, kept=False)

    @cached_property
    def gap(self) -> float | None:
        """Training less test accuracy, both at the class shares of the training data where they are known by class."""
        if self.accuracy_train is None or self.accuracy_test is None:
            return None
        found = self.gap_without(frozenset())
        return self.accuracy_train - self.accuracy_test if found is None else found

    def gap_without(self, left_out: AbstractSet[int]) -> float | None:
        """The same over the other classes; None where accuracies are not known by class."""
        train, test = self.profile.accuracy_class_train, self.profile.accuracy_class_test
        pairs = [(_entry(train, k), _entry(test, k), count) for k, count in enumerate(self.profile.counts)]
        whole = [
            (one - two, count)
            for k, (one, two, count) in enumerate(pairs)
            if count and k not in left_out and one is not None and two is not None
        ]
        return sum(gap * count for gap, count in whole) / sum(count for _, count in whole) if whole else None

    def mean_without(
        self, left_out: AbstractSet[int], values: Sequence[float | None] | None, counts: Sequence[int] | None
    ) -> float | None:
        """A share of all samples from the shares of each class, some classes left out; None where one is not known."""
        kept = [(_entry(values, k), count) for k, count in enumerate(counts or ()) if count and k not in left_out]
        known = [(value, count) for value, count in kept if value is not None]
        if not known or len(known) < len(kept):
            return None
        return sum(value * count for value, count in known) / sum(count for _, count in known)

    @cached_property
    def guess(self) -> float | None:
        """Test accuracy of answers that do not depend on the inputs and come in the class shares of the training data.

        That is 1/K for K equal classes of training data, whichever of them the test data hold: a network chooses among all.
        """
        counts = self.profile.counts_test or ()
        if not self.n_train or not self.n_test:
            return None
        both = zip(self.profile.counts, counts, strict=False)
        return sum(count * seen for count, seen in both) / (self.n_train * self.n_test)

    @cached_property
    def guess_train(self) -> float | None:
        """Training accuracy of naming the largest class throughout."""
        return max(self.profile.counts) / self.n_train if self.n_train else None

    # --- the work of layers

    @cached_property
    def shares(self) -> dict[int, float]:
        """Share of the work by layer, the raw input having none; empty where there are no shares."""
        law = self.profile.law
        shares = work_shares(law) if all(map(math.isfinite, law.loads)) else None
        begin = self.profile.begin() + 1
        if shares is None or len(shares) != len(self.sites) - begin:
            return {}
        return {site.index: share for site, share in zip(self.sites[begin:], shares, strict=True)}

    @cached_property
    def share_errors(self) -> dict[int, float]:
        """Standard errors of the shares by the jackknife over folds, where the folds were kept."""
        begin = self.profile.begin()
        folds = [site.fuzziness_folds for site in self.sites[begin:]]
        if not self.shares or any(not each or min(each) <= 0 for each in folds):
            return {}
        rows = [[math.log(value) for value in each or ()] for each in folds]
        m = min(map(len, rows))
        errors = {}
        for step, site in enumerate(self.sites[begin + 1 :]):
            values = [
                (rows[step][fold] - rows[step + 1][fold]) / fall if (fall := rows[0][fold] - rows[-1][fold]) else 0.0
                for fold in range(m)
            ]
            mean = sum(values) / m
            errors[site.index] = math.sqrt((m - 1) / m * sum((value - mean) ** 2 for value in values))
        return errors

    # --- words

    def at(self, site: SiteReading) -> str:
        """`layer 3`, or `the input`."""
        return "the input" if site.index == 0 else f"{self.each} {site.index}"

    def spans(self, indices: Iterable[int]) -> str:
        """`layers 1–3 and 5`."""
        runs: list[list[int]] = []
        for index in sorted(indices):
            if runs and index == runs[-1][-1] + 1:
                runs[-1].append(index)
            else:
                runs.append([index])
        dash = " and " if len(runs) == 1 and len(runs[0]) == 2 else "–"
        words = [str(run[0]) if len(run) == 1 else f"{run[0]}{dash}{run[-1]}" for run in runs]
        several = len(runs) > 1 or len(runs[0]) > 1
        joined = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
        return f"{self.each}{'s' if several else ''} {joined}"

    def work_of(self, indices: Sequence[int], meaning: str = "") -> str:
        """`layers 1–3 do 60 % of the work`, and what that means; where layers undo each other's, what they do to ln D."""
        who, several = self.spans(indices), len(indices) > 1
        points = round(100 * sum(self.shares.get(index, 0.0) for index in indices))
        if 0 <= points <= 100:
            return f"{who} {'do' if several else 'does'} {points} % of the work{meaning}"
        raised = (
            f"{who} {'together raise' if several else 'raises'} ln D, by {-points} % of its whole fall on training data"
        )
        lowered = (
            f"{who} {'together lower' if several else 'lowers'} ln D by {points} % of its whole fall on training data, and the "
            f"other {self.each}s raise it by {points - 100} %"
        )
        return raised if points < 0 else lowered

    def command(self, name: str, flags: str = "", *, without: Sequence[str] = ()) -> str | None:
        """A command on the model and data of this profile, asked for in the same way; None where no command made it.

        `flags` are added, and given instead of earlier ones; `without` are those that this command has not.
        """
        settings = self.profile.settings
        model, data = settings.get("model"), settings.get("data")
        asked = data.get("asked") or data.get("name") if isinstance(data, dict) else None
        if not isinstance(model, str) or not isinstance(asked, str):
            return None
        words = [f"equisep {name}", f"--model {shlex.quote(one_line(model))}"]
        if isinstance(settings.get("checkpoint"), str):
            words.append(f"--checkpoint {shlex.quote(one_line(settings['checkpoint']))}")
        words.append(f"--data {shlex.quote(one_line(asked))}")
        given = data.get("flags") if isinstance(data, dict) else None
        for flag, value in given.items() if isinstance(given, dict) else ():
            if re.fullmatch(r"--[a-z-]+", flag) and flag not in (*without, *flags.split()):
                words.append(f"{flag} {shlex.quote(one_line(str(value)))}")
        return " ".join([*words, *([flags] if flags else [])])

    def measured_again(self, flags: str = "", arguments: str = "") -> str:
        """The command that measures this again with more flags, or the call where no command made the profile."""
        call = f"equisep.measure(model, {', '.join(part for part in ('train', arguments) if part)})"
        return self.command("measure", flags) or call


def _entry(values: Sequence[float | None] | None, k: int) -> float | None:
    return None if values is None or k >= len(values) else finite(values[k])
