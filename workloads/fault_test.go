package workloads

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/settings"
)

func TestFaultsInAFile(t *testing.T) {
	const text = `phases: {duration: 1m}
topics: {partitions: 4}
faults:
  - {at: 10s, kind: stall, for: 2s, broker: 1}
  - {at: 1s, kind: cut}
  - {at: 2s, kind: Delay, for: 1s, delay: 20ms, jitter: 5ms, broker: all}
  - at=3s kind=bandwidth for=500ms bytesPerSecond=64KiB
  - {at: 4s, kind: leader, partition: 3, to: 2}
  - {at: 5s, kind: error, for: 1s, request: produce, code: not_leader_or_follower}
`
	d, err := Decode("f.yaml", []byte(text), nil, Overrides{})
	require.ErrorContains(t, err, `f.yaml:6:5: faults: element 3: kind "Delay" is none; did you mean delay?`)
	require.Nil(t, d)
	d, err = Decode("f.yaml", []byte(text), nil, Overrides{Set: []string{"faults=[at=1s kind=stall for=1s]"}})
	require.Error(t, err, "what was wrong in the file stays so")
	require.Nil(t, d)
	right := []byte(replaced(text, "Delay", "delay"))
	d, err = Decode("f.yaml", right, nil, Overrides{})
	require.NoError(t, err)
	require.Equal(t, Faults{
		{At: 10 * time.Second, Kind: FaultStall, For: 2 * time.Second, Broker: 1, Partition: All, To: All},
		{At: time.Second, Kind: FaultCut, Broker: All, Partition: All, To: All},
		{At: 2 * time.Second, Kind: FaultDelay, For: time.Second, Broker: All, Partition: All, To: All, Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond},
		{At: 3 * time.Second, Kind: FaultBandwidth, For: 500 * time.Millisecond, Broker: All, Partition: All, To: All, BytesPerSecond: 65536},
		{At: 4 * time.Second, Kind: FaultLeader, Broker: All, Partition: 3, To: 2},
		{At: 5 * time.Second, Kind: FaultError, For: time.Second, Broker: All, Partition: All, To: All, Request: "Produce", Code: "NOT_LEADER_OR_FOLLOWER"},
	}, d.Faults)
	require.True(t, d.Faults.Proxied())
	require.True(t, d.Faults.Has(FaultLeader))
	key, code := d.Faults[5].Numbers()
	require.Equal(t, []int16{0, 6}, []int16{key, code})
	for _, f := range d.Faults { // its words say the same
		var again Fault
		require.NoError(t, again.UnmarshalText([]byte(f.String())))
		require.Equal(t, f, again)
	}
	d, err = Decode("f.yaml", right, nil, Overrides{Set: []string{"faults=[at=1s kind=stall for=1s]"}})
	require.NoError(t, err)
	require.Len(t, d.Faults, 1)
	other, err := Decode("f.yaml", right, nil, Overrides{})
	require.NoError(t, err)
	require.NotEqual(t, d.Hash(), other.Hash(), "a load with other faults is another load")
	require.False(t, Faults{{Kind: FaultLeader}, {Kind: FaultError}}.Proxied())
}

func replaced(text, old, with string) string {
	for i := 0; i+len(old) <= len(text); i++ {
		if text[i:i+len(old)] == old {
			return text[:i] + with + text[i+len(old):]
		}
	}
	return text
}

func TestFaultsThatCannotBe(t *testing.T) {
	for fault, want := range map[string]string{
		"{at: 1s, for: 1s}":                           "a fault needs a kind",
		"{at: 1s, kind: stal, for: 1s}":               `kind "stal" is none; did you mean stall?`,
		"{at: 1s, kind: xyzzy}":                       `kind "xyzzy" is none of cut, delay, stall, bandwidth, leader, error`,
		"{at: 1s, kind: stall}":                       "kind stall needs for",
		"{kind: stall, for: 1s}":                      "kind stall needs at",
		"{at: 1s, kind: stall, for: 1s, brokers: 1}":  `"brokers" is no key of kind stall; did you mean broker?`,
		"{at: 1s, kind: cut, delay: 1s}":              `"delay" is no key of kind cut; it takes at, kind, for, broker`,
		"{at: 1s, kind: delay, for: 1s, delay: [1s]}": "delay needs a value",
		"{at: 1s, kind: delay, for: 1s, delay: 0s}":   "delay must be above 0",
		"{at: 1s, kind: delay, for: 1s, delay: fast}": `delay: `,
		"{at: 1s, kind: stall, for: 0s}":              "for must be above 0",
		"{at: 1s, kind: stall, for: 2h}":              "for must be between 0 and 1h",
		"{at: -1s, kind: cut}":                        "is before the measured phase begins",
		"{at: 10s, kind: cut}":                        "the measured phase ends at 10s",
		"{at: 1s, kind: cut, broker: -2}":             `broker "-2": a number of 0 or more is needed, or all`,
		"{at: 1s, kind: error, for: 1s, broker: first, request: Fetch, code: NOT_LEADER_OR_FOLLOWER}": `broker "first": a number of 0 or more is needed, or all`,
		"{at: 1s, kind: leader, to: all}":                                               `to "all": a number of 0 or more is needed`,
		"{at: 1s, kind: leader, partition: 6}":                                          "there are 6 partitions, numbered from 0",
		"{at: 1s, kind: bandwidth, for: 1s, bytesPerSecond: 9}":                         "bytesPerSecond must be 1024 or more",
		"{at: 1s, kind: bandwidth, for: 1s, bytesPerSecond: 1k}":                        "ambiguous",
		"{at: 1s, kind: error, for: 1s, request: Prodce, code: NOT_LEADER_OR_FOLLOWER}": `request "Prodce" is none; did you mean Produce?`,
		"{at: 1s, kind: error, for: 1s, request: Fetch, code: NOT_LEADER}":              `code "NOT_LEADER" is none`,
		"at=1s stall":          "is no fault; write it like",
		"at=1s at=2s kind=cut": "at is given twice",
	} {
		_, err := Decode("f.yaml", []byte("topics: {partitions: 6}\nphases: {duration: 10s}\nfaults:\n  - "+fault+"\n"), nil, Overrides{})
		var problems settings.Problems
		require.ErrorAs(t, err, &problems, fault)
		require.Len(t, problems, 1, fault)
		require.ErrorContains(t, err, "f.yaml:4:5: faults: ", fault)
		require.ErrorContains(t, err, want, fault)
	}
}

// Where phases are named it is they that say when the measured phase ends.
func TestFaultsInNamedPhases(t *testing.T) {
	const phases = "producers.rate: 1k\nphases: {named: [base 30s, peak 30s 2k]}\nfaults: [at="
	_, err := Decode("f.yaml", []byte(phases+"40s kind=cut]"), nil, Overrides{})
	require.NoError(t, err)
	_, err = Decode("f.yaml", []byte(phases+"60s kind=cut]"), nil, Overrides{})
	require.ErrorContains(t, err, "the measured phase ends at 1m")
}
