package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafka21 holds the highest versions that Kafka 2.1 speaks.
var kafka21 = map[int16]int16{
	0: 7, 1: 10, 2: 4, 3: 7, 8: 6, 9: 5, 10: 2, 11: 3, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 17: 1,
	18: 2, 19: 3, 20: 3, 21: 1, 22: 1, 23: 2, 24: 1, 25: 1, 26: 1, 28: 2, 32: 2, 33: 1, 35: 1,
	36: 0, 37: 1, 42: 1,
}

func TestVersionTable(t *testing.T) {
	for key, ours := range Versions {
		name := kmsg.NameForKey(key)
		require.LessOrEqual(t, ours.Min, ours.Max, name)
		require.GreaterOrEqual(t, ours.Min, int16(0), name)
		require.LessOrEqual(t, ours.Max, kmsg.RequestForKey(key).MaxVersion(), "%s: no definition of our maximum", name)
		if last, ok := dropped[key]; ok {
			require.Greater(t, ours.Min, last, "M11: %s: Kafka 4 dropped versions up to %d", name, last)
		}
		if old, ok := kafka21[key]; ok {
			require.LessOrEqual(t, ours.Min, old, "%s: Kafka 2.1 speaks up to %d", name, old)
		}
	}
	require.Equal(t, int16(12), Versions[0].Max, "Produce 13 carries topic ids")
}

func limit(v int16) *int16 { return &v }

func TestNegotiate(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    int16
		broker *Range
		limit  *int16
		want   int16
		fails  string
	}{
		{name: "M11: highest common version", key: 0, broker: &Range{3, 11}, want: 11},
		{name: "M12: a broker that advertises Produce from 0", key: 0, broker: &Range{0, 13}, want: 12},
		{name: "the user's cap holds", key: 0, broker: &Range{0, 13}, limit: limit(7), want: 7},
		{name: "a cap above everything changes nothing", key: 1, broker: &Range{4, 17}, limit: limit(99), want: 17},
		{name: "Kafka 2.1", key: 1, broker: &Range{0, 10}, want: 10},
		{name: "M11: a broker that is too old", key: 0, broker: &Range{0, 2}, fails: "no common version of Produce: we speak 3–12, the broker speaks 0–2: the broker is too old"},
		{name: "M11: a broker that is too new", key: 0, broker: &Range{14, 20}, fails: "no common version of Produce: we speak 3–12, the broker speaks 14–20: the broker is too new"},
		{name: "a cap below our minimum", key: 0, broker: &Range{0, 13}, limit: limit(2), fails: "the Version setting caps Produce at version 2, but we speak 3–12"},
		{name: "a cap below the broker's minimum", key: 0, broker: &Range{9, 13}, limit: limit(8), fails: "the broker speaks 9–13"},
		{name: "a request the broker does not know", key: 68, fails: "does not know ConsumerGroupHeartbeat requests (we speak versions 1)"},
		{name: "a request that is not in the table", key: 4, broker: &Range{0, 1}, fails: "request key 4 (LeaderAndISR) is not in the table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Negotiate(c.key, c.broker, c.limit)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				require.True(t, Classify(err).Has(Fatal))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// M11, M12: whatever brokers say and users cap, no request leaves in a version that Kafka 4 refuses.
func TestM12NoRequestIsEverSentInADroppedVersion(t *testing.T) {
	for key := range Versions {
		for low := range int16(21) {
			for high := low; high <= 20; high++ {
				for limit := int16(-1); limit <= 20; limit++ {
					capped := &limit
					if limit < 0 {
						capped = nil
					}
					v, err := Negotiate(key, &Range{low, high}, capped)
					if err == nil {
						require.False(t, Dropped(key, v), "%s %d", kmsg.NameForKey(key), v)
						require.LessOrEqual(t, v, high)
						require.GreaterOrEqual(t, v, low)
					}
				}
			}
		}
	}
	require.True(t, Dropped(0, 2))
	require.False(t, Dropped(0, 3))
	require.False(t, Dropped(3, 0), "Metadata lost none")
}

func TestFlexibleHeaders(t *testing.T) {
	require.False(t, Flexible(0, 8))
	require.True(t, Flexible(0, 9))
	require.True(t, FlexibleResponseHeader(0, 9))
	require.True(t, Flexible(18, 3))
	require.False(t, FlexibleResponseHeader(18, 3), "KIP-511: ApiVersions answers always have header v0")
	require.False(t, Flexible(17, 1))
	require.False(t, Flexible(-1, 5))
	require.False(t, Flexible(30000, 5))
	for key := range Versions {
		req := kmsg.RequestForKey(key)
		for v := int16(0); v <= req.MaxVersion(); v++ {
			req.SetVersion(v)
			require.Equal(t, req.IsFlexible(), Flexible(key, v), "%s %d", kmsg.NameForKey(key), v)
		}
	}
}
