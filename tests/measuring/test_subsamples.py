"""D against the number of samples, from nested parts of the data."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from cli.running import equisep
from equisep import Fnn
from equisep.data import Batches
from equisep.errors import InputError
from equisep.measuring import measure, subsamples
from equisep.report.comparison import render_subsamples, subsample_record

X = torch.randn(200, 20, generator=torch.Generator().manual_seed(0)) + 2 * torch.eye(4, 20).repeat(50, 1)
Y = torch.arange(200) % 4


def network() -> Fnn:
    torch.manual_seed(0)
    return Fnn(depth=3, inputs=20, width=12, classes=4)


def test_each_part_is_a_measurement_of_its_own_and_holds_the_smaller_ones() -> None:
    parts = subsamples(network(), (X, Y), per_class=(20, 5, 50))
    assert [part.counts for part in parts] == [(5,) * 4, (20,) * 4, (50,) * 4]
    assert all(part.whole is False for part in parts)
    whole = measure(network(), Batches(X, Y), metrics=("fuzziness",))
    assert parts[-1].curve() == pytest.approx(whole.curve(), rel=1e-5)
    again = subsamples(network(), Batches(X, Y), per_class=(20,))[0]
    assert again.curve() == pytest.approx(parts[1].curve(), rel=1e-5)  # whatever else is asked for


@pytest.mark.parametrize("order", ["given", "mixed"])
def test_parts_are_read_in_the_batches_and_the_order_drawn_of_the_whole(order: str) -> None:
    walk = torch.randperm(len(Y), generator=torch.Generator().manual_seed(1))
    data = Batches(X, Y, batch_size=40, seed=3, order=order, drawn=walk)
    for reading in ("mixed", "drawn"):
        options = {"metrics": ("fuzziness",), "intervals": "none", "reading": reading}
        few, every = subsamples(network(), data, per_class=(20, 50), **options)
        assert every.curve() == measure(network(), data, whole=False, **options).curve()
        assert few.settings["batch_sizes"] == [40]
    by_class = Batches(X, Y, drawn=Y.argsort())
    for held in (by_class, by_class.in_drawn_order()):
        (found,) = subsamples(network(), held, per_class=(40,), reading="drawn")
        assert found.notes[0].code == "unmixed-batches"  # as in the order of the whole
    ((_, labels),) = Batches(X, Y).in_drawn_order().subset(torch.arange(40))
    assert torch.equal(labels, Y[:40])


def test_the_table_and_the_record_say_the_same() -> None:
    parts = subsamples(network(), (X, Y), per_class=(10, 50))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_subsamples(parts))
    text = console.export_text()
    narrow = Console(width=80, record=True, file=io.StringIO())
    narrow.print(render_subsamples(parts))
    assert "…" not in narrow.export_text()  # numbers are whole; words go on in the next line
    for part in parts:
        record = subsample_record(part)
        assert record["n"] == sum(part.counts) and f" {record['n']} " in text
        assert record["fuzziness"] == list(part.curve())
        json.dumps(record)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ((60,), r"A subsample of 60 per class is larger than the data: class 0 has 50 samples\. Ask for 50 or fewer\."),
        ((1,), r"2 samples per class or more; found 1"),
        ((), r"found none"),
        ((10.5, 20), r"Subsamples are listed as whole numbers such as \(50, 100\), .* or more; found 10\.5, 20\.$"),
        ((True,), r"found True\.$"),
        (10, r"Subsamples are listed as whole numbers .* found 10\.$"),
        ("10,20", r"Subsamples are listed as whole numbers .* found '10,20'\.$"),
        (("10", "20"), r"found '10', '20'\.$"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_sizes_that_do_not_go(sizes: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        subsamples(network(), (X, Y), per_class=sizes)


@pytest.mark.usefixtures("as_users_run_it")
def test_sizes_may_be_numbers_of_numpy() -> None:
    (part,) = subsamples(network(), (X, Y), per_class=np.array([10]))  # type: ignore[arg-type]
    assert part.counts == (10,) * 4


def test_data_that_cannot_be_taken_apart() -> None:
    with pytest.raises(InputError, match=r"a pair \(X, Y\) or `Batches`; found list_iterator"):
        subsamples(network(), iter([(X, Y)]), per_class=(5,))


def test_the_command(tmp_path: Path) -> None:
    words = ["measure", "--model", "fnn,depth=3", "--data", "embedded-10x10", "--prepare", "he2023-10x10"]
    done = equisep(*words, "--subsamples", "5,20", "--json", "--quiet", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [part["n"] for part in json.loads(done.stdout)["subsamples"]] == [50, 200]
    bad = equisep(*words, "--subsamples", "5,many", folder=tmp_path)
    assert bad.returncode == 2 and "takes samples per class, such as 50,100,200; found `5,many`" in bad.stderr
    sample = equisep(*words, "--subsamples", "5", "--sample", "--json", "--quiet", folder=tmp_path)
    assert sample.returncode == 0, sample.stderr  # which parts are


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (("--out", "x.json", "--plot", "x.png"), "`--out` and `--plot`. Leave them out."),
        (("--whole",), "`--whole`. Leave it out."),
        (("--intervals", "none", "--coordinates", "0"), "`--intervals` and `--coordinates`. Leave them out."),
    ],
)
def test_the_command_refuses_what_parts_have_no_use_for(tmp_path: Path, flags: tuple[str, ...], found: str) -> None:
    words = ("measure", "--model", "fnn,depth=3", "--data", "embedded-10x10", "--subsamples", "5,20")
    done = equisep(*words, *flags, folder=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and list(tmp_path.iterdir()) == []
    assert done.stderr.strip() == (
        "equisep: `--subsamples` prints a table of parts of the data (with `--json` their numbers), each a sample of more, and "
        f"makes no profile: found {found}"
    )
