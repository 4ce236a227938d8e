package bench

import "time"

// figure is one comparison.
type figure struct {
	id, title  string
	kafka      bool  // on real Kafka; else on an embedded broker that discards
	backlog    bool  // the topic holds settings.N messages, and every run reads the same ones
	trickle    int   // messages a second that the stage sends while a program runs; 0: none
	partitions int32 // 0: six
	settings   settings
	metrics    []metric
	columns    []string // keys of what is shown beside them; with columnRequests, requests must be alike
	entrants   []entrant
}

// columnRequests is the column of records a request.
const columnRequests = "rec/req"

// throughput are the columns of a figure about producing at full speed.
var throughput = []string{columnRequests, "bytes/rec", "allocs/rec", "rate", "p50", "p99"}

// entrant is a client in one of its forms.
type entrant struct{ Lib, Mode string }

func (e entrant) String() string { return e.Lib + " " + e.Mode }

// metric is what is compared: a key of the programs' lines.
type metric struct {
	key       string
	title     string
	unit      unit
	higher    bool    // is better
	reference entrant // what the others are divided by
	target    target
}

// target is what is asked of one entrant: a ratio to the reference, or a value where absolute.
type target struct {
	entrant  entrant
	limit    float64 // 0: nothing is asked
	absolute bool
}

func ours(mode string) entrant  { return entrant{"kbench", mode} }
func franz(mode string) entrant { return entrant{"franz", mode} }

// everybody are the clients that produce as fast as they can; ours in its two direct forms.
var everybody = []entrant{
	ours("callback"), ours("run"), franz("produce"), {"confluent", "produce"}, {"sarama", "produce"}, {"kafkago", "produce"},
}

// same are the settings that all clients get: batches of a megabyte, filled one after the other,
// one a request, acknowledged by all, idempotent, five requests in flight. Some clients always
// send one batch a request, others whatever is there: only full batches make their requests
// alike, and so long a wait for them to fill is never used up at full speed.
func same(n int64, size int) settings {
	return settings{
		N: n, Size: size, Acks: "all", Codec: "none", Idempotent: true, InFlight: 5,
		Batch: 1_000_000, Request: 1_000_000, Linger: time.Second,
	}
}

func cpuPerMessage(reference entrant, judged entrant, limit float64) metric {
	return metric{
		key: "cpu/rec", title: "CPU a message", unit: nanoseconds,
		reference: reference, target: target{entrant: judged, limit: limit},
	}
}

// allocations are none a message: what is left is one now and then, and a few a request.
func allocations() metric {
	return metric{
		key: "allocs/rec", title: "allocations a message", reference: franz("produce"),
		target: target{entrant: ours("callback"), limit: 0.01, absolute: true},
	}
}

func rate(limit float64) metric {
	return metric{
		key: "rate", title: "messages a second", unit: perSecond, higher: true,
		reference: franz("produce"), target: target{entrant: ours("callback"), limit: limit},
	}
}

// figures are all comparisons, in the order they are made.
func figures() []figure {
	list := []figure{
		{
			id: "callback-100", title: "100-byte messages to a discarding broker", settings: same(5_000_000, 100),
			metrics:  []metric{cpuPerMessage(franz("produce"), ours("callback"), 0.35), allocations()},
			columns:  throughput,
			entrants: append([]entrant{ours("batch")}, everybody...),
		},
		{
			id: "channels-100", title: "100-byte messages through channels to a discarding broker, one request in flight", settings: oneInFlight(same(3_000_000, 100)),
			metrics:  []metric{cpuPerMessage(entrant{"sarama", "produce"}, ours("channels"), 0.25)},
			columns:  throughput,
			entrants: []entrant{ours("channels"), {"sarama", "produce"}},
		},
		{
			id: "callback-1k", title: "1 KiB messages to a discarding broker", settings: same(1_000_000, 1024),
			metrics:  []metric{cpuPerMessage(franz("produce"), ours("callback"), 0.65)},
			columns:  throughput,
			entrants: everybody,
		},
		{
			id: "kafka-100", title: "100-byte messages to real Kafka, one node", kafka: true, settings: same(5_000_000, 100),
			metrics:  []metric{rate(1.3), cpuPerMessage(franz("produce"), entrant{}, 0)},
			columns:  throughput,
			entrants: append([]entrant{ours("channels"), ours("batch")}, everybody...),
		},
	}
	for _, codec := range []string{"zstd", "lz4", "snappy", "gzip"} {
		list = append(list, codecFigure(codec))
	}
	return append(append(list, reading()...), sizes()...)
}

func oneInFlight(s settings) settings {
	s.InFlight = 1
	return s
}

func codecFigure(codec string) figure {
	s := same(300_000, 1024)
	s.Codec = codec
	return figure{
		id: "codec-" + codec, title: "compressible 1 KiB messages to a discarding broker, " + codec, settings: s,
		metrics:  []metric{cpuPerMessage(franz("produce"), ours("callback"), 1.05)},
		columns:  throughput,
		entrants: []entrant{ours("callback"), franz("produce"), {"confluent", "produce"}, {"sarama", "produce"}, {"kafkago", "produce"}},
	}
}

// sizes are the figures that are not about throughput of producing.
func sizes() []figure {
	sync := same(50_000, 100)
	sync.Linger = 0
	idle, partitions := same(1000, 100), same(10_000, 100)
	idle.Linger, partitions.Linger = 0, 0
	return []figure{
		{
			id: "sync", title: "100-byte messages one at a time to a discarding broker", settings: sync,
			metrics: []metric{{
				key: "p50", title: "median of the response time", unit: nanoseconds, reference: franz("sync"),
				target: target{entrant: ours("sync"), limit: 1},
			}},
			columns:  []string{columnRequests, "p99", "p99.9", "cpu/rec"},
			entrants: []entrant{ours("sync"), franz("sync"), {"sarama", "sync"}},
		},
		{
			id: "idle-1000", title: "1 000 idle producers, each sent once to six partitions", settings: idle,
			metrics: []metric{{
				key: "mem/each", title: "heap and stacks of each", unit: inBytes, reference: franz("idle"),
				target: target{entrant: ours("idle"), limit: 64 << 10, absolute: true},
			}},
			entrants: []entrant{ours("idle"), franz("idle")},
		},
		{
			id: "partitions-10000", title: "a topic of 10 000 partitions", partitions: 10_000, settings: partitions,
			metrics: []metric{
				partitionsMetric("first", "time to the first message", nanoseconds),
				partitionsMetric("mem", "heap and stacks after it", inBytes),
				partitionsMetric("mem/all", "heap and stacks after one to each partition", inBytes),
				{key: "all", title: "time for one to each partition", unit: nanoseconds, reference: franz("partitions")},
			},
			entrants: []entrant{ours("partitions"), franz("partitions")},
		},
	}
}

func partitionsMetric(key, title string, u unit) metric {
	return metric{
		key: key, title: title, unit: u, reference: franz("partitions"),
		target: target{entrant: ours("partitions"), limit: 1},
	}
}

// scaled is the figure with a share of its messages, for trying.
func (f figure) scaled(share float64) figure {
	if f.partitions == 0 {
		f.settings.N = max(int64(float64(f.settings.N)*share), 1)
	}
	return f
}
