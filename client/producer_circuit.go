package client

import (
	"errors"
	"fmt"
	"time"
)

// The circuit breakers of the pipeline, with the thresholds of Sarama's.
const (
	circuitFailures  = 3                // in a row, until the circuit opens
	circuitSuccesses = 1                // in a row, until it closes again
	circuitOpen      = 10 * time.Second // how long it stays open before another trial counts
)

// ErrCircuitOpen marks a message that failed at once, because what it needs has failed several
// times in a row a moment ago; see CircuitOpenError.
var ErrCircuitOpen = errors.New("circuit open")

// CircuitOpenError is the failure of a message to a topic that could not be looked up three times
// in a row, or to a partition whose leader could not be, and whose queue is full. Err is the last
// look-up's error. It matches ErrCircuitOpen.
type CircuitOpenError struct {
	Topic     string
	Partition int32     // −1: the topic itself is not known
	Until     time.Time // when the next look-up counts
	Err       error
}

func (e *CircuitOpenError) Error() string {
	at := fmt.Sprintf("topic %q", e.Topic)
	if e.Partition >= 0 {
		at += fmt.Sprintf(" partition %d", e.Partition)
	}
	return fmt.Sprintf("%s: %v until %s after %d failed look-ups in a row: %v",
		at, ErrCircuitOpen, e.Until.Format(time.TimeOnly), circuitFailures, e.Err)
}

func (e *CircuitOpenError) Unwrap() []error { return []error{ErrCircuitOpen, e.Err} }

// circuit is a circuit breaker: closed at first, open after failures in a row, and after a while
// half open, when the next outcome decides. The zero value is closed. It is a pure state machine,
// guarded by its owner.
type circuit struct {
	failures  int // in a row while closed
	successes int // in a row while half open
	tripped   bool
	until     time.Time // of being open, while tripped; half open from then on
	cause     error     // of the last failure
}

// open says whether what needs the circuit is to fail at once.
func (c *circuit) open(now time.Time) bool { return c.tripped && now.Before(c.until) }

// failed takes in a failure, and says whether it opened the circuit. What fails while it is open
// changes nothing: it was a try that did not count.
func (c *circuit) failed(now time.Time, err error) (opened bool) {
	c.cause = err
	if c.open(now) {
		return false
	}
	c.failures++
	if !c.tripped && c.failures < circuitFailures {
		return false
	}
	*c = circuit{tripped: true, until: now.Add(circuitOpen), cause: err}
	return true
}

// succeeded takes in a success. One while the circuit is open counts too: it is what everybody
// waits for.
func (c *circuit) succeeded() {
	if c.tripped {
		if c.successes++; c.successes < circuitSuccesses {
			return
		}
	}
	*c = circuit{}
}

// failure is the error of what fails at once.
func (c *circuit) failure(topic string, partition int32) error {
	return &CircuitOpenError{Topic: topic, Partition: partition, Until: c.until, Err: c.cause}
}
