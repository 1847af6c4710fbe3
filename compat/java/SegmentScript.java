// Does with Kafka's own segment class what the lines of standard input say, and prints what it answers.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.TimestampOffset;

public class SegmentScript {
    private File directory;
    private LogSegment segment;
    private int indexBytes;

    public static void main(String[] arguments) throws Exception {
        SegmentScript script = new SegmentScript();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(script.run(line.split(" ")));
        }
    }

    private String run(String[] words) throws Exception {
        switch (words[0]) {
            case "open":
                directory = new File(words[1]);
                Properties properties = new Properties();
                properties.put("index.interval.bytes", words[3]);
                properties.put("segment.index.bytes", words[4]);
                LogConfig config = new LogConfig(properties);
                segment = LogSegment.open(directory, number(words[2]), config, Time.SYSTEM, 0, false);
                indexBytes = Integer.parseInt(words[4]);
                segment.resizeIndexes(indexBytes);
                return "opened";
            case "append":
                ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(words[2]));
                segment.append(number(words[1]), MemoryRecords.readableRecords(bytes));
                return "appended " + segment.size();
            case "truncate":
                return "truncated " + segment.truncateTo(number(words[1]));
            case "next":
                return "next " + segment.readNextOffset();
            case "read":
                return read(number(words[1]), Integer.parseInt(words[2]), words[3].equals("1"));
            case "time":
                return segment.findOffsetByTimestamp(number(words[1]), number(words[2]))
                    .map(found -> "time " + found.timestamp + " " + found.offset + " " + found.leaderEpoch.orElse(-1))
                    .orElse("time none");
            case "max":
                TimestampOffset max = segment.readMaxTimestampAndOffsetSoFar();
                return "max " + max.timestamp() + " " + max.offset();
            case "damage":
                return damage(number(words[1]), Integer.parseInt(words[2]));
            case "recover":
                return recover();
            case "close":
                segment.close();
                return "closed";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private String read(long offset, int bytes, boolean atLeastOne) throws Exception {
        FetchDataInfo found = segment.read(offset, bytes, Optional.of((long) segment.size()), atLeastOne);
        if (found == null)
            return "read none";
        return "read " + found.fetchOffsetMetadata.messageOffset + " "
            + found.fetchOffsetMetadata.relativePositionInSegment + " " + found.records.sizeInBytes() + " "
            + found.firstEntryIncomplete;
    }

    private String damage(long position, int bit) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(segment.log().file(), "rw")) {
            if (bit < 0) {
                file.setLength(position);
            } else {
                file.seek(position);
                int value = file.read();
                file.seek(position);
                file.write(value ^ (1 << bit));
            }
        }
        return "damaged";
    }

    private String recover() throws Exception {
        TopicPartition partition = new TopicPartition("topic", 0);
        ProducerStateManager producers = new ProducerStateManager(
            partition, directory, 900000, new ProducerStateManagerConfig(86400000, true), Time.SYSTEM);
        LeaderEpochFileCache epochs = new LeaderEpochFileCache(
            partition,
            new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(directory), new LogDirFailureChannel(1)),
            new KafkaScheduler(1));
        int truncated = segment.recover(producers, epochs);
        segment.resizeIndexes(indexBytes);
        return "recovered " + truncated;
    }

    private static long number(String word) {
        return Long.parseLong(word);
    }
}
