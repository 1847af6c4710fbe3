"""Feeds a writer from standard input: whole lines as they come, and no more than it has room for."""

import asyncio
from dataclasses import dataclass
from typing import Final

from headrace.cli.client_session import complain
from headrace.cli.producing.json_lines import parse_json
from headrace.cli.producing.lines import BadLine, LineCutter, Lines
from headrace.cli.producing.parsed import Parsed, ParseLines
from headrace.cli.producing.row_checks import first_unsendable
from headrace.cli.producing.standard_input import StandardInput
from headrace.cli.producing.text_lines import keyed_by, parse_values
from headrace.client.cluster import Cluster
from headrace.client.column_writer import ColumnWriter
from headrace.errors import HeadraceError
from headrace.records.arrow_input import UnusableColumns

STANDARD_INPUT: Final = 0
#: JSON may spell a byte in six characters, as in \u0000; the record is checked by its own size later.
_JSON_SPELLING: Final = 6
#: How long somebody who ended it is kept waiting without a word.
_QUIET_S: Final = 1.0
#: How soon a failed delivery is noticed while no input comes.
_FAILURE_CHECK_S: Final = 0.5


class ProduceFailed(HeadraceError):
    """Why not everything was written."""


@dataclass(frozen=True, slots=True)
class Produce:
    """Writes what standard input has to a topic."""

    topic: str
    is_json: bool
    key_separator: str | None

    async def __call__(self, cluster: Cluster) -> None:
        # A topic that is not there is told of before the first line is typed.
        await cluster.topics([self.topic])
        async with ColumnWriter(cluster, topic=self.topic) as writer:
            feed = _Feed(cluster, writer, self.topic, self._parser())
            try:
                await feed.run(StandardInput(STANDARD_INPUT))
            except BadLine as bad:
                await _end_at(bad, writer)
            except asyncio.CancelledError:
                # What was typed before Ctrl-C was meant to be written.
                await _flush_at_last(writer)
                raise
            await writer.flush()

    def _parser(self) -> ParseLines:
        if self.is_json:
            return parse_json
        return parse_values if self.key_separator is None else keyed_by(self.key_separator)


async def _flush_at_last(writer: ColumnWriter) -> None:
    """Write what was read before somebody ended it; who ends it once more is told what is lost by that."""
    flushing = asyncio.ensure_future(writer.flush())
    try:
        done, _ = await asyncio.wait([flushing], timeout=_QUIET_S)
        if not done:
            complain(f"{_unwritten(writer)} still to be written; end it once more to give up")
        await flushing
    except asyncio.CancelledError:
        flushing.cancel()
        complain(f"{_unwritten(writer)} given up, and may or may not have been written")
        raise


def _unwritten(writer: ColumnWriter) -> str:
    count = writer.report.pending
    return "1 record is" if count == 1 else f"{count} records are"


async def _end_at(bad: BadLine, writer: ColumnWriter) -> None:
    """Write what came before a bad line, and say what was and what was not written."""
    try:
        await writer.flush()
    except HeadraceError as error:
        raise ProduceFailed(f"{bad}; and before it {error}") from None
    written = writer.report.acknowledged
    noun = "record was" if written == 1 else "records were"
    raise ProduceFailed(f"{bad}; {written} {noun} written, nothing from line {bad.number} on") from None


class _Feed:
    """Lines on their way into a writer."""

    __slots__ = ("_cluster", "_cutter", "_parse", "_topic", "_writer")

    def __init__(self, cluster: Cluster, writer: ColumnWriter, topic: str, parse: ParseLines) -> None:
        self._cluster = cluster
        self._writer = writer
        self._topic = topic
        self._parse = parse
        spelling = _JSON_SPELLING if parse is parse_json else 1
        self._cutter = LineCutter(cluster.config.max_request_size * spelling)

    async def run(self, source: StandardInput) -> None:
        """Until the input ends; BadLine at the first line that can't be a record."""
        while chunk := await self._chunk(source):
            await self._write(self._cutter.feed(chunk))
        await self._write(self._cutter.rest())

    async def _chunk(self, source: StandardInput) -> bytes:
        """The next input; a delivery that fails meanwhile is raised."""
        reading = asyncio.ensure_future(source.chunk())
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=_FAILURE_CHECK_S)
                if self._writer.report.failed:
                    await self._writer.flush()
        finally:
            reading.cancel()
        return reading.result()

    async def _write(self, lines: Lines | None) -> None:
        if lines is None:
            return
        parsed = self._parse(lines)
        try:
            await self._take(parsed)
        except UnusableColumns as error:
            # Nothing was taken: what is before the row that can't be sent goes without it.
            cut = self._before_unsendable(parsed)
            if cut is None:
                raise
            await self._take(cut)
            raise cut.bad or error from None
        if parsed.bad is not None:
            raise parsed.bad

    async def _take(self, parsed: Parsed) -> None:
        if parsed.records.num_rows:
            await self._writer.write(parsed.records)

    def _before_unsendable(self, parsed: Parsed) -> Parsed | None:
        partitions = len(self._cluster.metadata.topics[self._topic].partitions)
        config = self._cluster.config
        limit = min(config.max_request_size, config.buffer_memory)
        found = first_unsendable(parsed.records, self._topic, partitions, limit)
        if found is None:
            return None
        row, reason = found
        return Parsed(parsed.records.slice(0, row), parsed.numbers, BadLine(parsed.numbers[row], reason))
