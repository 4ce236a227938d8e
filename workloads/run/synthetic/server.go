package synthetic

import (
	"math"
	"math/rand/v2"
	"time"
)

// Stall is a time during which the server serves nothing.
type Stall struct {
	Start  time.Duration // since the measured phase began
	Length time.Duration
}

// server is the queueing model: first in, first out, one server. It is pure: time is what it
// is given.
type server struct {
	base    int64   // ns added to every answer, as by a network
	service float64 // mean ns a message takes; 0: none, an infinite capacity
	random  *rand.Rand
	cold    float64 // share by which base is longer at origin …
	decay   float64 // … falling with this time constant, ns
	stalls  []Stall
	origin  int64 // instant that stalls count from; negative: not known, none happens

	free float64 // instant the server has served everything so far
}

// answer is the instant at which the answer to a message that arrived at an instant is read.
// Arrivals are in order.
func (s *server) answer(arrived int64) int64 {
	begin := s.awake(max(float64(arrived), s.free))
	took := s.service
	if s.random != nil {
		took *= s.random.ExpFloat64()
	}
	s.free = begin + took
	return int64(s.free + float64(s.base)*(1+s.warming(float64(arrived))))
}

// warming is by how much of itself the latency is still longer.
func (s *server) warming(at float64) float64 {
	if s.cold == 0 || s.origin < 0 {
		return 0
	}
	return s.cold * math.Exp(-max(0, at-float64(s.origin))/s.decay)
}

// awake is the first instant from at on that lies in no stall.
func (s *server) awake(at float64) float64 {
	if s.origin < 0 {
		return at
	}
	for _, stall := range s.stalls {
		from := float64(s.origin) + float64(stall.Start)
		if to := from + float64(stall.Length); at >= from && at < to {
			at = to
		}
	}
	return at
}
