package conn

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// canned is a transport that reads given bytes, once all requests are written, then ends.
type canned struct {
	net.Conn // nil: only what is defined here is used
	in       *bytes.Reader
	ready    chan struct{}
}

func (c *canned) Read(b []byte) (int, error) {
	<-c.ready
	return c.in.Read(b)
}
func (c *canned) Write(b []byte) (int, error) { return len(b), nil }
func (c *canned) Close() error                { return nil }

// FuzzAnswers gives arbitrary bytes for the answers to three requests, one of them with a
// flexible header and one with a buffer of its own: each is decided once, and the connection
// ends when the bytes do.
func FuzzAnswers(f *testing.F) {
	for _, seed := range answerSeeds {
		f.Add(seed)
	}
	f.Fuzz(feedAnswers)
}

var answerSeeds = [][]byte{
	{0, 0, 0, 5, 0, 0, 0, 1, 9, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 0, 4, 0, 0, 0, 3},
	{0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 2, 1, 7, 2, 'a', 'b'},
	{0, 0, 0x80, 0, 0, 0, 0, 1, 'x'},
}

// The same with a fixed set of damaged answers, in every run of the tests.
func TestDamagedAnswers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		answers := bytes.Clone(answerSeeds[rng.IntN(len(answerSeeds))])
		for range rng.IntN(4) {
			answers[rng.IntN(len(answers))] = byte(rng.Uint32() >> rng.IntN(8))
		}
		feedAnswers(t, answers[:rng.IntN(len(answers)+1)])
	}
}

func feedAnswers(t *testing.T, answers []byte) {
	wireEnd := &canned{in: bytes.NewReader(answers), ready: make(chan struct{})}
	o := Options{MaxInFlight: 3, MaxResponseBytes: 1 << 16}.withDefaults()
	c := newConn("fuzz", wireEnd, wireEnd, o)
	var decided atomic.Int32
	all := make(chan struct{})
	for _, version := range []int16{0, 4, 0} {
		call := &Call{Key: keyHeartbeat, Version: version, Done: func(b []byte, _ Times, err error) {
			if len(b) > len(answers) {
				t.Error("a body larger than what was read")
			}
			if err != nil && !wire.Classify(err).Has(wire.OutcomeUnknown) {
				t.Error("a request that was sent has an unknown outcome")
			}
			switch decided.Add(1) {
			case 3:
				close(all)
			case 4:
				t.Error("decided twice")
			}
		}}
		if version == 4 {
			call.Buffer = func(n int) []byte { return make([]byte, n) }
		}
		if c.Acquire(t.Context()) != nil || c.Submit(call) != nil {
			t.Fatal("not sent")
		}
	}
	close(wireEnd.ready)
	select {
	case <-all:
	case <-time.After(10 * time.Second):
		t.Fatal("not all were decided")
	}
	<-c.Done()
}
