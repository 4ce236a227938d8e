// Writes and checks record batches with Apache Kafka's own classes (kafka-clients 4.4.0):
//
//   java -cp $CLASSPATH Golden.java write DIR    the golden batches beside this file
//   java -cp $CLASSPATH Golden.java read FILE…   reads batches, checks CRC, prints count and CRC-32 of the content
//
// $CLASSPATH needs kafka-clients, snappy-java, lz4-java, zstd-jni, slf4j-api. The records are those
// that goldenMessages in java_test.go makes.
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.zip.CRC32;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.internals.BufferSupplier;

public class Golden {
    static final long TS = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            Path dir = Paths.get(args[1]);
            write(dir, "none", Compression.NONE, 3);
            write(dir, "gzip", Compression.gzip().build(), 600);
            write(dir, "snappy", Compression.snappy().build(), 600);
            write(dir, "lz4", Compression.lz4().build(), 600);
            write(dir, "zstd", Compression.zstd().build(), 600);
            control(dir, "abort", ControlRecordType.ABORT);
            control(dir, "commit", ControlRecordType.COMMIT);
            return;
        }
        for (int i = 1; i < args.length; i++) {
            read(Paths.get(args[i]));
        }
    }

    static void write(Path dir, String name, Compression c, int count) throws Exception {
        MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2, c,
            TimestampType.CREATE_TIME, 0L, RecordBatch.NO_TIMESTAMP, 4001L, (short) 3, 77, false, RecordBatch.NO_PARTITION_LEADER_EPOCH);
        for (int n = 0; n < count; n++) {
            switch (n) {
                case 0 -> b.append(TS, (byte[]) null, (byte[]) null, new Header[0]);
                case 1 -> b.append(TS + 1, new byte[0], new byte[0], new Header[0]);
                case 2 -> b.append(TS - 5, "key".getBytes(), "value".getBytes(), new Header[] {
                    new RecordHeader("n", (byte[]) null), new RecordHeader("e", new byte[0]), new RecordHeader("k", "v".getBytes())});
                default -> b.append(TS + n, ("key-" + n % 10).getBytes(), ("message " + n + " ").repeat(20).getBytes(), new Header[0]);
            }
        }
        save(dir, name, b.build());
    }

    static void control(Path dir, String name, ControlRecordType type) throws Exception {
        save(dir, name, MemoryRecords.withEndTransactionMarker(500L, TS, 9, 4001L, (short) 3, new EndTransactionMarker(type, 7)));
    }

    static void save(Path dir, String name, MemoryRecords records) throws Exception {
        ByteBuffer buf = records.buffer().duplicate();
        byte[] out = new byte[buf.remaining()];
        buf.get(out);
        Files.write(dir.resolve(name + ".batch"), out);
    }

    static void read(Path file) throws Exception {
        CRC32 crc = new CRC32();
        int count = 0, batches = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file))).batches()) {
            batch.ensureValid();
            batches++;
            try (var it = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (it.hasNext()) {
                    org.apache.kafka.common.record.internal.Record r = it.next();
                    count++;
                    crc.update(Long.toString(r.offset()).getBytes());
                    crc.update(Long.toString(r.timestamp()).getBytes());
                    field(crc, r.hasKey() ? r.key() : null);
                    field(crc, r.hasValue() ? r.value() : null);
                    for (Header h : r.headers()) {
                        crc.update(h.key().getBytes());
                        field(crc, h.value() == null ? null : ByteBuffer.wrap(h.value()));
                    }
                }
            }
        }
        System.out.printf("%s batches=%d records=%d crc=%08x%n", file.getFileName(), batches, count, crc.getValue());
    }

    static void field(CRC32 crc, ByteBuffer b) {
        crc.update((b == null ? "null" : "len" + b.remaining()).getBytes());
        if (b != null) {
            crc.update(b.duplicate());
        }
    }
}
