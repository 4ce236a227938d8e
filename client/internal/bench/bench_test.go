package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestParseLine(t *testing.T) {
	for _, tc := range []struct {
		about, printed string
		want           line
	}{
		{"a peer's line", "franz      produce  acks=all size=100 c=none n=5000000 wall=2.51s rate=1993482/s 199.3MB/s cpu=2.75s cpu/rec=549ns\n",
			line{"size": 100, "n": 5e6, "wall": 2.51e9, "rate": 1993482, "cpu": 2.75e9, "cpu/rec": 549}},
		{"two lines: what is said twice counts as said last", "p50=42µs\nn=1 p50=43.5µs idem=true", line{"p50": 43500, "n": 1, "idem": 1}},
		{"bytes lose their unit", "mem/each=65536B", line{"mem/each": 65536}},
		{"false is 0", "idem=false", line{"idem": 0}},
		{"nothing of the kind", "panic: n = what=ever =", line{}},
	} {
		t.Run(tc.about, func(t *testing.T) { require.Equal(t, tc.want, parseLine(tc.printed)) })
	}
}

func TestEverybodyHasEveryPlaceOnce(t *testing.T) {
	require.Equal(t, everybody, order(everybody, 0))
	places := map[entrant]map[int]bool{}
	for round := range everybody {
		for place, e := range order(everybody, round) {
			if places[e] == nil {
				places[e] = map[int]bool{}
			}
			places[e][place] = true
		}
	}
	for _, e := range everybody {
		require.Len(t, places[e], len(everybody), e.String())
	}
}

// batchOf has what requests looks at, and size bytes in all.
func batchOf(records, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b[batchLength:], uint32(size-12))
	binary.BigEndian.PutUint32(b[batchCount:], uint32(records))
	return b
}

func TestRequestsAreCounted(t *testing.T) {
	lying := batchOf(7, 100)
	binary.BigEndian.PutUint32(lying[batchLength:], 1<<31)
	for _, tc := range []struct {
		about      string
		partitions [][]byte
		want       line
	}{
		{"batches of two partitions", [][]byte{batchOf(30, 100), batchOf(10, 300)}, line{"rec/req": 40, "rec/batch": 20, "bytes/rec": 10}},
		{"two batches in one", [][]byte{append(batchOf(1, 80), batchOf(2, 100)...)}, line{"rec/req": 3, "rec/batch": 1.5, "bytes/rec": 60}},
		{"what is cut off is not counted", [][]byte{batchOf(5, 100), batchOf(9, 100)[:70]}, line{"rec/req": 5, "rec/batch": 5, "bytes/rec": 20}},
		{"a length that lies ends it", [][]byte{lying}, line{}},
		{"nothing", nil, line{}},
	} {
		t.Run(tc.about, func(t *testing.T) {
			var seen requests
			request, topic := kmsg.NewPtrProduceRequest(), kmsg.NewProduceRequestTopic()
			for _, b := range tc.partitions {
				p := kmsg.NewProduceRequestTopicPartition()
				p.Records = b
				topic.Partitions = append(topic.Partitions, p)
			}
			request.Topics = append(request.Topics, topic)
			seen.produced(request)
			got := line{}
			seen.add(got)
			require.Equal(t, tc.want, got)
			seen.reset()
			clear(got)
			seen.add(got)
			require.Empty(t, got)
		})
	}
}

func TestRatios(t *testing.T) {
	logs := func(vs ...float64) *ratio {
		o := outcome{lines: map[entrant][]line{}}
		for _, v := range vs {
			o.lines[ours("run")] = append(o.lines[ours("run")], line{"x": v})
			o.lines[franz("run")] = append(o.lines[franz("run")], line{"x": 10 * v / v})
		}
		return o.ratio(ours("run"), franz("run"), "x")
	}
	require.Nil(t, logs())
	one := logs(5)
	require.InDelta(t, 0.5, one.Estimate, 1e-12)
	require.Zero(t, one.Lower)
	five := logs(2, 3, 4, 3, 3)
	require.InDelta(t, 0.3, five.Estimate, 1e-12)
	require.InDelta(t, 0.2, five.Lower, 1e-12, "five cannot reach 95 %: the extremes, at 93.75 %")
	require.InDelta(t, 0.4, five.Upper, 1e-12)
	require.InDelta(t, 0.9375, five.Level, 1e-12)
	eight := logs(2, 3, 4, 3, 3, 3, 3, 3)
	require.GreaterOrEqual(t, eight.Level, 0.95)
	require.Less(t, eight.Upper, 0.4)
}

// made is an outcome with everything that a report can hold.
func made() *outcome {
	f := figure{
		id: "made-up", title: "a comparison that nobody ran", settings: same(1000, 100),
		metrics: []metric{
			cpuPerMessage(franz("produce"), ours("callback"), 0.35), rate(1.3),
			{key: "mem", title: "memory", unit: inBytes, reference: franz("produce"), target: target{entrant: ours("run"), limit: 1 << 20, absolute: true}},
		},
		columns:  throughput,
		entrants: []entrant{ours("callback"), ours("run"), franz("produce"), {"sarama", "produce"}, {"kafkago", "produce"}},
	}
	sarama, kafkago := f.entrants[3], f.entrants[4]
	lines := map[entrant][]line{}
	for i := range 5 {
		v := float64(i)
		lines[ours("callback")] = append(lines[ours("callback")], line{"cpu/rec": 150 + v, "rate": 3e6 + v, "rec/req": 40_000, "allocs/rec": 0.0004, "idem": 1, "inflight": 5})
		lines[ours("run")] = append(lines[ours("run")], line{"cpu/rec": 120 + v, "rate": 3e6, "rec/req": 41_000, "mem": 2 << 20})
		lines[franz("produce")] = append(lines[franz("produce")], line{"cpu/rec": 500 + 10*v, "rate": 2.5e6, "rec/req": 42_000, "p50": 3.5e6})
		lines[sarama] = append(lines[sarama], line{"cpu/rec": 2500, "rate": 4e5, "rec/req": 4000, "inflight": 1})
	}
	lines[franz("produce")][2] = nil
	return &outcome{
		figure: f, lines: lines, skipped: []entrant{kafkago},
		failed: map[entrant]error{franz("produce"): errors.New("franz produce: exit status 2: panic: it was too much")},
	}
}

func TestReportGolden(t *testing.T) {
	s := made().summarise()
	var text bytes.Buffer
	s.write(&text, 5)
	golden := filepath.Join("testdata", "report.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
	require.True(t, *s.Metrics[0].Reached)
	require.False(t, *s.Metrics[1].Reached, "3.0 of 2.5 is not 1.3 times as much")
	require.False(t, *s.Metrics[2].Reached)
	path := filepath.Join(t.TempDir(), "new", "bench.json")
	require.NoError(t, save(path, &report{Figures: []summary{s}}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(data), `"id": "made-up"`)
}

// TestFiguresRun makes every figure on the embedded broker with a few messages, ours alone.
func TestFiguresRun(t *testing.T) {
	ours, err := ourProgram()
	require.NoError(t, err)
	for _, f := range figures() {
		t.Run(f.id, func(t *testing.T) {
			f.kafka = false
			if f.settings.N = 600; f.partitions > 0 {
				f.partitions, f.settings.N = 12, 12
			}
			if f.backlog { // enough for several answers, for a rate counts from the first on
				f.settings.N = 200_000
			}
			if f.id == "idle-1000" {
				f.settings.N = 3
			}
			o := f.compare(t.Context(), programs{ours: ours}, 1, io.Discard)
			require.NoError(t, o.err)
			require.Empty(t, o.failed)
			require.Empty(t, o.oursFailed())
			for _, e := range f.entrants {
				if e.Lib != "kbench" {
					require.Contains(t, o.skipped, e)
					continue
				}
				for _, m := range f.metrics {
					require.Contains(t, o.lines[e][0], m.key, e.String())
					if m.key != "allocs/rec" { // there may be none
						require.Positive(t, o.lines[e][0][m.key], "%s of %s", m.key, e)
					}
				}
				if slices.Contains([]string{"callback", "run", "channels", "batch", "sync"}, e.Mode) {
					require.Positive(t, o.lines[e][0]["p50"], e.String())
					require.Positive(t, o.lines[e][0]["rec/req"], "as the broker counts")
				}
			}
			require.NotEmpty(t, o.summarise().Metrics)
		})
	}
}

// peer is a program with the first few flags only.
const peer = `package main

import (
	"flag"
	"fmt"
)

func main() {
	for _, f := range []string{"b", "t", "acks", "c", "idem"} {
		flag.String(f, "", "")
	}
	lib, mode := flag.String("lib", "", ""), flag.String("mode", "", "")
	n, size, linger := flag.Int("n", 0, ""), flag.Int("size", 0, ""), flag.Duration("linger", 0, "")
	flag.Parse()
	switch *mode {
	case "produce":
		fmt.Printf("%s n=%d size=%d linger=%s cpu/rec=100ns\n", *lib, *n, *size, *linger)
	case "panic":
		panic("it was too much")
	}
}
`

func TestPeers(t *testing.T) {
	dir := t.TempDir()
	_, err := buildPeers(t.Context(), dir, dir)
	require.ErrorContains(t, err, "expected is a Go module with a package ./peer")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "peer"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module peers\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "peer", "main.go"), []byte(peer), 0o644))
	p, err := buildPeers(t.Context(), dir, t.TempDir())
	require.NoError(t, err)
	require.True(t, p.takes("linger"))
	require.False(t, p.takes("batch"), "a flag it does not have is not given")
	s := same(500, 10)
	s.Lib, s.Mode = "franz", "produce"
	l, err := p.run(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, line{"n": 500, "size": 10, "linger": float64(s.Linger), "cpu/rec": 100}, l)
	s.Mode = "sing"
	_, err = p.run(t.Context(), s)
	require.ErrorContains(t, err, "franz sing: did 0 of 500: it may not know this mode")
	s.Mode = "panic"
	_, err = p.run(t.Context(), s)
	require.ErrorContains(t, err, "panic: it was too much")
}

func TestProgramSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-mode=sing", "-mode sing: there is none of this name"},
		{"-lib=franz", "-lib franz: this program is kbench"},
		{"-n=0", "-n must be positive"},
		{"-acks=some", "-acks: "},
		{"-c=zip", "-c: "},
		{"-loud", "flag provided but not defined"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			require.ErrorContains(t, runProgram([]string{tc.args}, io.Discard), tc.want)
		})
	}
}

func TestBusyMachineIsTold(t *testing.T) {
	require.Empty(t, busy(0))
	require.Empty(t, busy(float64(runtime.NumCPU())))
	require.Contains(t, busy(float64(runtime.NumCPU())+0.1), "no figure is worth quoting")
}
