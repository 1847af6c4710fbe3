"""Mutated frames: nothing but the typed error comes out, and the decoder never allocates out of bounds."""

import random
import tracemalloc

import pytest

from headrace.protocol.codec import decode, decode_prefix, encode
from headrace.protocol.disk_records.streams_groups import (
    CopartitionGroup,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupCurrentMemberAssignmentValueTaskIds,
    StreamsGroupTopologyValue,
    Subtopology,
)
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.frame import decode_request, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
)
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.support_protocol import MessageMaker, every_message

ROUNDS = 16
FRAMES_PER_ROUND = 13_000
MEASURED_FRAMES_PER_ROUND = 1_300

#: The densest schemas have an object with a list or two per two to four bytes, and Python makes this of them.
ALLOCATION_FACTOR = 64
#: What a decoder, an error and its traceback take whatever the frame.
ALLOCATION_CONSTANT = 16_384

NASTY = (
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\0" * 5,
)


def mutate(frame: bytes, chance: random.Random) -> bytes:
    """The frame with one to three things done to it."""
    changed = bytearray(frame)
    for _ in range(chance.choice((1, 1, 2, 3))):
        spot = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0:
                del changed[spot:]
            case 1:
                changed[spot:spot] = chance.randbytes(chance.randint(1, 6))
            case 2:
                del changed[spot : spot + chance.randint(1, 6)]
            case 3:
                nasty = chance.choice(NASTY)
                changed[spot : spot + len(nasty)] = nasty
            case 4:
                changed += changed[spot : spot + chance.randint(1, 30)]
            case _:
                if spot < len(changed):
                    changed[spot] ^= 1 << chance.randrange(8)
    return bytes(changed)


def frames(seed: int, count: int) -> list[tuple[type[Message], int, bytes]]:
    """Mutated frames of all messages in all versions, taken in turn."""
    chance = random.Random(seed)
    maker = MessageMaker(seed)
    kinds = list(every_message())
    chance.shuffle(kinds)
    originals = [(cls, version, encode(maker.message(cls, version), version)) for cls, version in kinds]
    made = []
    for index in range(count):
        cls, version, frame = originals[index % len(originals)]
        made.append((cls, version, mutate(frame, chance)))
    return made


def survives(cls: type[Message], version: int, frame: bytes) -> bool:
    """Whether a frame is decoded; then it can be encoded, and what comes out means the same."""
    try:
        message = decode(cls, version, frame)
    except MalformedMessage as error:
        if error.reason == "unreadable":
            pytest.fail(f"the decoder refuses what the checker accepts: {error}")
        return False
    written = encode(message, version)
    assert encode(decode(cls, version, written), version) == written
    return True


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_nothing_but_the_typed_error_is_raised(seed: int) -> None:
    outcomes = [survives(*frame) for frame in frames(seed, FRAMES_PER_ROUND)]
    assert 0 < sum(outcomes) < FRAMES_PER_ROUND


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_frame_makes_the_decoder_allocate_more_than_a_small_multiple(seed: int) -> None:
    cases = frames(seed + 1000, MEASURED_FRAMES_PER_ROUND)
    for cls, version, frame in cases:
        _decode_either_way(cls, version, frame)
    tracemalloc.start()
    try:
        for cls, version, frame in cases:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            _decode_either_way(cls, version, frame)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak <= ALLOCATION_FACTOR * len(frame) + ALLOCATION_CONSTANT, (cls, version, frame)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(2))
def test_mutated_requests_with_their_headers_raise_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    maker = MessageMaker(seed)
    requests = [(cls, version) for cls, version in every_message() if cls.__name__.endswith("Request")]
    for cls, version in requests * 10:
        frame = encode_request(maker.message(cls, version), version, chance.getrandbits(31), "client")
        mutant = mutate(frame[4:], chance)
        try:
            header, message = decode_request(mutant)
        except MalformedMessage:
            continue
        assert header.request_api_key == message.API_KEY


def _decode_either_way(cls: type[Message], version: int, frame: bytes) -> None:
    for read in (decode, decode_prefix):
        try:
            read(cls, version, frame)
        except MalformedMessage:
            continue


DENSE_COUNT = 20_000
TASKS = [StreamsGroupCurrentMemberAssignmentValueTaskIds() for _ in range(DENSE_COUNT)]
GROUPS = [CopartitionGroup() for _ in range(DENSE_COUNT)]
ASSIGNMENTS = [CreatePartitionsAssignment() for _ in range(DENSE_COUNT)]
ENTRIES = [AlterClientQuotasRequestEntryData() for _ in range(DENSE_COUNT)]
DENSEST: list[tuple[Message, int]] = [
    (StreamsGroupCurrentMemberAssignmentValue(active_tasks=TASKS), 0),
    (StreamsGroupTopologyValue(subtopologies=[Subtopology(copartition_groups=GROUPS)]), 0),
    (CreatePartitionsRequest(topics=[CreatePartitionsTopic(assignments=ASSIGNMENTS)]), 3),
    (AlterClientQuotasRequest(entries=ENTRIES), 1),
]


@pytest.mark.parametrize(("message", "version"), DENSEST, ids=lambda value: type(value).__name__)
def test_even_the_densest_structures_stay_within_the_multiple(message: Message, version: int) -> None:
    frame = encode(message, version)
    assert len(frame) < 5 * DENSE_COUNT
    decode(type(message), version, frame)
    tracemalloc.start()
    try:
        decoded = decode(type(message), version, frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decoded == message
    assert peak <= ALLOCATION_FACTOR * len(frame) + ALLOCATION_CONSTANT
