package fault

import (
	"testing"

	"go.uber.org/goleak"
)

// child is what this process does when a test has started it for something of its own; it does not
// return then.
var child = func() {}

func TestMain(m *testing.M) {
	child()
	goleak.VerifyTestMain(m)
}
