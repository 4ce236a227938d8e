package verify

import (
	"errors"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/payload"
)

// stamped is a message as kbench writes it, with its stamp in the value.
func stamped(tag, producer uint32, number int64, partition int32, offset int64) *client.Message {
	value := make([]byte, payload.StampSize+8)
	value[payload.StampSize] = byte(number)
	payload.PutStamp(value, payload.Stamp{Producer: producer, Number: number, Due: 1e18 + number, Flags: tag << payload.TagShift}, nil, value[payload.StampSize:])
	return &client.Message{Topic: "t", Partition: partition, Offset: offset, Value: value}
}

// fed is the report on one producer's numbers, in partition 0, from an offset on.
func fed(t testing.TB, from int64, log ...int64) *results.Verification {
	a := NewAudit(map[int32]Span{0: {From: from, To: from + int64(len(log))}})
	for i, n := range log {
		require.NoError(t, a.Message(stamped(1, 7, n, 0, from+int64(i))))
	}
	return a.Report(true)
}

func TestFindingsOfATopic(t *testing.T) {
	for _, tc := range []struct {
		sentence string
		from     int64
		log      []int64
		want     results.Findings
		examples []results.FindingExample
	}{
		{"everything once and in order", 0, []int64{0, 1, 2}, results.Findings{Messages: 3, Distinct: 3}, nil},
		{"what is missing before a later one is lost", 0, []int64{0, 3, 5}, results.Findings{Messages: 3, Distinct: 3, Lost: 3},
			[]results.FindingExample{{Kind: "lost", Number: 1, To: 2, Partition: -1, Offset: -1, Text: "nowhere, and number 3 is there"},
				{Kind: "lost", Number: 4, Partition: -1, Offset: -1, Text: "nowhere, and number 5 is there"}}},
		{"the first of all as well", 0, []int64{1, 2}, results.Findings{Messages: 2, Distinct: 2, Lost: 1},
			[]results.FindingExample{{Kind: "lost", Number: 0, Partition: -1, Offset: -1, Text: "nowhere, and number 1 is there"}}},
		{"but not where the log's head was removed", 9, []int64{4, 5, 7}, results.Findings{Messages: 3, Distinct: 3, Removed: 4, Lost: 1},
			[]results.FindingExample{{Kind: "lost", Number: 6, Partition: -1, Offset: -1, Text: "nowhere, and number 7 is there"}}},
		{"a batch that is there again is duplicated, not reordered", 0, []int64{0, 1, 2, 1, 2, 3}, results.Findings{Messages: 6, Distinct: 4, Duplicated: 2},
			[]results.FindingExample{{Kind: "duplicated", Number: 1, Offset: 3, Text: "was there before"}, {Kind: "duplicated", Number: 2, Offset: 4, Text: "was there before"}}},
		{"one that comes after a later one is reordered", 0, []int64{0, 2, 1}, results.Findings{Messages: 3, Distinct: 3, Reordered: 1},
			[]results.FindingExample{{Kind: "reordered", Number: 1, Offset: 2, Text: "after number 2"}}},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			v := fed(t, tc.from, tc.log...)
			tc.want.MisplacedUnchecked = true
			require.Equal(t, tc.want, v.Total)
			require.Len(t, v.Runs, 1)
			require.Equal(t, tc.want, v.Runs[0].Findings)
			for i := range tc.examples {
				tc.examples[i].Run, tc.examples[i].Producer = "00000001", 7
			}
			if len(tc.examples) == 0 {
				require.Empty(t, v.Examples)
			} else {
				require.Equal(t, tc.examples, v.Examples)
				require.Equal(t, []results.VerifiedProducer{{Run: "00000001", Producer: 7, Highest: max(tc.log[len(tc.log)-1], tc.log[1]), Findings: tc.want}}, v.Producers)
			}
		})
	}
}

// What carries no stamp, and what was altered, is found by partition; nothing of the latter is believed.
func TestMessagesThatAreNotAsTheyWereWritten(t *testing.T) {
	a := NewAudit(map[int32]Span{0: {To: 100}, 1: {To: 100}})
	for _, change := range []func(*client.Message){
		func(m *client.Message) { m.Value[len(m.Value)-1] ^= 1 },
		func(m *client.Message) { m.Value[9] ^= 1 }, // of the stamp itself
		func(m *client.Message) { m.Key = []byte("a key that it never had") },
		func(m *client.Message) { m.Value = m.Value[:len(m.Value)-1] },
		func(m *client.Message) { *m = *stamped(1, 1, -1, 0, 3) },
		func(m *client.Message) { *m = *stamped(1, 1, math.MaxInt64, 0, 3) },
	} {
		m := stamped(1, 1, 5, 0, 3)
		change(m)
		require.NoError(t, a.Message(m))
	}
	require.NoError(t, a.Message(&client.Message{Partition: 1, Value: []byte("somebody else's")}))
	require.NoError(t, a.Message(&client.Message{Partition: 1}))
	v := a.Report(true)
	require.Equal(t, results.Findings{Messages: 8, Corrupted: 6, Unstamped: 2, MisplacedUnchecked: true}, v.Total)
	require.EqualValues(t, 6, v.Partitions[0].Corrupted)
	require.EqualValues(t, 2, v.Partitions[1].Unstamped)
	require.Empty(t, v.Runs)
	require.Error(t, a.Message(&client.Message{Partition: 2}), "a partition that was not asked for")
}

// Runs and producers are apart, stamps in headers count as well, and keys are where they belong.
func TestRunsProducersAndPlaces(t *testing.T) {
	a := NewAudit(map[int32]Span{0: {To: 100}, 1: {To: 100}, 2: {To: 100}})
	a.By = client.KeyPartitioner("murmur2")
	key := []byte("foobar")
	home, err := a.By.Partition(&client.ProducerMessage{Key: key}, 3)
	require.NoError(t, err)
	for number := range int64(3) { // in all partitions, each of them the next number
		for tag := range uint32(2) {
			for producer := range uint32(2) {
				m := &client.Message{Partition: int32(number), Key: key, Value: []byte("small"), Offset: number}
				header := make([]byte, payload.StampSize)
				payload.PutStamp(header, payload.Stamp{Producer: producer, Number: number, Due: 5, Flags: tag << payload.TagShift}, m.Key, m.Value)
				m.Headers = []client.Header{{Key: "kbench", Value: header}}
				require.NoError(t, a.Message(m))
			}
		}
	}
	v := a.Report(true)
	require.Equal(t, results.Findings{Messages: 12, Distinct: 12, Misplaced: 8}, v.Total)
	require.Zero(t, v.Partitions[home].Misplaced)
	require.Len(t, v.Runs, 2)
	require.Equal(t, 2, v.Runs[0].Producers)
	require.Len(t, v.Producers, 4)
	require.Nil(t, client.KeyPartitioner("sticky"))
}

// Behind damage nothing is called lost; what is missing before it is.
func TestBehindDamage(t *testing.T) {
	a := NewAudit(map[int32]Span{0: {To: 10}, 1: {To: 10}})
	for _, m := range []*client.Message{stamped(1, 1, 0, 0, 0), stamped(1, 1, 2, 0, 1), stamped(1, 1, 3, 1, 0), stamped(1, 1, 9, 1, 1)} {
		require.NoError(t, a.Message(m))
	}
	a.Unreadable(0, 2, errors.New("damaged"))
	v := a.Report(true)
	require.EqualValues(t, 1, v.Total.Lost, "number 1; 4 to 8 may be in what could not be read")
	require.EqualValues(t, 8, v.Total.Unread)
	require.Equal(t, "damaged", v.Partitions[0].Error)
	Judge(v, nil)
	require.Equal(t, []results.Threshold{{Expression: "lost=0", Value: "1"}, {Expression: "corrupted=0", Value: "0", Held: true},
		{Expression: "reordered=0", Value: "0", Held: true}, {Expression: "unread=0", Value: "8"}}, v.Thresholds)
}

// What retention takes away while the topic is read is no loss, and neither is anything of a topic that
// was compacted or was not read to its end.
func TestWhatIsNotKnownToBeLost(t *testing.T) {
	a := NewAudit(map[int32]Span{0: {To: 10}})
	for _, n := range []int64{0, 1, 3} {
		require.NoError(t, a.Message(stamped(1, 1, n, 0, n)))
	}
	a.Removed(0)
	for _, n := range []int64{7, 9} {
		require.NoError(t, a.Message(stamped(1, 1, n, 0, n)))
	}
	v := a.Report(true)
	require.EqualValues(t, 1, v.Total.Lost, "number 8")
	require.EqualValues(t, 4, v.Total.Removed)
	a.Compacted = true
	require.EqualValues(t, 5, a.Report(true).Total.Removed)
	require.Zero(t, a.Report(true).Total.Lost)
	v = a.Report(false)
	Judge(v, []workloads.Threshold{mustParse(t, "duplicated=0"), mustParse(t, "reordered<=5")})
	require.Equal(t, []results.Threshold{{Expression: "duplicated=0", Value: "0", Held: true}, {Expression: "reordered<=5", Value: "0", Held: true},
		{Expression: "lost=0", Value: "not checked"}, {Expression: "corrupted=0", Value: "0", Held: true}, {Expression: "unread=0", Value: "not checked"}}, v.Thresholds)
}

func mustParse(t *testing.T, expression string) workloads.Threshold {
	c, err := ParseThreshold(expression)
	require.NoError(t, err)
	return c
}

func TestConditionsOnFindings(t *testing.T) {
	for expression, want := range map[string]string{
		"lots=0": `"lots" is no metric; did you mean lost?`, "response.p99<1ms": `"response.p99" is no metric; there are lost, corrupted`,
		"lost": "is no condition", "lost=0ms": `"ms" is no unit of lost`,
	} {
		_, err := ParseThreshold(expression)
		require.ErrorContains(t, err, want)
	}
}

// The audit's arithmetic against counting by hand.
func TestAuditProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Int64Range(0, 3000), 1, 80).Draw(t, "log")
		var want results.Findings
		there := map[int64]bool{}
		highest := int64(-1)
		for _, n := range log {
			want.Messages++
			switch {
			case there[n]:
				want.Duplicated++
			case n < highest:
				want.Reordered++
				want.Distinct++
			default:
				want.Distinct++
			}
			there[n] = true
			highest = max(highest, n)
		}
		want.Lost = highest + 1 - int64(len(there))
		want.MisplacedUnchecked = true
		a := NewAudit(map[int32]Span{0: {To: int64(len(log))}})
		for i, n := range log {
			require.NoError(t, a.Message(stamped(3, 1, n, 0, int64(i))))
		}
		require.Equal(t, want, a.Report(true).Total)
		b := bits{}
		for n := range there {
			b.set(n)
		}
		var listed int64
		for _, g := range b.gaps(0, highest, math.MaxInt) {
			for n := g.from; n <= g.to; n++ {
				require.False(t, there[n])
				listed++
			}
		}
		require.Equal(t, want.Lost, listed)
		at := rapid.Int64Range(0, 3001).Draw(t, "at")
		var below int64
		for n := range there {
			if n < at {
				below++
			}
		}
		require.Equal(t, below, b.below(at))
	})
}

// 100 million numbers (2 million by default) with gaps and duplicates sprinkled in: the memory follows
// what is missing.
func TestNumbersAreBounded(t *testing.T) {
	n := int64(2_000_000)
	if os.Getenv("KBENCH_SOAK") == "1" {
		n = 100_000_000
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	b := bits{}
	var again, missing int64
	for i := range n {
		switch {
		case i%9973 == 5:
			missing++
			continue
		case i%7919 == 3 && i > 5000 && (i-5000)%9973 != 5:
			if !b.set(i - 5000) {
				again++
			}
		}
		if !b.set(i) {
			t.Fatalf("number %d is not new", i)
		}
	}
	used := heap() - before
	require.Equal(t, n-missing, b.below(n))
	require.InDelta(t, n/7919, again, 10)
	bound := missing*(wordBits/8+64) + 64*n/wordBits + 1<<20
	require.Less(t, used, bound)
	runtime.KeepAlive(b)
	t.Logf("%d numbers, %d missing: %d KiB, bound %d KiB", n, missing, used>>10, bound>>10)
}

// Numbers that lie far apart take a word each: an audit ends, and says so, before they take more than it may.
func TestScatteredNumbersEndAnAudit(t *testing.T) {
	for _, tc := range []struct {
		sentence string
		number   func(i int64) int64
		most     int64 // bytes
		messages int64 // that are taken in, the one that is too many included; 0: all of them
	}{
		{"each in a word of its own", func(i int64) int64 { return i << 20 }, 100 * (wordBytes + entryBytes), 101},
		{"of which one is too many", func(i int64) int64 { return i << 20 }, 1, 1},
		{"neighbours share one", func(i int64) int64 { return i * 2 }, 2 * (wordBytes + entryBytes), 1025},
		{"and without gaps give it back", func(i int64) int64 { return i }, 3 * (wordBytes + entryBytes), 0},
		{"what is there again takes nothing", func(i int64) int64 { return i % 7 }, wordBytes + entryBytes, 0},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			a := NewAudit(map[int32]Span{3: {To: 5000}})
			a.MaxBytes = tc.most
			var err error
			n := int64(0)
			for ; n < 5000 && err == nil; n++ {
				err = a.Message(stamped(1, 7, tc.number(n), 3, n))
			}
			if tc.messages == 0 {
				require.NoError(t, err)
				return
			}
			var full *MemoryError
			require.ErrorAs(t, err, &full)
			require.Equal(t, MemoryError{MaxBytes: tc.most, Partition: 3, Offset: tc.messages - 1, Producers: 1}, *full)
			require.EqualValues(t, tc.messages, n)
			require.Contains(t, err.Error(), "partition 3, offset")
			v := a.Report(false)
			require.EqualValues(t, tc.messages, v.Total.Distinct, "what was found until then stands")
			require.Zero(t, v.Total.Lost)
			require.False(t, v.Complete)
		})
	}
	t.Run("by default as well", func(t *testing.T) {
		a := NewAudit(map[int32]Span{0: {To: 5000}})
		a.bytes = DefaultMaxBytes
		require.NoError(t, a.Message(stamped(1, 7, -1, 0, 0)), "of an altered one nothing is remembered")
		require.ErrorAs(t, a.Message(stamped(1, 7, 1, 0, 0)), new(*MemoryError))
	})
}

// What put says that it grew by is what the set holds, in the end.
func TestGrowthOfBitsAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bits{}
		var sum int64
		for _, n := range rapid.SliceOf(rapid.Int64Range(0, 3*wordBits)).Draw(t, "numbers") {
			for i := range int64(rapid.SampledFrom([]int{1, 700}).Draw(t, "run")) {
				_, grown := b.put(n + i)
				sum += grown
			}
		}
		want := int64(0)
		for _, w := range b {
			want += entryBytes
			if w != whole {
				want += wordBytes
			}
		}
		require.Equal(t, want, sum)
	})
}
