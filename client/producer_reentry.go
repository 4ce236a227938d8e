// What a user's function that the producer calls may not do: wait for the producer.

package client

import (
	"errors"
	"reflect"
	"runtime"
	"sync/atomic"
)

// ErrBufferFull is returned by Produce and ProduceRun inside a callback, a Deliveries, OnRequest, a
// Partitioner or a BackoffFunc when there is no room in the producer's bounds. Everywhere else they
// wait; there they would wait for themselves, since the goroutine that calls such a function is one
// that makes room. Hand the message over to a goroutine of your own, or drop it.
var ErrBufferFull = errors.New("the producer's bounds are full, and a callback must not wait for room")

// ErrInCallback is returned by what waits for outcomes (Flush, Close, the methods of
// SyncProducer, a synchronous Send of a BatchProducer) inside a callback, a Deliveries, OnRequest, a
// Partitioner or a BackoffFunc: it would wait for the goroutine it runs on. Close has begun to close
// the producer all the same. Inside OnResults of a BatchProducer a Send is no such thing, and works.
var ErrInCallback = errors.New("called inside a callback of the producer, which it would wait for")

// userCode counts the user's functions that are running now, so that only then stacks are looked at.
// A user's partitioner, which is asked about every message, counts as long as its producer lives.
var userCode atomic.Int64

// userCallers are the names of the functions that call the user's.
var userCallers = map[string]bool{
	functionName((*AsyncProducer).handSome):    true,
	functionName((*exchange).callHook):         true,
	functionName((*topicProducer).placeByUser): true,
	functionName((*AsyncProducer).makeByUser):  true,
	functionName(noteRefresh):                  true,
	functionName((*RetryConfig).byUser):        true,
	functionName((*BatchProducer).tell):        true,
	functionName((*batchTopic).chooseSome):     true,
}

// resultsTold is the one of userCallers that runs on a goroutine which only its own call, or its own
// queue, needs: no answer and no other call waits for it.
var resultsTold = functionName((*BatchProducer).tell)

func functionName(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

// inCallback says whether a function of the user's called this goroutine here. It looks at the
// stack, and is for where somebody is about to wait.
func inCallback() bool { return calledByUser("") }

// mayNotAsk is inCallback for a batch producer's requests, which OnResults may wait for: everywhere
// else the goroutine is one that reads answers, or holds a topic's partitioner.
func mayNotAsk() bool { return calledByUser(resultsTold) }

// calledByUser looks for userCallers but for one on the stack.
func calledByUser(except string) bool {
	if userCode.Load() == 0 {
		return false
	}
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for {
			f, more := frames.Next()
			if userCallers[f.Function] && f.Function != except {
				return true
			}
			if !more {
				break
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
