"""The Hugging Face hub: what lies at hand is not asked of it, and a hub that does not answer is not waited for."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

T = TypeVar("T")
HUB = "https://huggingface.co"
SECONDS = 3.0  # for the hub to answer


def at_hand_first(load: Callable[[bool], T], *, local: bool) -> T:
    """Load what lies at hand; ask the hub for the rest, unless nobody answers: its library would try for half a minute."""
    try:
        return load(True)
    except Exception:  # a file is missing, or anything else that asking the hub may mend
        if local or not hub_answers():
            raise
    return load(False)


def hub_answers() -> bool:
    """Whether the hub can be reached; behind a proxy its library has to find out itself."""
    if getproxies():
        return True
    address = urlsplit(os.environ.get("HF_ENDPOINT") or HUB)
    try:
        with socket.create_connection((address.hostname or "", address.port or 443), timeout=SECONDS):
            return True
    except OSError:
        return False
