package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

func TestBrokersInTheProvenance(t *testing.T) {
	r := newResult("w", "")
	r.Provenance.Cluster.Version = "4.1+"
	r.Provenance.Cluster.Notes = []string{"broker 3: its settings are not known: no"}
	r.Provenance.Cluster.Brokers = []results.Broker{
		{ID: 1, Addr: "a:9092", Version: "4.1+", Config: map[string]string{"num.io.threads": "4", "log.dirs": "/a"}},
		{ID: 2, Addr: "b:9092", Rack: "b", Version: "4.0+", Config: map[string]string{"num.io.threads": "4", "log.dirs": "/b"}},
	}
	facts := provenanceFacts(r)
	for _, want := range []labelled{{"broker 1", "a:9092"}, {"broker 2", "b:9092  b  Kafka 4.0+"}, {"broker settings", "log.dirs=/a (broker 1)"},
		{"", "log.dirs=/b (broker 2)"}, {"", "num.io.threads=4"}, {"not told", "broker 3: its settings are not known: no"}} {
		require.Contains(t, facts, want)
	}
	for i := range 60 {
		r.Provenance.Cluster.Brokers[0].Config[fmt.Sprint("s", i)] = "1"
	}
	require.Contains(t, provenanceFacts(r), labelled{"", "… and 13 more settings of brokers, in result.json"})
}
