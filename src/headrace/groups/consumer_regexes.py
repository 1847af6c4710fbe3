"""Subscriptions by regular expression: which topics the expressions of a group stand for, and since when.

Expressions are RE2's and have to match a whole name. They are resolved aside of the request that brought
them, all of a group at once and a bounded number of names at a time; the result is written as records."""

import logging
from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import Any, Final

import re2

from headrace.coordinator.shard import CoordinatorRecord, ShardTimers
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_rebalance import Outcome, nothing
from headrace.groups.consumer_changes import MemberChange, regexes_after
from headrace.groups.consumer_group import ConsumerGroup, ResolvedRegex
from headrace.groups.consumer_records import epoch_write, regex_tombstone, regex_write
from headrace.groups.group_counters import GroupCounters
from headrace.groups.group_registry import GroupRegistry
from headrace.groups.topic_hashes import TopicHashes
from headrace.metadata.image import MetadataImage

logger: Final = logging.getLogger("headrace.groups")

#: Expressions of a group are not resolved more often than this.
REFRESH_MIN_INTERVAL_MS: Final = 10_000
#: How many names are matched before others get their turn on the loop.
_NAMES_PER_TURN: Final = 2_000
#: The words that clients know, by those of the library.
_FAULTS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


class RegexChange(Enum):
    """What a member's change means for the expressions of its group."""

    NONE = 0
    UNRESOLVED = 1
    """The member has another expression; what it stands for is found out later."""
    RESOLVED = 2
    """The member has another expression, or none any more, and it is known what that stands for."""


class Resolution:
    """One pass over the topics for the expressions of a group."""

    __slots__ = ("_names", "_patterns", "matches", "started_ms", "version")

    def __init__(self, regexes: set[str], image: MetadataImage, now_ms: int) -> None:
        self.version = image.offset
        self.started_ms = now_ms
        self.matches: dict[str, set[str]] = {regex: set() for regex in sorted(regexes)}
        self._patterns = [
            (pattern, found)
            for regex, found in self.matches.items()
            if (pattern := _compiled_or_none(regex)) is not None
        ]
        self._names: Iterator[str] = iter(tuple(image.topics))

    def go_on(self) -> bool:
        """Match some names; whether all have been."""
        budget = max(_NAMES_PER_TURN // max(len(self._patterns), 1), 1)
        for name in self._names:
            for pattern, found in self._patterns:
                if pattern.fullmatch(name) is not None:
                    found.add(name)
            budget -= 1
            if not budget:
                return False
        return True


class Regexes:
    """The expressions of a shard's groups."""

    __slots__ = (
        "_counters",
        "_groups",
        "_hashes",
        "_image",
        "_refresh_interval_ms",
        "_timers",
        "topics_created_at",
    )

    def __init__(
        self,
        groups: GroupRegistry,
        timers: ShardTimers,
        image: MetadataImage,
        hashes: TopicHashes,
        counters: GroupCounters,
        refresh_interval_ms: int,
    ) -> None:
        self._counters = counters
        self._groups = groups
        self._timers = timers
        self._image = image
        self._hashes = hashes
        self._refresh_interval_ms = refresh_interval_ms
        #: The version of the metadata that last had new topics, as far as this shard knows.
        self.topics_created_at = -1

    def update(self, change: MemberChange) -> RegexChange:
        """A member may have another expression; the group's are resolved anew if it is time."""
        group, old, new = change.group, change.before.regex, change.after.regex
        outcome, is_new = RegexChange.NONE, False
        if (old or "") != (new or ""):
            outcome = RegexChange.UNRESOLVED
            if old and group.regex_count(old) == 1:
                change.records.append(regex_tombstone(group.group_id, old))
            if not new:
                outcome = RegexChange.RESOLVED
            elif group.regex_count(new) == 0:
                compiled(new)
                is_new = True
            elif new in group.regexes:
                outcome = RegexChange.RESOLVED
        if is_new or group.regex_counts:
            self._refresh(change, is_new)
        return outcome

    def _refresh(self, change: MemberChange, is_new: bool) -> None:
        group, key = change.group, ("regex", change.group.group_id)
        if self._timers.is_scheduled(key):
            return
        last = next(iter(group.regexes.values()), None)
        if last is not None and change.now_ms <= last.timestamp_ms + REFRESH_MIN_INTERVAL_MS:
            return
        regexes = regexes_after(change)
        is_due = (
            is_new
            or len(regexes) != len(group.regexes)
            or (0 if last is None else last.version) < self.topics_created_at
            or last is None
            or change.now_ms > last.timestamp_ms + self._refresh_interval_ms
        )
        if is_due and regexes:
            resolution = Resolution(regexes, self._image, change.now_ms)
            self._timers.schedule(key, 0, partial(self._resolve, group.group_id, resolution))

    def _resolve(self, group_id: str, resolution: Resolution, now_ms: int) -> Outcome:
        if not resolution.go_on():
            self._timers.schedule(("regex", group_id), 0, partial(self._resolve, group_id, resolution))
            return nothing()
        group = self._groups.find(group_id)
        return self._resolved(group, resolution) if isinstance(group, ConsumerGroup) else nothing()

    def _resolved(self, group: ConsumerGroup, resolution: Resolution) -> Outcome:
        outcome = nothing()
        records: list[CoordinatorRecord] = []
        regexes = dict(group.regexes)
        bumps = False
        for regex, found in resolution.matches.items():
            if not group.regex_count(regex):
                continue
            known = regexes.get(regex)
            bumps |= found != (frozenset() if known is None else known.topics)
            regexes[regex] = ResolvedRegex(frozenset(found), resolution.version, resolution.started_ms)
            records.append(
                regex_write(group.group_id, regex, found, resolution.version, resolution.started_ms)
            )
        topics = set(group.topic_counts).union(*(each.topics for each in regexes.values()))
        metadata_hash = self._hashes.of(topics)
        if bumps or metadata_hash != group.metadata_hash:
            records.append(epoch_write(group.group_id, group.epoch + 1, metadata_hash))
            self._counters.consumer_rebalances += 1
            logger.info("group %s has epoch %d: its expressions changed", group.group_id, group.epoch + 1)
        outcome.records = records
        return outcome


def _compiled_or_none(regex: str) -> Any:
    """Expressions are checked when they come, but another broker may have written the log."""
    try:
        return compiled(regex)
    except KafkaError as error:
        logger.error("an expression in the log stands for no topics: %s", error.message)
        return None


def compiled(regex: str) -> Any:
    """An expression, ready to match; INVALID_REGULAR_EXPRESSION says what is wrong with it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        fault = error.args[0]
        text = fault.decode("utf-8", "replace") if isinstance(fault, bytes) else str(fault)
        said = text.split(": ", 1)[0]
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_FAULTS.get(said, said)}.",
        ) from error
