package assign

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// unhex reads bytes written in groups.
func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// The bytes follow ConsumerProtocolSubscription.json of Kafka's sources, field by field.
func TestMetadataBytes(t *testing.T) {
	m := Member{ID: "not sent", Rack: "r1", Topics: []string{"t2", "t1", "t2"}, Owned: parts("t1:0,5"), Generation: 7}
	const topics = "00000002 0002 7431 0002 7432"
	for name, want := range map[string]string{
		Range:      "0003" + topics + "ffffffff 00000000 ffffffff 0002 7231",
		RoundRobin: "0003" + topics + "ffffffff 00000000 ffffffff 0002 7231",
		// What it held stands in the user data, with the generation of version 1.
		Sticky: "0003" + topics + "00000018 00000001 0002 7431 00000002 00000000 00000005 00000007" + "00000000 ffffffff 0002 7231",
		// The generation stands where leaders before 3.2 look for it, and in its own field.
		CooperativeSticky: "0003" + topics + "00000004 00000007" + "00000001 0002 7431 00000002 00000000 00000005 00000007 0002 7231",
	} {
		b, _ := ByName(name)
		require.Equal(t, hex.EncodeToString(unhex(t, want)), hex.EncodeToString(b.Metadata(m)), name)
	}
	b, _ := ByName(Sticky)
	require.Equal(t, unhex(t, "0003 00000000 ffffffff 00000000 ffffffff ffff"), b.Metadata(Member{Generation: -1}), "nothing held, no rack")
}

func TestDecodeMember(t *testing.T) {
	const old = "00000001 0001 74" // one topic, t
	for _, r := range []struct {
		what, assignor, metadata string
		want                     Member
	}{
		{"version 0", Range, "0000" + old + "ffffffff", Member{Generation: -1}},
		{"version 1 with owned partitions", CooperativeSticky, "0001" + old + "ffffffff 00000001 0001 74 00000001 00000003",
			Member{Owned: parts("t:3"), Generation: -1}},
		{"version 1 whose generation stands in the user data", CooperativeSticky, "0001" + old + "00000004 00000009 00000000", Member{Generation: 9}},
		{"version 1 that ends where version 0 does", CooperativeSticky, "0001" + old + "ffffffff", Member{Generation: -1}},
		{"version 2: its own field goes before user data", CooperativeSticky, "0002" + old + "00000004 00000009 00000000 00000008", Member{Generation: 8}},
		{"version 3 without rack", Range, "0003" + old + "ffffffff 00000000 00000008 ffff", Member{Generation: 8}},
		{"version 3 with rack", Range, "0003" + old + "ffffffff 00000000 00000008 0001 72", Member{Generation: 8, Rack: "r"}},
		{"a version of the future: what we know of it", Range, "0009" + old + "ffffffff 00000000 00000008 0001 72 aabbcc", Member{Generation: 8, Rack: "r"}},
		{"sticky: user data of version 1", Sticky, "0000" + old + "00000013 00000001 0001 74 00000001 00000003 00000006",
			Member{Owned: parts("t:3"), Generation: 6}},
		{"sticky: user data of version 0, without generation", Sticky, "0000" + old + "0000000f 00000001 0001 74 00000001 00000003",
			Member{Owned: parts("t:3"), Generation: -1}},
		{"sticky: no user data", Sticky, "0003" + old + "ffffffff 00000001 0001 74 00000001 00000003 00000008 ffff", Member{Generation: -1}},
		{"sticky: user data that nobody can read are as good as none", Sticky, "0000" + old + "00000004 7fffffff", Member{Generation: -1}},
		{"owned partitions in two pieces, out of order", CooperativeSticky,
			"0001" + old + "ffffffff 00000002 0001 74 00000002 00000003 00000003 0001 74 00000001 00000001", Member{Owned: parts("t:1,3"), Generation: -1}},
	} {
		r.want.ID, r.want.InstanceID, r.want.Topics = "m", "i", []string{"t"}
		got, err := DecodeMember(r.assignor, "m", "i", unhex(t, r.metadata))
		require.NoError(t, err, r.what)
		require.Equal(t, r.want, got, r.what)
	}
}

func TestDecodeMemberRefuses(t *testing.T) {
	for _, r := range []struct {
		what, metadata string
		want           error
	}{
		{"nothing", "", wire.ErrTruncated},
		{"a negative version", "ffff 00000000 ffffffff", ErrVersion},
		{"more topics than bytes", "0000 7fffffff 0001 74", wire.ErrLength},
		{"a negative count", "0000 fffffffe ffffffff", wire.ErrLength},
		{"a null topic", "0000 00000001 ffff ffffffff", wire.ErrNull},
		{"user data longer than the message", "0000 00000000 00001000 00", wire.ErrTruncated},
		{"more owned topics than bytes", "0001 00000000 ffffffff 10000000 0001 74 00000001 00000000", wire.ErrLength},
		{"more owned partitions than bytes", "0001 00000000 ffffffff 00000001 0001 74 20000000 00000000", wire.ErrLength},
		{"a negative partition", "0001 00000000 ffffffff 00000001 0001 74 00000001 fffffffd", ErrPartition},
		{"version 2 without generation", "0002 00000000 ffffffff 00000000", wire.ErrTruncated},
		{"version 3 without rack", "0003 00000000 ffffffff 00000000 00000001", wire.ErrTruncated},
	} {
		_, err := DecodeMember(CooperativeSticky, "m", "", unhex(t, r.metadata))
		require.ErrorIs(t, err, r.want, r.what)
		require.ErrorContains(t, err, `subscription of group member "m"`)
	}
}

func TestAssignmentBytes(t *testing.T) {
	b := EncodeAssignment(parts("t1:0,5 u:2"))
	require.Equal(t, unhex(t, "0000 00000002 0002 7431 00000002 00000000 00000005 0001 75 00000001 00000002 ffffffff"), b)
	got, err := DecodeAssignment(b)
	require.NoError(t, err)
	require.Equal(t, parts("t1:0,5 u:2"), got)

	for _, r := range []struct {
		what, b string
		want    string
		err     error
	}{
		{"no bytes: left out by the leader", "", "", nil},
		{"no topics", "0001 00000000 ffffffff", "", nil},
		{"a later version, with more behind it", "0007 00000001 0001 74 00000001 00000002 00000001 aa bbbb", "t:2", nil},
		{"without user data", "0000 00000001 0001 74 00000001 00000002", "t:2", nil},
		{"twice the same", "0000 00000002 0001 74 00000002 00000002 00000002 0001 74 00000001 00000001 ffffffff", "t:1,2", nil},
		{"a topic without partitions", "0000 00000001 0001 74 00000000 ffffffff", "", nil},
		{"a negative version", "8000 00000000 ffffffff", "", ErrVersion},
		{"a negative partition", "0000 00000001 0001 74 00000001 ffffffff ffffffff", "", ErrPartition},
		{"a count beyond the bytes", "0000 00000001 0001 74 7fffffff 00000001", "", wire.ErrLength},
		{"cut", "0000 00000001 0001", "", wire.ErrLength},
	} {
		got, err := DecodeAssignment(unhex(t, r.b))
		if r.err != nil {
			require.ErrorIs(t, err, r.err, r.what)
			require.ErrorContains(t, err, "assignment from the group's leader")
			continue
		}
		require.NoError(t, err, r.what)
		require.Equal(t, parts(r.want), got, r.what)
	}
}

// The same messages as they are generated from Kafka's definitions.
func TestAgreesWithTheDefinitions(t *testing.T) {
	m := Member{ID: "m", Rack: "r", Topics: []string{"t", "u"}, Owned: parts("t:0,1 u:4"), Generation: 3}
	b, _ := ByName(CooperativeSticky)
	var read kmsg.ConsumerMemberMetadata
	require.NoError(t, read.ReadFrom(b.Metadata(m)))
	require.Equal(t, m.Topics, read.Topics)
	require.Equal(t, m.Generation, read.Generation)
	require.Equal(t, "r", *read.Rack)
	require.Len(t, read.OwnedPartitions, 2)
	require.Equal(t, []int32{0, 1}, read.OwnedPartitions[0].Partitions)
	for version := range int16(4) {
		read.Version, read.UserData = version, nil
		got, err := DecodeMember(CooperativeSticky, "m", "", read.AppendTo(nil))
		require.NoError(t, err)
		want := Member{ID: "m", Topics: m.Topics, Generation: -1}
		if version >= 1 {
			want.Owned = m.Owned
		}
		if version >= 2 {
			want.Generation = 3
		}
		if version >= 3 {
			want.Rack = "r"
		}
		require.Equal(t, want, got)
	}
	var assigned kmsg.ConsumerMemberAssignment
	require.NoError(t, assigned.ReadFrom(EncodeAssignment(m.Owned)))
	require.Len(t, assigned.Topics, 2)
	for version := range int16(3) {
		assigned.Version = version
		got, err := DecodeAssignment(assigned.AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, m.Owned, got)
	}
}

// FuzzDecode reads what another member, or a leader, may send: it must not panic, nor take more
// memory than a multiple of what it was given, and what it reads must survive being sent again.
func FuzzDecode(f *testing.F) {
	m := Member{Rack: "r", Topics: []string{"t", "u"}, Owned: parts("t:0,1 u:4"), Generation: 3}
	for _, name := range Names() {
		b, _ := ByName(name)
		f.Add(b.Metadata(m))
	}
	f.Add(EncodeAssignment(m.Owned))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range Names() {
			got, err := DecodeMember(name, "m", "", data)
			if err != nil {
				continue
			}
			require.LessOrEqual(t, size(got.Owned)+len(got.Topics), len(data)/2)
			b, _ := ByName(name)
			again, err := DecodeMember(name, "m", "", b.Metadata(got))
			require.NoError(t, err)
			if b.Cooperative() || (name == Sticky && len(got.Owned) > 0) {
				require.Equal(t, got.Owned, again.Owned)
				require.Equal(t, got.Generation, again.Generation)
			}
			b.Balance([]Member{got, {ID: "other", Topics: got.Topics}}, map[string]int32{"t": 3, "u": 5})
		}
		if got, err := DecodeAssignment(data); err == nil {
			require.LessOrEqual(t, size(got), len(data)/2)
			again, err := DecodeAssignment(EncodeAssignment(got))
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	})
}

// size counts what memory is taken for.
func size(parts []TopicPartitions) (n int) {
	for _, t := range parts {
		n += 1 + len(t.Partitions)
	}
	return n
}
