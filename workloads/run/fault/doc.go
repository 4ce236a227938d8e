// Package fault stands between clients and a Kafka cluster and does to their connections what
// networks do: it cuts, delays, stalls, truncates, narrows, swallows and refuses them, as told at
// run time.
//
// A Proxy listens once for every broker. It follows the frames of the protocol and replaces the
// brokers' addresses in answers by its own, so that a client that was given Addrs stays behind it;
// a broker that it first hears of in an answer gets a listener then. What it forwards is otherwise
// byte for byte what was sent.
//
// It reads what it rewrites, so it serves PLAINTEXT and SASL_PLAINTEXT listeners. A client that
// begins with a TLS handshake is cut off, and Err says so: its faults could not be kept up, since
// the client would go around the proxy after its first answer.
package fault
