"""How feature maps and token sequences become vectors, and what each reduction refuses."""

import pytest
import torch
from torch import Tensor, nn

from equisep.errors import InputError, SiteError
from equisep.taps import Reduction, tap
from equisep.taps.reduce import REDUCTIONS

MAPS = torch.arange(2 * 3 * 2 * 2, dtype=torch.float32).reshape(2, 3, 2, 2)
TOKENS = torch.arange(3 * 4 * 2, dtype=torch.float32).reshape(3, 4, 2)
RIGHT = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]) > 0
LEFT = RIGHT.flip(1)


def rows(name: str, x: Tensor, mask: Tensor | None = None) -> Tensor:
    return Reduction.of(name)(x, site="s", mask=mask).features


def test_flatten_is_one_row_a_sample() -> None:
    assert torch.equal(rows("flatten", MAPS), MAPS.reshape(2, 12))
    assert rows("flatten", torch.zeros(5)).shape == (5, 1)
    assert rows("flatten", TOKENS, RIGHT).shape == (3, 8)


def test_mean_of_a_feature_map_is_over_space() -> None:
    assert torch.equal(rows("mean", MAPS), MAPS.mean(dim=(2, 3)))
    volume = MAPS.unsqueeze(4).expand(-1, -1, -1, -1, 5)
    assert torch.equal(rows("mean", volume), MAPS.mean(dim=(2, 3)))


def test_mean_of_a_sequence_is_over_the_tokens_that_count() -> None:
    assert torch.equal(rows("mean", TOKENS), TOKENS.mean(dim=1))
    for mask in (RIGHT, LEFT):
        wanted = torch.stack([x[keep].mean(dim=0) for x, keep in zip(TOKENS, mask, strict=True)])
        torch.testing.assert_close(rows("mean", TOKENS, mask), wanted, rtol=1e-6, atol=0)


def test_the_mean_of_half_precision_is_summed_in_single_precision() -> None:
    x = torch.full((1, 3000, 1), 1.01, dtype=torch.bfloat16)  # a running bfloat16 sum stops growing at 256
    found = rows("mean", x, torch.ones(1, 3000) > 0)
    assert found.dtype == torch.float32  # rounded back it would lose digits
    assert float(found) == float(x[0, 0, 0])


def test_positions_are_rows_and_remember_their_sample() -> None:
    found = Reduction.of("positions")(MAPS, site="s")
    assert found.features.shape == (8, 3)
    assert torch.equal(found.features[5], MAPS[1, :, 0, 1])
    assert found.owners.tolist() == [0] * 4 + [1] * 4
    tokens = Reduction.of("positions")(TOKENS, site="s", mask=RIGHT)  # every position, padded or not
    assert tokens.features.shape == (12, 2)


def test_tokens_are_rows_without_padding() -> None:
    found = Reduction.of("tokens")(TOKENS, site="s", mask=LEFT)
    assert torch.equal(found.features, TOKENS[LEFT])
    assert found.owners.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert Reduction.of("tokens")(TOKENS, site="s").features.shape == (12, 2)


@pytest.mark.parametrize(
    ("name", "mask", "places"),
    [
        ("first", None, [0, 0, 0]), ("last", None, [3, 3, 3]), ("first", RIGHT, [0, 0, 0]), ("last", RIGHT, [3, 1, 0]),
        ("first", LEFT, [0, 2, 3]), ("last", LEFT, [3, 3, 3]),
    ],
)  # fmt: skip
def test_first_and_last_are_tokens_that_count(name: str, mask: Tensor | None, places: list[int]) -> None:
    assert torch.equal(rows(name, TOKENS, mask), TOKENS[torch.arange(3), places])


def test_vectors_stay_vectors_under_mean_first_and_last() -> None:
    x = torch.randn(5, 7)
    for name in ("mean", "first", "last", "flatten"):
        assert torch.equal(rows(name, x), x)


def test_any_function_does_and_is_known_by_its_name() -> None:
    def largest(x: Tensor) -> Tensor:
        return x.amax(dim=(2, 3))

    how = Reduction.of(largest)
    assert how.name == "function largest"
    assert torch.equal(how(MAPS, site="s").features, MAPS.amax(dim=(2, 3)))


def test_pca_is_known_by_its_number() -> None:
    assert Reduction.of("pca=100") == Reduction("pca=100", components=100)
    assert Reduction.of("pca=007").name == "pca=7"
    assert "pca=m" in REDUCTIONS


# --- what is refused


@pytest.mark.parametrize("name", ["positions", "tokens"])
def test_vectors_have_no_positions(name: str) -> None:
    with pytest.raises(SiteError) as caught:
        rows(name, torch.zeros(5, 7))
    needed = "features with positions (b × c × h × w or b × t × d)"
    assert str(caught.value) == (
        f"`{name}` needs {needed}; site `s` gives vectors of 7 features. Choose other sites, or another reduction."
    )


@pytest.mark.parametrize("name", ["first", "last", "tokens"])
def test_images_have_no_tokens(name: str) -> None:
    with pytest.raises(
        SiteError,
        match=rf"`{name}` needs token sequences \(b × t × d\); site `s` gives features of shape \(2, 3, 2, 2\)",
    ):
        rows(name, MAPS)


def test_a_mask_of_other_tokens_does_not_fit() -> None:
    with pytest.raises(SiteError) as caught:
        rows("mean", TOKENS[:, :3], RIGHT)
    assert str(caught.value) == (
        "Site `s` gives 3 tokens for 3 samples, the attention mask is 3 × 4. "
        "Choose a site with the tokens of the input, or `flatten`."
    )


def test_a_function_must_give_a_row_a_sample() -> None:
    with pytest.raises(
        SiteError, match=r"`function flat` should give one row a sample, 2 × d; at site `s` it gave shape \(24,\)"
    ):

        def flat(x: Tensor) -> Tensor:
            return x.flatten()

        Reduction.of(flat)(MAPS, site="s")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("avg", "No reduction `avg`. Known: flatten, mean, positions, first, last, tokens, pca=m."),
        ("flaten", "No reduction `flaten`. Did you mean `flatten`"),
        (3, "No reduction `int`."),
        ("pca=0", "`pca=m` keeps m ≥ 1 principal components; found `pca=0`. Write `pca=100`, say."),
        ("pca", "`pca=m` keeps m ≥ 1 principal components; found `pca`."),
        ("pca=-5", "found `pca=-5`."),
        ("pca=1.5", "found `pca=1.5`."),
        ("pca=m", "found `pca=m`."),
    ],
)
def test_unknown_reductions(asked: object, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Reduction.of(asked)
    assert sentence in str(caught.value)


# --- through the tap, which finds the mask in what the model is given


class Words(nn.Module):
    """Embeds tokens and mixes them a little, as encoders do."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 3)
        self.mix = nn.Linear(3, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.head(self.mix(self.embed(input_ids))[:, 0])


IDS = torch.randint(20, (3, 4), generator=torch.Generator().manual_seed(0))


def tapped(*args: object, reduction: str, sites: object = ("mix",), **kwargs: object) -> dict[str, Tensor]:
    torch.manual_seed(0)
    model, kept = Words(), {}
    with tap(model, list(sites), consume=lambda s, x: kept.update({s: x.clone()}), reduction=reduction):  # type: ignore[call-overload]
        model(*args, **kwargs)
    return kept


@pytest.mark.parametrize("way", ["by name", "in order"])
def test_the_mask_is_found_among_the_arguments(way: str) -> None:
    plain = tapped(IDS, reduction="positions")["mix"].reshape(3, 4, 3)
    call = ((IDS,), {"attention_mask": RIGHT.long()}) if way == "by name" else ((IDS, RIGHT.long()), {})
    found = tapped(*call[0], reduction="tokens", **call[1])["mix"]
    assert torch.equal(found, plain[RIGHT])


def test_the_mask_is_found_in_a_mapping() -> None:
    class Takes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return self.inner(batch["x"])

    model, kept = Takes(), []
    with tap(model, ["inner"], consume=lambda _, x: kept.append(x.clone()), reduction="last"):
        model({"x": TOKENS, "attention_mask": RIGHT.float()})
    assert torch.equal(kept[-1], TOKENS[torch.arange(3), [3, 1, 0]])


def test_the_padding_mask_of_torch_means_the_opposite() -> None:
    layer = nn.TransformerEncoderLayer(2, 2, 4, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 2)
    kept: dict[str, Tensor] = {}
    with tap(model, ["layers.*"], consume=lambda s, x: kept.update({s: x.clone()}), reduction="tokens"):
        model(TOKENS, src_key_padding_mask=~RIGHT)
    assert kept["layers.0"].shape == kept["layers.1"].shape == (7, 2)  # and no nested tensors on torch's fast path
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (torch.ones(3, 1, 4, 4), r"`attention_mask` of shape \(3, 1, 4, 4\) does not say which tokens are padding"),
        (torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]), "leaves 1 of 3 samples without a single token"),
    ],
)
def test_masks_that_say_nothing_are_refused(mask: Tensor, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        tapped(IDS, attention_mask=mask, reduction="mean")
    assert tapped(IDS, attention_mask=mask, reduction="flatten")["mix"].shape == (3, 12)


def test_components_need_all_data() -> None:
    with pytest.raises(InputError, match=r"`tap` hands on batch by batch, and `pca=5` needs all data first\. Use `me"):
        tapped(IDS, reduction="pca=5")


@pytest.mark.usefixtures("as_users_run_it")
def test_reductions_that_are_no_words_are_refused() -> None:
    with pytest.raises(InputError, match=r"^No reduction `int`\."):
        tapped(IDS, reduction=7)
