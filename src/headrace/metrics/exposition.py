"""Metrics as Prometheus reads them: the text format 0.0.4."""

import logging
from collections.abc import Iterator
from math import inf, isinf, isnan
from typing import Any, Final

from headrace.metrics.instruments import Counter, Histogram, Meter
from headrace.metrics.registry import AnyFamily, Family, Kind, Labels, Number, Reading, Registry

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

logger = logging.getLogger("headrace.metrics")


def render(registry: Registry) -> Iterator[str]:
    """The whole page, line by line, so that it can be made in slices.

    A metric whose reading fails is left out and logged; the others are shown all the same."""
    for family in registry:
        try:
            yield from _family(family)
        except Exception:
            logger.exception("metric %s could not be read", family.name)


def _family(family: AnyFamily) -> Iterator[str]:
    if isinstance(family, Reading):
        yield _heading(family.name, family.help, family.kind.value)
        for values, number in family.read():
            yield f"{family.name}{_labels(family.label_names, values)} {spell(number)}\n"
    elif family.kind is Kind.METER:
        yield from _meters(family)
    else:
        yield _heading(family.name, family.help, family.kind.value)
        children: list[tuple[Labels, Counter | Histogram | Meter]] = list(family.children.items())
        for values, child in children:
            if isinstance(child, Histogram):
                yield from _histogram(family.name, family.label_names, values, child)
            else:
                yield f"{family.name}{_labels(family.label_names, values)} {spell(child.value)}\n"


def _histogram(name: str, label_names: Labels, values: Labels, histogram: Histogram) -> Iterator[str]:
    with_bound = (*label_names, "le")
    cumulative = 0
    last_exposed = len(histogram.bounds) - 1
    for index, bound in enumerate(histogram.bounds):
        cumulative += histogram.counts[index]
        if index % histogram.exposed_step == 0 or index == last_exposed:
            labels = _labels(with_bound, (*values, f"{bound:.6g}"))
            yield f"{name}_bucket{labels} {cumulative}\n"
    yield f"{name}_bucket{_labels(with_bound, (*values, '+Inf'))} {histogram.count}\n"
    labels = _labels(label_names, values)
    yield f"{name}_sum{labels} {spell(histogram.total)}\n"
    yield f"{name}_count{labels} {histogram.count}\n"


def _meters(family: Family[Any]) -> Iterator[str]:
    base = family.name.removesuffix("_total")
    meters: list[tuple[str, Meter]] = [
        (_labels(family.label_names, values), meter) for values, meter in family.children.items()
    ]
    yield _heading(f"{base}_total", family.help, "counter")
    for labels, meter in meters:
        yield f"{base}_total{labels} {spell(meter.value)}\n"
    for suffix in ("one_minute_rate", "five_minute_rate", "fifteen_minute_rate"):
        shown = f"{base}_{suffix.replace('_', '')}"
        yield _heading(shown, f"{family.help} (per second)", "gauge")
        for labels, meter in meters:
            yield f"{shown}{labels} {spell(getattr(meter, suffix))}\n"


def _heading(name: str, help: str, kind: str) -> str:
    escaped = help.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {escaped}\n# TYPE {name} {kind}\n"


def _labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def escape(value: str) -> str:
    """A label's value as it stands between quotes."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def spell(number: Number) -> str:
    """A number as Prometheus reads it."""
    if isinstance(number, int):
        return str(int(number))
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "+Inf" if number == inf else "-Inf"
    return repr(number)
