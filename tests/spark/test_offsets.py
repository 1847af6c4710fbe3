"""Offsets in the checkpoint: readable, always written the same way, and understood again."""

import json
from uuid import UUID

import pytest

from headrace.spark.offsets import Offsets, OffsetsUnreadable, read_id, spell_id
from headrace.types import ZERO_UUID, TopicPartition

ID = UUID("9f9c1a40-6c1e-4a7b-8b1a-0d6d2f6f1f11")
A0, A2, A10, B0 = (TopicPartition(*pair) for pair in (("a", 0), ("a", 2), ("a", 10), ("b", 0)))


def test_offsets_are_written_by_topic_with_its_id() -> None:
    offsets = Offsets({B0: 3, A10: 9, A2: 7, A0: 5}, {"a": ID})
    text = json.dumps(offsets.to_json())
    assert text == '{"a": {"id": "n5waQGweSnuLGg1tL28fEQ", "0": 5, "2": 7, "10": 9}, "b": {"0": 3}}'


def test_what_was_written_is_understood_and_written_the_same_again() -> None:
    offsets = Offsets({B0: 3, A10: 9, A0: 5}, {"a": ID})
    text = json.dumps(offsets.to_json())
    again = Offsets.from_json(json.loads(text))
    assert (again.positions, again.ids) == (offsets.positions, offsets.ids)
    assert json.dumps(again.to_json()) == text


def test_a_checkpoint_of_sparks_own_source_is_understood() -> None:
    assert Offsets.from_json({"a": {"0": 5, "2": 7}}) == Offsets({A0: 5, A2: 7}, {})


def test_a_topic_without_an_id_has_none_written() -> None:
    assert Offsets({A0: 5}, {"a": ZERO_UUID}).to_json() == {"a": {"0": 5}}


def test_nothing_is_something_to_write_as_well() -> None:
    assert Offsets({}).to_json() == {}
    assert Offsets.from_json({}) == Offsets({})


@pytest.mark.parametrize(
    "found",
    [None, [], {"a": 5}, {"a": {"0": "5"}}, {"a": {"x": 5}}, {"a": {"0": -1}}, {"a": {"id": "short"}}],
)
def test_the_checkpoint_of_another_source_is_refused(found: object) -> None:
    with pytest.raises(OffsetsUnreadable, match="expected offsets"):
        Offsets.from_json(found)


def test_ids_are_spelt_as_kafkas_tools_spell_them() -> None:
    assert read_id(spell_id(ID)) == ID
    assert len(spell_id(ID)) == 22
