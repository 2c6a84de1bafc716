package peers

import (
	"testing"

	"go.uber.org/goleak"
)

// The engine's packages bring in libraries that start goroutines at init; those are there before any test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
