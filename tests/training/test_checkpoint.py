"""A training that is cut off goes on from its checkpoint and ends, bit by bit, as one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from equisep.training import Recipe, train
from equisep.training.checkpoint import Checkpoint

RECIPE = Recipe(optimizer="adam", rate=1e-2, epochs=7, batch_size=16, seed=3)


def network() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(4 * 36, 3)
    )


def data() -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(0)
    return torch.randn(50, 1, 8, 8, generator=made), torch.randint(0, 3, (50,), generator=made)


def shifted(images: Tensor, chance: torch.Generator) -> Tensor:
    return images + torch.randn(images.shape, generator=chance) / 10


class CutError(Exception):
    """A call that is cut off."""


def trained(
    path: Path | None, *, cut: int | None = None, name: str = "cell", recipe: Recipe = RECIPE
) -> tuple[nn.Module, object, list[int]]:
    """The network, its history, and the epochs at which it was read, across calls."""
    model = network()
    seen: list[int] = []

    def after(epoch: int) -> None:
        seen.append(epoch)
        if epoch == cut:
            raise CutError

    kept = None
    if path is not None:
        kept = Checkpoint(
            path, name=name, every=0.0, kept=lambda: " ".join(map(str, seen)),
            taken=lambda text: seen.__setitem__(slice(None), map(int, text.split())),
        )  # fmt: skip
    history = train(model, *data(), recipe=recipe, augment=shifted, after_epoch=after, checkpoint=kept, progress=False)
    return model, history, seen


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_a_training_goes_on_bit_by_bit(tmp_path: Path, optimizer: str) -> None:
    recipe = Recipe(optimizer=optimizer, rate=1e-2, epochs=7, batch_size=16, seed=3)  # type: ignore[arg-type]
    whole, history, seen = trained(None, recipe=recipe)
    for cut in (3, 5):  # the second call is cut off too
        with pytest.raises(CutError):
            trained(tmp_path / "kept.pt", cut=cut, recipe=recipe)
    again, resumed, read = trained(tmp_path / "kept.pt", recipe=recipe)
    assert resumed == history and read == seen == list(range(8))
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_a_checkpoint_that_is_damaged_or_of_another_training_is_none(tmp_path: Path) -> None:
    whole, history, _ = trained(None)
    path = tmp_path / "kept.pt"
    with pytest.raises(CutError):
        trained(path, cut=4, name="another")
    _, other, seen = trained(path)
    assert other == history and seen == list(range(8))  # from the beginning
    path = tmp_path / "broken.pt"
    with pytest.raises(CutError):
        trained(path, cut=4)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    model, broken, _ = trained(path)
    assert broken == history
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), model.parameters(), strict=True))


def test_it_is_written_from_time_to_time_only(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "kept.pt", name="cell", every=3600.0)
    train(network(), *data(), recipe=RECIPE, checkpoint=kept, progress=False)
    assert not list(tmp_path.iterdir())
