"""Lines of Python that a codec is compiled from: indentation, fresh names and the constants they refer to."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Source text in the making, together with the names it will find in its globals."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._indent = 0
        self._serial = 0

    def add(self, line: str) -> None:
        """One line at the current indentation."""
        self.lines.append("    " * self._indent + line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """`header`, with what is added meanwhile below it."""
        self.add(header)
        self._indent += 1
        yield
        self._indent -= 1

    def fresh(self, prefix: str) -> str:
        """A name nothing else has."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    def constant(self, prefix: str, value: Any) -> str:
        """The name of a constant; the same object gets the same name."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def unpacker(self, codes: str) -> str:
        """The name of `unpack_from` for these codes."""
        return self._named("unpack", codes, struct.Struct(">" + codes).unpack_from)

    def packer(self, codes: str) -> str:
        """The name of `pack` for these codes."""
        return self._named("pack", codes, struct.Struct(">" + codes).pack)

    def _named(self, kind: str, codes: str, function: Any) -> str:
        name = f"{kind}_{codes.replace('?', 'o')}"
        return self.names.setdefault(name, function) and name

    def table(self, name: str, functions: list[Any]) -> str:
        """The name of a tuple of functions that is indexed by a count."""
        self.names.setdefault(name, tuple(functions))
        return name

    def compiled(self, title: str, entry: str) -> Any:
        """Compiles the text and returns the function called `entry`."""
        exec(compile("\n".join(self.lines) + "\n", f"<{title}>", "exec"), self.names)
        return self.names[entry]
