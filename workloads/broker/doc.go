// Package broker is the embedded broker: an in-process Kafka cluster (kfake) on the loopback
// address, so that kbench's main job runs with nothing installed.
//
// It comes in three forms over the same Options:
//
//   - Serve and Main run it until a context ends: `kbench broker`.
//   - StartChild runs it in a child process of the same binary, so that its CPU and garbage are
//     not the load generator's. The child never outlives its parent.
//   - Start runs it inside a test, as a Cluster whose faults are scripted: stalled and lost
//     answers, failed requests, moved leaders, closed connections, stopped nodes.
//
// It is no throughput reference: one goroutine serves the whole cluster.
package broker
