"""A client that means harm: valid requests of everything a node offers, bent in every way, and many at once.

It may do what it likes to topics of its own, but never to others: what would be a valid request to delete or
alter something else is not sent."""

import random
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from crc32c import crc32c

from headrace.errors import HeadraceError
from headrace.protocol.apis import APIS
from headrace.protocol.codec import decode_prefix
from headrace.protocol.frame import SIZE_BYTES, decode_request_header, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from tests.support_e2e import create_topic
from tests.support_node import PATIENCE_SECONDS, RawClient, RunningNode
from tests.support_protocol import MessageMaker

#: The first one lasts, so that there is always something to produce to; the others come and go.
TOPICS: Final = ("fuzz-0", "fuzz-1", "fuzz-2")
PASSING: Final = TOPICS[1:]
PARTITIONS_MAX: Final = 4
FRAMES_PER_VERSION: Final = 16
CONNECTIONS: Final = 24
BURST_MAX: Final = 16
#: How long a reply may take before the client hangs up on it: some requests ask to wait for weeks.
HANG_UP_SECONDS: Final = 0.1
POISONED_BATCHES: Final = 200
CHECKSUM_AT, CHECKED_FROM = 17, 21
LAST_OF_BURST: Final = 0x5E47
DELETE_TOPICS, DELETE_RECORDS, CREATE_TOPICS, CREATE_PARTITIONS = 20, 21, 19, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, UPDATE_FEATURES, UNREGISTER_BROKER = 33, 44, 57, 64
TOPIC_RESOURCE: Final = 2
BOMBS: Final = (
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff",
)

_size = struct.Struct(">i")


class Values:
    """Values for fields that lead into a node's handlers rather than to their first check."""

    def __init__(self, rng: random.Random) -> None:
        batches = [_batch(rng, compression, producer) for compression in Compression for producer in (-1, 7)]
        batches += [_poisoned(rng, rng.choice(batches)) for _ in range(POISONED_BATCHES)]
        names = [*TOPICS, *TOPICS, "fuzz-none", "", "__consumer_offsets"]
        self._by_field: dict[str, Sequence[Any]] = {
            "name": names,
            "topic": names,
            "topic_name": names,
            "resource_name": names,
            "resource_type": (2, 2, 2, 4, 8, 16, 32, 0, 99),
            "records": batches,
            "acks": (0, 1, 1, -1, -1, -1, 2),
            "index": (0, 1, 2, 3, -1, 99),
            "partition": (0, 1, 2, -1, 99),
            "partition_index": (0, 1, 2, -1, 99),
            "num_partitions": (1, 2, -1, 0, 2**31 - 1),
            "replication_factor": (1, -1, 3, 0),
            "max_wait_ms": (0, 0, 0, 0, 0, 0, 1, 5, 10, 2**31 - 1),
            "min_bytes": (0, 0, 1, 2**31 - 1),
            "fetch_offset": (0, 1, 100, -1, 2**62),
            "session_id": (0, 0, 1, 77),
            "session_epoch": (-1, 0, 1),
            "timestamp": (-1, -2, -3, -4, -5, 0, 2**62),
            "offset": (0, 1, -1, 2**62),
            "current_leader_epoch": (-1, 0, 1),
            "broker_id": (-1, 0, 2, 2**31 - 1),
            "config_operation": (0, 1, 2, 3, 9),
            "transactional_id": ("t", "t", "other", ""),
            "group_id": ("g", "g", "other", ""),
            "member_id": ("", "m"),
            "session_timeout_ms": (6_000, 6_000, 0, 2**31 - 1),
            "rebalance_timeout_ms": (100, -1),
            "cluster_id": (None, "other"),
        }

    def values_of(self, cls: type[Message], field: str) -> Sequence[Any] | None:
        if field == "name" and cls.__name__ in CONFIG_CLASSES:
            return ("retention.ms", "cleanup.policy", "max.message.bytes", "no.such.key", "")
        if field == "value" and cls.__name__ in CONFIG_CLASSES:
            return ("1000", "compact", "-1", "", None, "x" * 300)
        if field == "transactional_id" and cls.__name__ in TRANSACTIONAL_AT_WILL:
            return (None, None, None, "t")
        return self._by_field.get(field)

    def structure_of(self, cls: type[Message], field: str) -> "Values":
        return self


#: Requests of producers with and without transactions.
TRANSACTIONAL_AT_WILL: Final = frozenset({"ProduceRequest", "InitProducerIdRequest"})
CONFIG_CLASSES: Final = frozenset({"AlterableConfig", "CreatableTopicConfig", "CreateableTopicConfig"})


def _batch(rng: random.Random, compression: Compression, producer_id: int) -> bytes:
    records = [NewRecord(1_700_000_000_000, b"k%d" % each, rng.randbytes(20), ()) for each in range(5)]
    return build_batch(
        records,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=-1 if producer_id < 0 else 0,
    )


def _poisoned(rng: random.Random, batch: bytes) -> bytes:
    """A batch that is wrong somewhere, under a checksum that is right."""
    bent = bytearray(batch)
    for _ in range(rng.randint(1, 3)):
        bent[rng.randrange(CHECKED_FROM, len(bent))] = rng.getrandbits(8)
    struct.pack_into(">I", bent, CHECKSUM_AT, crc32c(bytes(bent[CHECKED_FROM:])))
    return bytes(bent)


def offered(node: RunningNode) -> Iterator[tuple[type[Message], int]]:
    """Every request in every version that the node says it takes."""
    with node.connect() as client:
        reply = client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert reply.api_keys
    for api in reply.api_keys:
        request = APIS[api.api_key].request_class()
        # Versions of Produce are offered for the sake of old clients that nobody has schemas for any more.
        for version in range(max(api.min_version, request.VERSION_MIN), api.max_version + 1):
            yield request, version


class Corpus:
    """Valid requests, and what can be made of them."""

    def __init__(self, node: RunningNode, seed: int) -> None:
        self._random = random.Random(seed)
        maker = MessageMaker(seed)
        values = Values(self._random)
        self.valid: list[bytes] = []
        self.kinds = list(offered(node))
        for request, version in self.kinds:
            for number in range(FRAMES_PER_VERSION):
                # The first is what a client sends that sets nothing.
                message = maker.message(request, version, values) if number else request()
                self.valid.append(encode_request(message, version, number, "fuzz"))

    def burst(self) -> list[bytes]:
        """Some frames to be sent together."""
        wanted = self._random.randint(1, BURST_MAX)
        frames: list[bytes] = []
        while len(frames) < wanted:
            frame = self._next()
            if is_harmless(frame[SIZE_BYTES:]):
                frames.append(frame)
        return frames

    def _next(self) -> bytes:
        frame = self._random.choice(self.valid)
        fate = self._random.random()
        if fate < 0.4:
            return frame
        body = bytearray(frame[SIZE_BYTES:])
        if fate < 0.7:
            self._flip(body)
        elif fate < 0.85:
            self._overwrite(body, self._random.choice(BOMBS))
        elif fate < 0.9:
            del body[self._random.randrange(len(body)) :]
        elif fate < 0.93:
            body += self._random.randbytes(self._random.randint(1, 64))
        elif fate < 0.96:
            self._splice(body)
        elif fate < 0.98:
            body[:] = self._random.randbytes(self._random.randint(0, 200))
        else:
            return self._missized(bytes(body))
        return _size.pack(len(body)) + body

    def _flip(self, body: bytearray) -> None:
        for _ in range(self._random.randint(1, 4)):
            body[self._random.randrange(len(body))] = self._random.getrandbits(8)

    def _overwrite(self, body: bytearray, bomb: bytes) -> None:
        position = self._random.randrange(len(body))
        body[position : position + len(bomb)] = bomb

    def _splice(self, body: bytearray) -> None:
        other = self._random.choice(self.valid)
        del body[self._random.randrange(len(body)) :]
        body += other[self._random.randrange(len(other)) :]

    def _missized(self, body: bytes) -> bytes:
        """A size that is not that of what follows: too large, negative, or that of a request without end."""
        size = self._random.choice((2**31 - 1, 104_857_601, 104_857_600, -1, -(2**31), len(body) + 1000))
        return _size.pack(size) + body


def is_harmless(frame: bytes) -> bool:
    """Whether a frame, should it be a valid request, changes nothing but topics of the fuzzer's own."""
    try:
        header, position = decode_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        if key not in _HARMLESS:
            return True
        request = decode_prefix(APIS[key].request_class(), version, frame, position)[0]
    except HeadraceError:
        return True
    return _HARMLESS[key](request)


def _deletes_own(request: Any) -> bool:
    return all(name in PASSING for name in request.topic_names) and all(
        topic.name in PASSING or topic.name is None for topic in request.topics
    )


def _creates_own_few(request: Any) -> bool:
    return request.validate_only or all(_is_own_and_small(topic) for topic in request.topics)


def _is_own_and_small(topic: Any) -> bool:
    if topic.name not in TOPICS:
        # Refused names are of interest, new topics are not: they would cost memory that is well spent.
        return topic.name in ("", "__consumer_offsets")
    count: int = getattr(topic, "num_partitions", getattr(topic, "count", 0))
    # More than a node can have is refused; what lies between would be made.
    return (count <= PARTITIONS_MAX or count > 1_000_000) and len(topic.assignments or ()) <= PARTITIONS_MAX


def _alters_own(request: Any) -> bool:
    return request.validate_only or all(
        each.resource_type == TOPIC_RESOURCE and each.resource_name in PASSING for each in request.resources
    )


_HARMLESS: Final[dict[int, Callable[[Any], bool]]] = {
    DELETE_TOPICS: _deletes_own,
    DELETE_RECORDS: lambda request: all(topic.name in PASSING for topic in request.topics),
    CREATE_TOPICS: _creates_own_few,
    CREATE_PARTITIONS: _creates_own_few,
    ALTER_CONFIGS: _alters_own,
    INCREMENTAL_ALTER_CONFIGS: _alters_own,
    UPDATE_FEATURES: lambda request: request.validate_only,
    UNREGISTER_BROKER: lambda request: request.broker_id != 1,
}


class Attacker:
    """One connection: it sends bursts until the node, or its own patience, has enough."""

    def __init__(self, assault: "Assault") -> None:
        self._assault = assault
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._sent = 0
        self._answered = 0
        self.gives_up_at = 0.0

    def attack(self) -> None:
        """Send the next burst, on a new connection if there is none."""
        frames = self._assault.corpus.burst()
        data = b"".join([*frames, self._assault.last_of_burst])
        if self._socket is None:
            self._socket = self._assault.connect(self)
        self._sent, self._answered = len(frames), 0
        self.gives_up_at = time.monotonic() + HANG_UP_SECONDS
        try:
            self._socket.send(data)
        except OSError:
            self._hang_up(1)

    def on_readable(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # What it was closed for was a request, too.
            self._hang_up(min(self._answered + 1, self._sent))
            return
        self._received += data
        self._take_replies()

    def _take_replies(self) -> None:
        received = self._received
        position = 0
        while len(received) >= position + 2 * SIZE_BYTES:
            size, correlation_id = struct.unpack_from(">ii", received, position)
            if len(received) < position + SIZE_BYTES + size:
                break
            position += SIZE_BYTES + size
            if correlation_id == LAST_OF_BURST:
                self._assault.handled += self._sent
                del received[:position]
                self.attack()
                return
            self._answered += 1
        del received[:position]

    def give_up(self) -> None:
        """Leave in the middle of whatever it is."""
        self._hang_up(self._answered)

    def _hang_up(self, handled: int) -> None:
        assert self._socket is not None
        self._assault.handled += handled
        self._assault.disconnect(self._socket)
        self._socket = None
        self._received.clear()
        self.attack()

    def close(self) -> None:
        if self._socket is not None:
            self._assault.disconnect(self._socket)
            self._socket = None


class Assault:
    """Many attackers. `handled` counts the requests that were answered, or that got a connection closed."""

    def __init__(self, node: RunningNode, seed: int) -> None:
        self._node = node
        create_topic(node.bootstrap, TOPICS[0], PARTITIONS_MAX)
        self.corpus = Corpus(node, seed)
        self.handled = 0
        self.last_of_burst = encode_request(ApiVersionsRequest(), 0, LAST_OF_BURST, None)
        self._selector = selectors.DefaultSelector()
        self._attackers = [Attacker(self) for _ in range(CONNECTIONS)]
        for attacker in self._attackers:
            attacker.attack()

    def run(self, until: int) -> None:
        """Go on until so many requests were handled."""
        while self.handled < until:
            for key, _ in self._selector.select(HANG_UP_SECONDS):
                key.data.on_readable()
            now = time.monotonic()
            for attacker in self._attackers:
                if attacker.gives_up_at < now:
                    attacker.give_up()

    def connect(self, attacker: Attacker) -> socket.socket:
        sock = socket.create_connection((self._node.host, self._node.port), PATIENCE_SECONDS)
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, attacker)
        return sock

    def disconnect(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        sock.close()

    def end(self) -> None:
        for attacker in self._attackers:
            attacker.close()
        self._selector.close()


class Lingerers:
    """Connections that say nothing, or begin a request and then say nothing."""

    def __init__(self, node: RunningNode, count: int, stack: ExitStack) -> None:
        self._whole = encode_request(ApiVersionsRequest(), 0, 2, "lingerer")
        self._clients = [_greeted(node, stack) for _ in range(count)]
        self._said = [number % (len(self._whole) // 2) for number in range(count)]
        for client, said in zip(self._clients, self._said, strict=True):
            client.socket.sendall(self._whole[:said])

    def finish(self) -> int:
        """Say the rest; how many were answered."""
        for client, said in zip(self._clients, self._said, strict=True):
            client.socket.sendall(self._whole[said:])
        return sum(client.receive(ApiVersionsResponse, 0, 2).error_code == 0 for client in self._clients)


def _greeted(node: RunningNode, stack: ExitStack) -> RawClient:
    """A client that was accepted for sure: more than a few at once would wait for the system to try again."""
    client = stack.enter_context(node.connect())
    assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
    return client


@contextmanager
def assault(node: RunningNode, seed: int) -> Iterator[Assault]:
    """Attackers for the length of a with block."""
    attack = Assault(node, seed)
    try:
        yield attack
    finally:
        attack.end()
