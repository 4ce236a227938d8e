//go:build !race

package record

// poolAllocs is what a codec may allocate each time.
const poolAllocs = 0
