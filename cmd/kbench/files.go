package main

import (
	"fmt"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
)

// otherFiles is what a run has open beside its producers' and consumers' connections: results, the
// cluster's description, pipes to the embedded broker.
const otherFiles = 64

// filesNeeded is about how many files a point has open at once. Every client has a connection to each
// broker that leads a partition it uses, in which a topic's partitions are spread evenly.
func filesNeeded(d *workloads.Definition, brokers int) int {
	producers := d.Producers.Count
	if d.Producers.ShareConnection {
		producers = min(producers, 1)
	}
	clients := producers + d.Consumers.Count*max(d.Consumers.Groups, 1)
	perClient := max(min(brokers, d.Topics.Partitions), 1)
	if d.Topics.Name != "" {
		perClient = 1 // how many partitions it has is not known yet
	}
	return clients*perClient + otherFiles
}

// requireFiles refuses a plan that has points for which the process may not open enough files, before
// any time is spent. limit is how many that are.
func requireFiles(p *plan.Plan, brokers, limit int) error {
	for i := range p.Points {
		q := &p.Points[i]
		if q.Skipped != "" {
			continue
		}
		if need := filesNeeded(&q.Definition, brokers); need > limit {
			return fmt.Errorf("%s: %d producers and %d consumers with connections of their own need about %d open files, and this process may have %d: raise the limit (ulimit -n), or set producers.shareConnection=true",
				q.Label, q.Definition.Producers.Count, q.Definition.Consumers.Count*max(q.Definition.Consumers.Groups, 1), need, limit)
		}
	}
	return nil
}
