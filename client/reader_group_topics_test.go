package client

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// listing answers Metadata with these topics, of a partition each, and one error code.
func (c *coordination) listing(code int16, topics ...string) {
	c.instead = func(raw rawserver.Request) *rawserver.Reply {
		if raw.Key != int16(kmsg.Metadata) {
			return nil
		}
		resp := metadataOf(c.addr)
		one := resp.Topics[0]
		resp.Topics = nil
		for _, name := range topics {
			one.Topic, one.ErrorCode = kmsg.StringPtr(name), code
			if code != 0 {
				one.Partitions = nil
			}
			resp.Topics = append(resp.Topics, one)
		}
		reply := rawserver.Respond(raw, resp)
		return &reply
	}
}

// A pattern means no topic of Kafka's own, whatever it matches.
func TestPatternsDoNotMeanInternalTopics(t *testing.T) {
	c := &coordination{}
	drive(t, c, ReaderConfig{TopicPattern: ".*"}, nil, func(d *driven) {
		t := d.t
		c.listing(0, append([]string{"in", "__mine"}, internalTopics...)...)
		sizes, err := d.findTopics(d.ctx, true)
		require.NoError(t, err)
		require.Equal(t, map[string]int32{"in": 1, "__mine": 1}, sizes)
	})
}

// A topic that was deleted has no partitions to share out, though its leaders are still known.
func TestTopicsThatAreDeletedAreNotDescribed(t *testing.T) {
	c := &coordination{}
	drive(t, c, ReaderConfig{}, nil, func(d *driven) {
		t := d.t
		describe := func() map[string]group.Topic {
			d.describe(group.Describe{Serial: 1, Topics: []string{"in"}})
			synctest.Wait()
			return d.is.described
		}
		require.Equal(t, map[string]group.Topic{"in": {ID: scriptTopicID, Partitions: 1}}, describe())
		c.listing(wire.ErrUnknownTopicOrPartition.Code, "in")
		require.Empty(t, describe())
		c.listing(wire.ErrLeaderNotAvailable.Code, "in")
		require.Len(t, describe(), 1, "one that has no leader for a moment is there")
		require.Equal(t, []error{nil, nil, nil}, d.is.errs)
	})
}

// The consumer protocol is offered by a cluster that has finalised the feature, not by brokers that only
// know the request.
func TestWhoOffersTheConsumerProtocol(t *testing.T) {
	for _, tc := range []struct {
		says     string
		features map[string]int16
		want     bool
	}{
		{"a cluster that has the feature", map[string]int16{"group.version": 1}, true},
		{"one that has switched it off", map[string]int16{"group.version": 0}, false},
		{"one that says nothing of it", nil, false},
	} {
		t.Run(tc.says, func(t *testing.T) {
			drive(t, &coordination{features: tc.features}, ReaderConfig{}, nil, func(d *driven) {
				t := d.t
				offered, err := d.offersConsumer(d.ctx)
				require.NoError(t, err)
				require.Equal(t, tc.want, offered)
			})
		})
	}
}
