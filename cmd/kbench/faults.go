package main

import (
	"context"
	"fmt"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/broker"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/fault"
)

// proxyNote is a warning of every run whose connections go through the fault proxy.
const proxyNote = "faults: every connection goes through a proxy in this process, which costs each request some tens of microseconds and the generator CPU; compare with runs through it only"

// newScript makes ready for the faults of a point. topics are those of the run, once it is prepared.
func (b *bench) newScript(ctx context.Context, def *workloads.Definition, cfg *client.Config, topics func() []string) (*fault.Script, error) {
	m := fault.Means{Bootstrap: b.cluster.bootstrap, Config: cfg, Topics: topics, Seed: def.Seed}
	if child := b.cluster.child; child != nil {
		m.Fail = func(a fault.Answer) (func() error, error) {
			f := broker.Failure{Key: a.Key, Code: a.Code, Count: -1, Topic: a.Topic}
			if a.Broker != workloads.All {
				f.Nodes = []int32{a.Broker}
			}
			if a.Partition != workloads.All {
				f.Partitions = []int32{a.Partition}
			}
			return child.Fail(f)
		}
	}
	s, err := fault.NewScript(ctx, def.Faults, m)
	if err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	return s, nil
}

// closeScript ends the faults; that the proxy could not keep clients behind it spoils the run.
func closeScript(s *fault.Script, out *run.Outcome, err error) error {
	proxied := s.Proxied()
	closed := s.Close()
	if out != nil && proxied {
		out.Run.Verdict.Warnings = append(out.Run.Verdict.Warnings, proxyNote)
	}
	if err == nil && closed != nil {
		return fmt.Errorf("faults: %w", closed)
	}
	return err
}
