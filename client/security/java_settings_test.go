package security

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// Every setting of Kafka's clients is something here, or it is said why not.
func TestEverySettingOfKafkasClientsHasAMeaning(t *testing.T) {
	ours := append(settings.Keys(client.Schema{}.Fields()), settings.Keys(workloads.Fields())...)
	for _, name := range javaNames {
		s, known := javaClient[name]
		connecting := javaKeys[name] != "" || javaSpecial[name] != nil || strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl.")
		require.NotEqual(t, connecting, known, "%s", name)
		if !known {
			continue
		}
		require.NotZero(t, s.of, name)
		require.NotEqual(t, len(s.keys) == 0, s.why == "", name)
		for _, key := range s.keys {
			require.Contains(t, ours, key, name)
		}
		as, _, problems := Translate([]Property{{Name: name, Value: "x", File: "--x"}}, s.of)
		require.Equal(t, isLevel(name), len(as)+len(problems) == 0, "%s is not passed over", name)
	}
	for name := range javaClient {
		require.Contains(t, javaNames, name, "a name that Kafka does not have")
	}
}

func TestTranslate(t *testing.T) {
	for _, row := range []struct {
		says     string
		of       Role
		given    string // name=value, separated by spaces; a leading ~ is of a file
		want     string // key=value, separated by spaces
		warnings string
		problems string
	}{
		{"acks and linger, as a producer takes them", Producing, "acks=all linger.ms=5", "producer.requiredAcks=all producer.flush.frequency=5ms", "", ""},
		{"the last one counts", Producing, "acks=0 acks=1", "producer.requiredAcks=1", "", ""},
		{"a setting of two of ours", Producing, "max.request.size=2097152", "producer.maxMessageBytes=2097152 producer.maxRequestBytes=2097152", "", ""},
		{"the level of the codec in use", Producing, "compression.type=zstd compression.zstd.level=7 compression.gzip.level=3", "producer.compression=zstd producer.compressionLevel=7", "", ""},
		{"the level of isolation, with no codec", Consuming, "isolation.level=read_committed", "consumer.isolationLevel=read_committed", "", ""},
		{"a consumer's", Consuming, "group.id=g auto.offset.reset=latest enable.auto.commit=false fetch.max.wait.ms=0 group.protocol=CONSUMER",
			"consumers.group=g consumers.from=run consumers.commit=none consumer.maxWait=0s consumer.group.protocol=consumer", "", ""},
		{"assignors by their classes", Consuming, "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.StickyAssignor", "consumer.group.balancers=range,sticky", "", ""},
		{"a mistyped one", Producing, "lingr.ms=5", "", "", "--x: lingr.ms: unknown setting; did you mean linger.ms?"},
		{"one that is nothing like any", Producing, "my.own=5", "", "", "--x: my.own: is no setting of a Kafka client"},
		{"a consumer's, given to a producer", Producing, "fetch.min.bytes=5", "", "", "--x: fetch.min.bytes: is a setting of consumers"},
		{"code of the JVM's", Producing, "interceptor.classes=a.B", "", "", "--x: interceptor.classes: cannot be had: it names Java code, which cannot be run here"},
		{"a partitioner of the user's own", Producing, "partitioner.class=a.B", "", "", `--x: partitioner.class: is "a.B": it names Java code, which cannot be run here; producer.partitioner has ways to place messages (--set)`},
		{"a value that is none", Producing, "linger.ms=5s", "", "", `--x: linger.ms: is "5s": a whole number of milliseconds is needed, up to a year`},
		{"a secret on the command line is not repeated", Producing, "sasl.jaas.config=c4n4ry-S3cret", "", "", "--x: sasl.jaas.config: is about how to connect, and a flag shows in ps and in the shell's history: put it into the file of --command-config"},
		{"of a file for all programs, what is others' is passed over", Producing, "~acks=1 ~group.id=g ~max.block.ms=5 ~key.serializer=a.B", "producer.requiredAcks=1",
			"--x: max.block.ms: is not used: a producer waits for room as long as the run lasts, which shows as delay; --x: key.serializer: is not used: it names Java code, which cannot be run here", ""},
		{"a flag goes before the file, whose value is not looked at", Producing, "~acks=most acks=1", "producer.requiredAcks=1", "", ""},
	} {
		t.Run(row.says, func(t *testing.T) {
			var ps []Property
			for given := range strings.FieldsSeq(row.given) {
				name, lenient := strings.CutPrefix(given, "~")
				name, value, _ := strings.Cut(name, "=")
				ps = append(ps, Property{Name: name, Value: value, File: "--x", Lenient: lenient})
			}
			as, warnings, problems := Translate(ps, row.of)
			var got []string
			for _, a := range as {
				got = append(got, fmt.Sprintf("%s=%s", a.Key, a.Value.Text()))
			}
			require.Equal(t, row.want, strings.Join(got, " "))
			require.Equal(t, row.warnings, strings.Join(warnings, "; "))
			require.Equal(t, row.problems, problems.Error())
		})
	}
}

// What a Java file says beside how to connect is kept for who can use it.
func TestAFileKeepsWhatIsNotAboutConnecting(t *testing.T) {
	s, err := loadText(t, "c.properties", "bootstrap.servers=a:1\nacks=1\nsecurity.protocol=PLAINTEXT\nlinger.ms=7")
	require.NoError(t, err)
	require.Len(t, s.Others, 2)
	require.Equal(t, "acks=1 at 2, linger.ms=7 at 4", fmt.Sprintf("%s=%s at %d, %s=%s at %d",
		s.Others[0].Name, s.Others[0].Value, s.Others[0].Line, s.Others[1].Name, s.Others[1].Value, s.Others[1].Line))
	require.Equal(t, []string{s.Ignored}, s.Warnings)
}
