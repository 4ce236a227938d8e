package client

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// unknown answers in place of anything good that the one topic, or its partition, is not there.
func unknown(req rawserver.Request, good kmsg.Response, code int16) rawserver.Reply {
	switch r := good.(type) {
	case *kmsg.MetadataResponse:
		r.Topics[0].ErrorCode, r.Topics[0].Partitions = code, nil
	case *kmsg.FetchResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				p := &r.Topics[i].Partitions[j]
				p.ErrorCode, p.RecordBatches = code, []byte{}
			}
		}
	case *kmsg.OffsetCommitResponse:
		r.Topics[0].Partitions[0].ErrorCode = code
	}
	return rawserver.Respond(req, good)
}

// M6: a topic that brokers do not know for a while is read when they do; one that stays away is an
// error, after metadata.timeout and no sooner.
func TestM6PartitionsThatAreNotThere(t *testing.T) {
	notThere := wire.ErrUnknownTopicOrPartition.Code
	for _, tc := range []struct {
		says  string
		key   kmsg.Key // whose answers say so
		first int16
		other int16 // every fourth answer; 0: none
		lasts time.Duration
		gone  bool
	}{
		{"a leader that does not know the partition for 25 seconds", kmsg.Fetch, notThere, 0, 25 * time.Second, false},
		{"a leader that does not know the topic's id for 25 seconds", kmsg.Fetch, wire.ErrUnknownTopicID.Code, 0, 25 * time.Second, false},
		{"one that says something else in between, for five minutes", kmsg.Fetch, notThere, wire.ErrNotLeaderOrFollower.Code, 5 * time.Minute, false},
		{"a leader that does not know it any more", kmsg.Fetch, notThere, 0, time.Hour, true},
		{"a leader that does not know the topic's id any more", kmsg.Fetch, wire.ErrUnknownTopicID.Code, 0, time.Hour, true},
	} {
		for _, group := range []string{"", "g"} {
			t.Run(tc.says+map[bool]string{true: ", to a member of a group"}[group != ""], func(t *testing.T) {
				var until time.Time
				n := 0 // of the one source's requests
				c := &coordination{key: tc.key}
				c.twist = func(req rawserver.Request, good kmsg.Response) rawserver.Reply {
					code := tc.first
					if n++; tc.other != 0 && n%4 == 0 {
						code = tc.other
					}
					if !time.Now().Before(until) {
						return rawserver.Respond(req, good)
					}
					return unknown(req, good, code)
				}
				c.from(-1)
				piped(t, c, func(t *testing.T, cfg *Config) {
					began := time.Now()
					until = began.Add(tc.lasts)
					r, err := NewReader(ReaderConfig{Topic: "in", Brokers: []string{c.addr}, Config: cfg, GroupID: group})
					require.NoError(t, err)
					defer func() { require.NoError(t, r.Close()) }()
					_, err = r.FetchMessage(t.Context())
					took := time.Since(began)
					if !tc.gone {
						require.NoError(t, err)
						require.GreaterOrEqual(t, took, tc.lasts)
						require.Less(t, took, tc.lasts+10*time.Second)
						return
					}
					var failed *ReadError
					require.ErrorAs(t, err, &failed)
					require.False(t, failed.Passing)
					require.ErrorIs(t, err, wire.ErrorFor(tc.first))
					require.ErrorContains(t, err, `topic "in" partition 0`)
					require.GreaterOrEqual(t, took, cfg.Metadata.Timeout)
					require.Less(t, took, cfg.Metadata.Timeout+5*time.Second)
				})
			})
		}
	}
}

// lapse is a time in which a cluster says that the topic, or its partition, is not there.
type lapse struct {
	lasts time.Duration
	gone  bool // for good
	began time.Time
}

func (a *lapse) over() bool { return time.Since(a.began) >= a.lasts }

// require checks what came of it, and when: err is nil once it is over, and is want after metadata.timeout
// where it is for good.
func (a *lapse) require(t *testing.T, cfg *Config, err, want error) {
	took := time.Since(a.began)
	if !a.gone {
		require.NoError(t, err)
		require.GreaterOrEqual(t, took, a.lasts)
		return
	}
	require.ErrorIs(t, err, want)
	require.GreaterOrEqual(t, took, cfg.Metadata.Timeout)
	require.Less(t, took, cfg.Metadata.Timeout+5*time.Second)
}

// throughLapses runs a test with a lapse that passes and with one that does not, told by answers of one
// kind from when the test sets its beginning.
func throughLapses(t *testing.T, key kmsg.Key, test func(t *testing.T, c *coordination, cfg *Config, a *lapse)) {
	for says, a := range map[string]*lapse{
		"for 20 seconds": {lasts: 20 * time.Second},
		"for good":       {lasts: time.Hour, gone: true},
	} {
		t.Run(says, func(t *testing.T) {
			c := &coordination{key: key}
			c.twist = func(req rawserver.Request, good kmsg.Response) rawserver.Reply {
				if !a.over() {
					return unknown(req, good, wire.ErrUnknownTopicOrPartition.Code)
				}
				return rawserver.Respond(req, good)
			}
			piped(t, c, func(t *testing.T, cfg *Config) { test(t, c, cfg, a) })
		})
	}
}

// M6: nor are metadata believed at once that do not know a topic, which may just have been made; who
// asked to be told of failures is told meanwhile.
func TestM6MetadataThatDoNotKnowATopic(t *testing.T) {
	throughLapses(t, kmsg.Metadata, func(t *testing.T, c *coordination, cfg *Config, a *lapse) {
		a.began = time.Now()
		c.from(-1)
		r, err := NewReader(ReaderConfig{Topic: "in", Brokers: []string{c.addr}, Config: cfg, MaxAttempts: 3})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		told := 0
		var failed *ReadError
		for _, err = r.FetchMessage(t.Context()); errors.As(err, &failed) && failed.Passing; _, err = r.FetchMessage(t.Context()) {
			told++
		}
		a.require(t, cfg, err, ErrTopicUnknown)
		require.Positive(t, told)
	})
}

// A commit of a partition that the coordinator does not know is made again for as long.
func TestCommitsOfAPartitionThatIsNotThere(t *testing.T) {
	throughLapses(t, kmsg.OffsetCommit, func(t *testing.T, c *coordination, cfg *Config, a *lapse) {
		r := c.member(t, cfg)
		m, err := r.FetchMessage(t.Context())
		require.NoError(t, err)
		a.began = time.Now()
		c.from(-1)
		a.require(t, cfg, r.CommitMessages(t.Context(), m), wire.ErrUnknownTopicOrPartition)
		c.from(0)
		require.NoError(t, r.Close())
	})
}

func TestWhatBecomesOfAPartitionThatIsNotThere(t *testing.T) {
	cfg := NewConfig()
	for _, tc := range []struct {
		says     string
		failures int
		missing  time.Duration
		want     verdict
	}{
		{"just now", 1, 0, tryOn},
		{"again and again in a short time", 40, cfg.Metadata.Timeout - 1, tellOn},
		{"for long enough", 9, cfg.Metadata.Timeout, giveUp},
		{"for long enough, but only twice", 2, time.Hour, tryOn},
	} {
		r := &Reader{life: t.Context(), client: &Client{cfg: *cfg}, cfg: ReaderConfig{MaxAttempts: 40}}
		for _, err := range goneErrors {
			require.Equal(t, tc.want, r.judge(err, tc.failures, tc.missing), "%s: %v", tc.says, err)
		}
	}
}
