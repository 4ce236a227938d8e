package workloads

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const groupOf3 = "producers.rate: 100\nconsumers.count: 3\nconsumers.mode: group\nphases.duration: 10s\n"

func TestChangesInEveryForm(t *testing.T) {
	want := []Change{{5 * time.Second, Add, 2}, {8500 * time.Millisecond, Remove, 1}, {9 * time.Second, Kill, 3}}
	for says, row := range map[string]struct {
		yaml string
		o    Overrides
	}{
		"as mappings":         {yaml: groupOf3 + "consumers.changes: [{at: 5s, add: 2}, {at: 8500ms, remove: 1}, {kill: 3, at: 9s}]"},
		"in words":            {yaml: groupOf3 + "consumers.changes: [5s add 2, 8.5s remove 1, 9s kill 3]"},
		"on the command line": {yaml: groupOf3, o: Overrides{Set: []string{"consumers.changes=[5s add 2, 8.5s remove 1, 9s kill 3]"}}},
		"both":                {yaml: groupOf3, o: Overrides{Set: []string{"consumers.changes=[{at: 5s, add: 2}, 8.5s remove 1, '9s kill 3']"}}},
	} {
		d, err := Decode("w.yaml", []byte(row.yaml), fakeClient{}, row.o)
		require.NoError(t, err, says)
		require.Equal(t, want, d.Consumers.Changes, says)
		require.Equal(t, []any{"5s add 2", "8.5s remove 1", "9s kill 3"}, d.Effective()["consumers.changes"], says)
	}
	text, err := json.Marshal(want[0])
	require.NoError(t, err)
	require.Equal(t, `"5s add 2"`, string(text))
}

func TestConsumersThatMakeNoSense(t *testing.T) {
	const form = `; write it like {at: 5s, add: 2} or "5s add 2", with add, remove or kill`
	for _, row := range []struct {
		says, yaml string
		want       []string
	}{
		{"more leave than are there", groupOf3 + "consumers.changes: [{at: 1s, add: 1}, {at: 2s, remove: 5}]", []string{
			`w.yaml:5:20: consumers.changes: 2s remove 5: only 4 are there then`}},
		{"the order is that of the times", groupOf3 + "consumers.changes: [2s kill 3, 1s add 1]", nil},
		{"nobody stays", groupOf3 + "consumers.changes: [2s kill 3]", []string{
			`w.yaml:5:20: consumers.changes: leaves nobody in the end to read what is written; let one stay`}},
		{"nobody for a while is a case", groupOf3 + "consumers.changes: [2s kill 3, 5s add 1]", nil},
		{"after the end", groupOf3 + "consumers.changes: [10s add 1]", []string{
			`w.yaml:5:20: consumers.changes: 10s add 1: the measured phase ends at 10s`}},
		{"before the consumers begin", groupOf3 + "consumers.startAfter: 5s\nconsumers.changes: [1s add 1]", []string{
			`w.yaml:6:20: consumers.changes: 1s add 1: the consumers begin at 5s`}},
		{"words that are none", groupOf3 + "consumers.changes: [5s drop 1, 5s add, {at: 5s}, {at: 5s, add: 1, kill: 1}, {at: 5s, add: 0}, {add: 1}, {at: 5, add: 1}, {at: 5s, add: [1]}]", []string{
			`w.yaml:5:21: consumers.changes: element 1: "drop" is none of add, remove and kill`}},
		{"a mapping without what happens", groupOf3 + "consumers.changes: [{at: 5s}]", []string{
			`w.yaml:5:21: consumers.changes: element 1: a change needs a time and what happens` + form}},
		{"two changes in one", groupOf3 + "consumers.changes: [{at: 5s, add: 1, kill: 1}]", []string{
			`w.yaml:5:21: consumers.changes: element 1: add and kill are two changes; give each its own entry`}},
		{"no number", groupOf3 + "consumers.changes: [{at: 5s, add: 0}]", []string{
			`w.yaml:5:21: consumers.changes: element 1: add "0": a number of consumers of 1 or more is needed`}},
		{"no unit", groupOf3 + "consumers.changes: [{at: 5, add: 1}]", []string{
			`w.yaml:5:21: consumers.changes: element 1: "5" has no unit; write 5ms, 5s or 5m`}},
		{"a list in a mapping", groupOf3 + "consumers.changes: [{at: 5s, add: [1]}]", []string{
			`w.yaml:5:21: consumers.changes: element 1: add needs a value` + form}},
		{"two words", groupOf3 + "consumers.changes: [5s add]", []string{
			`w.yaml:5:21: consumers.changes: element 1: "5s add" is no change of consumers` + form}},
		{"what only members of a group can do", "consumers: {count: 2, commit: batch, changes: [1s kill 1]}\nphases.duration: 10s", []string{
			`w.yaml:1:31: consumers.commit: is batch, which needs consumers.mode=group: readers of partitions commit nothing`,
			`w.yaml:1:47: consumers.changes: needs consumers.mode=group: nobody takes over the partitions of a reader that has its own`}},
		{"unless a sweep decides", "consumers: {count: 2, commit: batch, changes: [1s kill 1]}\nphases.duration: 10s\nsweep: {consumers.mode: [partition, group]}", nil},
		{"what nobody can do", "consumers: {groups: 2, startAfter: 1s}", []string{
			`w.yaml:1:21: consumers.groups: says what consumers do, but consumers.count is 0`,
			`w.yaml:1:36: consumers.startAfter: says what consumers do, but consumers.count is 0`}},
		{"a backlog nobody writes", "producers.count: 0\ntopics.name: t\nconsumers: {count: 1, startAfter: 1s}", []string{
			`w.yaml:3:35: consumers.startAfter: needs producers: without them nothing is written meanwhile`}},
		{"beginning after the end", "consumers: {count: 1, startAfter: 10s}", []string{
			`w.yaml:1:35: consumers.startAfter: is 10s, but the measured phase ends at 10s`}},
		{"more members than partitions stand by", "consumers: {count: 20, mode: group}", nil},
		{"more readers of partitions do not", "consumers: {count: 20}", []string{
			`w.yaml:1:20: consumers.count: is 20, but there are 6 partitions: the others would have nothing to read`}},
		{"no groups", "consumers: {count: 1, groups: 0}", []string{`w.yaml:1:31: consumers.groups: is 0, must be between 1 and 10000`}},
		{"too many", "consumers: {count: 1000, groups: 10000, mode: group}", []string{
			`w.yaml:1:34: consumers.groups: is 10000, which makes 10000000 consumers with consumers.count=1000; 1000000 is the most`}},
		{"figures of what is not there", "consumers.count: 1\nproducers.rate: 5\nthresholds: [catchUp.time<1s, rebalances=0, rebalance.p99<1s, lag.max<5]", []string{
			`w.yaml:3:14: thresholds: "catchUp.time<1s" needs a backlog, hence consumers.startAfter`,
			`w.yaml:3:31: thresholds: "rebalances=0" needs consumers.mode=group`,
			`w.yaml:3:45: thresholds: "rebalance.p99<1s" needs consumers.mode=group`}},
		{"figures of nobody", "thresholds: [lag.final<5]", []string{`w.yaml:1:14: thresholds: "lag.final<5" needs consumers`}},
	} {
		require.Equal(t, row.want, problems(t, row.yaml, Overrides{}), row.says)
	}
}
