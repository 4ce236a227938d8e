//go:build kafka

package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// memberChange is how often a member is killed, leaves or joins.
const memberChange = 3 * time.Second

// At least once: while members are killed, leave and join, and brokers are stopped, killed and started
// again one at a time, a group is given every message that was acknowledged, and of transactions
// exactly those that were committed; in order within a partition for as long as a member has it.
func TestKafkaGroupsAreGivenEverything(t *testing.T) {
	b := newGroupBed(t)
	for range 3 {
		b.join()
	}
	var dead, did []string
	b.during(func() {
		require.Eventually(t, func() bool { return b.plain.acked.Load() > 50 && b.txns.ended.Load() > 1 }, realPatience, 10*time.Millisecond)
		stop, over := make(chan struct{}), make(chan []string, 1)
		go func() { over <- b.changeMembers(stop) }() // ends with stop
		dead = b.disturb(b.topics, func(turn int) ending {
			return ending{how: []string{"stop", "kill9"}[turn%2], node: turn%3 + 1}
		})
		close(stop)
		did = <-over
	})
	b.expect()
	require.Eventually(t, func() bool { return b.missing() == 0 }, 3*time.Minute, 100*time.Millisecond, "what was acknowledged is delivered")
	for _, m := range b.members {
		m.leave()
	}
	b.members = nil
	t.Logf("nodes: %s; members: %s; partitions were handed out %d times", strings.Join(dead, ", "), strings.Join(did, ", "), b.assigned)
	require.NotEmpty(t, dead)
	require.Contains(t, did, "kill")
	require.Contains(t, did, "leave")
	require.Empty(t, b.problems)
	require.Empty(t, b.altered)
	b.judge()
}

// judge holds what members were given against what was written.
func (b *groupBed) judge() {
	t := b.t
	plain, txns := b.findings(b.plain.topic), b.findings(b.txns.topic)
	t.Logf("%-14s written %d; %+v", "plain", b.plain.sent, plain)
	require.Empty(t, b.plain.failed)
	require.Equal(t, b.plain.sent, plain.Distinct)
	require.Zero(t, plain.Missing)
	require.Zero(t, plain.Unexpected)
	require.Zero(t, plain.Reordered)

	seen, by := 0, map[fate]int{}
	for _, x := range b.txns.all {
		by[x.fate]++
		n := 0
		for i := range int64(txnSize) {
			if b.given[b.txns.topic].Given(0, x.first+i) {
				n++
			}
		}
		switch x.fate {
		case committed:
			require.Equal(t, txnSize, n, "a committed transaction is given whole")
		case aborted:
			require.Zero(t, n, "nothing is given of one that was aborted")
		case unknown:
			require.Contains(t, []int{0, txnSize}, n, "all or nothing")
			seen += n
		}
	}
	t.Logf("%-14s %d transactions: %d committed, %d aborted, %d unknown; %+v", "transactions", len(b.txns.all), by[committed], by[aborted], by[unknown], txns)
	require.Positive(t, by[committed])
	require.Positive(t, by[aborted])
	require.Zero(t, txns.Missing)
	require.EqualValues(t, seen, txns.Unexpected)
	require.Zero(t, txns.Reordered)
}
