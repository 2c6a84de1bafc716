package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
)

// A request that an engine cannot run gets one error, on every engine, open or closed. The next
// request is answered as usual.
func TestARequestThatCannotRunGetsAnError(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	const eight = `{"node_id": "out", "op": "fixed_source", "inputs": [], "params": {"row_count": 8}}`
	own := loadPlan(t, reg, eight)
	for _, m := range engines {
		for name, c := range map[string]struct {
			graph *plan.Graph
			want  error
		}{
			"no plan":          {nil, scheduler.ErrNoPlan},
			"another registry": {loadPlan(t, reg.WithRedis(registry.Server{Host: "127.0.0.1", Port: 1}), eight), scheduler.ErrForeignPlan},
		} {
			t.Run(m.name+", "+name, func(t *testing.T) {
				e := m.open(t, scheduler.Config{Registry: reg})
				answers := make(chan *scheduler.Result, 4) // more than there may be
				submit := func(g *plan.Graph) {
					if err := e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(r *scheduler.Result) { answers <- r }); err != nil {
						answers <- &scheduler.Result{Err: err}
					}
				}
				submit(c.graph)
				assert.ErrorIs(t, (<-answers).Err, c.want)
				submit(own)
				assert.NoError(t, (<-answers).Err)
				e.Close(scheduler.Forever)
				submit(c.graph)
				assert.ErrorIs(t, (<-answers).Err, c.want)
				assert.Empty(t, answers)
			})
		}
	}
}
