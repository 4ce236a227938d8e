package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/settings"
)

func TestDefaultsAreValidAndWholeInTheSchema(t *testing.T) {
	require.NoError(t, NewConfig().Validate())
	require.Empty(t, Schema{}.Check(nil))
	for _, f := range (Schema{}).Fields() {
		require.NotEmpty(t, f.Doc, f.Key)
	}
	require.Equal(t, "all", NewConfig().Settings()["producer.requiredAcks"])
}

func TestEveryProblemOfAConfigIsReportedAtOnce(t *testing.T) {
	c := NewConfig()
	c.ChannelBufferSize = 1_000_000_000_000
	c.Net.MaxOpenRequests = 0
	c.Producer.Partitioner = "hsah"
	c.Producer.Flush = FlushConfig{Messages: 100, MaxMessages: 10}
	c.Consumer.OutOfRange = "never"
	before := *c
	var bad *ConfigError
	require.ErrorAs(t, c.Validate(), &bad)
	var keys []string
	for _, p := range bad.Problems {
		keys = append(keys, p.Key)
	}
	require.Equal(t, []string{"channelBufferSize", "net.maxOpenRequests", "producer.flush.maxMessages", "producer.partitioner", "consumer.outOfRange"}, keys)
	require.Equal(t, before.Producer.Flush, c.Producer.Flush, "nothing is changed")
}

func TestConfigLoadsFromYAMLAndSet(t *testing.T) {
	c, err := Load("c.yaml", []byte("producer:\n  requiredAcks: 1\n  flush: {messages: 7}\nchannelBufferSize: 0\n"))
	require.NoError(t, err)
	require.Equal(t, AcksLeader, c.Producer.RequiredAcks)
	require.Equal(t, 7, c.Producer.Flush.Messages)
	a, problem := settings.ParseSet("--set", "net.maxOpenRequests=3")
	require.Nil(t, problem)
	require.NoError(t, c.Apply(a))
	require.Equal(t, 3, c.Net.MaxOpenRequests)
	require.Equal(t, AcksLeader, c.Producer.RequiredAcks, "what was set before stays")

	c, err = Load("c.yaml", []byte("metadata.refreshFrequency: -1\nproducer.batch.async: true\n"))
	require.NoError(t, err)
	require.Negative(t, c.Metadata.RefreshFrequency)
	require.Equal(t, "-1", c.Settings()["metadata.refreshFrequency"], "written as it is read")
	require.True(t, c.Producer.Batch.Async)

	_, err = Load("c.yaml", []byte("producer:\n  requiredAks: 1\n"))
	require.ErrorContains(t, err, "c.yaml:2")
	require.ErrorContains(t, err, "requiredAcks")
}

func TestVersionsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]Version{"2.8": {2, 8}, "4.0.1": {4, 0}, "": {}} {
		var v Version
		require.NoError(t, v.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, v)
	}
	for _, text := range []string{"2", "2.x", "0.11", "2.0", "4.0.0.0", "-1.2"} {
		var v Version
		require.Error(t, v.UnmarshalText([]byte(text)), text)
	}
	produce, capped := Version{2, 8}.caps(0)
	require.True(t, capped)
	require.EqualValues(t, 9, produce)
	_, capped = Version{}.caps(0)
	require.False(t, capped)
}

func TestTransactionsNeedIdempotence(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*Config)
		keys []string
	}{
		{"without it", func(c *Config) { c.Producer.Transaction.ID = "x" }, []string{"producer.transaction.id"}},
		{"with it", func(c *Config) { c.Producer.Transaction.ID, c.Producer.Idempotent = "x", true }, nil},
		{"a timeout that is none", func(c *Config) { c.Producer.Transaction.Timeout = 0 }, []string{"producer.transaction.timeout"}},
		{"a timeout beyond the protocol's", func(c *Config) { c.Producer.Transaction.Timeout = 600 * time.Hour }, []string{"producer.transaction.timeout"}},
		{"an id beyond the protocol's", func(c *Config) {
			c.Producer.Transaction.ID, c.Producer.Idempotent = strings.Repeat("x", 1<<15), true
		}, []string{"producer.transaction.id"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewConfig()
			tc.set(c)
			var keys []string
			var bad *ConfigError
			if errors.As(c.Validate(), &bad) {
				for _, p := range bad.Problems {
					keys = append(keys, p.Key)
				}
			}
			require.Equal(t, tc.keys, keys)
		})
	}
}

// A transactional id is one of the client's settings like others: whose transactions they are, and when
// they end, is for who uses the client to say.
func TestSchemaTakesATransactionalID(t *testing.T) {
	for _, tc := range []struct {
		idempotent string
		problem    string
	}{
		{"true", ""},
		{"false", "producer.transaction.id"},
	} {
		as, problems := settings.Parse("w.yaml", []byte("producer:\n  idempotent: "+tc.idempotent+"\n  transaction: {id: x}\n"))
		require.Empty(t, problems)
		problems = Schema{}.Check(as)
		if tc.problem == "" {
			require.Empty(t, problems)
			continue
		}
		require.Len(t, problems, 1)
		require.Equal(t, tc.problem, problems[0].Key)
		require.Equal(t, "w.yaml", problems[0].File)
	}
}
