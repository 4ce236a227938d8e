package client

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/record"
)

// effects names the test that fails when a setting has no effect, by key. A setting that is new
// needs one too.
var effects = map[string]string{
	"clientID":          "TestWhatProduceRequestsCarry",
	"channelBufferSize": "TestChannelBufferSizeBoundsTheQueues",
	"version":           "TestEveryReleaseIsSpokenTo",

	"net.maxOpenRequests":  "TestMetricsOfWhatIsInFlightThrottledAndLost",
	"net.dialTimeout":      "TestTimeoutsOfConnections",
	"net.requestTimeout":   "TestTimeoutsOfConnections",
	"net.readTimeout":      "TestTimeoutsOfConnections",
	"net.writeTimeout":     "TestTimeoutsOfConnections",
	"net.keepAlive":        "TestKeepAliveIsHandedOn",
	"net.maxResponseBytes": "TestAnswersThatAreTooLong",

	"metadata.refreshFrequency":       "TestMetadataAreRefreshedInTheBackground",
	"metadata.full":                   "TestMetadataAreRefreshedInTheBackground",
	"metadata.timeout":                "TestARefreshTriesUntilItsDeadline",
	"metadata.allowAutoTopicCreation": "TestTopicsAreMadeOnlyWhereThatIsAskedFor",
	"metadata.retry.max":              "TestARefreshTriesUntilItsDeadline",
	"metadata.retry.backoff":          "TestARefreshTriesUntilItsDeadline",
	"metadata.retry.maxBackoff":       "TestARefreshTriesUntilItsDeadline",

	"producer.maxMessageBytes":     "TestChannelFormDeliversAllByAsyncClose",
	"producer.checkCompressedSize": "TestBatchChecksTheCompressedSize",
	"producer.maxRequestBytes":     "TestRequestsAreBounded",
	"producer.requiredAcks":        "TestWhatProduceRequestsCarry",
	"producer.timeout":             "TestWhatProduceRequestsCarry",
	"producer.deliveryTimeout":     "TestDeliveryTimeoutHoldsInEveryState",
	"producer.partitioner":         "TestThePartitionerOfTheConfigurationPlacesMessages",
	"producer.compression":         "TestMetricsTellTheCompressionRatio",
	"producer.compressionLevel":    "TestHigherLevelsMakeSmallerBatches",
	"producer.idempotent":          "TestIdempotentProducerIsExactlyOnceInOrder",
	"producer.transaction.id":      "TestTransactionsShowAllOrNothing",
	"producer.transaction.timeout": "TestTransactionTimeoutIsAskedFor",
	"producer.retry.max":           "TestRetryMaxEndsRetrying",
	"producer.retry.backoff":       "TestRetriesWaitLongerAndLonger",
	"producer.retry.maxBackoff":    "TestRetriesWaitLongerAndLonger",
	"producer.flush.messages":      "TestEachFlushTriggerByItself",
	"producer.flush.bytes":         "TestEachFlushTriggerByItself",
	"producer.flush.frequency":     "TestEachFlushTriggerByItself",
	"producer.flush.maxMessages":   "TestEachFlushTriggerByItself",
	"producer.buffer.messages":     "TestBoundsHoldWhileTheBrokerIsSilent",
	"producer.buffer.bytes":        "TestTheBufferIsBoundedInBytes",
	"producer.return.successes":    "TestWhichOutcomesAreReturned",
	"producer.return.errors":       "TestWhichOutcomesAreReturned",
	"producer.batch.async":         "TestBatchQueueTriggers",

	"consumer.minBytes":          "TestWhatFetchRequestsCarry",
	"consumer.maxBytes":          "TestWhatFetchRequestsCarry",
	"consumer.maxPartitionBytes": "TestWhatFetchRequestsCarry",
	"consumer.maxWait":           "TestWhatFetchRequestsCarry",
	"consumer.isolationLevel":    "TestWhatFetchRequestsCarry",
	"consumer.rack":              "TestWhatFetchRequestsCarry",
	"consumer.queueCapacity":     "TestReaderBoundsWhatItHolds",
	"consumer.outOfRange":        "TestC4OutOfRange",
	"consumer.checkCrc":          "TestChecksumsAreCheckedWhereThatIsAskedFor",
	"consumer.maxDecompressed":   "TestReaderHostileAnswers",
	"consumer.readBackoffMin":    "TestReadersWaitLongerAndLonger",
	"consumer.readBackoffMax":    "TestReadersWaitLongerAndLonger",

	"consumer.group.protocol":          "TestProtocolAuto",
	"consumer.group.remoteAssignor":    "TestWhatConsumersTellTheCoordinator",
	"consumer.group.balancers":         "TestWhatMembersTellTheCoordinator",
	"consumer.group.sessionTimeout":    "TestWhatMembersTellTheCoordinator",
	"consumer.group.rebalanceTimeout":  "TestWhatMembersTellTheCoordinator",
	"consumer.group.heartbeatInterval": "TestWhatMembersTellTheCoordinator",
	"consumer.group.commitInterval":    "TestCommitsOnTheInterval",
	"consumer.group.maxPollInterval":   "TestAMemberWhoseApplicationDoesNotAskLeaves",
	"consumer.group.topicInterval":     "TestC7PartitionsAndTopicsAddedWhileRunning",

	"admin.timeout":          "TestAdministrationIsRetriedUntilItsTimeout",
	"admin.retry.max":        "TestAdministrationIsRetriedUntilItsTimeout",
	"admin.retry.backoff":    "TestAdministrationIsRetriedUntilItsTimeout",
	"admin.retry.maxBackoff": "TestAdministrationIsRetriedUntilItsTimeout",
}

func TestEverySettingHasATestOfItsEffect(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[fn.Name.Name] = true
			}
		}
	}
	known := map[string]bool{}
	for _, f := range (Schema{}).Fields() {
		known[f.Key] = true
		require.NotEmpty(t, effects[f.Key], "%s has no test of its effect", f.Key)
	}
	for key, test := range effects {
		require.True(t, known[key], "there is no setting %s", key)
		require.True(t, tests[test], "there is no test %s", test)
	}
}

func TestWhatProduceRequestsCarry(t *testing.T) {
	for _, acks := range []RequiredAcks{AcksLeader, AcksAll, AcksNone} {
		w := newWorld(map[int32]string{0: "a:1"})
		w.topics["t"] = led(1, 0, 1)
		handle := func(addr string, raw rawserver.Request) rawserver.Reply {
			if kmsg.Key(raw.Key) == kmsg.Produce && acks == AcksNone {
				return rawserver.Reply{}
			}
			return w.ordinary(addr, raw)
		}
		inBubble(t, handle, func(t *testing.T, n *scripted) {
			c := n.mustClient(func(c *Config) {
				c.ClientID, c.Producer.RequiredAcks, c.Producer.Timeout = "somebody", acks, 7*time.Second
			}, "a:1")
			defer c.Close()
			p, err := NewAsyncProducerFromClient(c)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close(t.Context())) }()
			require.NoError(t, sendOne(t, p, &ProducerMessage{Topic: "t"}))
			require.Eventually(t, func() bool { return len(n.requests(kmsg.Produce)) == 1 }, time.Minute, time.Millisecond)
			sent := n.requests(kmsg.Produce)[0]
			require.Equal(t, "somebody", sent.ClientID)
			req := sent.Decode().(*kmsg.ProduceRequest)
			require.EqualValues(t, acks, req.Acks)
			require.EqualValues(t, 7000, req.TimeoutMillis)
		})
	}
	require.Equal(t, 10*time.Second, NewConfig().Producer.Timeout)
}

func TestTimeoutsOfConnections(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	silent := func(raw rawserver.Request) rawserver.Reply { return rawserver.Reply{} }
	half := func(raw rawserver.Request) rawserver.Reply {
		reply := w.metadata(raw)
		whole := rawserver.Frame(raw, reply.Body)
		return rawserver.Reply{Raw: whole[:len(whole)-2]}
	}
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, tc := range []struct {
		name   string
		script rawserver.Script
		dial   func(context.Context, string, string) (net.Conn, error)
		change func(*NetConfig)
		after  time.Duration
	}{
		{"net.dialTimeout", rawserver.Script{}, hang, func(n *NetConfig) { n.DialTimeout = 3 * time.Second }, 3 * time.Second},
		{"net.requestTimeout", rawserver.Script{Handle: silent}, nil, func(n *NetConfig) { n.RequestTimeout, n.ReadTimeout = 4*time.Second, 2*time.Second }, 4 * time.Second},
		{"net.readTimeout", rawserver.Script{Handle: half}, nil, func(n *NetConfig) { n.RequestTimeout, n.ReadTimeout = 8*time.Second, 5*time.Second }, 5 * time.Second},
		{"net.readTimeout instead of the other", rawserver.Script{Handle: silent}, nil, func(n *NetConfig) { n.ReadTimeout = 5 * time.Second }, 5 * time.Second},
		{"net.writeTimeout", rawserver.Script{Opened: func(net.Conn) { time.Sleep(time.Hour) }}, nil, func(n *NetConfig) { n.WriteTimeout = 6 * time.Second }, 6 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, _ *scripted) {
				s := rawserver.StartPipes(tc.script)
				defer s.Close()
				cfg := NewConfig()
				cfg.Metadata.Retry.Max, cfg.Metadata.Timeout = 0, time.Hour
				if cfg.Net.Dialer = tc.dial; tc.dial == nil {
					cfg.Net.Dialer = func(context.Context, string, string) (net.Conn, error) { return s.Pipe() }
				}
				tc.change(&cfg.Net)
				began := time.Now()
				_, err := NewClient([]string{"a:1"}, cfg)
				require.ErrorIs(t, err, ErrNoBrokers)
				require.Equal(t, tc.after, time.Since(began), err)
			})
		})
	}
}

func TestKeepAliveIsHandedOn(t *testing.T) { // and set on sockets: TestKeepAlive of package conn
	cfg := NewConfig()
	cfg.Net.KeepAlive = 7 * time.Second
	o, err := cfg.connOptions(new(atomic.Int64))
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, o.KeepAlive)
}

func TestAnswersThatAreTooLong(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1000, 0, 1)
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Net.MaxResponseBytes, c.Metadata.Retry.Max = 10_000, 0 }, "a:1")
		defer c.Close()
		_, err := c.Partitions(t.Context(), "t")
		var broken *conn.ProtocolError
		require.ErrorAs(t, err, &broken)
		require.ErrorContains(t, err, "allowed are 4 … 10000")
	})
}

func TestRequestsAreBounded(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(6, 0, 1)
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) {
			c.Producer.Partitioner, c.Producer.MaxMessageBytes, c.Producer.MaxRequestBytes = "manual", 20_000, 25_000
			c.Producer.Flush.Bytes = 6 * 9_000
		}, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		var out tally
		for range 3 { // leaders are found in the first round
			var run []*ProducerMessage
			for i := range 6 {
				run = append(run, &ProducerMessage{Topic: "t", Partition: int32(i), Value: make([]byte, 9_000)})
			}
			_, err = p.ProduceRun(t.Context(), run, &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(t.Context()))
		}
		out.require(t, 18, 0)
		m := c.Metrics().Overall
		require.LessOrEqual(t, m.Request("Produce").RequestBytes.Max, int64(25_500))
		require.Greater(t, m.BatchesPerRequest.Max, int64(1), "several partitions together")
	})
}

func TestHigherLevelsMakeSmallerBatches(t *testing.T) {
	k := cluster(t, 1, 1)
	var size []int64
	for _, level := range []int{1, 9} {
		cfg := quickConfig()
		cfg.Producer.Compression, cfg.Producer.CompressionLevel = record.Gzip, level
		p := asyncProducer(t, k, cfg)
		text := make([]byte, 0, 100_000)
		for i := 0; len(text) < 90_000; i++ {
			text = append(text, "words that "[i%7:]...)
			text = append(text, byte('a'+i*i%26), byte('a'+i*i*i%23))
		}
		_, err := p.ProduceRun(within(t), []*ProducerMessage{{Topic: "t", Value: text}}, nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		size = append(size, p.Metrics().Overall.BatchBytes.Sum)
	}
	require.Less(t, size[1], size[0])
}

func TestRetriesWaitLongerAndLonger(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1, 0, 1)
	tries := 0
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if kmsg.Key(raw.Key) == kmsg.Produce {
			if tries++; tries <= 5 {
				return produced(raw, func(_ string, p *kmsg.ProduceResponseTopicPartition) { p.ErrorCode = 19 })
			}
		}
		return w.ordinary(addr, raw)
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) {
			c.Producer.Retry = RetryConfig{Max: 10, Backoff: 100 * time.Millisecond, MaxBackoff: 350 * time.Millisecond}
		}, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		require.NoError(t, sendOne(t, p, &ProducerMessage{Topic: "t"}))
		sent := n.requests(kmsg.Produce)
		var waits []time.Duration
		for i := 1; i < len(sent); i++ {
			waits = append(waits, sent[i].at.Sub(sent[i-1].at))
		}
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{100 * ms, 200 * ms, 350 * ms, 350 * ms, 350 * ms}, waits)
	})
}

func TestEachFlushTriggerByItself(t *testing.T) {
	for _, tc := range []struct {
		name     string
		flush    FlushConfig
		messages int           // of 100 bytes each, one every 10 ms
		sent     []int         // messages of each request
		last     time.Duration // when the last request left
	}{
		{"none: at once", FlushConfig{}, 3, []int{1, 1, 1}, 20 * time.Millisecond},
		{"messages", FlushConfig{Messages: 4}, 8, []int{4, 4}, 70 * time.Millisecond},
		{"bytes", FlushConfig{Bytes: 450}, 10, []int{5, 5}, 90 * time.Millisecond},
		{"frequency", FlushConfig{Frequency: 25 * time.Millisecond}, 6, []int{3, 3}, 55 * time.Millisecond},
		{"the first of two", FlushConfig{Messages: 2, Frequency: time.Hour}, 4, []int{2, 2}, 30 * time.Millisecond},
		{"maxMessages fills a batch before any trigger", FlushConfig{Frequency: time.Hour, MaxMessages: 3}, 6, []int{3, 3}, 50 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(map[int32]string{0: "a:1"})
			w.topics["t"] = led(1, 0, 1)
			inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
				c := n.mustClient(func(c *Config) { c.Producer.Flush = tc.flush }, "a:1")
				defer c.Close()
				_, err := c.Partitions(t.Context(), "t")
				require.NoError(t, err)
				p, err := NewAsyncProducerFromClient(c)
				require.NoError(t, err)
				defer func() { require.NoError(t, p.Close(t.Context())) }()
				began := time.Now()
				for i := range tc.messages {
					time.Sleep(time.Until(began.Add(time.Duration(i) * 10 * time.Millisecond)))
					_, err := p.ProduceRun(t.Context(), []*ProducerMessage{{Topic: "t", Value: make([]byte, 100)}}, nil)
					require.NoError(t, err)
				}
				time.Sleep(5 * time.Second)
				var sent []int
				var last time.Duration
				for _, r := range n.requests(kmsg.Produce) {
					batch, _, err := record.Next(r.Decode().(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records)
					require.NoError(t, err)
					sent, last = append(sent, int(batch.Count)), r.at.Sub(began)
				}
				require.Equal(t, tc.sent, sent)
				require.Equal(t, tc.last, last)
			})
		})
	}
}

func TestTheBufferIsBoundedInBytes(t *testing.T) {
	k := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Buffer = BufferConfig{Messages: 1000, Bytes: 1000}
	p := asyncProducer(t, k, cfg)
	k.Stall(0)
	ctx, cancel := context.WithTimeout(within(t), 500*time.Millisecond)
	defer cancel()
	var out tally
	accepted := 0
	for accepted < 100 {
		n, err := p.ProduceRun(ctx, []*ProducerMessage{{Topic: "t", Value: make([]byte, 100)}}, &out)
		if accepted += n; err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			break
		}
	}
	k.Resume()
	require.NoError(t, p.Flush(within(t)))
	require.Equal(t, 10, accepted, "times 100 bytes; failures: %v", out.errs)
}

func TestWhichOutcomesAreReturned(t *testing.T) {
	k := cluster(t, 1, 1)
	for _, successes := range []bool{false, true} {
		for _, failures := range []bool{false, true} {
			cfg := quickConfig()
			cfg.Producer.Return = ReturnConfig{Successes: successes, Errors: failures}
			cfg.Producer.MaxMessageBytes = 1000
			p, err := NewAsyncProducer(k.Bootstrap(), cfg)
			require.NoError(t, err)
			for i := range 6 {
				p.Input() <- &ProducerMessage{Topic: "t", Value: make([]byte, 2000*(i%2))}
			}
			p.AsyncClose(within(t))
			ok, bad := 0, 0
			for range p.Successes() {
				ok++
			}
			for range p.Errors() {
				bad++
			}
			require.NoError(t, p.Close(within(t)))
			require.Equal(t, successes, ok == 3, "successes %v: %d", successes, ok)
			require.Equal(t, failures, bad == 3, "errors %v: %d", failures, bad)
			require.Contains(t, []int{0, 3}, ok)
			require.Contains(t, []int{0, 3}, bad)
		}
	}
}

func TestTransactionTimeoutIsAskedFor(t *testing.T) {
	k := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Idempotent, cfg.Producer.Transaction.ID, cfg.Producer.Transaction.Timeout = true, "x", 23*time.Second
	asked := make(chan int32, 10)
	k.Observe(int16(kmsg.InitProducerID), func(_ int32, req kmsg.Request) { asked <- req.(*kmsg.InitProducerIDRequest).TransactionTimeoutMillis })
	p := asyncProducer(t, k, cfg)
	require.NoError(t, p.BeginTransaction(within(t)))
	_, err := p.ProduceRun(within(t), numbered(1, 1), nil)
	require.NoError(t, err)
	require.NoError(t, p.CommitTransaction(within(t)))
	require.EqualValues(t, 23_000, <-asked)
}

func TestWhatFetchRequestsCarry(t *testing.T) {
	s := &script{fetch: func(rawserver.Request, kmsg.FetchRequestTopicPartition, *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		return nil
	}}
	r, ctx := s.start(t, ReaderConfig{}, func(c *Config) {
		c.Consumer.MinBytes, c.Consumer.MaxBytes, c.Consumer.MaxPartitionBytes = 11, 22_222, 3_333
		c.Consumer.MaxWait, c.Consumer.IsolationLevel, c.Consumer.Rack = 44*time.Millisecond, ReadCommitted, "here"
	})
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := r.FetchMessage(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	asked := s.asked()
	require.NotEmpty(t, asked)
	require.EqualValues(t, 11, asked[0].MinBytes)
	require.EqualValues(t, 22_222, asked[0].MaxBytes)
	require.EqualValues(t, 44, asked[0].MaxWaitMillis)
	require.EqualValues(t, ReadCommitted, asked[0].IsolationLevel)
	require.Equal(t, "here", asked[0].Rack)
	require.EqualValues(t, 3_333, asked[0].Topics[0].Partitions[0].PartitionMaxBytes)
}

func TestChecksumsAreCheckedWhereThatIsAskedFor(t *testing.T) {
	for _, check := range []bool{true, false} {
		s := &script{last: 1, fetch: func(_ rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
			if ask.FetchOffset == 0 {
				p.RecordBatches = batchOf(t, shape{}, []msg{{value: []byte("v")}})
				p.RecordBatches[18] ^= 1 // of the checksum
			}
			return nil
		}}
		r, ctx := s.start(t, ReaderConfig{MaxAttempts: 1}, func(c *Config) { c.Consumer.CheckCRC = check })
		m, err := r.FetchMessage(ctx)
		if check {
			require.ErrorContains(t, err, "CRC")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "v", string(m.Value))
	}
}

func TestReadersWaitLongerAndLonger(t *testing.T) {
	var times []time.Time
	done := make(chan struct{})
	s := &script{fetch: func(_ rawserver.Request, _ kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		if times = append(times, time.Now()); len(times) == 5 {
			close(done)
		}
		p.ErrorCode = 56 // KAFKA_STORAGE_ERROR
		return nil
	}}
	_, _ = s.start(t, ReaderConfig{MaxAttempts: 1000}, func(c *Config) {
		c.Consumer.ReadBackoffMin, c.Consumer.ReadBackoffMax = 40*time.Millisecond, 100*time.Millisecond
	})
	<-done
	for i, least := range []time.Duration{40, 80, 100, 100} {
		require.GreaterOrEqual(t, times[i+1].Sub(times[i]), least*time.Millisecond, "wait %d", i)
	}
}

func TestAdministrationIsRetriedUntilItsTimeout(t *testing.T) {
	for _, tc := range []struct {
		name  string
		retry RetryConfig
		tries int
		took  time.Duration
	}{
		{"a few tries with a growing backoff", RetryConfig{Max: 3, Backoff: time.Second, MaxBackoff: 3 * time.Second}, 4, 6 * time.Second},
		{"none", RetryConfig{}, 1, 0},
		{"admin.timeout ends them", RetryConfig{Max: 100, Backoff: 4 * time.Second, MaxBackoff: 4 * time.Second}, 3, 10 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(map[int32]string{0: "a:1"})
			handle := func(addr string, raw rawserver.Request) rawserver.Reply {
				req, ok := raw.Decode().(*kmsg.CreateTopicsRequest)
				if !ok {
					return w.ordinary(addr, raw)
				}
				resp := kmsg.NewPtrCreateTopicsResponse()
				topic := kmsg.NewCreateTopicsResponseTopic()
				topic.Topic, topic.ErrorCode = req.Topics[0].Topic, 41 // NOT_CONTROLLER
				resp.Topics = append(resp.Topics, topic)
				return rawserver.Respond(raw, resp)
			}
			inBubble(t, handle, func(t *testing.T, n *scripted) {
				c := n.mustClient(func(c *Config) { c.Admin.Retry, c.Admin.Timeout = tc.retry, 10*time.Second }, "a:1")
				defer c.Close()
				began := time.Now()
				require.Error(t, c.CreateTopics(t.Context(), TopicSpec{Name: "new", Partitions: 1, ReplicationFactor: 1}))
				require.Len(t, n.requests(kmsg.CreateTopics), tc.tries)
				require.Equal(t, tc.took, time.Since(began))
			})
		})
	}
}
