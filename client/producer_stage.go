package client

import (
	"context"
	"sync"
	"time"
)

// stage is one stage of the producer's pipeline: a queue of messages with a bound, and what
// handles runs taken from it. A run handed to a stage that is idle is handled by the caller
// itself, so that a lone message is not passed from goroutine to goroutine; what cannot go on at
// once stays in the queue, and a goroutine, which lives only while there is something in the
// queue, carries on. Order is kept: at most one goroutine handles at a time, and nothing
// overtakes what waits.
type stage struct {
	bound int // most messages held: queued, or taken from the queue and not passed on; at least 1
	// handle passes on messages of a run, which is at most bound long, and returns those that
	// could not go on, in order. With wait false it must not block. With wait true it returns
	// only when something went on; once the producer was aborted that is always everything,
	// as failures. It may keep run until its next call, not longer.
	handle func(run []*ProducerMessage, wait bool) (left []*ProducerMessage)
	wg     *sync.WaitGroup // counts the stage's goroutine; the producer's Close waits on it

	mu    sync.Mutex
	queue []*ProducerMessage
	spare []*ProducerMessage // an empty slice for the next swap
	held  int
	busy  bool          // a caller or the goroutine is handling
	stuck bool          // whoever handles waits: what comes is told when it came
	room  chan struct{} // made by who waits for room, closed and dropped by who makes room
}

func newStage(bound int, wg *sync.WaitGroup) *stage { return &stage{bound: max(bound, 1), wg: wg} }

// push hands a run to the stage, waiting for room until ctx ends or abort is closed. It returns
// how many messages of the run, from its beginning, the stage has taken. With note set, those
// that had to wait are told when there was room.
func (s *stage) push(ctx context.Context, abort <-chan struct{}, run []*ProducerMessage, note bool) (int, error) {
	taken := 0
	for taken < len(run) {
		chunk := run[taken:min(len(run), taken+s.bound)]
		n, full := s.offer(chunk)
		taken += n
		if full == nil {
			continue
		}
		if inCallback() {
			return taken, ErrBufferFull
		}
		select {
		case <-full:
			if note {
				noteWait(run[taken:])
			}
		case <-ctx.Done():
			return taken, ctx.Err()
		case <-abort:
			return taken, ErrClosed
		}
	}
	return taken, nil
}

// noteWait says that what is left of a run waited until now.
func noteWait(run []*ProducerMessage) {
	now := int64(time.Since(origin))
	for _, m := range run {
		m.waited = now
	}
}

// tryPush hands over what fits now and returns what does not.
func (s *stage) tryPush(run []*ProducerMessage) (left []*ProducerMessage) {
	for len(run) > 0 {
		n, full := s.offer(run[:min(len(run), s.bound)])
		run = run[n:]
		if full != nil {
			break
		}
	}
	return run
}

// offer takes messages from the beginning of a chunk, which is at most bound long: all of them by
// handling them here when the stage is idle, else as many as there is room for. With room for
// none it returns a channel that is closed when there is some.
func (s *stage) offer(chunk []*ProducerMessage) (taken int, full <-chan struct{}) {
	s.mu.Lock()
	if !s.busy && s.held == 0 {
		s.busy, s.held = true, len(chunk)
		s.mu.Unlock()
		s.finishInline(len(chunk), s.handle(chunk, false))
		return len(chunk), nil
	}
	defer s.mu.Unlock()
	n := min(len(chunk), s.bound-s.held)
	if n <= 0 {
		if s.room == nil {
			s.room = make(chan struct{})
		}
		return 0, s.room
	}
	s.queue = append(s.queue, chunk[:n]...)
	s.held += n
	if s.stuck {
		noteAcceptance(chunk[:n])
	}
	return n, nil
}

// waiting is called by a handler that is about to wait: what it handles and what is queued learns
// when it was accepted, at the latest, since it may be long until it reaches its batch.
func (s *stage) waiting(run []*ProducerMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = true
	noteAcceptance(run)
	noteAcceptance(s.queue)
}

// goesOn ends what waiting began.
func (s *stage) goesOn() {
	s.mu.Lock()
	s.stuck = false
	s.mu.Unlock()
}

// finishInline ends the handling of a chunk by its caller: what could not go on is queued before
// what came meanwhile, and the goroutine is started when anything is queued.
func (s *stage) finishInline(chunk int, left []*ProducerMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= chunk - len(left)
	if len(left) > 0 {
		s.queue = append(append(s.takeSpare(), left...), s.queue...)
	}
	s.makeRoom()
	if len(s.queue) == 0 {
		s.busy = false
		return
	}
	s.wg.Add(1)
	// Owned by the stage; ends when its queue is empty, which handle sees to when the producer
	// is aborted; the producer's Close waits.
	go s.drain()
}

// drain handles what is queued until nothing is.
func (s *stage) drain() {
	defer s.wg.Done()
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		hand := s.queue
		s.queue = s.takeSpare()
		s.mu.Unlock()
		for rest := hand; len(rest) > 0; {
			left := s.handle(rest, true)
			s.release(len(rest) - len(left))
			rest = left
		}
		s.mu.Lock()
		clear(hand)
		s.spare = hand[:0]
		s.mu.Unlock()
	}
}

func (s *stage) takeSpare() []*ProducerMessage {
	q := s.spare
	s.spare = nil
	return q[:0]
}

// release says that n messages were passed on.
func (s *stage) release(n int) {
	s.mu.Lock()
	s.held -= n
	s.makeRoom()
	s.mu.Unlock()
}

// makeRoom wakes those who wait for room. Called with mu held.
func (s *stage) makeRoom() {
	if s.room != nil && s.held < s.bound {
		close(s.room)
		s.room = nil
	}
}
