package payload

import (
	"encoding/binary"
	"hash/crc32"
)

// StampSize is the size of a stamp in bytes.
const StampSize = 32

// stampMagic is the first four bytes of a plain stamp: "kbm2".
const stampMagic = 0x6b626d32

// FlagScrambled marks a stamp whose bytes were mixed with its checksum, so that it does not
// compress. ReadStamp sees to it.
const FlagScrambled = 1

// TagShift is where the flags above payload's own begin. They are the tag of the run that a message is
// of, since a topic may hold messages of several.
const TagShift = 1

// Stamp is what a message carries about itself: in the first 32 bytes of its value, or in a
// header. All integers are big-endian:
//
//	magic 4 | producer 4 | number 8 | due 8 | flags 4 | CRC-32C of all before, the key and the rest of the value 4
//
// It costs these 32 bytes; in a header, whose key takes a few more, 41. To write or to check one
// takes a few nanoseconds and the time of the checksum over key and value.
type Stamp struct {
	Producer uint32
	// Number is the producer's own count, from 0: it rises by 1 with each of its messages, whatever
	// partition they go to.
	Number int64
	Due    int64 // nanoseconds since 1970, UTC
	Flags  uint32
	Sum    uint32 // written by PutStamp
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumAt is where the checksum stands, behind all the rest of a stamp.
const sumAt = StampSize - 4

// PutStamp writes s to dst[:StampSize], with the checksum of itself, the key, and rest: the value
// after the stamp, or the whole value when the stamp goes into a header. A key that is nil sums up
// like an empty one.
func PutStamp(dst []byte, s Stamp, key, rest []byte) {
	_ = dst[StampSize-1]
	put(dst, s)
	sum := sumOf(dst[:sumAt], key, rest)
	binary.BigEndian.PutUint32(dst[sumAt:], sum)
	if s.Flags&FlagScrambled != 0 {
		scramble(dst[:StampSize], sum)
	}
}

// Tag is that of the run that sent the message.
func (s Stamp) Tag() uint32 { return s.Flags >> TagShift }

// Find reads the stamp of a message that may carry it either way: in a header, whose value is header
// (nil: the message has none), or in its value. found is false when there is none; intact is true when
// stamp, key and value are as they were written.
func Find(header, key, value []byte) (s Stamp, found, intact bool) {
	at, rest := header, value
	if header == nil {
		at = value
		if len(value) >= StampSize {
			rest = value[StampSize:]
		}
	}
	s, found = ReadStamp(at)
	return s, found, found && Verify(s, key, rest)
}

// put writes a plain stamp without its checksum.
func put(dst []byte, s Stamp) {
	binary.BigEndian.PutUint32(dst[0:], stampMagic)
	binary.BigEndian.PutUint32(dst[4:], s.Producer)
	binary.BigEndian.PutUint64(dst[8:], uint64(s.Number))
	binary.BigEndian.PutUint64(dst[16:], uint64(s.Due))
	binary.BigEndian.PutUint32(dst[24:], s.Flags)
}

func sumOf(stamp, key, rest []byte) uint32 {
	sum := crc32.Update(0, castagnoli, stamp)
	if len(key) > 0 {
		sum = crc32.Update(sum, castagnoli, key)
	}
	return crc32.Update(sum, castagnoli, rest)
}

// Stamp writes a stamp into the first StampSize bytes of a value made by Value with Stamped, for a
// message without a key.
// It scrambles it where the compressibility asked for needs that.
func (s *Source) Stamp(value []byte, producer uint32, number, due int64) {
	PutStamp(value, Stamp{Producer: producer, Number: number, Due: due, Flags: s.StampFlags()}, nil, value[StampSize:])
}

// StampFlags are the flags a stamp in this source's values has.
func (s *Source) StampFlags() uint32 {
	if s.scramble {
		return FlagScrambled
	}
	return 0
}

// ReadStamp reads a stamp from the start of src. ok is false when there is none: too short, or
// not kbench's. It does not check the value; Verify does.
func ReadStamp(src []byte) (s Stamp, ok bool) {
	if len(src) < StampSize {
		return Stamp{}, false
	}
	if binary.BigEndian.Uint32(src) == stampMagic {
		s = readPlain(src)
		return s, s.Flags&FlagScrambled == 0
	}
	var plain [StampSize]byte
	copy(plain[:], src)
	scramble(plain[:], binary.BigEndian.Uint32(src[sumAt:]))
	if binary.BigEndian.Uint32(plain[:]) != stampMagic {
		return Stamp{}, false
	}
	s = readPlain(plain[:])
	return s, s.Flags&FlagScrambled != 0
}

// Verify reports whether stamp, key and rest are as they were written.
func Verify(s Stamp, key, rest []byte) bool {
	var plain [StampSize]byte
	put(plain[:], s)
	return s.Sum == sumOf(plain[:sumAt], key, rest)
}

func readPlain(src []byte) Stamp {
	return Stamp{
		Producer: binary.BigEndian.Uint32(src[4:]),
		Number:   int64(binary.BigEndian.Uint64(src[8:])),
		Due:      int64(binary.BigEndian.Uint64(src[16:])),
		Flags:    binary.BigEndian.Uint32(src[24:]),
		Sum:      binary.BigEndian.Uint32(src[28:]),
	}
}

// scramble changes everything before the sum by words that depend on the sum; twice is nothing.
func scramble(stamp []byte, sum uint32) {
	word := mix(uint64(sum))
	for at := 0; at < 24; at += 8 {
		binary.BigEndian.PutUint64(stamp[at:], binary.BigEndian.Uint64(stamp[at:])^word)
		word = mix(word)
	}
	binary.BigEndian.PutUint32(stamp[24:], binary.BigEndian.Uint32(stamp[24:])^uint32(word))
}
