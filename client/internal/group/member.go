// Package group is a consumer group's member as a pure state machine: time, answers and what the
// driver has done go in, requests and orders come out. It knows no clock, connection or goroutine.
//
// Member is what the driver talks to; Classic is the protocol of JoinGroup, SyncGroup and
// Heartbeat, in which a member, the leader, assigns the partitions. Book keeps the offsets that
// the application has dealt with.
package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
)

// Member is a member of a group. The driver calls it from one goroutine: an input when something
// has happened, and Poll after every input and when Orders.Wake has come.
type Member interface {
	// Poll is what is to be done. Each order is given once.
	Poll(now time.Time) Orders
	// Status is how things stand, for those who commit.
	Status() Status

	// Subscribe gives the topics to be read, also when they change; the first call begins.
	Subscribe(now time.Time, topics []string)
	// Answered gives the outcome of the Send with this serial: the answer, or why there is none.
	Answered(now time.Time, serial int, resp kmsg.Response, err error)
	// Described gives the answer to the Describe with this serial: topics that are not there are
	// left out.
	Described(now time.Time, serial int, topics map[string]Topic, err error)
	// Held says that the Reconcile with this serial has been carried out, and what is held now.
	Held(now time.Time, serial int, held []assign.TopicPartitions)
	// Refused says that the coordinator refused a request made with this identity.
	Refused(now time.Time, who Identity, err error)
	// Suspend leaves the group until Resume, because the application does not ask for messages any
	// more: what is held is ordered to be given up, as belonging to others, and the coordinator is
	// told, whose answer is not waited for. It changes nothing where there is no membership yet, or
	// none any more, and when it is called again.
	Suspend(now time.Time)
	// Resume joins again after Suspend, once what was held has been given up.
	Resume(now time.Time)
	// Leave ends the membership, once the driver holds nothing any more. Orders.Left follows.
	Leave(now time.Time)
}

// Orders are what a Member wants done.
type Orders struct {
	Send     []Send
	Describe *Describe
	// Reconcile replaces the one before, which is to be broken off when it is still under way.
	Reconcile *Reconcile
	// Wake is when to poll again at the latest; zero: after the next input.
	Wake time.Time
	// Err ends the membership for good.
	Err error
	// Left says that Leave has been done with.
	Left bool
}

// Send is a request for the group's coordinator.
type Send struct {
	Serial  int // says in Answered which request it is about
	Request kmsg.Request
	// Long says that the answer may take as long as a rebalance: brokers answer nothing else on
	// that connection meanwhile.
	Long bool
	// Timeout for the answer; 0: what suits the request.
	Timeout time.Duration
}

// Describe wants to know of topics.
type Describe struct {
	Serial int
	Topics []string
	IDs    [][16]byte // of topics whose names are wanted
}

// Reconcile wants exactly Hold to be held: what is held beyond it is given up first, then what is
// missing is begun with, and what is in both goes on untouched.
type Reconcile struct {
	Serial     int
	Generation int32 // of the assignment; -1 when there is none
	Hold       []assign.TopicPartitions
	// Adopt says that Hold is what the group has assigned; otherwise it is what remains while the
	// member joins.
	Adopt bool
	// Lost says that what is given up belongs to others already: no commit of it can succeed.
	Lost bool
}

// Topic is what the cluster says of one.
type Topic struct {
	ID         [16]byte // all zero: not told
	Partitions int32
}

// Identity is what commits carry.
type Identity struct {
	MemberID   string
	InstanceID string // of a static member; empty: none
	Generation int32  // or member epoch
}

// Status is how a member stands.
type Status struct {
	Identity
	// Commits says that the coordinator may take a commit made with the identity.
	Commits bool
	// Settled says that no rebalance is going on.
	Settled bool
	// Leads says that this member assigns the partitions.
	Leads bool
}

// state is where a member stands. Members of the consumer protocol are in fewer of them.
type state int8

const (
	idle       state = iota // not subscribed yet
	revoking                // the driver gives partitions up, before joining
	joining                 // the request to join is under way, or waits for its backoff
	describing              // the leader gets to know the topics
	syncing                 // SyncGroup is under way
	adopting                // the driver takes the assignment over
	stable
	away // suspended
	leaving
	left
)

// machine is what members of both protocols have.
type machine struct {
	state  state
	serial int    // of the last order given
	out    Orders // given since the last Poll
	err    error  // what ended the membership
}

// poll gives the orders, those included that advance adds because of the time. wake is when time
// makes something due again.
func (m *machine) poll(now time.Time, advance func(time.Time), wake func() time.Time) Orders {
	if m.err == nil {
		advance(now)
	}
	o := m.out
	m.out = Orders{}
	o.Err, o.Left = m.err, m.state == left
	if m.err == nil {
		o.Wake = wake()
	}
	return o
}
