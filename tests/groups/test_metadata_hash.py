"""The number that stands for a group's topics is the one Kafka 4.3.1 computes."""

from uuid import UUID

from headrace.groups.metadata_hash import group_hash, topic_hash

# The expected numbers were printed by the hash library that Kafka 4.3.1 uses, fed as Kafka feeds it.


def test_the_hash_of_a_topic_is_kafkas() -> None:
    topic_id = UUID("01234567-89ab-cdef-fedc-ba9876543210")
    assert topic_hash(topic_id, "orders", [[], ["a"], ["rack-ü😀", "a"]]) == 3927653442891251595


def test_the_hash_of_a_topic_with_many_partitions_is_kafkas() -> None:
    topic_id = UUID(int=(1 << 64) | ((1 << 64) - 2))
    assert topic_hash(topic_id, "big", [[f"r{index % 3}"] for index in range(200)]) == 2555398708968173871


def test_the_hash_of_a_group_takes_its_topics_in_the_order_of_their_names() -> None:
    assert group_hash({"a": 5, "b": -7}) == group_hash({"b": -7, "a": 5}) == -4646943608980624969


def test_a_group_without_topics_has_the_hash_zero() -> None:
    assert group_hash({}) == 0


def test_a_changed_rack_or_partition_count_changes_the_hash() -> None:
    topic_id = UUID(int=7)
    one = topic_hash(topic_id, "t", [["a"]])
    assert one != topic_hash(topic_id, "t", [["b"]])
    assert one != topic_hash(topic_id, "t", [["a"], ["a"]])
    assert one != topic_hash(UUID(int=8), "t", [["a"]])
