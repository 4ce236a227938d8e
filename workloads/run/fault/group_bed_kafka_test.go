//go:build kafka

package fault

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/run/verify"
)

// groupBed is a cluster with a writer of plain messages, one of transactions, and a consumer group
// that reads both topics with read_committed. Each member is a process of its own.
type groupBed struct {
	*realBed
	plain *writer
	txns  *txnWriter
	group string

	members []*member // at work; of the goroutine that changes them

	mu       sync.Mutex
	joined   int                           // members so far
	given    map[string]*verify.Deliveries // by topic
	altered  []string
	assigned int      // times that a member was told of its partitions
	problems []string // what members ended with that should not have
}

func newGroupBed(t *testing.T) *groupBed {
	b := &groupBed{realBed: newRealBed(t, "group")}
	b.plain = b.newWriter(0, promises[1])
	b.txns = b.newTxnWriter(1, txnKinds[2])
	b.group = b.prefix + "-group"
	b.given = map[string]*verify.Deliveries{b.plain.topic: verify.NewDeliveries(), b.txns.topic: verify.NewDeliveries()}
	t.Cleanup(func() {
		for _, m := range b.members {
			m.kill()
		}
	})
	return b
}

// member is one process of the group.
type member struct {
	bed    *groupBed
	number int
	cmd    *exec.Cmd
	stdin  io.Closer
	killed bool
	ended  chan struct{} // closed when the process has ended and all that it said was taken in
}

// join starts a member.
func (b *groupBed) join() {
	b.mu.Lock()
	b.joined++
	m := &member{bed: b, number: b.joined, ended: make(chan struct{})}
	b.mu.Unlock()
	spec, err := json.Marshal(memberSpec{Brokers: b.proxy.Addrs(), Group: b.group, Topics: []string{b.plain.topic, b.txns.topic}})
	require.NoError(b.t, err)
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), memberEnv+"="+string(spec))
	m.stdin, err = m.cmd.StdinPipe()
	require.NoError(b.t, err)
	said, err := m.cmd.StdoutPipe()
	require.NoError(b.t, err)
	var problems bytes.Buffer
	m.cmd.Stderr = &problems
	require.NoError(b.t, m.cmd.Start())
	b.members = append(b.members, m)
	// Ends with the process, which leave or kill ends; they wait.
	go func() {
		defer close(m.ended)
		in := bufio.NewReader(said)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break // what a killed member had not finished saying, it had not committed
			}
			b.take(m, strings.TrimSuffix(line, "\n"))
		}
		err := m.cmd.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil && !m.killed {
			b.problems = append(b.problems, fmt.Sprintf("member %d: %v: %s", m.number, err, problems.String()))
		}
	}()
}

// leave ends a member in good order.
func (m *member) leave() {
	_ = m.stdin.Close() // it ends by itself otherwise, which is looked at
	select {
	case <-m.ended:
	case <-time.After(time.Minute):
		m.bed.mu.Lock()
		m.bed.problems = append(m.bed.problems, fmt.Sprintf("member %d did not leave within a minute", m.number))
		m.bed.mu.Unlock()
		m.kill()
	}
}

// kill ends a member as a crash does.
func (m *member) kill() {
	m.bed.mu.Lock()
	m.killed = true
	m.bed.mu.Unlock()
	_ = m.cmd.Process.Kill() // it may have ended already
	<-m.ended
}

// take takes in what a member says: that it was told of its partitions, or a message that it was
// given, before it commits it.
func (b *groupBed) take(m *member, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasPrefix(line, "assigned") {
		b.assigned++
		return
	}
	fields := strings.SplitN(line, "|", 5) // generation|topic|partition|offset|value
	if len(fields) < 5 || b.given[fields[1]] == nil {
		b.altered = append(b.altered, line)
		return
	}
	generation, gerr := strconv.Atoi(fields[0])
	partition, perr := strconv.Atoi(fields[2])
	offset, oerr := strconv.ParseInt(fields[3], 10, 64)
	record := b.plain.record
	if fields[1] == b.txns.topic {
		record = b.txns.record
	}
	r, ok := record([]byte(fields[4]), int32(partition), offset)
	if gerr != nil || perr != nil || oerr != nil || !ok {
		b.altered = append(b.altered, line)
		return
	}
	b.given[fields[1]].Give(verify.Delivered{Member: m.number, Generation: generation, Record: r})
}

// changeMembers has members killed, leaving and joining in turn, until stop is closed.
func (b *groupBed) changeMembers(stop <-chan struct{}) (did []string) {
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return did
		case <-time.After(memberChange):
		}
		switch turn % 4 {
		case 0:
			m := b.members[0]
			b.members = slices.Delete(b.members, 0, 1)
			m.kill()
			did = append(did, "kill")
		case 1, 3:
			b.join()
			did = append(did, "join")
		case 2:
			m := b.members[len(b.members)-1]
			b.members = b.members[:len(b.members)-1]
			m.leave()
			did = append(did, "leave")
		}
	}
}

// during writes both topics while faults does what it does, and ends the writers.
func (b *groupBed) during(faults func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var failed error
	writing.Go(func() { b.plain.write(ctx) })                 // ends with ctx, below or by a failure
	writing.Go(func() { failed = b.txns.write(b.ctx, stop) }) // ends with stop, which is closed below, or its context
	end := sync.OnceFunc(func() { cancel(); close(stop); writing.Wait() })
	b.t.Cleanup(end)
	faults()
	end()
	require.NoError(b.t, failed)
	require.NoError(b.t, b.plain.p.Close(b.ctx))
}

// expect tells what was to be delivered: all that was acknowledged, or committed.
func (b *groupBed) expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range b.plain.sent {
		b.given[b.plain.topic].Expect(0, n)
	}
	for _, x := range b.txns.all {
		for n := range int64(txnSize) {
			if x.fate == committed {
				b.given[b.txns.topic].Expect(0, x.first+n)
			}
		}
	}
}

// missing is how much nobody was given yet.
func (b *groupBed) missing() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.given {
		n += d.Findings().Missing
	}
	return n
}

func (b *groupBed) findings(topic string) verify.GroupFindings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.given[topic].Findings()
}
