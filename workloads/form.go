package workloads

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// form refuses forms of the producer that make no sense with the client's settings, unless a sweep
// decides at each point.
func (c *checker) form() {
	form := c.Producers.Form
	if form == "batch" && c.client("producer.idempotent") == "true" && !c.mayChange("producers.form", "producer.idempotent") {
		c.add("producers.form", "is batch, which cannot be idempotent, and producer.idempotent is true")
	}
	if form != "batch" && c.client("producer.batch.async") == "true" && !c.mayChange("producers.form", "producer.batch.async") {
		c.add("producers.form", "is %s, and producer.batch.async=true is a mode of batch", form)
	}
	c.await()
	if form == "sync" && !c.mayChange("producers.form", "payload", "producer.flush.messages", "producer.flush.bytes", "producer.flush.frequency") {
		c.lonely()
	}
}

// await checks that what is waited for can be noticed.
func (c *checker) await() {
	if c.Producers.Await != "received" {
		return
	}
	for _, key := range []struct {
		name  string
		wrong bool
		needs string
	}{
		{"producers.form", c.Producers.Form != "sync", "sync"},
		{"consumers.count", c.Consumers.Count == 0, "1 or more"},
		{"payload.stamp", c.Payload.Stamp == "none", "other than none"},
		{"consumers.startAfter", c.Consumers.StartAfter > 0, "0"},
	} {
		if key.wrong && !c.mayChange("producers.await", key.name) {
			c.add("producers.await", "is received, which needs %s to be %s", key.name, key.needs)
		}
	}
}

// lonely refuses to wait for a flush trigger that one message at a time never fires.
func (c *checker) lonely() {
	if f := c.client("producer.flush.frequency"); f != "" {
		if d, err := settings.ParseDuration(f); err != nil || d > 0 {
			return
		}
	}
	size := int64(0)
	if values, keys, err := c.MessageBounds(); err == nil {
		size = int64(values.Min + keys.Min)
	}
	waits := ""
	for _, trigger := range []struct {
		key  string
		most int64 // what one message fires
	}{{"producer.flush.messages", 1}, {"producer.flush.bytes", size}} {
		n, err := strconv.ParseInt(c.client(trigger.key), 10, 64)
		switch {
		case err != nil || n <= 0: // none
		case n <= trigger.most:
			return
		case waits == "":
			waits = fmt.Sprintf("%s=%d", trigger.key, n)
		}
	}
	if waits != "" {
		c.add("producers.form", "is sync, and one message at a time never fires %s; set producer.flush.frequency, which ends the wait", waits)
	}
}

// client is a client setting in effect as text; empty when it is not known.
func (c *checker) client(key string) string {
	if v, given := c.clientInEffect()[key]; given {
		if text, isText := v.(string); isText {
			return text
		}
		return settings.Of(v).String()
	}
	if f, known := fieldOf(c.clientFields, key); known {
		return f.Default
	}
	return ""
}

// mayChange says whether a sweep sets any of the keys, by itself, with its section or in part.
func (c *checker) mayChange(keys ...string) bool {
	for _, key := range keys {
		for _, axis := range c.Swept() {
			if axis.Key == key || strings.HasPrefix(key, axis.Key+".") || strings.HasPrefix(axis.Key, key+".") {
				return true
			}
		}
	}
	return false
}
