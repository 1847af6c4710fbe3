"""Patterns of topics: Java's syntax, as far as it means the same here."""

import pytest

from headrace.spark.errors import OptionRefused
from headrace.spark.selection import SubscribePattern

NAMES = ["orders", "orders.eu", "orders-2", "Orders", "other", "x.y"]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("^orders$", ["orders"]),
        ("orders", ["orders", "orders-2", "orders.eu"]),
        ("rder", ["Orders", "orders", "orders-2", "orders.eu"]),
        ("nothing", []),
        ("(?i)^orders$", ["Orders", "orders"]),
        (r"orders\.\w+", ["orders.eu"]),
        (r"orders-\d", ["orders-2"]),
        (r"\Qx.y\E", ["x.y"]),
        (r"\Qorders.\E.*", ["orders.eu"]),
        (r"\Qx.y", ["x.y"]),
        ("(?<name>other)", ["other"]),
        ("o(?=t).*", ["other"]),
        ("ot++her", ["other"]),
    ],
)
def test_a_pattern_matches_anywhere_in_names(pattern: str, matching: list[str]) -> None:
    assert SubscribePattern(pattern).matching(NAMES) == matching


def test_letters_and_digits_are_those_of_ascii() -> None:
    assert SubscribePattern(r"^\w\d$").matching(["a1", "ä1", "a٣"]) == ["a1"]


@pytest.mark.parametrize("pattern", ["[a-z&&[^b]]", r"\p{Alpha}+", r"\h", "*", "[", "[[a]b]"])
def test_what_means_something_else_in_java_is_refused(pattern: str) -> None:
    with pytest.raises(OptionRefused, match="subscribePattern"):
        SubscribePattern(pattern).matching(NAMES)
