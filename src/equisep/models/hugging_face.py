"""Models of the Hugging Face library, by name or from a local folder, as their configuration says; no code of theirs is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from equisep.errors import ModelError, did_you_mean
from equisep.hub import at_hand_first
from equisep.models.checkpoints import first_few
from equisep.models.hubs import Made, first_line, made, package, random_head

HEADS = ("SequenceClassification", "ImageClassification")  # what we measure: classifiers


def hugging_face_model(name: str, *, pretrained: bool, options: Mapping[str, Any]) -> Made:
    """The model of a folder or of a name on the hub; `options` change its configuration.

    The configuration's `architectures` decides: a sequence or image classifier as such, anything else as the bare
    encoder (AutoModel). `num_labels` asks for a classifier with a new head on whatever encoder it is. Not `pretrained`:
    random weights of the same shape. A folder is read offline, and so is what lies in the cache; `trust_remote_code` is
    never set.
    """
    spec = f"hf:{name}"
    transformers = package("transformers", spec=spec, extra="transformers")
    source, local = _source(name)
    with _quiet(transformers):
        config = _config(transformers, source, local=local, spec=spec, options=options)
        auto = _auto_class(transformers, config, spec=spec, new_head="num_labels" in options)
        if not pretrained:
            return made(lambda: auto.from_config(config, trust_remote_code=False), spec, fetches=False), ()
        info: dict[str, Any] = {}

        def load(offline: bool) -> nn.Module:
            model, told = auto.from_pretrained(
                source,
                config=config,
                local_files_only=offline,
                trust_remote_code=False,
                weights_only=True,
                ignore_mismatched_sizes=True,  # checked below, where the keys can be named
                output_loading_info=True,
            )
            info.update(told)
            return model  # type: ignore[no-any-return]

        model = made(lambda: at_hand_first(load, local=local), spec, fetches=not local)
    fresh = _check_weights(model, info, spec=spec, new_head="num_labels" in options)
    return model, (random_head(spec, first_few(fresh).strip(" ()")),) if fresh else ()


def _source(name: str) -> tuple[str, bool]:
    """A folder's path and True, or a name on the hub and False."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"`hf:{name}` should be a folder that `save_pretrained` wrote; `{folder}` holds no config.json."
            )
        return str(folder), True
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise ModelError(
            f"`hf:{name}` takes a name on the Hugging Face hub or a folder; there is no folder `{folder}`."
        )
    return name, False


def _config(transformers: Any, source: str, *, local: bool, spec: str, options: Mapping[str, Any]) -> Any:
    def load(offline: bool) -> Any:
        return transformers.AutoConfig.from_pretrained(
            source, local_files_only=offline, trust_remote_code=False, return_unused_kwargs=True, **options
        )

    try:
        config, unused = at_hand_first(load, local=local)
    except Exception as error:  # no network, no such model, a damaged file, a model that brings its own code
        if "trust_remote_code" in str(error):
            raise _own_code(spec) from error
        raise ModelError(
            f"`{spec}` has no configuration that could be read: {type(error).__name__}: {first_line(error)} "
            "Give a folder that `save_pretrained` wrote, or a name on the hub while there is a network."
        ) from error
    if unused:
        option = next(iter(unused))
        hint = did_you_mean(option, [*config.to_dict(), "num_labels"])
        raise ModelError(f"The configuration of `{spec}` ({type(config).__name__}) takes no `{option}`.{hint}")
    return config


def _auto_class(transformers: Any, config: Any, *, spec: str, new_head: bool) -> Any:
    """AutoModelForSequenceClassification, AutoModelForImageClassification or AutoModel."""
    declared = (getattr(config, "architectures", None) or [""])[0]
    for head in HEADS:
        auto = getattr(transformers, f"AutoModelFor{head}")
        if declared.endswith(f"For{head}") or (new_head and type(config) in auto._model_mapping):
            return auto
    if new_head:
        raise ModelError(
            f"`{spec}` was asked for a new head (`num_labels`), but a {type(config).__name__} has no classifier form. "
            "Leave `num_labels` out to measure the bare encoder."
        )
    return transformers.AutoModel


def _check_weights(model: nn.Module, info: Mapping[str, Any], *, spec: str, new_head: bool) -> list[str]:
    """Refuse a model that transformers filled up with random weights where nobody asked for it.

    A new head is random by request: its keys are given back. An encoder's `pooler` feeds only heads, and many published
    files lack it.
    """
    missing = sorted(key for key in info.get("missing_keys", ()) if "pooler." not in key)
    resized = sorted(entry[0] for entry in info.get("mismatched_keys", ()))  # (key, shape in the file, shape wanted)
    fresh: list[str] = []
    if new_head:
        encoder = f"{getattr(model, 'base_model_prefix', '')}."
        fresh = [key for key in (*missing, *resized) if not key.startswith(encoder)]
        missing, resized = ([key for key in keys if key.startswith(encoder)] for keys in (missing, resized))
    if missing or resized:
        strange = sorted(info.get("unexpected_keys", ()))
        raise ModelError(
            f"The weights of `{spec}` do not fit `{type(model).__name__}`: {len(missing)} keys are missing"
            f"{first_few(missing)}, {len(strange)} unexpected{first_few(strange)}, {len(resized)} of another shape"
            f"{first_few(resized)}."
        )
    return sorted(fresh)


def _own_code(spec: str) -> ModelError:
    return ModelError(
        f"`{spec}` brings code of its own, which is never run here. "
        "Make the model in a function of yours and pass that, as pkg.module:factory."
    )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars and no tables of keys on the terminal: what matters is said in our own errors."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
