package run

import (
	"context"
	"fmt"
	"time"
)

// awaitArrival waits until the message just sent has arrived in every group of consumers (producers.await:
// received). A message that was refused does not arrive. False when the run is over: it was stopped, or
// the message did not come within the bound.
func (l *loader) awaitArrival(stop context.Context) bool {
	m := l.batch[0]
	l.pool.mu.Lock()
	seq, refused := m.seq, !m.open && m.Err != nil
	l.pool.mu.Unlock()
	if refused {
		return true
	}
	timer := time.NewTimer(l.await)
	defer timer.Stop()
	for _, ledger := range l.pool.ledgers {
		for !ledger.has(seq) {
			select {
			case <-l.arrived:
			case <-stop.Done():
				return false
			case <-timer.C:
				l.fatal(fmt.Errorf("producer %d: message %d was acknowledged and did not arrive within phases.drain (%s)", l.id, seq, l.await))
				return false
			}
		}
	}
	return true
}
