// Package wire holds the small pieces of the Kafka protocol that several parts of the client
// share: a bounded reader and appenders for the protocol's primitives, the table of request
// versions that we speak, and the broker's error codes as typed errors with one classifier.
//
// Everything here is pure: no I/O, no clock, no goroutine. Nothing that a broker sends is
// trusted: every length and count is compared with the bytes that are really there before it is
// used.
package wire
