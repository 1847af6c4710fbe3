"""Keys of the metadata quorum and of the controller's log."""

from headrace.config.keys.notation import BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM, STRING, key
from headrace.config.rules import BootstrapServers, Range, Voters

KEYS = (
    key("controller.quorum.voters", LIST, (), HIGH, Voters()).means(
        "The controllers that vote, as `id@host:port` separated by commas. Leave it empty where the set "
        "of voters is kept in the metadata log."
    ),
    key("controller.quorum.bootstrap.servers", LIST, (), HIGH, BootstrapServers()).means(
        "Addresses at which a node finds the metadata quorum, as `host:port` separated by commas."
    ),
    key("controller.quorum.election.timeout.ms", INT, 1000, HIGH, Range(0)).means(
        "How long a candidate waits for votes before a new election, in milliseconds."
    ),
    key("controller.quorum.fetch.timeout.ms", INT, 2000, HIGH, Range(0)).means(
        "A voter that could not fetch from the leader for this many milliseconds starts an election; a "
        "leader that heard from no majority resigns."
    ),
    key("controller.quorum.election.backoff.max.ms", INT, 1000, HIGH, Range(0)).means(
        "The longest pause after a lost election, in milliseconds."
    ),
    key("controller.quorum.append.linger.ms", INT, 25, MEDIUM, Range(0)).means(
        "How long the leader collects metadata records before it writes them, in milliseconds. "
        "No effect while a node is alone."
    ),
    key("controller.quorum.request.timeout.ms", INT, 2000, MEDIUM, Range(0)).means(
        "How long a quorum member waits for the answer to a request, in milliseconds. "
        "No effect while a node is alone."
    ),
    key("controller.quorum.retry.backoff.ms", INT, 20, LOW, Range(0)).means(
        "Pause before a failed request to the quorum is sent again, in milliseconds."
    ),
    key("controller.quorum.fetch.max.bytes", INT, 1_048_576, LOW, Range(1)).means(
        "How many bytes of the metadata log one fetch carries."
    ),
    key("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, LOW, Range(1)).means(
        "How many bytes of a metadata snapshot one fetch carries."
    ),
    key("controller.quorum.auto.join.enable", BOOLEAN, False, LOW).means(
        "Whether a controller that is not among the voters adds itself to them."
    ),
    key("metadata.log.dir", STRING, None, HIGH).means(
        "The directory of the metadata log; the first data directory if it is not set."
    ),
    key("metadata.log.segment.bytes", INT, 1_073_741_824, HIGH, Range(8_388_608)).means(
        "Size at which a segment of the metadata log is closed, in bytes."
    ),
    key("metadata.log.segment.ms", LONG, 604_800_000, HIGH).means(
        "Age at which a segment of the metadata log is closed, in milliseconds."
    ),
    key("metadata.max.retention.bytes", LONG, 104_857_600, HIGH).means(
        "Size of metadata log and snapshots above which old ones are deleted, in bytes."
    ),
    key("metadata.max.retention.ms", LONG, 604_800_000, HIGH).means(
        "Age at which old parts of the metadata log and snapshots are deleted, in milliseconds."
    ),
    key("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, HIGH, Range(1)).means(
        "How many bytes of new metadata records lead to a snapshot."
    ),
    key("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, HIGH, Range(0)).means(
        "Age of the last snapshot that leads to a new one if there are new records, in milliseconds; 0 "
        "for none by age."
    ),
    key("metadata.max.idle.interval.ms", INT, 500, LOW, Range(0), inert=True).means(
        "No effect in Headrace: a quorum of one writes no empty records while it is idle."
    ),
    key("sasl.mechanism.controller.protocol", STRING, "GSSAPI", HIGH).means(
        "The SASL mechanism for connections to the controllers."
    ),
    key("internal.metadata.log.segment.bytes", INT, None, LOW, internal=True).means(
        "Size of a metadata log segment for tests, in bytes; goes before `metadata.log.segment.bytes`."
    ),
    key("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, LOW, internal=True).means(
        "The largest batch of metadata records, in bytes. For tests."
    ),
    key("internal.metadata.delete.delay.millis", LONG, 60000, LOW, internal=True).means(
        "How long files of a deleted metadata segment stay on disk, in milliseconds. For tests."
    ),
    key(
        "controller.performance.sample.period.ms", LONG, 60000, MEDIUM, Range(100), internal=True, inert=True
    ).means(
        "Time between two reports on slow controller events. No effect in Headrace: its metrics tell the "
        "same."
    ),
    key(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        MEDIUM,
        Range(0),
        internal=True,
        inert=True,
    ).means(
        "Duration from which a controller event is logged. No effect in Headrace: its metrics tell the same."
    ),
)
