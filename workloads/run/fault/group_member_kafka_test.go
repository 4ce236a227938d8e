//go:build kafka

package fault

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kbench/kbench/client"
)

// memberEnv makes the test's binary a member of a group: its value is a memberSpec.
const memberEnv = "KBENCH_TEST_MEMBER"

// memberSpec is what a member is told.
type memberSpec struct {
	Brokers []string
	Group   string
	Topics  []string
}

func init() {
	child = func() {
		text, is := os.LookupEnv(memberEnv)
		if !is {
			return
		}
		var spec memberSpec
		err := json.Unmarshal([]byte(text), &spec)
		if err == nil {
			err = spec.work()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// teller writes lines, whole.
type teller struct {
	mu         sync.Mutex
	out        *bufio.Writer
	generation map[client.TopicPartition]int32 // in which this member got each partition
}

// assigned is told of the partitions that came.
func (t *teller) assigned(generation int32, parts []client.TopicPartition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range parts {
		t.generation[p] = generation
	}
	fmt.Fprintf(t.out, "assigned %d %v\n", generation, parts)
	_ = t.out.Flush() // whoever reads is gone then, and this process is ended
}

// given tells of messages. It has to be told before they are committed.
func (t *teller) given(msgs []client.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range msgs {
		m := &msgs[i]
		g := t.generation[client.TopicPartition{Topic: m.Topic, Partition: m.Partition}]
		fmt.Fprintf(t.out, "%d|%s|%d|%d|%s\n", g, m.Topic, m.Partition, m.Offset, m.Value)
	}
	return t.out.Flush()
}

// work is a member's life: it tells of every message and then commits it, until its input ends.
func (s *memberSpec) work() error {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	go func() { // ends with the input, or the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	t := &teller{out: bufio.NewWriter(os.Stdout), generation: map[client.TopicPartition]int32{}}
	cfg := client.NewConfig()
	cfg.Consumer.IsolationLevel = client.ReadCommitted
	cfg.Net.ReadTimeout, cfg.Net.DialTimeout = 5*time.Second, 5*time.Second
	r, err := client.NewReader(client.ReaderConfig{
		Brokers: s.Brokers, Config: cfg, GroupID: s.Group, Topics: s.Topics, SessionTimeout: 6 * time.Second,
		HeartbeatInterval: time.Second, CommitInterval: 500 * time.Millisecond, OnAssigned: t.assigned,
	})
	if err != nil {
		return err
	}
	buf := make([]client.Message, 500)
	for {
		n, err := r.FetchBatch(ctx, buf)
		if ctx.Err() != nil {
			return r.Close()
		}
		if err == nil {
			err = t.given(buf[:n])
		}
		if err == nil {
			err = r.CommitMessages(ctx, buf[:n]...)
		}
		if err != nil && ctx.Err() == nil {
			return errors.Join(err, r.Close())
		}
	}
}
