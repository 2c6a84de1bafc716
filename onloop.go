package rankd

import (
	"runtime"
	"strings"
)

// callbackFrames are the beginnings of the names of functions that call back: the one that
// delivers answers with every model, the one that runs the body of a task wherever it runs, those
// of the loop, of its host, and of a coroutine, whose stack begins there.
var callbackFrames = [...]string{
	"github.com/rankd/rankd.(*Engine).deliver",
	"github.com/rankd/rankd/task.engine.Invoke",
	"github.com/rankd/rankd/loop.",
	"github.com/rankd/rankd/reactor.",
	"github.com/rankd/rankd/scheduler.newCoroutine.",
}

// inCallback reports whether the caller runs inside a callback of some engine, or inside a body. A
// wait there stops that engine's loop, one of its workers, or the request that Close waits for: for
// ever if the engine is the caller's own. inCallback reads the stack, since a goroutine has no identity
// to compare; BenchmarkInCallback says what that costs. The compiler inlines none of the functions
// that it looks for: they are called through interfaces, closures or defer.
func inCallback() bool {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		for _, pc := range pcs[:n] {
			f := runtime.FuncForPC(pc)
			if f == nil {
				continue
			}
			for _, name := range callbackFrames {
				if strings.HasPrefix(f.Name(), name) {
					return true
				}
			}
		}
	}
}
