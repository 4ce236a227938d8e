//go:build race

package record

// poolAllocs is what a codec may allocate each time: under the race detector sync.Pool, which
// s2 keeps its tables in, drops what it gets at random.
const poolAllocs = 2
