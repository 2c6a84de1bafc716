package peers

import (
	"testing"

	"go.uber.org/goleak"
)

// The engine's packages import libraries that start goroutines at init. Those exist before any
// test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
