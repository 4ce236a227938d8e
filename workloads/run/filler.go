package run

import (
	"fmt"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/payload"
)

// stampPlace is where messages carry their stamp.
type stampPlace int

const (
	stampNowhere stampPlace = iota
	stampInValue
	stampInHeader
)

// stamping is where stamps are and how a run knows its own: the flags above the payload's
// hold a tag that differs from run to run, so that a topic may hold messages of several.
type stamping struct {
	where stampPlace
	tag   uint32 // 31 bits
}

// newStamping settles what "auto" means; seed makes the tag.
func newStamping(d *workloads.Definition, seed int64) stamping {
	s := stamping{tag: uint32(mix(uint64(seed)) >> (32 + payload.TagShift))}
	switch {
	case d.StampsValues():
		s.where = stampInValue
	case d.StampsHeaders():
		s.where = stampInHeader
	}
	return s
}

// mix is the finalizer of SplitMix64, which spreads close seeds.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// read takes the stamp from a message: found when it has one, intact when the message is what was sent.
func (s stamping) read(a *Arrival) (stamp payload.Stamp, found, intact bool) {
	// A run without producers meets what others sent, stamped either way.
	return payload.Find(a.Header, a.Key, a.Value)
}

// mine reports whether a stamp has this run's tag.
func (s stamping) mine(stamp payload.Stamp) bool { return stamp.Tag() == s.tag }

// filler makes messages and fills them. It is immutable, so all load goroutines share it.
type filler struct {
	source   *payload.Source
	stamping stamping
	flags    uint32
	wall     int64 // unix ns at the clock's origin
	// Room that a message needs for what is not handed over as it is.
	valueRoom, keyRoom int
	headers            []string // names of those of the payload
	headerRoom         int      // of all their values
}

func newFiller(d *workloads.Definition, s stamping, wall int64) (*filler, error) {
	config, err := d.PayloadConfig(s.where == stampInValue)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	source, err := payload.New(config)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	f := &filler{source: source, stamping: s, flags: source.StampFlags() | s.tag<<payload.TagShift, wall: wall, headers: source.HeaderNames()}
	f.valueRoom, f.keyRoom = source.Room()
	for i := range f.headers {
		f.headerRoom += source.HeaderRoom(i)
	}
	return f, nil
}

// room is the memory that a message of the payload takes.
func (f *filler) room() int {
	room := f.valueRoom + f.keyRoom + f.headerRoom
	if f.stamping.where == stampInHeader {
		room += payload.StampSize
	}
	return room
}

// messages makes n messages of a producer, with room for key, value and headers.
func (f *filler) messages(p Producer, n int) []*Message {
	list := p.NewMessages(n)
	room := f.room()
	slab := make([]byte, room*len(list))
	headers := make([]Header, len(f.headers)*len(list))
	for _, m := range list {
		part := slab[:room:room]
		slab = slab[room:]
		m.Value, part = part[:0:f.valueRoom], part[f.valueRoom:]
		m.Key, part = part[:0:f.keyRoom], part[f.keyRoom:]
		if f.stamping.where == stampInHeader {
			m.Header, part = part[:payload.StampSize:payload.StampSize], part[payload.StampSize:]
		}
		if len(f.headers) == 0 {
			continue
		}
		m.Headers, headers = headers[:len(f.headers):len(f.headers)], headers[len(f.headers):]
		for i, name := range f.headers {
			most := f.source.HeaderRoom(i)
			m.Headers[i] = Header{Name: name, Value: part[:0:most]}
			part = part[most:]
		}
	}
	return list
}

// make writes key, value and the payload's headers of a message whose Number is set.
func (f *filler) make(m *Message) {
	m.Key = f.source.Key(m.Key, m.Number)
	m.Value = f.source.Value(m.Value, m.Number)
	for i := range m.Headers {
		m.Headers[i].Value = f.source.Header(m.Headers[i].Value, i, m.Number)
	}
}

// seal writes the stamp of a message that was made and whose Due is set.
func (f *filler) seal(m *Message, producer int64) {
	switch f.stamping.where {
	case stampInValue:
		payload.PutStamp(m.Value, f.stamp(m, producer), m.Key, m.Value[payload.StampSize:])
	case stampInHeader:
		payload.PutStamp(m.Header, f.stamp(m, producer), m.Key, m.Value)
	}
}

func (f *filler) stamp(m *Message, producer int64) payload.Stamp {
	return payload.Stamp{Producer: uint32(producer), Number: m.seq, Due: f.wall + m.Due, Flags: f.flags}
}
