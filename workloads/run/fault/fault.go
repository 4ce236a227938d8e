package fault

import (
	"errors"
	"fmt"
	"time"
)

// AllNodes stands for every node, known and to come, where a node id is asked for.
const AllNodes int32 = -1

// Fault is what the connections of a node suffer while it is set. The zero value is none.
type Fault struct {
	// ToBroker and ToClient are the two directions: requests, and answers.
	ToBroker, ToClient Path
	// Refuse closes the listener: new connections are refused, those that are open go on.
	Refuse bool
}

// Path is what one direction of a connection is like. The zero value forwards at once.
type Path struct {
	// Delay is how much later everything arrives. It does not narrow the path: what is under way
	// is held, up to Options.Buffer bytes a connection and direction. It is accurate to about a
	// tenth of a millisecond where the system is not busy, and never too short.
	Delay time.Duration
	// Jitter is the most by which a frame (one request, one answer) is late beyond Delay: evenly
	// spread, drawn from the seed frame by frame. Frames keep their order.
	Jitter time.Duration
	// BytesPerSecond bounds the rate; 0: no bound.
	BytesPerSecond int64
	// Stall holds everything until it is no longer set; nothing is lost.
	Stall bool
	// Vanish swallows everything while the connection stays open. A connection that lost
	// something stays as it is, this way, for the rest of its life, since what came next could
	// not be understood: only a new connection is whole again.
	Vanish bool
}

// Slow is a fault that delays each direction by half of d, so that every request takes d longer.
func Slow(d time.Duration) Fault {
	return Fault{ToBroker: Path{Delay: d / 2}, ToClient: Path{Delay: d - d/2}}
}

// Stalled is a fault that holds both directions.
func Stalled() Fault { return Fault{ToBroker: Path{Stall: true}, ToClient: Path{Stall: true}} }

// BlackHole is a fault that swallows both directions. A new connection is accepted, as by a
// system whose process is gone; a proxy cannot keep the handshake of TCP from being answered.
func BlackHole() Fault { return Fault{ToBroker: Path{Vanish: true}, ToClient: Path{Vanish: true}} }

// Validate reports every problem at once.
func (f Fault) Validate() error {
	return errors.Join(f.ToBroker.validate("to the broker"), f.ToClient.validate("to the client"))
}

// longest bounds delays: what is later than that is a stall or a black hole.
const longest = time.Hour

func (p Path) validate(which string) error {
	var problems []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"delay", p.Delay}, {"jitter", p.Jitter}} {
		if d.value < 0 || d.value > longest {
			problems = append(problems, fmt.Errorf("fault: %s %s: %v is not between 0 and %v", d.name, which, d.value, longest))
		}
	}
	if p.BytesPerSecond < 0 {
		problems = append(problems, fmt.Errorf("fault: bytes per second %s: %d is below 0; 0 means no bound", which, p.BytesPerSecond))
	}
	return errors.Join(problems...)
}

// End is how a connection ends.
type End int8

const (
	// Reset ends with a TCP reset, as when a machine or process is gone: what was under way is
	// lost, and the other side's next read fails.
	Reset End = iota
	// Finish ends in order, with FIN in both directions: what was forwarded arrives, then the
	// stream ends.
	Finish
)

// String is the end's name in messages.
func (e End) String() string {
	if e == Finish {
		return "finish"
	}
	return "reset"
}
