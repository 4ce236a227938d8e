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
func newStamping(d *workloads.Definition, seed int64) (stamping, error) {
	fits := d.Payload.Size >= payload.StampSize
	s := stamping{tag: uint32(mix(uint64(seed)) >> (32 + payload.TagShift))}
	switch d.Payload.Stamp {
	case "none":
	case "header":
		s.where = stampInHeader
	case "value":
		if !fits {
			return s, fmt.Errorf("run: payload.stamp is in the value, which has %d bytes; a stamp takes %d",
				d.Payload.Size, payload.StampSize)
		}
		s.where = stampInValue
	default:
		s.where = stampInHeader
		if fits {
			s.where = stampInValue
		}
	}
	return s, nil
}

// mix is the finalizer of SplitMix64, which spreads close seeds.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// read takes the stamp from a message; false when it has none or is not what was sent.
func (s stamping) read(a *Arrival) (payload.Stamp, bool) {
	// A run without producers meets what others sent, stamped either way.
	stamp, _, intact := payload.Find(a.Header, a.Key, a.Value)
	return stamp, intact
}

// mine reports whether a stamp has this run's tag.
func (s stamping) mine(stamp payload.Stamp) bool { return stamp.Tag() == s.tag }

// filler makes messages and fills them. It is immutable, so all load goroutines share it.
type filler struct {
	source   *payload.Source
	stamping stamping
	flags    uint32
	wall     int64 // unix ns at the clock's origin
	size     int
	keySize  int
}

func newFiller(d *workloads.Definition, s stamping, wall int64) (*filler, error) {
	k := d.Payload.Keys
	source, err := payload.New(payload.Config{
		Size: d.Payload.Size, Compressibility: d.Payload.Compressibility, Stamped: s.where == stampInValue,
		Keys: payload.Keys{Kind: k.Kind, Size: k.Size, N: k.N, Skew: k.Skew}, Seed: d.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return &filler{source: source, stamping: s, flags: source.StampFlags() | s.tag<<payload.TagShift, wall: wall,
		size: d.Payload.Size, keySize: max(k.Size, 0)}, nil
}

// messages makes n messages of a producer, with room for key, value and header.
func (f *filler) messages(p Producer, n int) []*Message {
	list := p.NewMessages(n)
	header := 0
	if f.stamping.where == stampInHeader {
		header = payload.StampSize
	}
	room := f.size + f.keySize + header
	slab := make([]byte, room*len(list))
	for i, m := range list {
		part := slab[i*room : (i+1)*room : (i+1)*room]
		m.Value, part = part[:f.size:f.size], part[f.size:]
		m.Key, part = part[:0:f.keySize], part[f.keySize:]
		if header > 0 {
			m.Header = part
		}
	}
	return list
}

// fill writes key, value and stamp of a message whose Number, seq and Due are set.
func (f *filler) fill(m *Message, producer int64) {
	m.Key = f.source.Key(m.Key, m.Number)
	m.Value = f.source.Value(m.Value, m.Number)
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
