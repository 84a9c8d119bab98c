"""The same numbers on a GPU: kept, shared and streamed, wrapped, compiled, half precision, all reductions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from equisep.data import Batches
from equisep.measuring import measure
from equisep.models import build
from equisep.results import Profile

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def pictures(n: int = 200) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 10
    means = torch.randn(10, 3, 32, 32, generator=generator)
    return means[y] + torch.randn(n, 3, 32, 32, generator=generator), y


DATA = Batches(*pictures(), batch_size=50)


def network() -> nn.Module:
    return build("resnet20", seed=0)


def alike(a: Profile, b: Profile, *, rel: float) -> None:
    assert [site.name for site in a.sites] == [site.name for site in b.sites]
    for name in ("fuzziness", "nc1", "cdnv"):
        assert a.curve(name) == pytest.approx(b.curve(name), rel=rel), name


@pytest.fixture(autouse=True)
def whole_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions in float32: by default torch lets a GPU shorten them to TF32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.mark.parametrize("reduction", ["flatten", "mean", "positions", "pca=20"])
@pytest.mark.parametrize("memory", [None, 60_000_000])
def test_cpu_and_cuda_agree(reduction: str, memory: int | None) -> None:
    cpu = measure(network(), DATA, sites="blocks", reduction=reduction, memory=memory)
    gpu = measure(network(), DATA, sites="blocks", reduction=reduction, memory=memory, device="cuda")
    alike(cpu, gpu, rel=2e-4 if reduction.startswith("pca") else 1e-4)


def test_shared_and_streamed_and_kept_agree() -> None:
    kept, shared, streamed = (measure(network(), DATA, memory=m, device="cuda") for m in (None, 60_000_000, 0))
    for other in (shared, streamed):
        alike(kept, other, rel=1e-6)
    assert all(site.coordinates is not None for site in (*shared.sites, *streamed.sites))


@pytest.mark.parametrize("few", ["training", "test"])
def test_few_rows_of_one_data_set_and_many_of_the_other_agree(few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows have their coordinates on the CPU, many on the GPU; nearest training centers need both."""
    x, y = pictures(300)
    parts = (Batches(x[:100], y[:100], batch_size=50), Batches(x[100:], y[100:], batch_size=50))
    train, test = parts if few == "training" else parts[::-1]
    cpu = measure(network(), train, test, sites="blocks", metrics=("fuzziness", "ncc"), intervals="none", coordinates=0)
    monkeypatch.setattr("equisep.separation.site.few.SMALL", 150 * 10**2)  # products of 150 rows: 100 are few, 200 many
    gpu = measure(
        network(),
        train,
        test,
        sites="blocks",
        metrics=("fuzziness", "ncc"),
        intervals="none",
        coordinates=0,
        device="cuda",
    )
    for name, one_row in (("fuzziness", 0.0), ("fuzziness_test", 0.0), ("ncc_train", 0.011), ("ncc_test", 0.011)):
        assert cpu.curve(name) == pytest.approx(gpu.curve(name), rel=1e-4, abs=one_row), name


def test_the_model_comes_back_and_wrappers_agree() -> None:
    plain = measure(network(), DATA, device="cuda")
    model = network()
    measure(model, DATA, device="cuda")
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    parallel = nn.DataParallel(network().cuda())
    alike(plain, measure(parallel, DATA), rel=1e-5)
    compiled = torch.compile(network().cuda().eval())
    with torch.no_grad():
        compiled(pictures(50)[0].cuda())
    alike(plain, measure(compiled, DATA), rel=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype: torch.dtype) -> None:
    with torch.autocast("cuda", dtype=dtype):
        profile = measure(network(), DATA, device="cuda")
    assert profile.sites[0].fuzziness == pytest.approx(measure(network(), DATA).sites[0].fuzziness, rel=1e-6)
    assert all(site.fuzziness is not None for site in profile.sites)


@pytest.mark.parametrize("allowed", [False, True])
def test_tf32_is_recorded_and_noted(monkeypatch: pytest.MonkeyPatch, allowed: bool) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", allowed)
    profile = measure(network(), DATA, sites="blocks", device="cuda")
    assert profile.provenance["tf32"] == (["convolutions"] if allowed else [])
    assert ("tf32" in [note.code for note in profile.notes]) is allowed
