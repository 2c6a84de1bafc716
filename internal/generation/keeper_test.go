package generation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// A folder is one whose files a test replaces. Any goroutine.
type folder struct {
	mu    sync.Mutex
	files fstest.MapFS // guarded by mu; never changed
}

func (f *folder) Open(name string) (fs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.Open(name)
}

// set replaces a file.
func (f *folder) set(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = maps.Clone(f.files)
	f.files[name] = &fstest.MapFile{Data: []byte(text), ModTime: time.Now()}
}

// A fakeHost runs plans as the test says, and notes what it is told.
type fakeHost struct {
	run  func(ctx context.Context, g *Generation, name string) error // nil: each run succeeds
	warm func()                                                      // nil: nothing
	kept map[*plan.Graph]bool                                        // of the last Keep
}

func (h *fakeHost) Keep(graphs map[*plan.Graph]bool, _ map[*registry.Endpoint]bool) { h.kept = graphs }
func (h *fakeHost) Connect([]*registry.Endpoint)                                    {}
func (h *fakeHost) Ping(context.Context, *registry.Endpoint) error                  { return nil }
func (h *fakeHost) Warm(context.Context, *Generation, *plan.Graph) {
	if h.warm != nil {
		h.warm()
	}
}

func (h *fakeHost) Run(ctx context.Context, g *Generation, graph *plan.Graph, _ time.Duration) (rowset.RowSet, *rowset.IDTexts, error) {
	if h.run != nil {
		if err := h.run(ctx, g, graph.Name); err != nil {
			return rowset.RowSet{}, nil, err
		}
	}
	return rowset.Dense(&rowset.Batch{IDs: []int64{1, 2}}), nil, nil
}

// A world is a Keeper with its files and its host.
type world struct {
	*Keeper
	t              *testing.T
	host           *fakeHost
	plans, tables  *folder
	registryTables registrytest.Tables
}

// rows returns a plan with that many rows, which an engine can keep.
func rows(name string, n int) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["out"], "nodes": [{"node_id": "out", "op": "fixed_source", "inputs": [], "params": {"row_count": %d}}]}`, name, n)
}

// reader returns a plan that reads the rows of another one, which are read again after so many seconds.
func reader(name, of string, refresh int) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["out"], "nodes": [{"node_id": "out", "op": "resident", "inputs": [], "params": {"plan": %q, "refresh": %d}}]}`,
		name, of, refresh)
}

// openKeeper opens a Keeper. Its plans are other and items, and those that read their rows: apart, and often and seldom.
func openKeeper(t *testing.T, change func(*Source)) *world {
	w := &world{t: t, host: new(fakeHost), plans: &folder{files: fstest.MapFS{}}, tables: new(folder)}
	w.registryTables = registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis}
	w.tables.files = w.registryTables.FS()
	for name, text := range map[string]string{"other": rows("other", 1), "items": rows("items", 2), "often": reader("often", "items", 3600), "seldom": reader("seldom", "items", 7200), "apart": reader("apart", "other", 60)} {
		w.plans.set(name+".plan.json", text)
	}
	source := Source{Env: "test", Registry: w.tables, Plans: w.plans}
	if change != nil {
		change(&source)
	}
	k, err := Open(source, w.host, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	w.Keeper = k
	t.Cleanup(func() { k.Close(); k.StopServer() })
	return w
}

// reload changes the plan other, and reloads.
func (w *world) reload(ctx context.Context) (*Generation, error) {
	w.plans.set("other.plan.json", rows("other", 10+int(w.last)+int(w.Reloads().Failed)))
	return w.Reload(ctx)
}

func (w *world) mustReload() *Generation {
	w.t.Helper()
	g, err := w.reload(w.t.Context())
	require.NoError(w.t, err)
	return g
}

// plan returns a plan of a generation.
func (w *world) plan(g *Generation, name string) *plan.Graph {
	graph, err := g.Choose(name)
	require.NoError(w.t, err)
	return graph
}

// Numbers of generations are given once, also after Back.
func TestNumbers(t *testing.T) {
	w := openKeeper(t, nil)
	first := w.Present()
	second := w.mustReload()
	back, err := w.Back(t.Context())
	require.NoError(t, err)
	assert.Same(t, first, back)
	third := w.mustReload()
	assert.Equal(t, []uint64{1, 2, 3}, []uint64{first.Number, second.Number, third.Number})
}

// A reload that fails, or whose caller has gone, changes nothing, and leaves nothing of its own.
func TestReloadsThatFail(t *testing.T) {
	why := errors.New("as it is meant to be")
	for name, c := range map[string]struct {
		run  error // of the new plan whose rows the engine keeps
		gone bool  // the caller, while plans run for the first time
		want string
	}{
		"its caller has gone":           {nil, true, "context canceled"},
		"a new plan's rows are missing": {why, false, "plan fresh, whose rows the engine keeps: as it is meant to be"},
	} {
		t.Run(name, func(t *testing.T) {
			w := openKeeper(t, nil)
			former := w.plan(w.Present(), "other")
			present := w.mustReload()
			var refused *Generation
			w.host.run = func(_ context.Context, g *Generation, plan string) error {
				if plan == "fresh" {
					refused = g
					return c.run
				}
				return nil
			}
			w.plans.set("fresh.plan.json", rows("fresh", 1))
			w.plans.set("new.plan.json", reader("new", "fresh", 60))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.gone {
				w.host.warm = cancel
			}
			got, err := w.reload(ctx)
			require.ErrorContains(t, err, c.want)
			assert.True(t, got == nil || got == present)
			assert.Same(t, present, w.Present())
			assert.True(t, w.host.kept[former], "Back can still lead there")
			assert.True(t, refused.residents.ended)
			assert.False(t, w.host.kept[w.plan(refused, "fresh")])
			assert.Equal(t, Reloads{1, 1, err}, w.Reloads())
		})
	}
}

// held makes the runs of items of a generation last until somebody ends them. begun gets the generation of each, and over that it has ended.
func (w *world) held(of func(*Generation) bool) (begun, over chan *Generation) {
	begun, over = make(chan *Generation, 8), make(chan *Generation, 8)
	w.host.run = func(ctx context.Context, g *Generation, plan string) error {
		if plan != "items" || !of(g) {
			return nil
		}
		begun <- g
		<-ctx.Done()
		over <- g
		return context.Cause(ctx)
	}
	return begun, over
}

// The runs of plans for a generation end with it: one that no request can begin with any more, and one that was refused.
func TestRunsEndWithTheirGeneration(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		w := openKeeper(t, nil)
		first := w.Present()
		begun, over := w.held(func(g *Generation) bool { return g == first })
		require.NotEmpty(t, w.Hold(first, w.plan(first, "often")))
		<-begun
		for i := range 2 {
			w.plans.set("items.plan.json", rows("items", 5+i)) // It does not go on in the next generation.
			w.mustReload()
		}
		assert.Same(t, first, <-over)
		assert.Empty(t, w.Hold(first, w.plan(first, "apart")), "nothing begins in it any more")
	})
	t.Run("refused", func(t *testing.T) {
		w := openKeeper(t, nil)
		first := w.Present()
		begun, over := w.held(func(g *Generation) bool { return g != first })
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan *Generation, 1)
		go func() {
			g := <-begun
			refused <- g
			cancel()
		}()
		_, err := w.reload(ctx)
		require.Error(t, err)
		assert.Same(t, <-refused, <-over)
	})
}

// After Back the former generation is used as before: its plans may begin to read rows that the engine keeps.
func TestBackBeginsRuns(t *testing.T) {
	w := openKeeper(t, nil)
	first := w.Present()
	w.plans.set("items.plan.json", rows("items", 5))
	w.mustReload()
	_, err := w.Back(t.Context())
	require.NoError(t, err)
	graph := w.plan(first, "often")
	w.Await(t.Context(), first, graph)
	kept, _ := first.Snapshot()
	_, err = kept.Resident("items")
	require.NoError(t, err)
}

// Generations share the rows of a plan that stays. It then runs with the latest of them, as often as the most impatient reader says.
func TestSharedRows(t *testing.T) {
	for _, order := range [][]string{{"often", "seldom"}, {"seldom", "often"}} {
		w := openKeeper(t, nil)
		first := w.Present()
		for _, name := range order {
			w.Await(t.Context(), first, w.plan(first, name))
		}
		shared := first.residents.of("items")
		assert.Equal(t, time.Hour, shared.refresh)
		second := w.mustReload()
		require.Same(t, shared, second.residents.of("items"))
		shared.mu.Lock()
		assert.Same(t, second, shared.generation)
		shared.mu.Unlock()
	}
}

// What says the same need not be the same: a password that was replaced does not count in the digest, and tables and models count for
// plans that did not change.
func TestWhatCountsAsAChange(t *testing.T) {
	w := openKeeper(t, nil)
	login := func(password string) {
		w.tables.set("endpoints.test.toml", "[[endpoint]]\nid = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\nurl = \"redis://u:"+password+"@127.0.0.1:6379\"\n")
	}
	login("old")
	first, err := w.Reload(t.Context())
	require.NoError(t, err)
	same, err := w.Reload(t.Context())
	require.NoError(t, err)
	assert.Same(t, first, same)
	login("new")
	second, err := w.Reload(t.Context())
	require.NoError(t, err)
	assert.NotSame(t, first, second)
	assert.Equal(t, first.Digest(), second.Digest())
	ep, _ := second.Registry.Endpoint("ep_0001")
	assert.Equal(t, "new", ep.Policy.Password.Reveal())

	tasks, reg := new(task.Catalog), new(registry.Registry)
	g := &Generation{tasks: tasks, Registry: reg, models: new(gbdt.Set)}
	assert.False(t, g.works(nil))
	assert.True(t, g.works(&Generation{tasks: tasks, Registry: reg}))
	assert.False(t, g.works(&Generation{tasks: new(task.Catalog), Registry: reg}))
	assert.False(t, g.works(&Generation{tasks: tasks, Registry: new(registry.Registry)}))
}

// The plan of a file is loaded again for other tables. What came through a pipe stays, since it cannot be read twice.
func TestPlanFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.plan.json")
	require.NoError(t, os.WriteFile(path, []byte(rows("own", 3)), 0o600))
	pipe, in, err := os.Pipe()
	require.NoError(t, err)
	defer pipe.Close()
	_, err = in.WriteString(rows("own", 3))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	for _, file := range []string{path, fmt.Sprintf("/dev/fd/%d", pipe.Fd())} {
		w := openKeeper(t, func(s *Source) { s.PlanFile = file })
		first := w.Present()
		second := w.mustReload()
		assert.Same(t, first.plan, second.plan, "neither has changed")
		more := w.registryTables
		more.Params = registrytest.Param(7, "more", "int", registrytest.Nullable)
		w.tables.set("params.toml", string(more.FS()["params.toml"].Data))
		third := w.mustReload()
		assert.NotSame(t, first.plan, third.plan, file)
		text, err := third.Artifact("")
		require.NoError(t, err)
		assert.Equal(t, rows("own", 3), string(text))
	}
}
