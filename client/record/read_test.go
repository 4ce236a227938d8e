package record

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadRecordRefusesHostileBytes(t *testing.T) {
	for name, src := range map[string][]byte{
		"nothing":                                  {},
		"a length without its record":              {12},
		"a negative length":                        {1, 0, 0, 0, 1, 1, 0},
		"a length of 0":                            {0},
		"a length too small for the fields":        {10, 0, 0, 0, 1, 1},
		"a length beyond the data":                 {16, 0, 0, 0, 1, 1, 0},
		"a length that never ends":                 {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0},
		"a length of more than 64 bits":            {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0},
		"the largest length":                       {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0},
		"a timestamp cut by the record's end":      {12, 0, 0x80, 0x80, 0x80, 0x80, 0x80},
		"a timestamp of more than 64 bits":         {30, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02, 0, 1, 1, 0},
		"a negative offset delta":                  {12, 0, 0, 1, 1, 1, 0},
		"an offset delta beyond 32 bits":           {20, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 0},
		"a key length of -2":                       {12, 0, 0, 0, 3, 1, 0},
		"a key beyond the record":                  {12, 0, 0, 0, 6, 1, 0, 1, 1, 1, 1, 1},
		"a value length of -2":                     {12, 0, 0, 0, 1, 3, 0},
		"a value that leaves no header count":      {12, 0, 0, 0, 1, 2, 0},
		"a negative header count":                  {12, 0, 0, 0, 1, 1, 1},
		"more headers than bytes":                  {12, 0, 0, 0, 1, 1, 2},
		"a huge header count":                      {20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f},
		"bytes behind a record without headers":    {14, 0, 0, 0, 1, 1, 0, 0},
		"a header count cut by the record's end":   {12, 0, 0, 0, 1, 1, 0x80},
		"the largest key length in 64 bits":        {30, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1, 0},
		"an offset delta cut by the record's end":  {12, 0, 0, 0x80, 0x80, 0x80, 0x80},
		"a value length cut by the record's end":   {12, 0, 0, 0, 1, 0x80, 0x80},
		"a key length of zero and nothing further": {12, 0, 0x80, 0, 0x80, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r Record
			rest, err := ReadRecord(src, &r)
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, src, rest)
		})
	}
}

func TestHeadersAreCheckedAsTheyAreRead(t *testing.T) {
	for name, row := range map[string]struct {
		headers []byte
		good    int // headers before the fault
	}{
		"a null key":                          {[]byte{2, 1, 1}, 0},
		"a key beyond the record":             {[]byte{2, 8, 1}, 0},
		"a value beyond the record":           {[]byte{2, 0, 8}, 0},
		"a value length of -2":                {[]byte{2, 0, 3}, 0},
		"the second header is missing":        {[]byte{4, 0, 2, 'v', 2, 'k'}, 1},
		"bytes behind the last header":        {[]byte{2, 0, 0, 0}, 1},
		"a second header without its value":   {[]byte{4, 0, 4, 'v', 'w', 0}, 1},
		"a count of two and bytes of one key": {[]byte{4, 2, 'k', 1, 4}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			src := append([]byte{byte(2 * (5 + len(row.headers))), 0, 0, 0, 1, 1}, row.headers...)
			var r Record
			_, err := ReadRecord(src, &r)
			require.NoError(t, err)
			h := r.Headers()
			n := 0
			for h.Next() {
				n++
			}
			require.Equal(t, row.good, n)
			var corrupt *CorruptError
			require.ErrorAs(t, h.Err(), &corrupt)
			require.False(t, h.Next(), "it does not go on after an error")
			_, err = r.AppendHeaders(nil)
			require.ErrorAs(t, err, &corrupt)
		})
	}
}

// Varints need not be as short as possible: other writers' are read as well.
func TestPaddedVarintsAreRead(t *testing.T) {
	src := []byte{0x9a, 0x80, 0x00, 0, 0x80, 0x00, 0x84, 0x00, 0x81, 0x80, 0x00, 0x82, 0x00, 'v', 0x00}
	src[0] = byte(2*(len(src)-3)) | 0x80
	var r Record
	rest, err := ReadRecord(src, &r)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, int32(2), r.OffsetDelta)
	require.Nil(t, r.Key)
	require.Equal(t, []byte("v"), r.Value)
}

func TestAppendingToAReadFieldDoesNotTouchTheNext(t *testing.T) {
	var b Builder
	batch := build(t, &b, nil, NoProducer, []message{{ts: 1, key: []byte("k"), value: []byte("v")}})
	var r Record
	_, err := ReadRecord(batch[HeaderSize:], &r)
	require.NoError(t, err)
	longer := r.Key
	longer = append(longer, "XY"...) // as long as the value's length and the value
	require.Equal(t, "kXY", string(longer))
	require.Equal(t, "v", string(r.Value))
}

func TestControlType(t *testing.T) {
	for name, row := range map[string]struct {
		key  []byte
		want Control
		bad  bool
	}{
		"abort":                         {key: []byte{0, 0, 0, 0}, want: Abort},
		"commit":                        {key: []byte{0, 0, 0, 1}, want: Commit},
		"a marker for brokers":          {key: []byte{0, 0, 0, 2}, want: 2},
		"a later version, a longer key": {key: []byte{0, 1, 0, 1, 9, 9}, want: Commit},
		"no key":                        {bad: true},
		"a short key":                   {key: []byte{0, 0, 0}, bad: true},
		"a negative version":            {key: []byte{0xff, 0xff, 0, 1}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ControlType(&Record{Key: row.key})
			require.Equal(t, row.bad, err != nil)
			require.Equal(t, row.want, got)
		})
	}
	require.Equal(t, "control(2)", Control(2).String())
}

func TestRecordSizeIsWhatReadingTakes(t *testing.T) {
	var b Builder
	b.Reset(nil, 0)
	for _, n := range []int{0, 1, 40, 60, 8000, 9000, 3_000_000} {
		b.Append(int64(n), nil, make([]byte, n), nil)
	}
	raw, err := b.Finish(nil, NoProducer)
	require.NoError(t, err)
	records := 0
	for rest := raw[HeaderSize:]; len(rest) > 0; records++ {
		var r Record
		after, err := ReadRecord(rest, &r)
		require.NoError(t, err)
		require.Equal(t, len(rest)-len(after), RecordSize(rest))
		rest = after
	}
	require.Equal(t, 7, records)
	for _, src := range [][]byte{nil, {0x80}, {0}, {1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {0xfe, 0xff, 0xff, 0xff, 0xff, 0x7f}} {
		require.Zero(t, RecordSize(src), "%x", src)
	}
	require.Equal(t, 102, RecordSize([]byte{0xc8, 0x01}), "more than there is")
}
