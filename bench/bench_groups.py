"""A node's group coordinator beside Kafka's: commits, rebalances, memory. One machine, in turns."""

import itertools
import os
import time
from contextlib import ExitStack

from bench.bench_node import SECONDS, SECONDS_VARIABLE, Contest
from bench.group_members import (
    Member,
    await_coordinator,
    check_committed,
    commit_frame,
    know_each_other,
    settle,
)
from bench.harness import Row, spell_time
from bench.node_brokers import Broker, brokers, resident_bytes
from bench.node_starts import first_start
from bench.node_wire import WireClient, create_topic
from headrace.errors import ErrorCode

TOPIC = "committed"
PARTITIONS = 8
GROUPS = 8
MEMBERS = 100
IDLE_GROUPS = 5_000
PIPELINED = 50
SETTLE_ROUNDS = 2

_numbers = itertools.count()


def run() -> list[Row]:
    """All rows."""
    seconds = float(os.environ.get(SECONDS_VARIABLE, SECONDS))
    with brokers() as (ours, theirs, reason):
        if theirs is None:
            print(f"Kafka cannot be had, so only our own figures follow: {reason}")
        contest = Contest([ours] if theirs is None else [ours, theirs], seconds)
        for broker in contest.brokers:
            first_start(broker)
            await_coordinator(broker)
            with WireClient(broker.host, broker.port) as client:
                create_topic(client, TOPIC, PARTITIONS)
        return [*_commit_rows(contest), *_member_rows(contest), *_memory_rows(contest)]


def _commit_rows(contest: Contest) -> list[Row]:
    seconds = contest.seconds / 2
    # Kafka's code is compiled while it runs, so it gets to run before it is measured.
    contest.each(lambda broker: _commits_per_second(broker, PARTITIONS, PIPELINED, seconds * 2))
    return [
        contest.highest(
            f"offset commits, {GROUPS} groups, one at a time",
            1.0,
            _spell_rate,
            lambda broker: _commits_per_second(broker, 1, 1, seconds),
        ),
        contest.highest(
            f"the same with {PARTITIONS} partitions each",
            1.0,
            _spell_rate,
            lambda broker: _commits_per_second(broker, PARTITIONS, 1, seconds),
        ),
        contest.highest(
            f"offset commits, {PIPELINED} at a time",
            1.0,
            _spell_rate,
            lambda broker: _commits_per_second(broker, 1, PIPELINED, seconds),
        ),
    ]


def _commits_per_second(broker: Broker, partitions: int, at_once: int, seconds: float) -> float:
    """Requests a second; every group waits for its replies before it commits again."""
    with ExitStack() as stack:
        clients = [stack.enter_context(WireClient(broker.host, broker.port)) for _ in range(GROUPS)]
        frames = [commit_frame(f"committing-{at}", TOPIC, partitions) * at_once for at in range(GROUPS)]
        count = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            for client, frame in zip(clients, frames, strict=True):
                client.socket.sendall(frame)
            for client in clients:
                for _ in range(at_once):
                    reply = client.frame()
            count += GROUPS * at_once
        elapsed = time.perf_counter() - started
        check_committed(reply)
    return count / elapsed


def _member_rows(contest: Contest) -> list[Row]:
    figures = contest.each(_seconds_to_settle, SETTLE_ROUNDS)
    best = [min(rounds) for rounds in figures]
    ratio = best[0] / best[1] if len(best) > 1 else None
    spelt = [spell_time(each) for each in best]
    theirs = spelt[1] if len(spelt) > 1 else ""
    name = f"{MEMBERS} members settle after one joins"
    return [Row(name, spelt[0], theirs, ratio, 1.0, higher_is_better=False)]


def _seconds_to_settle(broker: Broker) -> float:
    """A group is stable; somebody joins; the time until all have their parts anew."""
    group = f"settling-{next(_numbers)}"
    members = [Member(broker, group) for _ in range(MEMBERS)]
    newcomer = Member(broker, group)
    try:
        know_each_other(members)
        settle(members)
        know_each_other([newcomer])
        started = time.perf_counter()
        newcomer.send_join()
        for member in members:
            while member.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
                pass
        for member in members:
            member.send_join()
        everybody = [*members, newcomer]
        for member in everybody:
            member.on_joined()
        for member in everybody:
            member.send_sync()
        for member in everybody:
            member.on_synced()
        return time.perf_counter() - started
    finally:
        for member in (*members, newcomer):
            member.close()


def _memory_rows(contest: Contest) -> list[Row]:
    return [
        contest.lowest(
            "memory per 1,000 idle groups", None, lambda size: f"{size / 1024:.0f} KB", _bytes_per_thousand
        )
    ]


def _bytes_per_thousand(broker: Broker) -> float:
    before = resident_bytes(broker.pid)
    with WireClient(broker.host, broker.port) as client:
        for start in range(0, IDLE_GROUPS, PIPELINED):
            names = range(start, start + PIPELINED)
            client.socket.sendall(b"".join(commit_frame(f"idle-{at}", TOPIC, 1) for at in names))
            for _ in names:
                reply = client.frame()
        check_committed(reply)
    return max(resident_bytes(broker.pid) - before, 0) / (IDLE_GROUPS / 1000)


def _spell_rate(rate: float) -> str:
    return f"{rate:,.0f}/s"
