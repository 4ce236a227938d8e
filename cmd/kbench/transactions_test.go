package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
)

// What cannot be sent in transactions is refused, with what to do.
func TestWorkloadsWithTransactions(t *testing.T) {
	for _, row := range []struct{ says, yaml, want string }{
		{"by time", "producers.transactions.every: 1s\nproducer.idempotent: true", ""},
		{"by number", "producers.transactions.messages: 10\nproducer.idempotent: true", ""},
		{"with a name", "producers.transactions.every: 1s\nproducer: {idempotent: true, transaction.id: orders}", ""},
		{"without idempotence", "producers.transactions.every: 1s", "w.yaml:1:31: producers.transactions.every: needs producer.idempotent=true"},
		{"by the batch producer", "producers: {form: batch, transactions.messages: 1}", "producers.transactions.messages: needs producers.form to be callback, channels or sync"},
		{"over one connection", "producers: {shareConnection: true, transactions.every: 1s}\nproducer.idempotent: true", "producers.transactions.every: needs producers.shareConnection=false"},
		{"waiting for what is not committed", "producers: {form: sync, await: received, transactions.every: 1s}\nconsumers.count: 1\nproducer.idempotent: true", "needs producers.await=acked"},
		{"by nobody", "producers: {count: 0, transactions.every: 1s}\nconsumers.count: 1\ntopics.name: x\nproducer.idempotent: true", "needs producers, and producers.count is 0"},
		{"longer than the cluster allows", "producers.transactions.every: 10s\nproducer: {idempotent: true, transaction.timeout: 10s}", "is 10s, but the cluster aborts what is open for producer.transaction.timeout=10s"},
		{"for less than no time", "producers.transactions.every: -1s", "producers.transactions.every: is -1s, must be between 0s and"},
		{"of less than nothing", "producers.transactions.messages: -1", "producers.transactions.messages: is -1"},
		{"aborted more than always", "producers.transactions: {every: 1s, abortShare: 1.5}\nproducer.idempotent: true", "abortShare: is 1.5, must be between 0 and 1"},
		{"aborted without any", "producers.transactions.abortShare: 0.5", "abortShare: needs producers.transactions.every or producers.transactions.messages"},
		{"a name without any", "producer: {idempotent: true, transaction.id: orders}", `w.yaml:1:46: producer.transaction.id: is "orders", which needs producers.transactions.every or producers.transactions.messages`},
		{"a threshold on them without any", "thresholds: [transaction.p99<1s]", `"transaction.p99<1s" needs producers.transactions.every or producers.transactions.messages`},
		{"a threshold on what is received, without consumers", "producers.transactions.every: 1s\nproducer.idempotent: true\nthresholds: [abortedReceived=0]", `"abortedReceived=0" needs consumers`},
	} {
		t.Run(row.says, func(t *testing.T) {
			_, err := workloads.Decode("w.yaml", []byte(row.yaml), client.Schema{}, workloads.Overrides{})
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
		})
	}
}

// In a sweep each point says whether it makes sense.
func TestSweepOverTransactions(t *testing.T) {
	def, err := workloads.Decode("w.yaml", []byte("sweep:\n  producers.transactions.every: [0s, 10ms]\n  producer.idempotent: [false, true]"), client.Schema{}, workloads.Overrides{})
	require.NoError(t, err)
	p, err := plan.Make(def, client.Schema{})
	require.NoError(t, err)
	var skipped []string
	for _, point := range p.Points {
		if point.Skipped != "" {
			skipped = append(skipped, point.Label+": "+point.Skipped)
		}
	}
	require.Len(t, skipped, 1)
	require.Contains(t, skipped[0], "every=10ms idempotent=false: producers.transactions.every: needs producer.idempotent=true")
}

// kbench produce sends in transactions when they have a name or a length, by the defaults of Kafka's tool.
func TestProduceInTransactions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		says  string
		flags []string
		given []string // in the workload
	}{
		{"by name, for 3 s", args("--transactional-id", "mine"), []string{"producer.transaction.id: mine\n", "producers.transactions.every: 3s\n"}},
		{"by time, with a made-up name", args("--transaction-duration-ms", "50"), []string{"producer.transaction.id: performance-producer-", "producers.transactions.every: 50ms\n"}},
		{"by both", args("--transactional-id", "mine", "--transaction-duration-ms", "50"), []string{"producer.transaction.id: mine\n", "producers.transactions.every: 50ms\n"}},
		{"by Kafka's setting", args("--command-property", "transactional.id=mine"), []string{"producer.transaction.id: mine\n", "producers.transactions.every: 3s\n"}},
		{"by Kafka's setting, overruled", args("--command-property", "transactional.id=mine", "--transactional-id", "other"), []string{"producer.transaction.id: other\n"}},
	} {
		t.Run(row.says, func(t *testing.T) {
			dir := t.TempDir()
			e := kbenchIn(t, dir, args("produce", "--topic", "new", "--num-records", "400", "--record-size", "100", "--throughput", "2000", "--out", "p", carefree, row.flags)...)
			e.requireCode(t, codeDone)
			requireLine(t, lastLine(e.out), producedLine, "400")
			r := loadResult(t, filepath.Join(dir, "p"))
			for _, line := range row.given {
				require.Contains(t, r.Workload.Given, line)
			}
			run := r.Points[0].Runs[0]
			require.EqualValues(t, 400, run.Transactions.CommittedMessages)
			require.Positive(t, run.Transactions.Committed)
			require.Equal(t, run.Transactions.Committed, run.Series[results.SeriesTransaction].Count)
			if strings.Contains(row.given[len(row.given)-1], "50ms") {
				require.Greater(t, run.Transactions.Committed, int64(1), "records came for 200 ms")
			}
		})
	}
}
