package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParts(t *testing.T) {
	d, err := Create(filepath.Join(t.TempDir(), "r"))
	require.NoError(t, err)
	producers := []Part{
		{Producer: 0, Acked: 10, Latency: PartSeries{1000, 2000, 2000, 5_000_000, 6_000_000, 7_000_000}},
		{Producer: 1, Acked: 12, Failed: 3, Unknown: 1, Latency: PartSeries{P99Ns: 9_000_000}},
		{Producer: 2},
	}
	partitions := []Part{{Topic: "t", Partition: 3, Acked: 5, Latency: PartSeries{P99Ns: 7}}}
	run := Run{Parts: []Parts{SumUp(ByProducer, producers), SumUp(ByPartition, partitions)}}
	require.Equal(t, Parts{By: "producer", N: 3, Acked: Ends{0, 10, 12}, P99Ns: Ends{5_000_000, 5_000_000, 9_000_000}, Worst: "1"}, run.Parts[0],
		"who had no message has no latency")
	point := Point{ID: "p00"}
	require.NoError(t, d.WriteParts(&point, &run, ByProducer, producers))
	require.NoError(t, d.WriteParts(&point, &run, ByPartition, partitions))
	require.Equal(t, "p00-r0-producers.csv", run.Parts[0].File)
	require.Equal(t, "t/3", run.Parts[1].Worst)
	text, err := os.ReadFile(filepath.Join(d.Path(), run.Parts[0].File))
	require.NoError(t, err)
	require.Equal(t, "producer,acked,failed,unknown,min_ms,mean_ms,p50_ms,p99_ms,p99.9_ms,max_ms\n"+
		"0,10,0,0,0.001,0.002,0.002,5,6,7\n1,12,3,1,0,0,0,9,0,0\n2,0,0,0,,,,,,\n", string(text))
	text, err = os.ReadFile(filepath.Join(d.Path(), run.Parts[1].File))
	require.NoError(t, err)
	require.Equal(t, "topic,partition,acked,failed,unknown,min_ms,mean_ms,p50_ms,p99_ms,p99.9_ms,max_ms\nt,3,5,0,0,0,0,0,0.000007,0,0\n", string(text))
	require.NoError(t, d.WriteParts(&point, &run, ByProducer, nil))
	require.Error(t, d.WriteParts(&point, &Run{}, ByProducer, producers), "a file that nothing names")
	require.Equal(t, Parts{By: "producer"}, SumUp(ByProducer, nil))
}

// A copy of a run in a place without its files names none, and the run still does.
func TestARunWithoutFiles(t *testing.T) {
	run := Run{Log: "a.hlog", Timeline: "a.csv", Lags: "a-lag.csv", Parts: []Parts{{By: ByProducer, File: "a-producers.csv"}}}
	bare := run.WithoutFiles()
	require.Equal(t, Run{Parts: []Parts{{By: ByProducer}}}, bare)
	require.Equal(t, "a-producers.csv", run.Parts[0].File)
}
