package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/kbench/kbench/workloads/run"
)

// stopper turns interrupts into the end of a run: the first asks for a clean stop, the second
// ends the process at once.
type stopper struct {
	soft, hard context.Context
	cancel     context.CancelCauseFunc // of soft
	cancelHard context.CancelCauseFunc

	signals chan os.Signal // written by the runtime, read by watch
	done    chan struct{}  // closed by release
	watched sync.WaitGroup

	mu   sync.Mutex
	out  io.Writer // for what it has to say
	last []func()  // what to do before the process ends at once
}

func newStopper(errOut io.Writer) *stopper {
	s := &stopper{signals: make(chan os.Signal, 2), done: make(chan struct{}), out: errOut}
	s.soft, s.cancel = context.WithCancelCause(context.Background())
	s.hard, s.cancelHard = context.WithCancelCause(context.Background())
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM)
	s.watched.Add(1)
	// Owned by the stopper; ended by release, which waits.
	go s.watch(errOut)
	return s
}

func (s *stopper) watch(errOut io.Writer) {
	defer s.watched.Done()
	for n := 0; ; n++ {
		select {
		case <-s.signals:
		case <-s.done:
			return
		}
		if n > 0 {
			_, _ = fmt.Fprintln(errOut, "kbench: stopped at once; what was finished before is kept")
			s.atOnce()
		}
		s.mu.Lock()
		_, _ = fmt.Fprintln(s.out, "\ninterrupted: waiting shortly for what is in flight; Ctrl-C again stops at once")
		s.mu.Unlock()
		s.cancel(run.ErrInterrupted)
	}
}

// atOnce ends the process.
func (s *stopper) atOnce() {
	s.cancelHard(run.ErrInterrupted)
	s.mu.Lock() // for good: nothing is added any more
	for _, f := range slices.Backward(s.last) {
		f()
	}
	os.Exit(codeInterrupted)
}

// tellOn has the first interrupt told on w from now on.
func (s *stopper) tellOn(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = w
}

// beforeExit has f called before the process ends at once, until it is forgotten; what was added last
// comes first.
func (s *stopper) beforeExit(f func()) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.last)
	s.last = append(s.last, f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last[i] = func() {}
	}
}

// abandon ends what runs without waiting for anything that is in flight, for the reason given.
func (s *stopper) abandon(reason error) {
	s.cancel(reason)
	s.cancelHard(reason)
}

// interrupted says whether somebody asked to stop.
func (s *stopper) interrupted() bool {
	return errors.Is(context.Cause(s.soft), run.ErrInterrupted)
}

// explain gives an error the code and the words of why things were stopped, if they were.
// kept says whether anything was measured before.
func (s *stopper) explain(err error, kept bool) error {
	switch cause := context.Cause(s.soft); {
	case s.interrupted() && kept:
		return &exitError{code: codeInterrupted, err: errors.New("interrupted; what was measured is kept")}
	case s.interrupted():
		return &exitError{code: codeInterrupted, err: errors.New("interrupted before anything was measured")}
	case cause != nil:
		return cause
	}
	return err
}

func (s *stopper) release() {
	signal.Stop(s.signals)
	close(s.done)
	s.watched.Wait()
	s.cancelHard(nil)
	s.cancel(nil)
}
