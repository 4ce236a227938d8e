package fault

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerWith is an answer of a version that names broker 7 at host:9092, with tags that nobody
// knows in every place that can have them; nil where the version has no addresses.
func answerWith(key, version int16, host string) kmsg.Response {
	resp := kmsg.ResponseForKey(key)
	resp.SetVersion(version)
	var tags kmsg.Tags
	tags.Set(77, []byte("later"))
	switch r := resp.(type) {
	case *kmsg.MetadataResponse:
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port, b.UnknownTags = 7, host, 9092, tags
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.UnknownTags = kmsg.StringPtr("t"), tags
		part := kmsg.NewMetadataResponseTopicPartition()
		part.Leader, part.Replicas, part.ISR, part.UnknownTags = 7, []int32{7, 8}, []int32{7}, tags
		topic.Partitions = append(topic.Partitions, part)
		r.Brokers, r.Topics, r.UnknownTags, r.ControllerID = append(r.Brokers, b), append(r.Topics, topic), tags, 7
	case *kmsg.FindCoordinatorResponse:
		if version < 4 {
			r.NodeID, r.Host, r.Port, r.UnknownTags = 7, host, 9092, tags
			break
		}
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.NodeID, c.Host, c.Port, c.UnknownTags = "group", 7, host, 9092, tags
		none := kmsg.NewFindCoordinatorResponseCoordinator()
		none.Key, none.NodeID, none.Port, none.ErrorCode = "other", -1, -1, 15
		r.Coordinators, r.UnknownTags = append(r.Coordinators, none, c), tags
	case *kmsg.DescribeClusterResponse:
		b := kmsg.NewDescribeClusterResponseBroker()
		b.NodeID, b.Host, b.Port, b.UnknownTags = 7, host, 9092, tags
		r.Brokers, r.UnknownTags = append(r.Brokers, b), tags
	case *kmsg.ProduceResponse:
		b := kmsg.NewProduceResponseBroker()
		b.NodeID, b.Host, b.Port, b.UnknownTags = 7, host, 9092, tags
		part := kmsg.NewProduceResponseTopicPartition()
		part.ErrorCode, part.CurrentLeader.LeaderID, part.CurrentLeader.LeaderEpoch = 6, 7, 3
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID[3], topic.Partitions = "t", 9, append(topic.Partitions, part)
		r.Brokers, r.Topics, r.UnknownTags = append(r.Brokers, b), append(r.Topics, topic), tags
	case *kmsg.FetchResponse:
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port, b.UnknownTags = 7, host, 9092, tags
		part := kmsg.NewFetchResponseTopicPartition()
		part.ErrorCode, part.RecordBatches = 6, []byte("records")
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID[3], topic.Partitions = "t", 9, append(topic.Partitions, part)
		r.Brokers, r.Topics, r.UnknownTags = append(r.Brokers, b), append(r.Topics, topic), tags
	case *kmsg.ShareFetchResponse:
		e := kmsg.NewShareFetchResponseNodeEndpoint()
		e.NodeID, e.Host, e.Port, e.UnknownTags = 7, host, 9092, tags
		r.NodeEndpoints, r.UnknownTags = append(r.NodeEndpoints, e), tags
	case *kmsg.ShareAcknowledgeResponse:
		e := kmsg.NewShareAcknowledgeResponseNodeEndpoint()
		e.NodeID, e.Host, e.Port, e.UnknownTags = 7, host, 9092, tags
		r.NodeEndpoints, r.UnknownTags = append(r.NodeEndpoints, e), tags
	default:
		panic(fmt.Sprintf("no example of an answer to request %d", key))
	}
	return resp
}

// framed is a whole answer; headerTags are the header's tagged fields in flexible versions.
func framed(resp kmsg.Response, headerTags string) []byte {
	out := []byte{0, 0, 0, 0, 0, 0, 0, 42}
	if resp.IsFlexible() && resp.Key() != keyAPIVersions {
		out = append(out, headerTags...)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// Two header tags, the first with a size of two bytes.
var headerTags = "\x02\x05\x80\x01" + strings.Repeat("x", 128) + "\x09\x01y"

func moveTo(host string) front {
	return func(node int32, from string, port int32) (string, int32, bool) {
		if node != 7 || from != "broker-7.example" || port != 9092 {
			return "", 0, false
		}
		return host, 40_007, true
	}
}

// Every version of every answer with addresses: exactly they change.
func TestRewriteEveryVersion(t *testing.T) {
	for key, from := range firstWithAddresses {
		for version := from; version <= kmsg.ResponseForKey(key).MaxVersion(); version++ {
			for _, tags := range []string{"\x00", headerTags} {
				t.Run(fmt.Sprintf("%s %d", kmsg.NameForKey(key), version), func(t *testing.T) {
					require.True(t, rewritten(key, version))
					x := exchange{key: key, version: version}
					in := framed(answerWith(key, version, "broker-7.example"), tags)
					out, err := rewrite(in, x, moveTo("127.0.0.1"))
					require.NoError(t, err)
					want := framed(answerWith(key, version, "127.0.0.1"), tags)
					// The same length but for the host's, and the port where it stood.
					require.Len(t, out, len(want))
					require.NotContains(t, string(out), "broker-7.example")
					back, err := rewrite(out, x, func(node int32, host string, port int32) (string, int32, bool) {
						require.EqualValues(t, 7, node)
						require.Equal(t, "127.0.0.1", host)
						require.EqualValues(t, 40_007, port)
						return host, 9092, true
					})
					require.NoError(t, err)
					require.Equal(t, want, back, "nothing but the address differs")

					same, err := rewrite(in, x, func(int32, string, int32) (string, int32, bool) { return "", 0, false })
					require.NoError(t, err)
					require.Same(t, &in[0], &same[0], "without anything to replace it is what was sent")
				})
			}
		}
		require.False(t, rewritten(key, from-1))
	}
	require.False(t, rewritten(2, 1), "ListOffsets has no addresses")
}

func TestVersionsThatCannotBeRewrittenAreNotOffered(t *testing.T) {
	for version := range int16(5) {
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.SetVersion(version)
		for _, key := range []int16{keyMetadata, keyFetch, 2} {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MaxVersion = key, 99
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
		require.True(t, rewritten(keyAPIVersions, version))
		out, err := rewrite(framed(resp, "\x00"), exchange{key: keyAPIVersions, version: version}, nil)
		require.NoError(t, err)
		got := kmsg.NewPtrApiVersionsResponse()
		got.SetVersion(version)
		require.NoError(t, got.ReadFrom(out[8:]))
		require.EqualValues(t, kmsg.NewPtrMetadataResponse().MaxVersion(), got.ApiKeys[0].MaxVersion)
		require.EqualValues(t, kmsg.NewPtrFetchResponse().MaxVersion(), got.ApiKeys[1].MaxVersion)
		require.EqualValues(t, 99, got.ApiKeys[2].MaxVersion, "others may be as new as they like")
	}
	refusal := []byte{0, 0, 0, 10, 0, 0, 0, 42, 0, 35, 0, 0, 0, 0}
	out, err := rewrite(refusal, exchange{key: keyAPIVersions, version: 4}, nil)
	require.NoError(t, err, "the refusal of a version is in the form of version 0")
	require.Equal(t, refusal, out)
}

func TestAnswersThatAreNotUnderstoodPass(t *testing.T) {
	good := framed(answerWith(keyMetadata, 12, "broker-7.example"), headerTags)
	for name, tc := range map[string]struct {
		frame []byte
		x     exchange
	}{
		"a version to come":               {good, exchange{key: keyMetadata, version: 99}},
		"cut off within the body":         {good[:len(good)-30], exchange{key: keyMetadata, version: 12}},
		"cut off within the header":       {good[:12], exchange{key: keyMetadata, version: 12}},
		"without a correlation id":        {good[:6], exchange{key: keyMetadata, version: 12}},
		"a header whose tags do not end":  {append(good[:8:8], 0xff, 0xff, 0xff, 0xff, 0x0f), exchange{key: keyMetadata, version: 12}},
		"a tag larger than the answer":    {append(good[:8:8], 1, 5, 0xff, 0xff, 0x03), exchange{key: keyMetadata, version: 12}},
		"a tag without an end of a count": {append(good[:8:8], 0x80), exchange{key: keyMetadata, version: 12}},
		"a request that nobody knows":     {good, exchange{key: 4000, version: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rewrite(tc.frame, tc.x, moveTo("127.0.0.1"))
			require.Error(t, err)
			require.Equal(t, tc.frame, out)
		})
	}
}

func FuzzRewrite(f *testing.F) {
	for key, from := range firstWithAddresses {
		newest := kmsg.ResponseForKey(key).MaxVersion()
		for _, version := range []int16{from, newest} {
			f.Add(key, version, framed(answerWith(key, version, "broker-7.example"), headerTags))
		}
	}
	f.Add(int16(keyAPIVersions), int16(4), []byte{0, 0, 0, 10, 0, 0, 0, 42, 0, 35, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, key, version int16, frame []byte) {
		if version < 0 {
			return // no client sends one, and the broker answers none
		}
		out, err := rewrite(frame, exchange{key: key, version: version}, moveTo("127.0.0.1"))
		if err != nil {
			require.Equal(t, frame, out, "what is not understood passes as it is")
			return
		}
		if len(out) > 0 && len(frame) > 0 && &out[0] != &frame[0] {
			require.EqualValues(t, len(out)-4, binary.BigEndian.Uint32(out), "a frame with its length")
			require.Equal(t, frame[4:8], out[4:8], "of the same request")
		}
	})
}
