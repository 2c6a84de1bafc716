package scheduler

import (
	"testing"

	"go.uber.org/goleak"
)

// gnet starts a pool of workers when its package is initialized, for as long as
// the process lives.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}
