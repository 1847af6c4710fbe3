import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Reads commands for a log, one a line, and answers each with a line. */
public class LogScript {
    private final Map<String, String> settings = new HashMap<>();
    private File directory;
    private UnifiedLog log;

    public static void main(String[] arguments) throws Exception {
        LogScript script = new LogScript();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.append(script.answer(line.split(" "))).append('\n');
        }
        System.out.print(answers);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private String answer(String[] words) {
        try {
            return perform(words);
        } catch (RecordValidationException refused) {
            return "error " + Errors.forException(refused.invalidException()).code();
        } catch (Throwable failure) {
            short code = Errors.forException(failure).code();
            return code == -1 ? "error " + failure.getClass().getSimpleName() : "error " + code;
        }
    }

    private String perform(String[] words) throws Exception {
        switch (words[0]) {
            case "set":
                settings.put(words[1], words[2]);
                return "set";
            case "open":
                directory = new File(words[1]);
                log = open(Long.parseLong(words[2]), Long.parseLong(words[3]), words[4].equals("clean"));
                return state();
            case "close":
                log.flush(true);
                log.close();
                return "closed";
            case "lead":
                return lead(words);
            case "follow":
                return info(log.appendAsFollower(records(words[1]), Integer.parseInt(words[2])));
            case "truncate":
                return String.valueOf(log.truncateTo(Long.parseLong(words[1])));
            case "restart":
                log.truncateFullyAndStartAt(Long.parseLong(words[1]), Optional.empty());
                return state();
            case "roll":
                log.roll();
                return state();
            case "watermark":
                log.updateHighWatermark(Long.parseLong(words[1]));
                return state();
            case "start":
                boolean moved = log.maybeIncrementLogStartOffset(
                    Long.parseLong(words[1]), LogStartOffsetIncrementReason.ClientRecordDeletion);
                return moved + " " + state();
            case "retain":
                return log.deleteOldSegments() + " " + state();
            case "read":
                return read(Long.parseLong(words[1]), Integer.parseInt(words[2]), words[3], words[4].equals("1"));
            case "time":
                return log.fetchOffsetByTimestamp(Long.parseLong(words[1]), Optional.empty()).timestampAndOffsetOpt()
                    .map(found -> found.timestamp + " " + found.offset + " " + found.leaderEpoch.orElse(null))
                    .orElse("none");
            case "epoch":
                return log.endOffsetForEpoch(Integer.parseInt(words[1]))
                    .map(end -> end.epoch() + " " + end.offset()).orElse("none");
            case "lead-epoch":
                log.assignEpochStartOffset(Integer.parseInt(words[1]), log.logEndOffset());
                return state();
            case "state":
                return state();
            default:
                return "unknown " + words[0];
        }
    }

    private String lead(String[] words) throws Exception {
        AppendOrigin origin = AppendOrigin.valueOf(words[3]);
        return info(log.appendAsLeader(records(words[1]), Integer.parseInt(words[2]), origin,
            RequestLocal.noCaching(), VerificationGuard.SENTINEL, Short.parseShort(words[4])));
    }

    private static String info(LogAppendInfo info) {
        return info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime();
    }

    private static MemoryRecords records(String text) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(text)));
    }

    private String read(long offset, int size, String isolation, boolean atLeastOne) throws Exception {
        FetchDataInfo found = log.read(offset, size, FetchIsolation.valueOf(isolation), atLeastOne);
        String aborted = found.abortedTransactions
            .map(listed -> listed.stream().map(each -> each.producerId() + ":" + each.firstOffset())
                .collect(Collectors.joining(",", "[", "]"))).orElse("none");
        return found.records.sizeInBytes() + " " + found.firstEntryIncomplete + " "
            + found.fetchOffsetMetadata.segmentBaseOffset + " " + found.fetchOffsetMetadata.relativePositionInSegment
            + " " + aborted;
    }

    private String state() {
        String segments = log.logSegments().stream().map(each -> each.baseOffset() + ":" + each.size())
            .collect(Collectors.joining(","));
        String epochs = log.leaderEpochCache().epochEntries().stream()
            .map(each -> each.epoch() + ":" + each.startOffset()).collect(Collectors.joining(","));
        Map<Long, String> producers = new TreeMap<>();
        log.producerStateManager().activeProducers().forEach((id, entry) -> producers.put(id,
            id + ":" + entry.producerEpoch() + ":" + entry.lastDataOffset() + ":" + entry.coordinatorEpoch()
                + ":" + entry.currentTxnFirstOffset().orElse(-1)));
        return log.logStartOffset() + " " + log.highWatermark() + " " + log.lastStableOffset() + " "
            + log.logEndOffset() + " " + log.recoveryPoint() + " [" + segments + "] [" + epochs + "] ["
            + String.join(",", producers.values()) + "]";
    }

    private UnifiedLog open(long logStart, long recoveryPoint, boolean clean) throws Exception {
        Files.createDirectories(directory.toPath());
        return UnifiedLog.create(directory, new LogConfig(settings), logStart, recoveryPoint, new Idle(),
            new BrokerTopicStats(), new Still(), 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(4), clean, Optional.empty());
    }

    /** Runs nothing but what keeps files up to date: the rest that Kafka does later is not compared. */
    private static class Idle implements Scheduler {
        private final ScheduledExecutorService executor = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });

        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (name.startsWith("leader-epoch-cache-flush")) {
                task.run();
            }
            return executor.schedule(() -> { }, 1, TimeUnit.DAYS);
        }

        @Override
        public void resizeThreadPool(int size) { }
    }

    /** A clock that stands still. */
    private static class Still implements Time {
        private static final long NOW_MS = 1_700_000_000_000L;

        @Override
        public long milliseconds() {
            return NOW_MS;
        }

        @Override
        public long nanoseconds() {
            return NOW_MS * 1_000_000;
        }

        @Override
        public void sleep(long ms) { }

        @Override
        public void waitObject(Object monitor, Supplier<Boolean> condition, long deadlineMs) { }
    }
}
