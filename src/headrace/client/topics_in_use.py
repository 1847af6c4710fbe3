"""Which topics a client uses: these are kept up to date, and forgotten when nobody has asked for long."""

from collections.abc import Iterable


class TopicsInUse:
    """Names, when they were last used (in seconds of a steady clock), and which of them are out of date."""

    __slots__ = ("_create", "_idle_seconds", "_refreshing", "_stale", "_used_at")

    def __init__(self, idle_ms_max: int) -> None:
        self._idle_seconds = idle_ms_max / 1000
        self._used_at: dict[str, float] = {}
        self._stale: set[str] = set()
        self._refreshing: set[str] = set()
        self._create: set[str] = set()

    def names(self) -> list[str]:
        """All of them."""
        return list(self._used_at)

    def use(self, name: str, now: float, *, create: bool = False) -> None:
        """Somebody asks for a topic; with `create` it may come into being by that."""
        self._used_at[name] = now
        if create:
            self._create.add(name)

    def drop(self, names: Iterable[str]) -> None:
        """Topics that are of no interest any more."""
        for name in names:
            self._used_at.pop(name, None)
            self._stale.discard(name)
            self._create.discard(name)

    def mark_stale(self, name: str) -> None:
        """What is known of a topic is wrong."""
        self._stale.add(name)

    def is_stale(self, name: str) -> bool:
        """Whether a refresh is needed before a topic is used; one that is under way does not count yet."""
        return name in self._stale or name in self._refreshing

    def begin_refresh(self) -> bool:
        """A refresh begins: what is marked from now on needs another. Whether it may create topics."""
        self._refreshing |= self._stale
        self._stale = set()
        return bool(self._create)

    def refresh_failed(self) -> None:
        """The refresh came to nothing."""
        self._stale |= self._refreshing
        self._refreshing = set()

    def forget_unused(self, now: float) -> list[str]:
        """A refresh has ended well. Topics that nobody has used for long; they are forgotten."""
        self._refreshing = set()
        self._create = set()
        unused = [name for name, used_at in self._used_at.items() if used_at + self._idle_seconds < now]
        self.drop(unused)
        return unused
