package client

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// C11: readers share decompressors, and no more of them are kept than can be at work at a time,
// however many partitions of however many readers have been unpacked.
func TestC11ReadersShareABoundedPool(t *testing.T) {
	const partitions, batches, each = 12, 4, 50
	most := runtime.GOMAXPROCS(0)
	var held []*record.Decompressor
	for unpackers.Idle() > 0 { // what other tests have left
		held = append(held, unpackers.Get())
	}
	b := newReaderBed(t, broker.Options{}, partitions, nil)
	for p := range int32(partitions) {
		for i := range batches {
			b.put(p, encode(t, record.ZSTD, record.NoProducer, values(i*each, (i+1)*each)))
		}
	}
	var wg sync.WaitGroup
	for p := range int32(partitions) {
		r := b.reader(ReaderConfig{Partition: p})
		wg.Go(func() {
			for i := range batches * each {
				m, err := r.FetchMessage(b.ctx)
				if err != nil || string(m.Value) != fmt.Sprint("value ", i) {
					t.Errorf("partition %d: message %d is %q: %v", p, i, m.Value, err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, unpackers.Idle(), "they were unpacked by the shared ones")
	for range 4 * most {
		held = append(held, unpackers.Get())
	}
	for _, d := range held {
		unpackers.Put(d)
	}
	require.Equal(t, most, unpackers.Idle(), "kept")
}

// Who is told what: the reader's own loggers where there are some, else the client's, else nobody.
func TestLoggersOfAReader(t *testing.T) {
	const news, errors = "moved to an end of the log", "reader hook failed"
	for _, tc := range []struct {
		name                string
		client, log, errLog bool     // which are set
		hears               []string // for each of the client's, Logger and ErrorLogger: what it is told
	}{
		{"its own two", true, true, true, []string{"", news, errors}},
		{"its own two, without the client's", false, true, true, []string{"", news, errors}},
		{"what goes wrong is the client's to hear", true, true, false, []string{errors, news, ""}},
		{"what happens is", true, false, true, []string{news, "", errors}},
		{"both are", true, false, false, []string{news + errors, "", ""}},
		{"nobody hears what goes wrong", false, true, false, []string{"", news, ""}},
		{"silent by default", false, false, false, []string{"", "", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var heard [3]said
			var everybody said
			logger := func(set bool, to *said) *slog.Logger {
				if set {
					return to.logger()
				}
				return nil
			}
			before := slog.Default()
			slog.SetDefault(everybody.logger())
			defer slog.SetDefault(before)
			b := newReaderBed(t, broker.Options{}, 1, func(c *Config) {
				c.Consumer.OutOfRange, c.Logger = "earliest", logger(tc.client, &heard[0])
			})
			b.put(0, encode(t, record.None, record.NoProducer, values(0, 3)))
			r := b.reader(ReaderConfig{
				StartOffset: 100, Logger: logger(tc.log, &heard[1]), ErrorLogger: logger(tc.errLog, &heard[2]),
				OnFetch: func(FetchStats) { panic("a user's mistake") },
			})
			m, err := r.FetchMessage(b.ctx)
			require.NoError(t, err)
			require.Zero(t, m.Offset)
			require.NoError(t, r.Close())
			for i, who := range []string{"the client's logger", "Logger", "ErrorLogger"} {
				got := ""
				for _, text := range []string{news, errors} {
					if strings.Contains(heard[i].String(), text) {
						got += text
					}
				}
				require.Equal(t, tc.hears[i], got, "what %s is told", who)
			}
			require.Empty(t, everybody.String(), "the program's own logger")
		})
	}
}
