"""The metrics of one node, by name. There is no global registry: whoever counts is handed one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from headrace.metrics.instruments import LATENCY_MS, Counter, Histogram, Meter
from headrace.metrics.names import check_label, check_name

Instrument = TypeVar("Instrument", bound=Counter | Histogram | Meter)

Number: TypeAlias = int | float
Labels: TypeAlias = tuple[str, ...]
Readings: TypeAlias = Iterable[tuple[Labels, Number]]


class Kind(Enum):
    """What Prometheus is told a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    METER = "meter"


class Family(Generic[Instrument]):
    """The instruments of one name, one for each combination of label values; made when first asked for."""

    __slots__ = ("_make", "children", "help", "kind", "label_names", "name")

    def __init__(
        self, name: str, help: str, kind: Kind, label_names: Labels, make: Callable[[], Instrument]
    ) -> None:
        self.name = name
        self.help = help
        self.kind = kind
        self.label_names = label_names
        self.children: dict[Labels, Instrument] = {}
        self._make = make

    def of(self, *values: str) -> Instrument:
        """The instrument for these label values, in the order of the label names."""
        child = self.children.get(values)
        if child is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} has the labels {self.label_names}, not {len(values)} values")
            child = self.children[values] = self._make()
        return child

    def remove(self, *values: str) -> None:
        """Forget the instruments whose first labels have these values: those of a deleted topic, say."""
        for labels in [labels for labels in self.children if labels[: len(values)] == values]:
            del self.children[labels]


class Reading:
    """Values that are asked for when somebody looks: of counters and sizes that others keep anyway."""

    __slots__ = ("help", "kind", "label_names", "name", "read")

    def __init__(
        self, name: str, help: str, kind: Kind, label_names: Labels, read: Callable[[], Readings]
    ) -> None:
        self.name = name
        self.help = help
        self.kind = kind
        self.label_names = label_names
        self.read = read


AnyFamily: TypeAlias = Family[Counter] | Family[Histogram] | Family[Meter] | Reading


class Registry:
    """Metrics in the order in which they were added. A name is given once."""

    __slots__ = ("_families", "_meters", "_now_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self._families: dict[str, AnyFamily] = {}
        self._meters: list[Family[Meter]] = []
        self._now_ms = now_ms

    def __iter__(self) -> Iterator[AnyFamily]:
        return iter(list(self._families.values()))

    def counter(self, name: str, help: str) -> Counter:
        """A counter without labels. By custom its name ends in `_total`."""
        return self.counters(name, help, ()).of()

    def counters(self, name: str, help: str, label_names: Sequence[str]) -> Family[Counter]:
        """Counters with labels."""
        family = Family(name, help, Kind.COUNTER, tuple(label_names), Counter)
        self._add(family)
        return family

    def histogram(self, name: str, help: str, bounds: Sequence[float] = LATENCY_MS) -> Histogram:
        """A histogram without labels."""
        return self.histograms(name, help, (), bounds).of()

    def histograms(
        self, name: str, help: str, label_names: Sequence[str], bounds: Sequence[float] = LATENCY_MS
    ) -> Family[Histogram]:
        """Histograms with labels."""
        family = Family(name, help, Kind.HISTOGRAM, tuple(label_names), lambda: Histogram(bounds))
        self._add(family)
        return family

    def meter(self, name: str, help: str) -> Meter:
        """A meter without labels."""
        return self.meters(name, help, ()).of()

    def meters(self, name: str, help: str, label_names: Sequence[str]) -> Family[Meter]:
        """Meters with labels: a count that ends in `_total`, and its rates."""
        family = Family(name, help, Kind.METER, tuple(label_names), lambda: Meter(self._now_ms))
        self._add(family)
        self._meters.append(family)
        return family

    def gauge(self, name: str, help: str, read: Callable[[], Number]) -> None:
        """A value that goes up and down, asked for when somebody looks."""
        self.gauges(name, help, (), lambda: (((), read()),))

    def gauges(self, name: str, help: str, label_names: Sequence[str], read: Callable[[], Readings]) -> None:
        """Values with labels that go up and down."""
        self._add(Reading(name, help, Kind.GAUGE, tuple(label_names), read))

    def count(self, name: str, help: str, read: Callable[[], Number]) -> None:
        """A count that somebody else keeps."""
        self.counts(name, help, (), lambda: (((), read()),))

    def counts(self, name: str, help: str, label_names: Sequence[str], read: Callable[[], Readings]) -> None:
        """Counts with labels that somebody else keeps."""
        self._add(Reading(name, help, Kind.COUNTER, tuple(label_names), read))

    def advance(self, now_ms: int) -> None:
        """Let time pass for the meters; to be called every five seconds or so."""
        self._now_ms = now_ms
        for family in self._meters:
            for meter in family.children.values():
                meter.advance(now_ms)

    def _add(self, family: AnyFamily) -> None:
        check_name(family.name)
        for label in family.label_names:
            check_label(label)
        if family.name in self._families:
            raise ValueError(f"there is a metric named {family.name} already")
        self._families[family.name] = family
