package run

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/pace"
)

// steppedPacer moves a clock to what it is to wait for, and looks on before.
type steppedPacer struct {
	now   int64
	stop  bool
	looks func()
}

func (p *steppedPacer) Now() int64 { return p.now }
func (p *steppedPacer) wait(_ context.Context, due int64) bool {
	p.looks()
	p.now = due
	return !p.stop
}
func (p *steppedPacer) close() {}

// keptRuns is a target that keeps what it is sent.
type keptRuns struct {
	Producer
	values []string
}

func (k *keptRuns) Send(_ context.Context, batch []*Message) (int, error) {
	for _, m := range batch {
		k.values = append(k.values, string(m.Value))
	}
	return len(batch), nil
}

// T7: what a message holds is made while its producer waits, off the timed path, and each message is
// made once and holds what its number says.
func TestT7MessagesAreMadeBeforeTheyAreDue(t *testing.T) {
	d := workloads.Default()
	d.Payload.Kind, d.Payload.Template, d.Payload.Stamp = "template", "{{seq}}", "none"
	f, err := newFiller(&d, newStamping(&d, 1), 0)
	require.NoError(t, err)
	schedule := pace.Constant(1000)
	p := &steppedPacer{}
	rec := newTestRecorder(true)
	rec.frame.interval = int64(time.Second)
	kept := &keptRuns{}
	l := &loader{course: &course{clock: p, producers: 2, run: 4, frame: rec.frame, filler: f}, id: 1, target: kept, pacer: p, rec: rec, taken: &intake{}}
	l.pool = newPool(16, 16, func(n int) []*Message { return f.messages(plainProducer{}, n) })
	looked := 0
	p.looks = func() {
		require.NotNil(t, l.ready)
		require.Equal(t, string(f.source.Value(nil, l.seq*2+1)), string(l.ready.Value), "the next message was made before the wait for it")
		looked++
	}
	require.True(t, l.open(t.Context(), &leg{schedule: schedule, origin: int64(time.Second), count: 10}))
	require.Equal(t, []string{"1", "3", "5", "7", "9"}, kept.values)
	require.Equal(t, 5, looked)

	p.stop = true
	free := len(l.pool.local)
	require.False(t, l.open(t.Context(), &leg{schedule: schedule, origin: 2 * int64(time.Second), count: 10}))
	require.Nil(t, l.ready)
	require.Len(t, l.pool.local, free, "what was made for nothing is free again")
	require.Len(t, kept.values, 5)
}

type plainProducer struct{ Producer }

func (plainProducer) NewMessages(n int) []*Message { return plain(n) }
