// Package fetch is the pure part of consuming: a hand-written codec of Fetch (versions 4 to 12),
// what a partition's records amount to, the filter of aborted transactions, and the state of one
// partition's fetching. No I/O, no clock, no goroutine: time is passed in.
//
// Decoding allocates nothing once warm. What is decoded aliases the answer's bytes; who keeps the
// buffer decides how long it is valid.
package fetch
