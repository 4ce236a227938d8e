package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads"
)

// Means are what faults are made with.
type Means struct {
	// Bootstrap are the brokers' own addresses, and Config how to connect to them; for what goes around
	// the proxy.
	Bootstrap []string
	Config    *client.Config
	// Topics are the names of the run's topics, known once it has begun.
	Topics func() []string
	// Fail has the embedded broker answer requests with an error until undo is called; nil: it is no
	// embedded broker of this process's.
	Fail func(Answer) (undo func() error, err error)
	Seed uint64
}

// Answer says which requests the embedded broker answers with an error.
type Answer struct {
	Key, Code int16
	Broker    int32 // workloads.All: all
	Topic     string
	Partition int32 // workloads.All: all
}

// Script makes the faults of a workload happen, each when it is told to. It is a run.Disturber; its
// methods are safe for concurrent use.
type Script struct {
	faults []workloads.Fault
	means  Means
	proxy  *Proxy // nil when no fault is done to connections

	mu     sync.Mutex
	active map[int]workloads.Fault // done to connections, by number
	undo   map[int][]func() error
}

// NewScript makes ready for faults: when one of them is done to connections, with a proxy in front of
// the brokers, which ends with ctx or by Close.
func NewScript(ctx context.Context, faults []workloads.Fault, m Means) (*Script, error) {
	s := &Script{faults: slices.Clone(faults), means: m, active: map[int]workloads.Fault{}, undo: map[int][]func() error{}}
	if workloads.Faults(faults).Has(workloads.FaultError) && m.Fail == nil {
		return nil, errors.New("faults of kind error need the embedded broker that kbench starts itself; leave --brokers out")
	}
	if !workloads.Faults(faults).Proxied() {
		return s, nil
	}
	if m.Config != nil && m.Config.Net.TLS != nil {
		return nil, errors.New("faults done to connections need a PLAINTEXT or SASL_PLAINTEXT listener: the proxy has to read what brokers answer, and TLS hides it")
	}
	var err error
	s.proxy, err = New(ctx, m.Bootstrap, Options{Seed: m.Seed})
	return s, err
}

// Bootstrap is where clients are to connect: the proxy, where there is one.
func (s *Script) Bootstrap() []string {
	if s.proxy == nil {
		return slices.Clone(s.means.Bootstrap)
	}
	return s.proxy.Addrs()
}

// Proxied says whether there is a proxy between clients and brokers.
func (s *Script) Proxied() bool { return s.proxy != nil }

// Close ends everything, faults included. It returns why clients could not be kept behind the proxy.
func (s *Script) Close() error {
	s.mu.Lock()
	var errs []error
	for i := range s.undo {
		errs = append(errs, s.takeBack(i))
	}
	s.mu.Unlock()
	if s.proxy != nil {
		errs = append(errs, s.proxy.Err(), s.proxy.Close())
	}
	return errors.Join(errs...)
}

// Begin puts a fault in place.
func (s *Script) Begin(ctx context.Context, number int) (string, error) {
	f := s.named(number)
	switch f.Kind {
	case workloads.FaultLeader:
		return s.moveLeaders(ctx, f)
	case workloads.FaultError:
		return s.fail(number, f)
	}
	node := node(f.Broker)
	if node != AllNodes && !slices.Contains(s.proxy.Nodes(), node) {
		return "", fmt.Errorf("there is no broker %d; the cluster has %v", node, s.proxy.Nodes())
	}
	if f.Kind == workloads.FaultCut {
		if f.For > 0 { // refused first, so that nobody is back before
			if err := s.change(number, &f); err != nil {
				return "", err
			}
		}
		cut := s.proxy.Cut(node, Reset)
		text := fmt.Sprintf("%d connections%s cut", cut, whose(" of", f.Broker))
		if f.For > 0 {
			text += fmt.Sprintf(", new ones refused for %s", f.For)
		}
		return text, nil
	}
	if err := s.change(number, &f); err != nil {
		return "", err
	}
	return describe(f), nil
}

// named is a fault with the broker that it means: which one is the first is known once clients have asked
// who there is.
func (s *Script) named(number int) workloads.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.faults[number]
	if f.Broker == workloads.First {
		if nodes := s.proxy.Nodes(); len(nodes) > 0 {
			f.Broker = slices.Min(nodes)
		}
	}
	return *f
}

// End takes a fault away.
func (s *Script) End(number int) error {
	s.mu.Lock()
	if s.undo[number] != nil {
		defer s.mu.Unlock()
		return s.takeBack(number)
	}
	proxied := s.faults[number].Proxied()
	s.mu.Unlock()
	if !proxied {
		return nil
	}
	return s.change(number, nil)
}

// takeBack undoes what a fault did to the embedded broker. Called with mu held.
func (s *Script) takeBack(number int) error {
	var errs []error
	for _, undo := range s.undo[number] {
		errs = append(errs, undo())
	}
	delete(s.undo, number)
	return errors.Join(errs...)
}

// change adds a fault to those that connections suffer, or with nil takes it away.
func (s *Script) change(number int, f *workloads.Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.active, number)
	} else {
		s.active[number] = *f
	}
	var everyone Fault
	nodes := map[int32]Fault{}
	for _, one := range s.active {
		if one.Broker == workloads.All {
			everyone = together(everyone, done(one))
		}
	}
	for _, one := range s.faults { // those that had something before are to be put back
		if one.Broker != workloads.All && one.Broker != workloads.First && one.Proxied() {
			nodes[one.Broker] = everyone
		}
	}
	for _, one := range s.active {
		if one.Broker != workloads.All {
			nodes[one.Broker] = together(nodes[one.Broker], done(one))
		}
	}
	errs := []error{s.proxy.Set(AllNodes, everyone)}
	for node, f := range nodes {
		errs = append(errs, s.proxy.Set(node, f))
	}
	return errors.Join(errs...)
}

// done is what connections suffer by a fault.
func done(f workloads.Fault) Fault {
	switch f.Kind {
	case workloads.FaultCut:
		return Fault{Refuse: f.For > 0}
	case workloads.FaultStall:
		return Stalled()
	case workloads.FaultBandwidth:
		return Fault{ToBroker: Path{BytesPerSecond: f.BytesPerSecond}, ToClient: Path{BytesPerSecond: f.BytesPerSecond}}
	}
	out := Slow(f.Delay)
	out.ToBroker.Jitter, out.ToClient.Jitter = f.Jitter/2, f.Jitter-f.Jitter/2
	return out
}

// together is two faults at once: delays add up, and the narrower path counts.
func together(a, b Fault) Fault {
	return Fault{ToBroker: joined(a.ToBroker, b.ToBroker), ToClient: joined(a.ToClient, b.ToClient), Refuse: a.Refuse || b.Refuse}
}

func joined(a, b Path) Path {
	rate := a.BytesPerSecond
	if rate == 0 || b.BytesPerSecond > 0 && b.BytesPerSecond < rate {
		rate = b.BytesPerSecond
	}
	return Path{Delay: min(longest, a.Delay+b.Delay), Jitter: min(longest, a.Jitter+b.Jitter), BytesPerSecond: rate,
		Stall: a.Stall || b.Stall, Vanish: a.Vanish || b.Vanish}
}

func node(broker int32) int32 {
	if broker == workloads.All {
		return AllNodes
	}
	return broker
}

// whose is " of broker 1", with of for its preposition, or nothing for all.
func whose(of string, id int32) string {
	if id == workloads.All {
		return ""
	}
	return fmt.Sprintf("%s broker %d", of, id)
}

// describe says what was done to connections.
func describe(f workloads.Fault) string {
	which := "all connections"
	if f.Broker != workloads.All {
		which = fmt.Sprintf("the connections of broker %d", f.Broker)
	}
	switch f.Kind {
	case workloads.FaultStall:
		return which + " stalled"
	case workloads.FaultBandwidth:
		return fmt.Sprintf("%s limited to %d bytes/s each way", which, f.BytesPerSecond)
	}
	text := fmt.Sprintf("%s delayed by %s", which, f.Delay)
	if f.Jitter > 0 {
		text += fmt.Sprintf(" and up to %s more", f.Jitter)
	}
	return text
}

// moveLeaders asks the cluster for other leaders, around the proxy.
func (s *Script) moveLeaders(ctx context.Context, f workloads.Fault) (string, error) {
	c, err := client.NewClientContext(ctx, s.means.Bootstrap, s.means.Config)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // nothing is open on it
	var moves []string
	for _, topic := range s.means.Topics() {
		partitions := []int32{f.Partition}
		if f.Partition == workloads.All {
			if partitions, err = c.Partitions(ctx, topic); err != nil {
				return "", err
			}
		}
		for _, p := range partitions {
			if f.To != workloads.All {
				if b, err := c.Leader(ctx, topic, p); err == nil && b.ID() == f.To {
					continue
				}
			}
			from, now, err := c.MoveLeader(ctx, topic, p, f.To)
			if err != nil {
				return "", err
			}
			moves = append(moves, fmt.Sprintf("%d: %d→%d", p, from, now))
		}
	}
	const most = 8
	text := fmt.Sprintf("leaders of %d partitions moved", len(moves))
	if len(moves) > 0 {
		text += " (" + strings.Join(moves[:min(len(moves), most)], ", ")
		if len(moves) > most {
			text += ", …"
		}
		text += ")"
	}
	return text, nil
}

// fail has the embedded broker answer with an error.
func (s *Script) fail(number int, f workloads.Fault) (string, error) {
	key, code := f.Numbers()
	for _, topic := range s.topicsFor(key) {
		undo, err := s.means.Fail(Answer{Key: key, Code: code, Broker: f.Broker, Topic: topic, Partition: f.Partition})
		if err != nil {
			return "", err
		}
		s.mu.Lock()
		s.undo[number] = append(s.undo[number], undo)
		s.mu.Unlock()
	}
	where := ""
	if f.Partition != workloads.All {
		where = fmt.Sprintf(" for partition %d", f.Partition)
	}
	return fmt.Sprintf("%s answered with %s%s%s", f.Request, f.Code, whose(" by", f.Broker), where), nil
}

// topicsFor are the topics that a failure is limited to; one that is empty where requests are of none.
func (s *Script) topicsFor(key int16) []string {
	if key == 0 || key == 1 || key == 2 {
		return s.means.Topics()
	}
	return []string{""}
}
