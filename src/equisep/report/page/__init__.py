"""The page: one self-contained HTML file about one profile, several, or a training, readable without script or network.

>>> profile.report("p.html")
>>> history.report("training.html")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equisep.errors import InputError
from equisep.files import write_whole, writing
from equisep.report.formatting import one_line
from equisep.report.page.class_sections import classes_section, maps_section
from equisep.report.page.document import document
from equisep.report.page.geometry_sections import geometry_section, rare_section
from equisep.report.page.law_sections import centers_section, law_section, trust_section, work_section
from equisep.report.page.markup import Section
from equisep.report.page.numbers import page_numbers
from equisep.report.page.provenance import glossary_section, made_section, numbers_section, tracked_again
from equisep.report.page.subject import Subject, subjects_of
from equisep.report.page.verdict import findings_section, verdict_section
from equisep.results import Finding, Profile
from equisep.results.codec import FIRST_WORDS, HISTORY, KIND, load_profile
from equisep.tracking.history import History

__all__ = ["MOST_PROFILES", "history_page", "profile_page", "write_page"]

MOST_PROFILES = 12  # compared on one page
ENDINGS = (".html", ".htm")
_HEAD = 4 * FIRST_WORDS  # characters in which a file says what it is


def profile_page(profiles: Sequence[Profile], *, names: Sequence[str] = (), sources: Sequence[str] = ()) -> str:
    """The page of one profile, or of several side by side, as text.

    `names` tell profiles of one model apart, such as the names of their files; `sources` are the files, where there are any.
    """
    if not profiles:
        raise InputError("A page needs a profile; found none. Pass one, or several to compare.")
    if len(profiles) > MOST_PROFILES:
        raise InputError(
            f"A page compares at most {MOST_PROFILES} profiles; found {len(profiles)}. Pass fewer, or use `equisep compare`."
        )
    subjects = subjects_of(profiles, names)
    title = subjects[0].label if len(subjects) == 1 else f"{len(subjects)} networks compared"
    sections = _sections(subjects, sources=sources)
    head = verdict_section(
        subjects, title, "How this network separates its classes, layer by layer" if len(subjects) == 1 else ""
    )
    return document(f"{title} · equisep", [head, *sections], page_numbers(subjects))


def history_page(history: History, *, sources: Sequence[str] = ()) -> str:
    """The page of a training as text: the law over its epochs, and everything of its last reading."""
    from equisep.report.page.training_section import history_numbers, training_section

    last = history.last_read
    if last is None or last.profile is None:
        failure = "" if history.last is None else f" The last one failed: {history.last.failure}"
        raise InputError(
            f"The history of `{one_line(history.header.model)}` holds no reading with a profile, so there is nothing to show."
            f"{failure} Read the network at least once: `tracker.epoch()`."
        )
    subjects = subjects_of([last.profile])
    numbers = history_numbers(history)
    training = training_section(history, numbers)
    epochs = numbers is not None and numbers["maps"] is not None
    call = tracked_again(history.header.options, test=history.header.samples_test > 0)
    sections = _sections(subjects, training=training, said=history.findings, epochs=epochs, sources=sources, call=call)
    span = f"{len(history.read)} readings, {history.unit} {history.numbers[0]} to {history.numbers[-1]}"
    head = verdict_section(
        subjects, f"{subjects[0].label}, while it trained", f"{span}. The numbers below are those of the last one."
    )
    return document(f"{subjects[0].label}, training · equisep", [head, *sections], page_numbers(subjects, numbers))


def write_page(path: str | Path, page: str) -> Path:
    """Write a page; a reader never sees half a file."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"A page is an HTML file: `{target.name}` should end in {' or '.join(ENDINGS)}.")
    with writing(f"The page `{target.name}`", target.parent):
        write_whole(target, page)
    return target


def _sections(
    subjects: Sequence[Subject],
    *,
    training: Section | None = None,
    said: Sequence[Finding] = (),
    epochs: bool = False,
    sources: Sequence[str] = (),
    call: str | None = None,
) -> list[Section]:
    """Every section but the first, in order."""
    compared = None
    if len(subjects) > 1:
        from equisep.report.page.comparison import comparison_section

        compared = comparison_section(subjects)
    parts = [
        compared,
        training,
        law_section(subjects),
        work_section(subjects),
        classes_section(subjects),
        centers_section(subjects),
        maps_section(subjects, epochs=epochs),
        geometry_section(subjects),
        rare_section(subjects),
        trust_section(subjects),
        numbers_section(subjects),
        made_section(subjects, sources, call=call),
        glossary_section(),
    ]
    known = [section for section in parts if section is not None]
    return [findings_section(subjects, said, [section.id for section in known]), *known]


def page_of(paths: Sequence[Path]) -> str:
    """The page of these files as text."""
    files = [file for path in paths for file in _files(path)]
    histories = [file for file in files if _is_history(file)]
    if histories and len(files) > 1:
        raise InputError(
            f"A page shows profiles, or one history; found {len(files) - len(histories)} profiles and {len(histories)} "
            f"histories. Name one kind: `equisep report {histories[0]}`."
        )
    if histories:
        return history_page(History.load(histories[0]), sources=[histories[0].name])
    if len(files) > MOST_PROFILES:
        raise InputError(f"A page compares at most {MOST_PROFILES} profiles; found {len(files)}. Name fewer.")
    profiles = [load_profile(file) for file in files]
    return profile_page(profiles, names=_told_apart(files), sources=[file.name for file in files])


def page_target(paths: Sequence[Path]) -> Path:
    """Where the page goes unless told: `report.html` in a folder, else beside the first file, under its name."""
    first = paths[0]
    if first.is_dir():
        return first / "report.html"
    return first.with_suffix(".html")


def _files(path: Path) -> list[Path]:
    """The file itself; of a folder its profiles, or else its one history."""
    if not path.is_dir():
        return [path]
    if (path / "store.json").is_file():
        raise InputError(
            f"`{path}` is a store of figures' runs, which holds outcomes and no profile. Look at them with "
            f"`equisep figures show FIGURE --store {path}`."
        )
    profiles = [file for file in sorted(path.glob("*.json")) if KIND in _beginning(file)]
    if profiles:
        return profiles
    histories = [file for file in sorted(path.glob("*.jsonl")) if _is_history(file)]
    if not histories:
        raise InputError(
            f"`{path}` holds no profile (*.json) and no history (*.jsonl). `equisep demo`, `equisep measure --out FILE` and "
            "`equisep.Tracker(…, history=FILE)` write them."
        )
    if len(histories) > 1:
        names = ", ".join(file.name for file in histories[:3])
        raise InputError(f"`{path}` holds {len(histories)} histories ({names}): name one of them.")
    return histories


def _is_history(path: Path) -> bool:
    return f'"{HISTORY}"' in _beginning(path)


def _beginning(path: Path) -> str:
    """The first characters of a file; none where it cannot be read, which its reader says better."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_HEAD)
    except OSError:
        return ""


def _told_apart(files: Sequence[Path]) -> list[str]:
    """The names of files, with that of their folders where two have the same."""
    names = [file.stem for file in files]
    return [
        f"{file.resolve().parent.name}/{name}" if names.count(name) > 1 else name
        for file, name in zip(files, names, strict=True)
    ]
