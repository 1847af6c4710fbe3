// Compacts log directories with Kafka's own cleaner. Each line of standard input has a directory, the retention
// of tombstones, limits of its segments and the times of its rounds in milliseconds. For each round a line with
// the next dirty offset is printed.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class CleanerRounds {
    private final KafkaScheduler scheduler = new KafkaScheduler(1);
    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final Cleaner cleaner;

    private CleanerRounds() throws Exception {
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM);
        SkimpyOffsetMap offsets = new SkimpyOffsetMap(1 << 20);
        cleaner = new Cleaner(0, offsets, 64 * 1024, 1 << 20, 0.9, throttler, Time.SYSTEM, partition -> { });
        scheduler.startup();
    }

    public static void main(String[] arguments) throws Exception {
        CleanerRounds rounds = new CleanerRounds();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            rounds.clean(line.split(" "));
        }
        rounds.scheduler.shutdown();
    }

    private void clean(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("cleanup.policy", "compact");
        properties.put("delete.retention.ms", words[1]);
        properties.put("index.interval.bytes", words[2]);
        properties.put("segment.index.bytes", words[3]);
        properties.put("internal.segment.bytes", words[4]);
        Time time = new FixedTime(Long.parseLong(words[5]));
        // The directory counts as not cleanly stopped, so that producers are known from the log alone.
        UnifiedLog log = UnifiedLog.create(
            new File(words[0]), new LogConfig(properties), 0L, 0L, scheduler, stats, time, 900000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(1), false,
            Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        long bound = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        for (String now : Arrays.copyOfRange(words, 5, words.length)) {
            LogToClean round = new LogToClean(log, 0L, bound, true);
            System.out.println(cleaner.doClean(round, Long.parseLong(now)).getKey());
        }
        log.close();
    }

    // The records' own time, so that their producers do not count as long gone.
    private record FixedTime(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return Time.SYSTEM.nanoseconds();
        }

        @Override
        public void sleep(long ms) {
            Time.SYSTEM.sleep(ms);
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs)
                throws InterruptedException {
            Time.SYSTEM.waitObject(object, condition, deadlineMs);
        }
    }
}
