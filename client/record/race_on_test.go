//go:build race

package record

// poolAllocs is what a codec may allocate each time: under the race detector sync.Pool, which
// s2 and zstd keep their tables in, drops what it gets at random.
const poolAllocs = 5
