package workloads

import (
	"fmt"
	"math"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// transactions checks that what is to be sent in transactions can be.
func (c *checker) transactions() {
	t := c.Producers.Transactions
	const longest = (math.MaxInt32) * time.Millisecond // of producer.transaction.timeout
	if t.Every < 0 || t.Every > longest {
		c.add("producers.transactions.every", "is %s, must be between 0s and %s", settings.FormatDuration(t.Every), settings.FormatDuration(longest))
	}
	c.count("producers.transactions.messages", t.Messages, 0, math.MaxInt64)
	c.within("producers.transactions.abortShare", t.AbortShare, 0, 1)
	if c.mayChange("producers.transactions") {
		return // each point's to say
	}
	if !t.On() {
		c.withoutTransactions()
		return
	}
	key := "producers.transactions.every"
	if t.Every == 0 {
		key = "producers.transactions.messages"
	}
	for _, need := range []struct {
		of     string
		unmet  bool
		reason string
	}{
		{"producers.count", c.Producers.Count == 0, "needs producers, and producers.count is 0"},
		{"producer.idempotent", c.client("producer.idempotent") == "false", "needs producer.idempotent=true: brokers take part of a transaction once and in order only"},
		{"producers.form", c.Producers.Form == "batch", "needs producers.form to be callback, channels or sync: the batch producer has no transactions"},
		{"producers.shareConnection", c.Producers.ShareConnection, "needs producers.shareConnection=false: every producer has a transactional id of its own, hence a client of its own"},
		{"producers.await", c.Producers.Await == "received", "needs producers.await=acked: what is not committed does not arrive where only committed messages are read"},
	} {
		if need.unmet && !c.mayChange(need.of) {
			c.add(key, "%s", need.reason)
		}
	}
	timeout, err := settings.ParseDuration(c.client("producer.transaction.timeout"))
	if err == nil && t.Every >= timeout && t.Every <= longest && !c.mayChange("producer.transaction.timeout") {
		c.add("producers.transactions.every", "is %s, but the cluster aborts what is open for producer.transaction.timeout=%s: it must be shorter",
			settings.FormatDuration(t.Every), settings.FormatDuration(timeout))
	}
}

// withoutTransactions refuses what says how transactions are when there are none.
func (c *checker) withoutTransactions() {
	const needs = "producers.transactions.every or producers.transactions.messages, which say when transactions are committed"
	if c.Producers.Transactions.AbortShare > 0 {
		c.add("producers.transactions.abortShare", "needs %s", needs)
	}
	if id, given := c.clientInEffect()["producer.transaction.id"]; given && !c.mayChange("producer.transaction.id") {
		c.addClient("producer.transaction.id", "is %.60q, which needs %s", fmt.Sprint(id), needs)
	}
}

// addClient is add for a key of the client, at the place where it was last given.
func (c *checker) addClient(key, format string, args ...any) {
	a := settings.Assignment{Key: key}
	for _, given := range c.Client {
		if given.Key == key {
			a = given
		}
	}
	c.problems = append(c.problems, a.Problem(format, args...))
}
