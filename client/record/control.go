package record

import (
	"encoding/binary"
	"fmt"
)

// Control is what a control record says.
type Control int16

// The markers that end a transaction (KIP-98). Others exist, for brokers alone.
const (
	Abort  Control = 0
	Commit Control = 1
)

// String names the marker.
func (c Control) String() string {
	switch c {
	case Abort:
		return "abort"
	case Commit:
		return "commit"
	}
	return fmt.Sprintf("control(%d)", int16(c))
}

// ControlType is what a record of a batch with [Batch.Control] says: [Abort], [Commit], or
// another value that a client has to skip. The error is a *[CorruptError].
func ControlType(r *Record) (Control, error) {
	// The key is a version and a type, both int16; later versions may append fields.
	if len(r.Key) < 4 || int16(binary.BigEndian.Uint16(r.Key)) < 0 {
		return 0, errControl
	}
	return Control(binary.BigEndian.Uint16(r.Key[2:])), nil
}
