package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/payload"
)

func TestSyntheticBatchIsWholeAndStamped(t *testing.T) {
	for _, tc := range []struct {
		about      string
		size       int
		count      int
		stamped    bool
		atMost     int
		everything int // bytes of all values
	}{
		{"by default 100 bytes, as many as fit into a megabyte", 0, 9443, true, 1 << 20, 944_300},
		{"too small for a stamp", 10, 60_000, false, 1 << 20, 600_000},
		{"exactly a stamp", payload.StampSize, 25_000, true, 1 << 20, 800_000},
		{"larger than what is filled: one", 2 << 20, 1, true, 3 << 20, 2 << 20},
	} {
		t.Run(tc.about, func(t *testing.T) {
			raw := syntheticBatch(tc.size)
			require.LessOrEqual(t, len(raw), tc.atMost)
			b, rest, err := record.Next(raw)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.NoError(t, b.CheckCRC())
			require.InEpsilon(t, tc.count, b.Count, 0.1)
			require.Equal(t, b.Count, b.LastOffsetDelta+1)
			bytes, data := 0, b.RecordsSection()
			for i := range b.Count {
				var r record.Record
				data, err = record.ReadRecord(data, &r)
				require.NoError(t, err)
				require.Equal(t, i, r.OffsetDelta)
				bytes += len(r.Value)
				stamp, ok := payload.ReadStamp(r.Value)
				require.Equal(t, tc.stamped, ok)
				if ok {
					require.True(t, payload.Verify(stamp, nil, r.Value[payload.StampSize:]))
					require.EqualValues(t, uint32(syntheticProducer), stamp.Producer)
				}
			}
			require.Empty(t, data)
			require.InEpsilon(t, tc.everything, bytes, 0.1)
		})
	}
}
