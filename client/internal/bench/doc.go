// Package bench compares this client with others: the same messages, broker and settings, one
// program a client, in interleaved rounds. It is all tests; `make bench` runs them.
//
// Every client is a program that takes the flags of Settings and prints one line of key=value
// (see parseLine). Ours is the test binary itself, started with programEnv set. The others are
// built from a module of the user's own, for no other client belongs into this one: its package
// ./peer takes -lib franz, sarama, kafkago or confluent. Of the flags beyond the first few it is
// given those that its -h lists; what it prints decides which columns are filled.
package bench
