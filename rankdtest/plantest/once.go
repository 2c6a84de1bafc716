package plantest

import (
	"io/fs"
	"sync"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// onceEach compiles each plan once for all engines of a run, which have the same tables and tasks. It is a rankd.Compiler. Any goroutine.
type onceEach struct {
	compiler compiler.ForEngine

	mu       sync.Mutex
	tasks    *task.Catalog // of the first engine; guarded by mu, as is what follows
	registry *registry.Registry
	plans    map[string]func() ([]byte, error) // by file
}

// Compile implements rankd.Compiler.
func (o *onceEach) Compile(folder fs.FS, dir, file string, tasks *task.Catalog, reg *registry.Registry) ([]byte, error) {
	o.mu.Lock()
	if o.plans == nil {
		o.tasks, o.registry, o.plans = tasks, reg, make(map[string]func() ([]byte, error))
	}
	compile := o.plans[file]
	if compile == nil {
		tasks, reg := o.tasks, o.registry
		compile = sync.OnceValues(func() ([]byte, error) { return o.compiler.Compile(folder, dir, file, tasks, reg) })
		o.plans[file] = compile
	}
	o.mu.Unlock()
	return compile()
}
