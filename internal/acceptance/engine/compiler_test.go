package engine_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// slowCompiler stands for a compiler. Its plan has one row per byte of source.
type slowCompiler struct {
	began    chan struct{} // a value for each call
	finished chan struct{} // closed when calls may return
}

func newSlowCompiler() *slowCompiler {
	return &slowCompiler{began: make(chan struct{}, 8), finished: make(chan struct{})}
}

func (c *slowCompiler) Compile(folder fs.FS, _, file string, tasks *task.Catalog, reg *registry.Registry) ([]byte, error) {
	c.began <- struct{}{}
	<-c.finished
	source, err := fs.ReadFile(folder, file)
	if err != nil {
		return nil, err
	}
	if _, ok := tasks.OpSchema("fixed_source"); !ok || reg.Env() != "dev" {
		return nil, fmt.Errorf("%s: not the engine's tasks and registry", file)
	}
	return fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "typed", "outputs": ["s"],
		"nodes": [{"node_id": "s", "op": "test::fixed_source", "inputs": [], "params": {"row_count": %d}}]}`, len(source)), nil
}

func typedPlan() fstest.MapFS { return fstest.MapFS{"typed.plan.ts": {Data: []byte("four")}} }

func TestEngineCompilesPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "typed.plan.ts")
	require.NoError(t, os.WriteFile(path, []byte("four"), 0o600))
	for name, o := range map[string]rankd.Options{
		"of the folder, chosen":           {Plans: typedPlan(), Plan: "typed"},
		"of the folder, named by request": {Plans: typedPlan()},
		"of a file":                       {PlanFile: path},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSlowCompiler()
			close(c.finished)
			o.Compiler = c
			enginetest.OnReactor(t, o, func(t *testing.T, e *rankd.Engine) {
				a, err := e.Rank(t.Context(), rankd.Request{Plan: "typed", UserID: 1})
				require.NoError(t, err)
				assert.Equal(t, 4, a.Len())
				text, err := e.Artifact("typed")
				require.NoError(t, err)
				assert.Contains(t, string(text), `"row_count": 4`)
			})
		})
	}
	_, err := rankd.Open(rankd.Options{PlanFile: path})
	assert.ErrorContains(t, err, "no compiler")
	_, err = enginetest.Open(t, rankd.Options{}).Artifact("none")
	assert.ErrorIs(t, err, rankd.ErrUnknownPlan)
}

// A callback on the loop submits a request whose plan takes long to compile. Other requests go
// on meanwhile.
func TestSubmitDoesNotWaitForACompiler(t *testing.T) {
	c := newSlowCompiler()
	folder := enginetest.Plans(map[string]string{"ready": enginetest.ThreeRows})
	folder["typed.plan.ts"] = typedPlan()["typed.plan.ts"]
	e := enginetest.Open(t, rankd.Options{Plans: folder, Plan: "ready", Compiler: c})
	answered := make(chan int, 2)
	count := func(a *rankd.Answer, err error) {
		if assert.NoError(t, err) {
			answered <- a.Len()
		}
	}
	submitted := make(chan struct{})
	e.Submit(context.Background(), rankd.Request{UserID: 1}, func(*rankd.Answer, error) {
		e.Submit(context.Background(), rankd.Request{Plan: "typed", UserID: 1}, count)
		close(submitted)
	})
	<-submitted
	<-c.began
	e.Submit(context.Background(), rankd.Request{UserID: 1}, count)
	assert.Equal(t, 3, <-answered, "the loop does not wait for the compiler")
	close(c.finished)
	assert.Equal(t, 4, <-answered)
}

// Close waits for a request whose plan is being compiled, and refuses a later one.
func TestCloseWaitsForACompiler(t *testing.T) {
	c := newSlowCompiler()
	e := enginetest.Open(t, rankd.Options{Plans: typedPlan(), Compiler: c})
	answered := make(chan error, 1)
	e.Submit(context.Background(), rankd.Request{Plan: "typed", UserID: 1}, func(_ *rankd.Answer, err error) { answered <- err })
	<-c.began
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	select {
	case <-closed:
		assert.Fail(t, "Close did not wait")
	case err := <-answered:
		assert.Fail(t, "answered before it was compiled", "%v", err)
	default:
	}
	close(c.finished)
	assert.NoError(t, <-closed)
	assert.NoError(t, <-answered)
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "other", UserID: 1})
	assert.ErrorIs(t, err, rankd.ErrClosed)
}
