package workloads

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What Kafka's own tools do stands in a workload as well; what does not go together is refused.
func TestKeysOfKafkasTools(t *testing.T) {
	for _, row := range []struct {
		says, yaml string
		want       []string
	}{
		{"a warm-up of messages", "phases: {warmUp: 0s, warmUpMessages: 100}", nil},
		{"a warm-up of messages and of time", "phases: {warmUpMessages: 100}",
			[]string{"w.yaml:1:26: phases.warmUpMessages: is 100, and phases.warmUp is 2s: one of them ends the warm-up; set phases.warmUp=0s"}},
		{"a warm-up of messages that nobody sends", "producers.count: 0\nconsumers.count: 1\ntopics.name: x\nphases: {warmUp: 0s, warmUpMessages: 100}",
			[]string{"w.yaml:4:38: phases.warmUpMessages: is 100, but there are no producers"}},
		{"a time of a measured phase that begins nobody knows when", "consumers: {count: 1, startAfter: 1s}\nphases: {warmUp: 0s, warmUpMessages: 100}",
			[]string{"w.yaml:2:38: phases.warmUpMessages: is 100 in a closed loop, which takes nobody knows how long: faults, consumers.changes and consumers.startAfter, whose times count from its end, need phases.warmUp"}},
		{"topics by a pattern", "topics.include: 'a.*'\nproducers.count: 0\nconsumers: {count: 9, idle: 1s}", nil},
		{"a pattern that is none, for producers, beside a name", "topics: {include: 'a(', name: b}", []string{
			"w.yaml:1:19: topics.include: is no regular expression: error parsing regexp: missing closing ): `a(`",
			"w.yaml:1:19: topics.include: is given beside topics.name; give one of them",
			"w.yaml:1:19: topics.include: is for runs that only consume, and there are 1 producers"}},
		{"a group by name", "consumers: {count: 2, mode: group, group: mine}", nil},
		{"two groups of a name", "consumers: {count: 2, mode: group, group: mine, groups: 2}",
			[]string{"w.yaml:1:57: consumers.groups: is 2, but consumers.group names one"}},
		{"a group by name without groups", "consumers: {count: 2, group: mine}",
			[]string{`w.yaml:1:30: consumers.group: is "mine", which needs consumers.mode=group`}},
		{"a run with producers that ends when nothing comes", "consumers: {count: 2, idle: 1s}",
			[]string{"w.yaml:1:29: consumers.idle: is for runs that only consume, and there are 1 producers"}},
		{"one message at a time from end to end", "producers: {form: sync, await: received}\nconsumers.count: 1", nil},
		{"waiting for what nobody tells", "producers: {await: received}\npayload.stamp: none", []string{
			"w.yaml:1:20: producers.await: is received, which needs producers.form to be sync",
			"w.yaml:1:20: producers.await: is received, which needs consumers.count to be 1 or more",
			"w.yaml:1:20: producers.await: is received, which needs payload.stamp to be other than none"}},
	} {
		t.Run(row.says, func(t *testing.T) {
			require.Equal(t, row.want, problems(t, row.yaml, Overrides{}))
		})
	}
}
