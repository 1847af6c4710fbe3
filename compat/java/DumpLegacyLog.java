import java.io.FileOutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Writes a segment in message formats v0 and v1, as brokers of long ago left them. */
public class DumpLegacyLog {
    public static void main(String[] arguments) throws Exception {
        long offset = 0;
        try (FileChannel file = new FileOutputStream(arguments[0]).getChannel()) {
            for (byte magic = 0; magic <= 1; magic++) {
                for (CompressionType codec : new CompressionType[] {
                    CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4}) {
                    offset = write(file, magic, codec, TimestampType.CREATE_TIME, offset);
                }
            }
            offset = write(file, (byte) 1, CompressionType.GZIP, TimestampType.LOG_APPEND_TIME, offset);
            write(file, (byte) 1, CompressionType.NONE, TimestampType.LOG_APPEND_TIME, offset);
        }
    }

    private static long write(FileChannel file, byte magic, CompressionType codec, TimestampType type, long offset)
            throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(4096);
        Compression compression = Compression.of(codec).build();
        TimestampType used = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : type;
        MemoryRecordsBuilder builder =
            MemoryRecords.builder(buffer, magic, compression, used, offset, 1700000009999L);
        for (int i = 0; i < 4; i++) {
            byte[] key = i == 1 ? null : ("key-" + i).getBytes(StandardCharsets.UTF_8);
            byte[] value = i == 2 ? null : ("value-" + codec.name + "-" + i).getBytes(StandardCharsets.UTF_8);
            builder.append(magic == 0 ? RecordBatch.NO_TIMESTAMP : 1700000000000L + i, key, value);
        }
        MemoryRecords records = builder.build();
        records.writeFullyTo(file);
        return offset + 4;
    }
}
