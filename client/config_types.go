package client

import (
	"fmt"
	"strings"
)

// RequiredAcks says who must have a message before it counts as sent.
type RequiredAcks int16

// The values of RequiredAcks, as they stand in a Produce request.
const (
	AcksNone   RequiredAcks = 0  // no answer is awaited: sent means written to the socket
	AcksLeader RequiredAcks = 1  // the partition's leader
	AcksAll    RequiredAcks = -1 // every in-sync replica
)

// MarshalText gives "0", "1" or "all".
func (a RequiredAcks) MarshalText() ([]byte, error) {
	switch a {
	case AcksNone:
		return []byte("0"), nil
	case AcksLeader:
		return []byte("1"), nil
	case AcksAll:
		return []byte("all"), nil
	}
	return nil, fmt.Errorf("no such acks value: %d", int16(a))
}

// UnmarshalText takes the spellings of Kafka (0, 1, -1, all) and of Sarama (none, leader, all).
func (a *RequiredAcks) UnmarshalText(t []byte) error {
	switch strings.ToLower(string(t)) {
	case "0", "none", "noresponse":
		*a = AcksNone
	case "1", "leader", "waitforlocal":
		*a = AcksLeader
	case "-1", "all", "waitforall":
		*a = AcksAll
	default:
		return fmt.Errorf("%q is not one of 0 (none), 1 (leader), all (-1)", t)
	}
	return nil
}

func (a RequiredAcks) String() string {
	t, err := a.MarshalText()
	if err != nil {
		return err.Error()
	}
	return string(t)
}

// IsolationLevel says whether a reader sees what transactions have not committed.
type IsolationLevel int8

// The isolation levels, as they stand in a Fetch request.
const (
	ReadUncommitted IsolationLevel = 0
	ReadCommitted   IsolationLevel = 1
)

// MarshalText gives Kafka's names.
func (l IsolationLevel) MarshalText() ([]byte, error) {
	if l == ReadCommitted {
		return []byte("read_committed"), nil
	}
	return []byte("read_uncommitted"), nil
}

// UnmarshalText takes Kafka's names.
func (l *IsolationLevel) UnmarshalText(t []byte) error {
	switch string(t) {
	case "read_uncommitted":
		*l = ReadUncommitted
	case "read_committed":
		*l = ReadCommitted
	default:
		return fmt.Errorf("%q is not one of read_uncommitted, read_committed", t)
	}
	return nil
}

// Version is a Kafka release that caps the request versions used. The zero value does not cap.
type Version struct{ Major, Minor int }

// MarshalText gives "2.8", or nothing for the zero value.
func (v Version) MarshalText() ([]byte, error) {
	if v == (Version{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%d.%d", v.Major, v.Minor), nil
}

// UnmarshalText takes "2.8", "2.8.1" or nothing. Releases before 2.1 are refused: Kafka 4's own
// oldest partner is 2.1 (KIP-896), and so is this client's.
func (v *Version) UnmarshalText(t []byte) error {
	if len(t) == 0 {
		*v = Version{}
		return nil
	}
	var n Version
	parts := strings.Split(string(t), ".")
	if len(parts) < 2 || len(parts) > 3 {
		return fmt.Errorf("%q is not a Kafka release such as 2.8 or 4.0", t)
	}
	for i, p := range []*int{&n.Major, &n.Minor} {
		if _, err := fmt.Sscanf(parts[i]+"\n", "%d\n", p); err != nil || *p < 0 || *p > 999 {
			return fmt.Errorf("%q is not a Kafka release such as 2.8 or 4.0", t)
		}
	}
	if n.Major < 2 || n.Major == 2 && n.Minor < 1 {
		return fmt.Errorf("release %s of Kafka is too old: this client speaks to 2.1 and later", t)
	}
	*v = n
	return nil
}

func (v Version) String() string {
	t, _ := v.MarshalText()
	return string(t)
}

func (v Version) before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}
