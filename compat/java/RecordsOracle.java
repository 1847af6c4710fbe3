// Answers questions about record batches with Apache Kafka's own classes.
//
// One question per input line, its words separated by spaces; bytes are hexadecimal, "-" where there are none.
//   append VERSION KEY=VALUE,... ORIGIN EPOCH NOW BATCH   append to a new log as its leader would
//   read BATCHES                                          every record, as the Java reader sees it
//   build CODEC LEVEL TYPE APPENDTIME COUNT SEED          a batch as the Java client writes it
//   filter NOW RETENTION OFFSETS BATCH                    what compaction keeps of a batch
// Each answer is one line of tab-separated fields.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class RecordsOracle {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "append":
                return append(Short.parseShort(words[1]), words[2], words[3], Integer.parseInt(words[4]),
                    Long.parseLong(words[5]), bytes(words[6]));
            case "read":
                return read(bytes(words[1]));
            case "build":
                return build(words[1], words[2], words[3], Long.parseLong(words[4]), Integer.parseInt(words[5]),
                    Long.parseLong(words[6]));
            case "filter":
                return filter(Long.parseLong(words[1]), Long.parseLong(words[2]), words[3], bytes(words[4]));
            default:
                throw new IllegalArgumentException("no such question: " + words[0]);
        }
    }

    private static byte[] bytes(String word) {
        return word.equals("-") ? new byte[0] : HEX.parseHex(word);
    }

    private static String append(short version, String settings, String origin, int epoch, long now, byte[] batch)
            throws Exception {
        Path parent = Files.createTempDirectory("oracle");
        File directory = new File(parent.toFile(), "topic-0");
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(batch));
            if (AppendOrigin.valueOf(origin) == AppendOrigin.CLIENT) {
                ProduceRequest.validateRecords(version, records);
            }
            UnifiedLog log = open(directory, settings, now);
            try {
                LogAppendInfo info = log.appendAsLeader(records, epoch, AppendOrigin.valueOf(origin));
                log.flush(true);
                byte[] stored = Files.readAllBytes(new File(directory, "00000000000000000000.log").toPath());
                return String.join("\t", "stored", Long.toString(info.maxTimestamp()),
                    Long.toString(info.logAppendTime()), HEX.formatHex(stored));
            } finally {
                log.close();
            }
        } catch (RecordValidationException refusal) {
            String errors = refusal.recordErrors().stream()
                .map(error -> error.batchIndex + "=" + error.message).collect(Collectors.joining("\t"));
            return refused(refusal.invalidException()) + (errors.isEmpty() ? "" : "\t" + errors);
        } catch (Throwable failure) {
            return refused(failure);
        } finally {
            delete(parent);
        }
    }

    private static String refused(Throwable failure) {
        String message = String.valueOf(failure.getMessage()).replace('\t', ' ').replace('\n', ' ');
        return "refused\t" + Errors.forException(failure).code() + "\t" + failure.getClass().getSimpleName() + "\t" + message;
    }

    private static void delete(Path root) throws Exception {
        try (Stream<Path> paths = Files.walk(root)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                Files.delete(path);
            }
        }
    }

    private static UnifiedLog open(File directory, String settings, long now) throws Exception {
        Properties properties = new Properties();
        if (!settings.equals("-")) {
            for (String setting : settings.split(",")) {
                String[] pair = setting.split("=", 2);
                properties.put(pair[0], pair[1]);
            }
        }
        return UnifiedLog.create(directory, new LogConfig(properties), 0L, 0L, new IdleScheduler(),
            new BrokerTopicStats(false), new FixedTime(now), 900000, new ProducerStateManagerConfig(86400000, false),
            600000, new LogDirFailureChannel(10), true, Optional.of(Uuid.randomUuid()));
    }

    private static String read(byte[] data) {
        StringBuilder out = new StringBuilder("records");
        try {
            for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
                batch.ensureValid();
                for (Record record : batch) {
                    out.append('\t').append(record.offset()).append(' ').append(record.timestamp());
                    out.append(' ').append(hex(record.key())).append(' ').append(hex(record.value()));
                    for (Header header : record.headers()) {
                        out.append(' ').append(HEX.formatHex(header.key().getBytes("UTF-8"))).append('=');
                        out.append(header.value() == null ? "null" : HEX.formatHex(header.value()));
                    }
                }
            }
            return out.toString();
        } catch (Throwable failure) {
            return refused(failure);
        }
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] copy = new byte[buffer.remaining()];
        buffer.get(copy);
        return copy.length == 0 ? "empty" : HEX.formatHex(copy);
    }

    private static String build(String codec, String level, String type, long appendTime, int count, long seed) {
        Random random = new Random(seed);
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), RecordBatch.CURRENT_MAGIC_VALUE,
            compression(codec, level), TimestampType.forName(type), 0L, appendTime);
        for (int i = 0; i < count; i++) {
            byte[] key = random.nextInt(4) == 0 ? null : text(random, 12);
            byte[] value = random.nextInt(8) == 0 ? null : text(random, 300);
            Header[] headers = new Header[random.nextInt(5) == 0 ? 2 : 0];
            for (int h = 0; h < headers.length; h++) {
                headers[h] = new RecordHeader("h" + h, h == 0 ? text(random, 9) : null);
            }
            builder.append(1700000000000L + random.nextInt(5000), key, value, headers);
        }
        ByteBuffer built = builder.build().buffer();
        return "built\t" + hex(built);
    }

    private static Compression compression(String codec, String level) {
        switch (codec) {
            case "gzip":
                return Compression.gzip().level(Integer.parseInt(level)).build();
            case "lz4":
                return Compression.lz4().level(Integer.parseInt(level)).build();
            case "zstd":
                return Compression.zstd().level(Integer.parseInt(level)).build();
            case "snappy":
                return Compression.snappy().build();
            default:
                return Compression.NONE;
        }
    }

    private static byte[] text(Random random, int limit) {
        byte[] text = new byte[random.nextInt(limit)];
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) ('a' + random.nextInt(8));
        }
        return text;
    }

    private static String filter(long now, long retention, String offsets, byte[] data) {
        Set<String> kept = Set.of(offsets.split(","));
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(now, retention) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return kept.contains(Long.toString(record.offset()));
            }
        };
        MemoryRecords.FilterResult result = MemoryRecords.readableRecords(ByteBuffer.wrap(data))
            .filterTo(filter, ByteBuffer.allocate(data.length + 4096), BufferSupplier.NO_CACHING);
        ByteBuffer output = result.outputBuffer().duplicate();
        output.flip();
        return "filtered\t" + hex(output);
    }

    private static final class FixedTime implements Time {
        private final long now;

        FixedTime(long now) {
            this.now = now;
        }

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1000000L;
        }

        @Override
        public void sleep(long ms) {
        }

        @Override
        public void waitObject(Object object, java.util.function.Supplier<Boolean> condition, long deadlineMs) {
        }

        @Override
        public org.apache.kafka.common.utils.Timer timer(long timeoutMs) {
            return Time.SYSTEM.timer(timeoutMs);
        }
    }

    private static final class IdleScheduler implements Scheduler {
        private static final ScheduledExecutorService SOMEDAY = Executors.newSingleThreadScheduledExecutor();

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            return SOMEDAY.schedule(() -> { }, 1, TimeUnit.DAYS);
        }

        @Override
        public void resizeThreadPool(int newSize) {
        }
    }
}
