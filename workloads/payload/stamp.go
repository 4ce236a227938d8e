package payload

import (
	"encoding/binary"
	"hash/crc32"
)

// StampSize is the size of a stamp in bytes.
const StampSize = 32

// stampMagic is the first four bytes of a plain stamp: "kbm1".
const stampMagic = 0x6b626d31

// FlagScrambled marks a stamp whose bytes were mixed with its checksum, so that it does not
// compress. ReadStamp sees to it.
const FlagScrambled = 1

// Stamp is what a message carries about itself: in the first 32 bytes of its value, or in a
// header. All integers are big-endian:
//
//	magic 4 | producer 4 | number 8 | due 8 | flags 4 | CRC-32C of the rest of the value 4
type Stamp struct {
	Producer uint32
	Number   int64
	Due      int64 // nanoseconds since 1970, UTC
	Flags    uint32
	Sum      uint32 // written by PutStamp
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// PutStamp writes s to dst[:StampSize], with the checksum of rest: the value after the stamp,
// or the whole value when the stamp goes into a header.
func PutStamp(dst []byte, s Stamp, rest []byte) {
	_ = dst[StampSize-1]
	sum := crc32.Checksum(rest, castagnoli)
	binary.BigEndian.PutUint32(dst[0:], stampMagic)
	binary.BigEndian.PutUint32(dst[4:], s.Producer)
	binary.BigEndian.PutUint64(dst[8:], uint64(s.Number))
	binary.BigEndian.PutUint64(dst[16:], uint64(s.Due))
	binary.BigEndian.PutUint32(dst[24:], s.Flags)
	binary.BigEndian.PutUint32(dst[28:], sum)
	if s.Flags&FlagScrambled != 0 {
		scramble(dst[:StampSize], sum)
	}
}

// Stamp writes a stamp into the first StampSize bytes of a value made by Value with Stamped.
// It scrambles it where the compressibility asked for needs that.
func (s *Source) Stamp(value []byte, producer uint32, number, due int64) {
	PutStamp(value, Stamp{Producer: producer, Number: number, Due: due, Flags: s.StampFlags()}, value[StampSize:])
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
	scramble(plain[:], binary.BigEndian.Uint32(src[28:]))
	if binary.BigEndian.Uint32(plain[:]) != stampMagic {
		return Stamp{}, false
	}
	s = readPlain(plain[:])
	return s, s.Flags&FlagScrambled != 0
}

// Verify reports whether rest is what the stamp was made for.
func Verify(s Stamp, rest []byte) bool { return s.Sum == crc32.Checksum(rest, castagnoli) }

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
