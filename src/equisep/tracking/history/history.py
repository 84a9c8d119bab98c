"""History: what was read of one network while it trained, epochs × sites, in memory and in a file of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equisep.errors import InputError, MissingExtraError, StoreError
from equisep.findings import ranked, spelled, training
from equisep.findings.ranking import new_finding
from equisep.law.emergence import CONFIRM, Emergence, emergences
from equisep.results import Finding, Profile
from equisep.results.profile import CURVES
from equisep.results.scalars import flat, profile_scalars
from equisep.tracking.history.file import HistoryFile, Line
from equisep.tracking.history.records import Entry, Header, Unit
from equisep.tracking.stopping import Settled, Stopping, Watched

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class History:
    """The readings of one training in order, one per number.

    In a file each reading is a line that is whole or not there. A reading that is taken again, after a training was begun
    anew from a checkpoint, replaces the former one and all after it: there is never a number twice.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> with equisep.Tracker(model, (x, y), history="run.jsonl") as tracker:
    ...     _ = tracker.epoch(1)
    >>> history = equisep.History.load("run.jsonl")  # also while the training still runs
    >>> history.numbers, len(history.profile(1).sites)
    ((1,), 4)
    """

    def __init__(self, header: Header, entries: Sequence[Entry] = (), *, file: HistoryFile | None = None) -> None:
        self.header = header
        self._entries: dict[int, Entry] = {each.number: each for each in sorted(entries, key=lambda each: each.number)}
        self._file = file

    @staticmethod
    def load(path: str | Path) -> History:
        """Read a history, also of a training that still runs or was killed."""
        history = History._from_file(HistoryFile(path))
        if history is None:
            missing = (
                f"No history at `{path}`." if not Path(path).exists() else f"`{path}` is empty, so it is no history."
            )
            raise StoreError(f"{missing} `equisep.Tracker(…, history='{path}')` writes one.")
        return history

    @staticmethod
    def open(path: str | Path, header: Header) -> History:
        """A new history in a file, or the one that the file holds, to go on with; a StoreError where it is another's."""
        file = HistoryFile(path)
        known = History._from_file(file)
        if known is None:
            file.create(header)
            return History(header, file=file)
        why = known.header.why_other(header)
        if why is not None:
            raise StoreError(f"The history `{path}` does not go on with this training: {why}. Give another file.")
        return known

    @staticmethod
    def _from_file(file: HistoryFile) -> History | None:
        """The history that a file holds; None where there is none."""
        content = file.read()
        if content is None:
            return None
        header, lines = content
        history = History(header, file=file)
        for line in lines:
            history.forget_after(-1 if line.follows is None else line.follows)
            history._entries[line.entry.number] = line.entry
        return history

    @property
    def path(self) -> Path | None:
        """The file, where there is one."""
        return None if self._file is None else self._file.path

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every reading in order, also those that failed."""
        return tuple(self._entries.values())

    @property
    def unit(self) -> Unit:
        """What is numbered."""
        return self.last.unit if self.last is not None else "epoch"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The epochs (or steps) that have a profile."""
        return tuple(entry.number for entry in self.read)

    @property
    def read(self) -> tuple[Entry, ...]:
        """The readings that have a profile."""
        return tuple(entry for entry in self._entries.values() if entry.profile is not None)

    @property
    def last(self) -> Entry | None:
        """The latest reading."""
        return next(reversed(self._entries.values()), None)

    @property
    def last_read(self) -> Entry | None:
        """The latest reading that has a profile."""
        return next((entry for entry in reversed(self._entries.values()) if entry.profile is not None), None)

    @property
    def damaged(self) -> int:
        """Lines of the file that are no JSON and were passed over."""
        return 0 if self._file is None else self._file.damaged

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __contains__(self, number: object) -> bool:
        return number in self._entries

    def __getitem__(self, number: int) -> Entry:
        """The reading of one epoch (or step), by its number."""
        if number not in self._entries:
            known = list(self._entries)
            span = f"{len(known)} readings, from {known[0]} to {known[-1]}" if known else "no reading"
            raise InputError(f"No reading of {self.unit} {number!r}: the history has {span}.")
        return self._entries[number]

    def profile(self, number: int) -> Profile:
        """The light profile of one epoch (or step)."""
        entry = self[number]
        if entry.profile is None:
            raise InputError(f"The reading of {entry.unit} {number} failed: {entry.failure}")
        return entry.profile

    def profiles(self) -> dict[int, Profile]:
        """Every profile, by epoch (or step)."""
        return {entry.number: entry.profile for entry in self._entries.values() if entry.profile is not None}

    def curves(self, metric: str = "fuzziness") -> dict[int, tuple[float | None, ...]]:
        """One metric over depth, by epoch (or step)."""
        if metric not in CURVES:
            raise InputError(f"No curve `{metric}`. Known: {', '.join(CURVES)}.")
        return {number: profile.curve(metric) for number, profile in self.profiles().items()}

    def append(self, entry: Entry) -> None:
        """One reading more, in memory and in the file; those of its number and after it are replaced.

        A StoreError where it could not be written: it is kept, and written with the next one.
        """
        self.forget_after(entry.number - 1)
        follows = None if self.last is None else self.last.number
        self._entries[entry.number] = entry
        if self._file is not None:
            self._file.append(Line(entry, follows))

    def forget_after(self, number: int) -> None:
        """Leave out what was read after `number`: the training goes on from there."""
        while self.last is not None and self.last.number > number:
            self._entries.popitem()

    def emergence(self, *, confirm: int = CONFIRM) -> dict[str, Emergence]:
        """When the `law`, neural `collapse` and `minority` collapse emerged; the rules are those of `equisep.law.emergence`."""
        entries = self.read
        profiles = [entry.profile for entry in entries if entry.profile is not None]
        return emergences(
            [entry.number for entry in entries],
            laws=[profile.law for profile in profiles],
            nc1=[profile.sites[-1].nc1 for profile in profiles],
            minority=[entry.minority_cosine for entry in entries],
            confirm=confirm,
        )

    def scalars(self, prefix: str = "equisep", *, number: int | None = None, sites: bool = True) -> dict[str, float]:
        """Every number of one reading, the latest unless told, by flat names for loggers, and when things emerged up to now.

        Empty where there is no reading, or that one failed.
        """
        entry = self.last if number is None else self[number]
        if entry is None or entry.profile is None:
            return {}
        emergence = {f"emergence/{name}": each.first for name, each in self.emergence().items()}
        more = {"minority_cosine": entry.minority_cosine, **emergence, "seconds": entry.seconds}
        return {**profile_scalars(entry.profile, prefix=prefix, sites=sites), **flat(more.items(), prefix=prefix)}

    def settled(self, stopping: Stopping | None = None) -> Settled:
        """Whether the training has settled: see `equisep.tracking.Stopping`, whose default it is without one."""
        failed = self._failed_last()
        if failed:
            return Settled(False, None, f"{_last_failed(failed, self.unit)}.")
        seen = [Watched.of(number, profile) for number, profile in self.profiles().items()]
        return (stopping or Stopping()).settled(seen, unit=self.unit)

    def _failed_last(self) -> tuple[Entry, ...]:
        """The readings after the latest that has a profile; all failed."""
        return tuple(takewhile(lambda entry: entry.profile is None, reversed(self._entries.values())))[::-1]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Whether the network was trained long enough, in words; the rule is that of `equisep.findings.training`.

        Where the latest readings failed, nothing is known of the network as it is: then that is what is said.
        """
        failed, last, emergence = self._failed_last(), self.last_read, self.emergence()
        if failed:
            return spelled((_failure(failed, self.unit, every=last is None, law=emergence.get("law")),))
        settled = self.settled()
        return spelled(
            ranked(
                training(
                    None if last is None else last.profile,
                    emergence=emergence,
                    settled=settled.settled,
                    since=settled.since,
                    reason=settled.reason,
                    unit=self.unit,
                )
            )
        )

    def to_frame(self, *, sites: bool = True) -> pandas.DataFrame:
        """One row per reading and site; without `sites` one per reading: the law, depth and accuracy (extra `frame`)."""
        from equisep.report.columns import COLUMNS
        from equisep.report.history_tables import law_rows, site_rows

        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError(needed_for="`History.to_frame`", package="pandas", extra="frame") from error
        rows = site_rows(self) if sites else law_rows(self)
        if rows:
            columns = None
        elif sites:
            columns = [self.unit, *(column.name for column in COLUMNS)]
        else:
            columns = list(law_rows(History(self.header, [Entry(0, self.unit)]))[0])
        return pandas.DataFrame(rows, columns=columns).set_index([self.unit, "site"] if sites else self.unit)

    def plot(self, path: str | Path | None = None, **options: Any) -> Figure:
        """Draw the law over the epochs, into a file where one is named; see `equisep.report.history_plots.plot_history`."""
        from equisep.report.history_plots import plot_history

        return plot_history(self, path, **options)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file about the training, to open in any browser or to send: see `equisep.report.page`."""
        from equisep.report.page import history_page, write_page

        return write_page(path, history_page(self))

    def __repr__(self) -> str:
        parts = [f"{len(self)} readings of {self.header.model}", f"{len(self.header.sites)} sites"]
        if self._entries:
            parts.append(f"{self.unit}s {self.entries[0].number} to {self.entries[-1].number}")
        failed = len(self) - len(self.read)
        if failed:
            parts.append(f"{failed} failed")
        latest = self.last_read
        if latest is not None and latest.profile is not None and latest.profile.law.rho is not None:
            parts.append(f"ρ {latest.profile.law.rho:.3f}")
        return f"<History: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from equisep.report.notebook import history_html

        return history_html(self)


def _last_failed(failed: Sequence[Entry], unit: str) -> str:
    """How many of the latest readings failed, and from where on."""
    if len(failed) == 1:
        return f"The last reading, of {unit} {failed[0].number}, failed"
    return f"The last {len(failed)} readings, from {unit} {failed[0].number} on, failed"


def _failure(failed: Sequence[Entry], unit: str, *, every: bool, law: Emergence | None) -> Finding:
    """That the latest readings failed, or that all did, what the last one says of why, and when the law had emerged."""
    head = _last_failed(failed, unit)
    if every:
        head = "The only reading failed" if len(failed) == 1 else f"All {len(failed)} readings failed"
    why = (failed[-1].failure or "nothing says why").rstrip(".")
    before = "" if every or law is None else f" The law before: {law.sentence(unit)}."
    return new_finding("nothing-measured", f"{head}: {why}.{before}", rule="training", numbers={"failed": len(failed)})
