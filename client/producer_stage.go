package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stage is one stage of the producer's pipeline: a queue of messages with a bound, and what
// handles runs taken from it. A run handed to a stage that is idle is handled by the caller
// itself, so that a lone message is not passed from goroutine to goroutine; what cannot go on at
// once stays in the queue, and a goroutine, which lives only while there is something in the
// queue, carries on. Order is kept: at most one goroutine handles at a time, and nothing
// overtakes what waits.
type stage struct {
	bound int32 // most messages held: queued, or taken from the queue and not passed on; at least 1
	// gather is how many messages may be left in the queue without anybody handling them, while
	// the worker's fetched says that somebody is going to call fetch by the time they are needed:
	// then a run is handled at the price of a message. 0: none.
	gather int32
	worker worker
	wg     *goroutines // counts the stage's goroutine; the producer's Close waits on it

	// alone is the length of the run in the hand of the only one who has to do with the stage,
	// whose queue is empty; 0 when nobody has; shared while what mu guards says it. A stage that
	// gathers is always shared.
	alone atomic.Int64

	mu    sync.Mutex
	queue []*ProducerMessage
	spare []*ProducerMessage // an empty slice for the next swap
	held  int32
	busy  bool          // a caller or the goroutine is handling
	stuck bool          // whoever handles waits: what comes is told when it came
	room  chan struct{} // made by who waits for room, closed and dropped by who makes room
}

// worker is what a stage does.
type worker interface {
	// handle passes on messages of a run, which is at most the stage's bound long, and returns
	// those that could not go on, in order. With wait false it must not block. With wait true it
	// returns only when something went on; once the producer was aborted that is always
	// everything, as failures. It may keep run until its next call, not longer.
	handle(run []*ProducerMessage, wait bool) (left []*ProducerMessage)
	// fetched says whether what is gathered will be fetched, and gathers is told the first of
	// it. Both are called with the stage's mu held, and not at all where gather is 0.
	fetched() bool
	gathers(first *ProducerMessage)
}

func (s *stage) init(bound int, wg *goroutines, w worker) {
	s.bound, s.wg, s.worker = int32(max(bound, 1)), wg, w
}

// push hands a run to the stage, waiting for room until ctx ends or abort is closed. It returns
// how many messages of the run, from its beginning, the stage has taken. With note set, those
// that had to wait are told when there was room.
func (s *stage) push(ctx context.Context, abort <-chan struct{}, run []*ProducerMessage, note bool) (int, error) {
	taken := 0
	for taken < len(run) {
		chunk := run[taken:min(len(run), taken+int(s.bound))]
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
		n, full := s.offer(run[:min(len(run), int(s.bound))])
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
	n := int64(len(chunk))
	if s.gather == 0 && s.alone.CompareAndSwap(0, n) {
		s.finishAlone(n, s.worker.handle(chunk, false))
		return len(chunk), nil
	}
	return s.offerShared(chunk)
}

// finishAlone ends what somebody who had the stage alone did with n messages, but for those that could
// not go on and what came meanwhile.
func (s *stage) finishAlone(n int64, left []*ProducerMessage) {
	if len(left) > 0 || !s.alone.CompareAndSwap(n, 0) {
		s.share()
		s.finishInline(int(n), left)
	}
}

// share makes what mu guards say who handles, if somebody does it alone.
func (s *stage) share() {
	s.mu.Lock()
	s.shareLocked()
	s.mu.Unlock()
}

// shareLocked is share with mu held.
func (s *stage) shareLocked() {
	if s.gather > 0 {
		return // always so
	}
	if hand := s.alone.Swap(shared); hand > 0 {
		s.busy, s.held = true, int32(hand)
	}
}

// shared is alone's value while what mu guards says who handles.
const shared = -1

// rest says that nobody handles and the queue is empty. Called with mu held.
func (s *stage) rest() {
	s.busy = false
	if s.gather == 0 {
		s.alone.Store(0)
	}
}

func (s *stage) offerShared(chunk []*ProducerMessage) (taken int, full <-chan struct{}) {
	s.mu.Lock()
	s.shareLocked()
	if !s.busy && s.held == 0 && (len(chunk) >= int(s.gather) || !s.worker.fetched()) {
		s.busy, s.held = true, int32(len(chunk))
		s.mu.Unlock()
		s.finishInline(len(chunk), s.worker.handle(chunk, false))
		return len(chunk), nil
	}
	n := min(len(chunk), int(s.bound-s.held))
	if n <= 0 {
		defer s.mu.Unlock()
		if s.room == nil {
			s.room = make(chan struct{})
		}
		return 0, s.room
	}
	s.queue = append(s.queue, chunk[:n]...)
	s.held += int32(n)
	if s.stuck {
		noteAcceptance(chunk[:n])
	}
	if s.busy {
		s.mu.Unlock()
		return n, nil
	}
	if s.held < s.gather && s.worker.fetched() {
		if int(s.held) == n {
			s.worker.gathers(chunk[0])
		}
		s.mu.Unlock()
		return n, nil
	}
	s.handleQueue()
	return n, nil
}

// fetch handles what was gathered, unless somebody is handling already.
func (s *stage) fetch() {
	s.mu.Lock()
	if s.busy || len(s.queue) == 0 {
		s.mu.Unlock()
		return
	}
	s.handleQueue()
}

// handleQueue handles here what is in the queue, of which nobody takes care yet. Called with mu
// held, which it gives up.
func (s *stage) handleQueue() {
	hand := s.queue
	s.queue, s.busy = s.takeSpare(), true
	s.mu.Unlock()
	s.finishInline(len(hand), s.worker.handle(hand, false))
	s.mu.Lock()
	clear(hand)
	s.spare = hand[:0]
	s.mu.Unlock()
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
	s.held -= int32(chunk - len(left))
	if len(left) > 0 {
		s.queue = append(append(s.takeSpare(), left...), s.queue...)
	}
	s.makeRoom()
	if len(s.queue) == 0 {
		s.rest()
		return
	}
	s.wg.started()
	// Owned by the stage; ends when its queue is empty, which handle sees to when the producer
	// is aborted; the producer's Close waits.
	go s.drain()
}

// drain handles what is queued until nothing is.
func (s *stage) drain() {
	defer s.wg.ended()
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.rest()
			s.mu.Unlock()
			return
		}
		hand := s.queue
		s.queue = s.takeSpare()
		s.mu.Unlock()
		for rest := hand; len(rest) > 0; {
			left := s.worker.handle(rest, true)
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
	s.held -= int32(n)
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
