package scheduler_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// readerOf returns a task that asks nothing and makes the rows of its input.
func readerOf(ask, make func(c *task.Ctx) error) task.Spec {
	return task.Spec{
		Op: "test::reader", Inputs: 1, Output: task.SameRows, Place: task.Waits,
		Ask:  func(c *task.Ctx, _ *task.Reads, _ int) error { return ask(c) },
		Make: func(c *task.Ctx, _ *task.Reads) (rowset.RowSet, error) { return c.Inputs[0], make(c) },
	}
}

// readRows runs a reader over so many rows.
func readRows(t *testing.T, e scheduler.Engine, reg *registry.Registry, spec task.Spec, rows int, more string) *scheduler.Result {
	g := schedulertest.GraphFor(t, reg, builtins(t, spec), "x", schedulertest.Source(rows), schedulertest.Node("x", "reader", "src", "", more))
	return runOn(e, &scheduler.Execution{Graph: g, UserID: 1, Params: expr.Params{}})
}

// The loop goes round while Ask and Make handle many rows, and a node of few rows never leaves it.
func TestReadersOfManyRowsComputeElsewhere(t *testing.T) {
	reg := registrytest.BuiltIn().Load()
	for _, mode := range []plan.Mode{plan.Adaptive, plan.InlineAll} { // In the second the node begins inline, once its runs needed no wait.
		e := openAsync(t, scheduler.Config{Registry: reg, Placement: scheduler.Placement{Mode: mode}})
		turned := func() bool {
			turned := make(chan struct{})
			require.True(t, e.Post(func() { close(turned) }))
			select {
			case <-turned:
				return true
			case <-time.After(100 * time.Millisecond): // The loop is held up: it waits for this body.
				return false
			}
		}
		for _, c := range []struct {
			rows int
			want bool
		}{{scheduler.LoopValuesMax + 1, true}, {scheduler.LoopValuesMax, false}, {scheduler.LoopValuesMax + 1, true}} {
			var asks, makes bool
			spec := readerOf(func(*task.Ctx) error { asks = turned(); return nil }, func(*task.Ctx) error { makes = turned(); return nil })
			require.NoError(t, readRows(t, e, reg, spec, c.rows, "").Err)
			assert.Equal(t, [2]bool{c.want, c.want}, [2]bool{asks, makes}, c.rows)
		}
	}
}

// What goes wrong in Ask or Make has the same error, however many rows there are.
func TestReadersFailAlike(t *testing.T) {
	reg := registrytest.BuiltIn().Load()
	fine := func(*task.Ctx) error { return nil }
	for name, c := range map[string]struct {
		body func(c *task.Ctx) error
		want string
	}{
		"panics":  {func(*task.Ctx) error { panic("no rows") }, "no rows"},
		"fails":   {func(*task.Ctx) error { return task.Invalidf("no rows") }, "no rows"},
		"sleeps":  {func(c *task.Ctx) error { return c.Sleep(time.Millisecond) }, "must not wait"},
		"asks":    {func(c *task.Ctx) error { _, err := c.Redis(c.Registry.Endpoints()[0]).Do("GET", "x"); return err }, "does no I/O"},
		"is late": {func(c *task.Ctx) error { <-c.Context().Done(); return nil }, "timeout"},
		"leaves":  {func(*task.Ctx) error { runtime.Goexit(); return nil }, "Goexit"},
	} {
		for _, rows := range []int{10, scheduler.LoopValuesMax + 1} {
			if rows == 10 && (name == "is late" || name == "leaves") {
				continue // It would hold up the loop, or end its goroutine.
			}
			for _, ask := range []bool{true, false} {
				t.Run(name, func(t *testing.T) {
					e := openAsync(t, scheduler.Config{Registry: reg})
					spec := readerOf(fine, c.body)
					if ask {
						spec = readerOf(c.body, fine)
					}
					r := readRows(t, e, reg, spec, rows, `"timeout_ms": 200`)
					assert.ErrorContains(t, r.Err, c.want)
					assert.NoError(t, readRows(t, e, reg, readerOf(fine, fine), rows, "").Err, "the next one finds all in order")
				})
			}
		}
	}
}
