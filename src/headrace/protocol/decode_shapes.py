"""Reads arrays of structures that are all numbers and arrays of numbers, such as partitions with replicas.

It guesses that each element has as many of everything as the one before it. A right guess costs one `struct`
call for the whole element; a wrong one is noticed before anything is used, the element is read step by step,
and its counts are the next guess.
"""

import struct
from collections.abc import Callable
from typing import Any

from headrace.protocol.schema import FieldLayout, Layout
from headrace.protocol.source import Source

#: Arrays with this many elements or more are never guessed, which bounds the number of shapes.
COUNT_LIMIT = 16
SHAPES_MAX = 256


def is_numeric(field: FieldLayout) -> bool:
    """Whether a field is a number or an array of numbers."""
    return field.element_code is not None and field.kind != "uuid"


def is_guessable(layout: Layout) -> bool:
    """Whether guessing pays for elements of this structure: it has two arrays of numbers or more, no text."""
    if not all(is_numeric(field) and not (field.is_array and field.is_nullable) for field in layout.present):
        return False
    return sum(field.is_array for field in layout.present) >= 2


class ShapeReaders:
    """Makes and keeps the readers for the shapes of one structure."""

    def __init__(self, codes: list[tuple[str, str]], last_codes: str, bias: int) -> None:
        self._codes = codes
        self._last_codes = last_codes
        self._bias = bias
        self._known: dict[tuple[int, ...], tuple[Callable[..., Any], int]] = {}

    def __call__(self, *counts: int) -> tuple[Callable[..., Any], int]:
        """The reader for these counts, as they are spelt, and how many bytes it reads."""
        found = self._known.get(counts)
        if found is None:
            if len(self._known) >= SHAPES_MAX:
                self._known.clear()
            pieces = [
                f"{before}{count - self._bias}{element}"
                for (before, element), count in zip(self._codes, counts, strict=True)
            ]
            compiled = struct.Struct(">" + "".join(pieces) + self._last_codes)
            found = self._known[counts] = (compiled.unpack_from, compiled.size)
        return found


class Guess:
    """Emits the code that guesses one structure's shape; `serial` keeps its names apart from others."""

    def __init__(self, source: Source, layout: Layout) -> None:
        self.source = source
        self.runs: list[list[FieldLayout]] = [[]]
        self.arrays: list[FieldLayout] = []
        for field in layout.present:
            if field.is_array:
                self.arrays.append(field)
                self.runs.append([])
            else:
                self.runs[-1].append(field)
        self.is_flexible = layout.is_flexible
        self.bias = 1 if self.arrays[0].is_compact else 0
        self.serial = source.fresh("")
        self.readers = source.constant("shapes", self._readers())

    def _readers(self) -> ShapeReaders:
        lead = "B" if self.bias else "i"
        codes = [
            ("".join(field.code or "" for field in run) + lead, array.element_code or "")
            for run, array in zip(self.runs, self.arrays, strict=False)
        ]
        last = "".join(field.code or "" for field in self.runs[-1]) + ("B" if self.is_flexible else "")
        return ShapeReaders(codes, last, self.bias)

    def _name(self, word: str, index: int | str = "") -> str:
        return f"{word}{self.serial}_{index}"

    def prepare(self) -> None:
        """Before the first element nothing is expected."""
        self.source.add(f"{self._name('last')} = -1")

    def is_wrong(self) -> str:
        """An expression that reads an element as expected and is true if it is otherwise."""
        values = self._name("values")
        tests = [f"p > {self._name('last')}"]
        for index in range(len(self.arrays)):
            read = values if index else f"({values} := {self._name('read')}(b, p))"
            tests.append(f"{read}[{self._position(index)}] != {self._name('count', index)}")
        if self.is_flexible:
            tests.append(f"{values}[-1]")
        return " or ".join(tests)

    def _position(self, index: int) -> str:
        """Where the count of an array stands among the values."""
        return str(len(self.runs[0])) if index == 0 else self._name("at", index)

    def take(self, item: str) -> None:
        """Fills the element from the values."""
        values = self._name("values")
        for index, run in enumerate(self.runs):
            start = 0 if index == 0 else self._name("end", index - 1)
            if run:
                targets = ", ".join(f"{item}.{field.name}" for field in run)
                stop = f"{start} + {len(run)}" if index else len(run)
                self.source.add(f"{targets}{',' if len(run) == 1 else ''} = {values}[{start}:{stop}]")
            if index < len(self.arrays):
                begin = f"{self._position(index)} + 1" if index else str(len(self.runs[0]) + 1)
                end = self._name("end", index)
                self.source.add(f"{item}.{self.arrays[index].name} = [*{values}[{begin}:{end}]]")
        self.source.add(f"p += {self._name('size')}")

    def learn(self, counts: list[str]) -> None:
        """Expects the next element to have the counts of this one."""
        add = self.source.add
        small = " and ".join(f"{self.bias} <= {count} < {COUNT_LIMIT}" for count in counts)
        with self.source.block(f"if {small}:"):
            add(f"{self._name('read')}, {self._name('size')} = {self.readers}({', '.join(counts)})")
            add(f"{self._name('last')} = end - {self._name('size')}")
            for index, count in enumerate(counts):
                add(f"{self._name('count', index)} = {count}")
                if index:
                    add(f"{self._position(index)} = {self._name('end', index - 1)} + {len(self.runs[index])}")
                add(f"{self._name('end', index)} = {self._position(index)} + {count} + {1 - self.bias}")
        with self.source.block("else:"):
            add(f"{self._name('last')} = -1")
