"""How long to wait before the next attempt: longer after each failure, and not for all clients alike."""

from typing import Final

from headrace.ports import Entropy

_JITTER: Final = 0.2
_DOUBLINGS_MAX: Final = 40


def backoff_ms(first_ms: int, max_ms: int, failures: int, entropy: Entropy) -> float:
    """The wait after that many failures in a row: doubled each time up to a bound, give or take a fifth."""
    if failures <= 0 or first_ms <= 0:
        return 0.0
    wait = min(first_ms << min(failures - 1, _DOUBLINGS_MAX), max_ms)
    return min(wait * (1 - _JITTER + 2 * _JITTER * entropy.random()), float(max_ms))
