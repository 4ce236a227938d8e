//go:build kafka

package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// On transactions v2 (Kafka 4.4) and v1 (3.9) exactly the committed messages are read, in every form, and
// the counts agree.
func TestKafkaTransactions(t *testing.T) {
	for _, release := range kafkatest.Releases(t) {
		for _, form := range []string{"callback", "channels", "sync"} {
			t.Run(release.Name+" "+form, func(t *testing.T) {
				b := transactional(400, workloads.Transactions{Every: 50 * time.Millisecond, Messages: 20, AbortShare: 0.3})
				b.d.Producers.Form, b.d.Producers.Rate = form, 400
				if form == "sync" { // one message at a time
					b.d.Producers.Messages = 100
				}
				out := b.commit(t, release.Bootstrap)
				require.Equal(t, b.d.Producers.Messages, out.Run.Counts.Acked, "%v", out.Run.Errors)
				txn := out.Run.Transactions
				require.Positive(t, txn.AbortedMessages)
				require.Positive(t, txn.CommittedMessages)
				require.Zero(t, txn.Failed, "%v", out.Run.Errors)
			})
		}
	}
}
