"""Downloads: what pooch is asked for, what a failure says, how progress is told; no test leaves this machine."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from official_files import TRAIN, packed_files, write

from equisep.data import load_data
from equisep.data.official.download import Meter, StderrBar
from equisep.data.official.sources import SOURCES
from equisep.errors import DataError

POOCH_RETRIEVE = pytest.importorskip("pooch").retrieve  # before the tests put a refusal in its place
Small = Callable[[str], dict[str, bytes]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for pooch's download that serves small MNIST files; gives the addresses it was asked for."""
    import pooch

    files, asked = packed_files("mnist"), []

    def retrieve(url: str, known_hash: str, *, fname: str, path: Path, downloader: Any) -> str:
        assert known_hash.startswith("md5:")
        asked.append(url)
        path.mkdir(parents=True, exist_ok=True)
        (path / fname).write_bytes(files[fname])
        meter = downloader.progressbar
        meter.total = len(files[fname])
        meter.update(1 << 20)
        meter.reset()
        meter.update(meter.total)
        meter.close()
        return str(path / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    return asked


def test_files_are_downloaded_once_and_then_read_from_the_cache(small: Small, server: list[str], alone: Path) -> None:
    small("mnist")
    heard: list[tuple[str, int, int | None]] = []
    data = load_data("mnist", progress=lambda *state: heard.append(state))
    assert (data.source, len(data.x_train)) == ("download", TRAIN)
    assert server == [file.url for file in SOURCES["mnist"].files]
    assert {name for name, _, _ in heard} == {file.name for file in SOURCES["mnist"].files}
    assert all(total and done <= total for _, done, total in heard)
    assert load_data("mnist", download=False).checksum == data.checksum
    assert len(server) == 4
    assert (alone / "equisep" / "mnist" / SOURCES["mnist"].files[0].name).is_file()


def test_a_damaged_file_in_the_cache_is_downloaded_again(small: Small, server: list[str], alone: Path) -> None:
    small("mnist")
    load_data("mnist", progress=lambda *_: None)
    (alone / "equisep" / "mnist" / SOURCES["mnist"].files[0].name).write_bytes(b"damaged")
    load_data("mnist", progress=lambda *_: None)
    assert len(server) == 5


@pytest.fixture
def local_server(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The small MNIST files behind an HTTP server of this machine, and pooch as it is; gives the served folder."""
    import pooch

    served = write(tmp_path / "served", small("mnist"))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    source = SOURCES["mnist"]
    files = tuple(replace(file, url=address + file.name) for file in source.files)
    monkeypatch.setitem(SOURCES, "mnist", replace(source, files=files))
    monkeypatch.setattr(pooch, "retrieve", POOCH_RETRIEVE)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


def test_pooch_itself_downloads_and_tells_our_progress(
    local_server: Path, alone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert load_data("mnist").source == "download"
    drawn = capfd.readouterr().err
    assert all(file.name in drawn for file in SOURCES["mnist"].files)
    assert "Downloading data from" not in drawn
    assert len(list((alone / "equisep" / "mnist").iterdir())) == 4
    heard: list[str] = []
    load_data("mnist", progress=lambda name, *_: heard.append(name))
    assert heard == []


def test_pooch_itself_refuses_a_wrong_checksum(local_server: Path, alone: Path) -> None:
    first = SOURCES["mnist"].files[0]
    (local_server / first.name).write_bytes(b"a page to log in")
    with pytest.raises(DataError, match=f"downloaded from {first.url} should have the MD5 {first.md5}"):
        load_data("mnist", progress=lambda *_: None)
    assert not (alone / "equisep" / "mnist" / first.name).exists()


def test_pooch_itself_does_not_find_the_file(local_server: Path) -> None:
    first = SOURCES["mnist"].files[0]
    (local_server / first.name).unlink()
    with pytest.raises(DataError, match=f"needs the file `{first.name}`.*HTTPError: 404"):
        load_data("mnist", progress=lambda *_: None)


def offline(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    import pooch

    def retrieve(*args: Any, **kwargs: Any) -> str:
        raise error

    monkeypatch.setattr(pooch, "retrieve", retrieve)


def test_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, alone: Path) -> None:
    offline(monkeypatch, ConnectionError("no route to host"))
    with pytest.raises(DataError) as caught:
        load_data("cifar10", data_dir=tmp_path)
    message = str(caught.value)
    for words in (
        "`cifar10` needs the file `cifar-10-binary.tar.gz`",
        f"looked for in `{tmp_path}`, `{alone / 'equisep' / 'cifar10'}`",
        "could not be downloaded from https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "ConnectionError: no route to host",
        "`--data-dir` or EQUISEP_DATA",
    ):
        assert words in message


def test_downloading_switched_off(alone: Path) -> None:
    with pytest.raises(DataError, match=r"needs the file `train_32x32\.mat`; .* downloading is switched off"):
        load_data("svhn", download=False)
    assert not list(alone.iterdir())


def test_a_download_with_a_wrong_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    offline(monkeypatch, ValueError("MD5 hash of downloaded file does not match"))
    with pytest.raises(DataError, match="should have the MD5 91f7769df0f17e558f3565bffb0c7dfb; it has another"):
        load_data("stl10")


def test_without_pooch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match="`pooch`, which downloads, is not installed"):
        load_data("mnist")
    assert load_data("embedded-10x10").classes == 10


def test_poochs_own_words_are_silenced_only_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    level = pooch.get_logger().level
    offline(monkeypatch, OSError("closed"))
    with pytest.raises(DataError):
        load_data("mnist")
    assert pooch.get_logger().level == level


def test_the_meter_never_passes_the_total() -> None:
    heard: list[tuple[str, int, int | None]] = []
    meter = Meter("f", lambda *state: heard.append(state))
    meter.update(10)
    meter.total = 15
    meter.update(10)
    assert heard == [("f", 10, None), ("f", 15, 15)]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    bar = StderrBar()
    for done in range(0, 101):
        bar("file.gz", done * 10**6, 100 * 10**6)
    bar("file.gz", 100 * 10**6, 100 * 10**6)
    text = stream.getvalue()
    assert text.count("100.0 of 100.0 MB") == 1
    assert text.endswith("\n")
    assert ("\r" in text) == terminal
    assert terminal or 10 <= text.count("\n") <= 12


def test_importing_reads_and_downloads_nothing() -> None:
    code = "import sys, equisep.data; sys.exit(any(name in sys.modules for name in ('pooch', 'scipy', 'requests')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
