package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// serve runs Serve in the background and returns its addresses; the broker ends with the test.
func serve(t *testing.T, o Options) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addresses := make(chan []string, 1)
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, o, func(b []string) { addresses <- b }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	select {
	case b := <-addresses:
		return b
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return nil
	}
}

func TestServeListensOnLoopbackOnly(t *testing.T) {
	bootstrap := serve(t, Options{Nodes: 3})
	require.Len(t, bootstrap, 3)
	for _, address := range bootstrap {
		host, _, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", host)
	}
	require.Len(t, dial(t, bootstrap[0]).metadata().Brokers, 3)
}

func TestServeSaysWhichPortIsTaken(t *testing.T) {
	bootstrap := serve(t, Options{})
	err := Serve(t.Context(), Options{Port: portOf(bootstrap[0])}, nil)
	require.ErrorContains(t, err, bootstrap[0]+" is in use by another program; choose another --port")
}

func TestDiscardDropsAndServesSyntheticBatches(t *testing.T) {
	r := dial(t, serve(t, Options{Discard: true, Topics: oneTopic(1)})[0])
	code, err := r.produce("t", 0, 1000)
	require.NoError(t, err)
	require.Zero(t, code)

	fetch := kmsg.NewPtrFetchRequest()
	fetch.SetVersion(4)
	fetch.MaxWaitMillis, fetch.MinBytes, fetch.MaxBytes = 1000, 1, 1<<20
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = 1000, 1<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.Partitions = "t", []kmsg.FetchRequestTopicPartition{p}
	fetch.Topics = append(fetch.Topics, topic)
	response, err := r.ask(fetch)
	require.NoError(t, err)
	got := response.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	require.Zero(t, got.ErrorCode)
	require.Greater(t, len(got.RecordBatches), 100_000, "batches that nobody produced")
}

func TestRetentionBoundsMemory(t *testing.T) {
	const keep, segment = 64 << 10, 64 << 10
	k, err := newKfake(Options{Topics: oneTopic(1), RetentionBytes: keep,
		Config: map[string]string{"log.segment.bytes": strconv.Itoa(segment)}})
	require.NoError(t, err)
	t.Cleanup(k.Close)
	r := dial(t, k.ListenAddrs()[0])
	for range 40 {
		code, err := r.produce("t", 0, 10_000)
		require.NoError(t, err)
		require.Zero(t, code)
	}
	require.Greater(t, k.PartitionInfo("t", 0).NumBytes, int64(400_000))
	k.ApplyRetention()
	info := k.PartitionInfo("t", 0)
	require.Less(t, info.NumBytes, int64(keep+2*segment))
	require.Positive(t, info.LogStartOffset)
}

// failingWriter is a closed standard output.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestMainPrintsTheListFirstAndEndsWithItsLifeline(t *testing.T) {
	stdin, parent := io.Pipe()
	stdout, child := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Main(t.Context(), Options{Nodes: 2}, stdin, child, io.Discard) }()
	line := make([]byte, 200)
	n, err := stdout.Read(line)
	require.NoError(t, err)
	addresses, err := parseBootstrap(string(line[:n]))
	require.NoError(t, err)
	require.Len(t, addresses, 2)
	dial(t, addresses[1]).metadata()

	require.NoError(t, parent.Close())
	require.NoError(t, <-ended)
}

func TestMainEndsWhenItsAddressCannotBePrinted(t *testing.T) {
	require.ErrorContains(t, Main(t.Context(), Options{}, nil, failingWriter{}, io.Discard), "could not print its address")
}

func TestMainGreetsPeopleOnStderr(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var out, greeting bytes.Buffer
	require.NoError(t, Main(ctx, Options{Discard: true}, nil, &out, &greeting))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Contains(t, greeting.String(), "--brokers "+strings.TrimSpace(out.String()))
	require.Contains(t, greeting.String(), "drops what is produced")
}

func TestParseBootstrapRefusesWhatIsNoAddress(t *testing.T) {
	for _, line := range []string{"", "hello", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999", "localhost:1", "127.0.0.1:1,,"} {
		_, err := parseBootstrap(line)
		require.Error(t, err, "%q", line)
	}
	got, err := parseBootstrap("127.0.0.1:1,[::1]:2\n")
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:1", "[::1]:2"}, got)
}

func TestOptionsReportEveryProblemAtOnce(t *testing.T) {
	o := Options{Port: -1, RetentionBytes: -2, Version: "seven", User: "u", Topics: []Topic{{Name: "a b", Partitions: 1}, {Name: "c", Partitions: 0}}}
	err := o.Validate()
	for _, part := range []string{"port: 1 nodes from port -1", "retention: -2", `"seven" is no known release`, "user and password", `"a b"`, "0 partitions"} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorContains(t, Options{Nodes: 101}.Validate(), "nodes: 101")
	require.ErrorContains(t, Options{Port: 65535, Nodes: 2}.Validate(), "do not fit")
	require.NoError(t, Options{Port: 65535}.Validate())
}

func TestParseTopic(t *testing.T) {
	tests := []struct {
		in   string
		want Topic
		err  string
	}{
		{"orders:6", Topic{"orders", 6}, ""},
		{"orders", Topic{"orders", 1}, ""},
		{"orders:", Topic{}, "not a number of partitions"},
		{"orders:x", Topic{}, "NAME:PARTITIONS"},
		{"orders:0", Topic{}, "possible are 1 to"},
		{":3", Topic{}, "a name is"},
		{"..", Topic{}, "neither '.' nor '..'"},
		{strings.Repeat("x", 250), Topic{}, "1 to 249"},
	}
	for _, tt := range tests {
		got, err := ParseTopic(tt.in)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, tt.in)
			continue
		}
		require.NoError(t, err, tt.in)
		require.Equal(t, tt.want, got)
	}
}

func TestArgsAndFlagsAreEachOthersInverse(t *testing.T) {
	want := Options{Port: 9092, Nodes: 3, Discard: true, AutoCreate: true, RetentionBytes: 5 << 20, Version: "3.9",
		Topics: []Topic{{"a", 1}, {"b", 7}}}
	var got Options
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	got.AddFlags(fs)
	require.NoError(t, fs.Parse(want.Args()))
	require.Equal(t, want, got)
	require.ErrorContains(t, fs.Parse([]string{"--topics", "a:b"}), "NAME:PARTITIONS")
}
