"""Reductions: how a feature map or a token sequence becomes vectors, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from equisep.errors import InputError, SiteError, did_you_mean
from equisep.shapes import Bool, Int, Shaped

if TYPE_CHECKING:
    ReductionLike = str | Callable[[Tensor], Tensor]
else:
    ReductionLike = Any  # so that what is no reduction reaches the sentence below, whoever checks types at run time

REDUCTIONS = ("flatten", "mean", "positions", "first", "last", "tokens", "pca=m")
_MASKED = ("mean", "first", "last", "tokens")
_SEQUENCE = ("first", "last", "tokens")


class UnfitError(SiteError):
    """What a site gives and no reduction, or not this one, can take: no tensor, `positions` of a vector."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors of one site in one batch; `owners` says which sample each row belongs to (None: one row a sample)."""

    features: Shaped[Tensor, "r d"]
    owners: Int[Tensor, " r"] | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """How features of shape b × … become rows.

    flatten    all numbers of a sample in one row (the papers)
    mean       the mean over positions: of b × c × h × w over space, of b × t × d over tokens
    positions  each position a row: b × c × h × w gives b·h·w rows of c, b × t × d gives b·t rows of d
    first      the first token of b × t × d; last: the last one
    tokens     each token a row
    pca=m      flattened, then the m leading principal components of the training features

    Where the model was given an attention mask, tokens that it leaves out (padding) do not count, except in `flatten`,
    `positions` and `pca`. Vectors stay as they are under `mean`, `first` and `last`. Any function of features, b × … to
    b × d, does as well; it is recorded by its name.
    """

    name: str
    components: int | None = None
    function: Callable[[Tensor], Tensor] | None = None

    @staticmethod
    def of(asked: ReductionLike) -> Reduction:
        """The reduction by name, or from a function."""
        if callable(asked):
            return Reduction(f"function {getattr(asked, '__name__', type(asked).__name__)}", function=asked)
        if isinstance(asked, str) and asked.partition("=")[0].strip() == "pca":
            count = asked.partition("=")[2].strip()
            if not re.fullmatch(r"[0-9]{1,9}", count) or int(count) < 1:
                raise InputError(f"`pca=m` keeps m ≥ 1 principal components; found `{asked}`. Write `pca=100`, say.")
            return Reduction(f"pca={int(count)}", components=int(count))
        if not isinstance(asked, str) or asked not in REDUCTIONS:
            shown = asked if isinstance(asked, str) else type(asked).__name__
            raise InputError(
                f"No reduction `{shown}`.{did_you_mean(str(shown), REDUCTIONS)} Known: {', '.join(REDUCTIONS)}."
            )
        return Reduction(asked)

    @property
    def masked(self) -> bool:
        """Whether padding matters."""
        return self.name in _MASKED

    @property
    def spreads(self) -> bool:
        """Whether a sample becomes several rows."""
        return self.name in ("positions", "tokens")

    def __call__(self, x: Tensor, *, site: str, mask: Bool[Tensor, "b t"] | None = None) -> Rows:
        """The rows of one batch of features, b × …."""
        if self.function is not None:
            try:
                rows = self.function(x)
            except Exception as error:  # whatever a user's function raises
                raise SiteError(
                    f"The reduction `{self.name}` could not take what site `{site}` gives, shape {tuple(x.shape)}: {error}"
                ) from error
            return Rows(_checked(rows, x, name=self.name, site=site))
        if x.ndim < 2:
            x = x.reshape(-1, 1)
        if self.name == "flatten" or self.components is not None:
            return Rows(x.flatten(1))
        if x.ndim == 2:
            if self.spreads:
                raise _unfit(self.name, "features with positions (b × c × h × w or b × t × d)", x, site)
            return Rows(x)
        if self.name in _SEQUENCE and x.ndim != 3:
            raise _unfit(self.name, "token sequences (b × t × d)", x, site)
        if x.ndim > 3:
            maps = x.flatten(2)  # b c s
            return Rows(_mean(maps, dim=2)) if self.name == "mean" else _spread(maps.transpose(1, 2))
        return _of_sequence(self.name, x, _fitting(mask, x, site=site) if self.masked else None)


def _of_sequence(name: str, x: Shaped[Tensor, "b t d"], mask: Bool[Tensor, "b t"] | None) -> Rows:
    if name == "mean":
        if mask is None:
            return Rows(_mean(x, dim=1))
        kept = mask.to(torch.float32 if x.dtype.itemsize < 4 else x.dtype)  # no product: autocast would shorten it
        return Rows((x * kept.unsqueeze(2)).sum(dim=1) / kept.sum(dim=1, keepdim=True))
    if name == "positions" or (name == "tokens" and mask is None):
        return _spread(x)
    if name == "tokens":
        assert mask is not None
        return Rows(x[mask], mask.nonzero()[:, 0])
    if mask is None:
        return Rows(x[:, 0] if name == "first" else x[:, -1])
    token = mask.to(torch.uint8).argmax(dim=1)  # argmax finds the first of equal entries
    if name == "last":
        token = mask.shape[1] - 1 - mask.flip(1).to(torch.uint8).argmax(dim=1)
    return Rows(x[torch.arange(len(x), device=x.device), token])


def _mean(x: Tensor, *, dim: int) -> Tensor:
    """The mean over one dimension; of half precision in float32, and left there: rounded back it would lose digits."""
    return x.mean(dim=dim, dtype=torch.float32) if x.is_floating_point() and x.dtype.itemsize < 4 else x.mean(dim=dim)


def _spread(x: Shaped[Tensor, "b p d"]) -> Rows:
    b, p, _ = x.shape
    return Rows(x.flatten(0, 1), torch.arange(b, device=x.device).repeat_interleave(p))


def _fitting(mask: Bool[Tensor, "b s"] | None, x: Shaped[Tensor, "a t d"], *, site: str) -> Bool[Tensor, "b s"] | None:
    if mask is None:
        return None
    if mask.shape != x.shape[:2]:
        raise UnfitError(
            f"Site `{site}` gives {x.shape[1]} tokens for {x.shape[0]} samples, the attention mask is "
            f"{' × '.join(map(str, mask.shape))}. Choose a site with the tokens of the input, or `flatten`."
        )
    return mask.to(x.device)


def _unfit(name: str, needed: str, x: Tensor, site: str) -> UnfitError:
    given = f"vectors of {x.shape[1]} features" if x.ndim == 2 else f"features of shape {tuple(x.shape)}"
    return UnfitError(
        f"`{name}` needs {needed}; site `{site}` gives {given}. Choose other sites, or another reduction."
    )


def _checked(rows: Any, x: Tensor, *, name: str, site: str) -> Shaped[Tensor, "b d"]:
    if not isinstance(rows, Tensor) or rows.ndim != 2 or len(rows) != len(x):
        given = f"shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
        raise SiteError(
            f"The reduction `{name}` should give one row a sample, {len(x)} × d; at site `{site}` it gave {given}."
        )
    return rows


@dataclass(frozen=True, slots=True)
class Padding:
    """The argument that says which tokens count: those where it is 0, or those where it is not."""

    name: str
    zeros_count: bool

    def kept(self, arguments: Mapping[str, Any]) -> Bool[Tensor, "b t"]:
        """Which tokens count."""
        mask: Tensor = arguments[self.name]
        return mask == 0 if self.zeros_count else mask != 0


def padding_of(arguments: Mapping[str, Any]) -> Padding | None:
    """How a model was told of padding, from what it was given.

    That is `attention_mask` (1: counts, or 0: counts where the others are below 0, to be added to scores), or torch's
    `src_key_padding_mask` and `key_padding_mask` (1: does not count).
    """
    for name, counts in (("attention_mask", True), ("src_key_padding_mask", False), ("key_padding_mask", False)):
        mask = arguments.get(name)
        if not isinstance(mask, Tensor):
            continue
        if mask.ndim != 2:
            raise InputError(
                f"`{name}` of shape {tuple(mask.shape)} does not say which tokens are padding. Pass one of shape b × t."
            )
        # torch's own padding masks may be added to scores: −inf where a token does not count
        added = mask.is_floating_point() and bool((mask < 0).any())
        return Padding(name, zeros_count=added or not counts)
    return None


def padding_mask(arguments: Mapping[str, Any]) -> Bool[Tensor, "b t"] | None:
    """Which tokens count, from what the model was given; every sample must have one."""
    padding = padding_of(arguments)
    if padding is None:
        return None
    kept = padding.kept(arguments)
    empty = int((~kept.any(dim=1)).sum())
    if empty:
        raise InputError(
            f"`{padding.name}` leaves {empty} of {len(kept)} samples without a single token. Check the tokenizer."
        )
    return kept
