"""Dumps files one after the other: picks the dumper by a file's name, prints, and sums up at the end.

It writes to the two streams it is given and reads through the disk it is given, nothing else.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.cli.dump.dumped_file import INDEX_SUFFIX, LOG_SUFFIX, DumpedFile
from headrace.cli.dump.findings import Findings
from headrace.cli.dump.index_files import dump_offset_index, dump_time_index
from headrace.cli.dump.line import DumpError, Fields, Lines
from headrace.cli.dump.log_file import SNAPSHOT_SUFFIX, dump_log
from headrace.cli.dump.options import DumpOptions, OutputFormat
from headrace.cli.dump.state_files import (
    dump_checkpoint,
    dump_producer_snapshot,
    dump_transaction_index,
    is_checkpoint,
)
from headrace.ports import Disk

KNOWN_FILES = (
    ".log, .checkpoint, .index, .timeindex, .txnindex, .snapshot, leader-epoch-checkpoint and "
    "*-offset-checkpoint"
)
_BLOCK_CHARACTERS = 64 * 1024
_SLASHES = re.compile("/+")


class Stream(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object: ...


@dataclass(slots=True)
class Printer:
    """Gathers lines into blocks: a write for every record would be most of a dump's time."""

    out: Stream
    err: Stream
    format: OutputFormat
    _pending: list[str] = field(default_factory=list)
    _characters: int = 0

    def line(self, text: Callable[[], str], fields: Callable[[], Fields]) -> None:
        """Print one line in the form that was asked for."""
        if self.format is OutputFormat.TEXT:
            self._add(text())
        else:
            self.json_line(fields())

    def json_line(self, fields: Fields) -> None:
        """Print one JSON object."""
        self._add(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))

    def complain(self, text: str) -> None:
        """Say something on the error stream, after what was printed so far."""
        self.flush()
        self.err.write(text + "\n")

    def flush(self) -> None:
        """Hand over what has gathered."""
        if self._pending:
            self.out.write("".join(self._pending))
            self._pending.clear()
            self._characters = 0

    def _add(self, text: str) -> None:
        self._pending.append(text + "\n")
        self._characters += len(text)
        if self._characters >= _BLOCK_CHARACTERS:
            self.flush()


def dump_files(
    paths: Sequence[str], directory: str, disk: Disk, options: DumpOptions, printer: Printer
) -> bool:
    """Dump files, relative to `directory`; whether all could be read and nothing was found amiss.

    As with Kafka's tool, files of unknown kinds are passed over, and one that can't be read on ends the dump.
    """
    findings = Findings()
    all_known = True
    try:
        for given in paths:
            all_known &= _dump_file(_named(given, directory, disk), options, findings, printer)
    except DumpError as error:
        printer.complain(f"error: {error}")
        return False
    finally:
        printer.flush()
    _report(findings, printer)
    return all_known and findings.is_clean


def _named(given: str, directory: str, disk: Disk) -> DumpedFile:
    path = _SLASHES.sub("/", given)
    return DumpedFile(path, path if path.startswith("/") else f"{directory}/{path}", disk)


def _dump_file(dumped: DumpedFile, options: DumpOptions, findings: Findings, printer: Printer) -> bool:
    printer.line(lambda: f"Dumping {dumped.path}", lambda: {"kind": "file", "file": dumped.path})
    lines = _lines_of(dumped, options, findings)
    if lines is None:
        printer.complain(f"Ignoring unknown file {dumped.path}; a dump knows {KNOWN_FILES}")
        return False
    try:
        for line in lines:
            printer.line(line.text, line.fields)
    except OSError as error:
        raise DumpError(f"{dumped.path}: {error.strerror or error}") from error
    return True


def _lines_of(dumped: DumpedFile, options: DumpOptions, findings: Findings) -> Lines | None:
    suffix = "." + dumped.name.rpartition(".")[2] if "." in dumped.name else ""
    match suffix:
        case _ if suffix in (LOG_SUFFIX, SNAPSHOT_SUFFIX):
            return dump_log(dumped, options, findings)
        case _ if suffix == INDEX_SUFFIX:
            return dump_offset_index(dumped, options, findings)
        case ".timeindex":
            return dump_time_index(dumped, options, findings)
        case ".snapshot":
            return dump_producer_snapshot(dumped, findings)
        case ".txnindex":
            return dump_transaction_index(dumped, findings)
        case _ if is_checkpoint(dumped.name):
            return dump_checkpoint(dumped)
        case _:
            return None


def _report(findings: Findings, printer: Printer) -> None:
    if printer.format is OutputFormat.TEXT:
        for text in findings.text():
            printer.complain(text)
    else:
        for fields in findings.fields():
            printer.json_line(fields)
        printer.flush()
