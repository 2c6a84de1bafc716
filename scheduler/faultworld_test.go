package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

// The tests of faults share what is in this file: engines as a program opens them, and servers
// that fail. Time is real here, since sockets know no other.

// slack is added to each bound of how soon something happens, since other tests keep the
// machine busy and the race detector is slow. The bounds of longPolicy are far longer than
// slack: a failure that nobody notices would take that long.
const slack = 10 * time.Second

// An engine is a scheduler.Engine that can tell the time, as each of the three can.
type engine interface {
	scheduler.Engine
	Clock() clock.Clock
}

var engines = []struct {
	name string
	open func(t testing.TB, cfg scheduler.Config) engine
}{
	{"reactor", func(t testing.TB, cfg scheduler.Config) engine { return openAsync(t, cfg) }},
	{"sequential", func(t testing.TB, cfg scheduler.Config) engine {
		return closing(t, blocking.OpenSequential(cfg))
	}},
	{"pool", func(t testing.TB, cfg scheduler.Config) engine {
		return closing(t, blocking.OpenTwoPools(cfg))
	}},
}

func openAsync(t testing.TB, cfg scheduler.Config) *scheduler.Async {
	cfg.OnPanic = func(v any, stack []byte) { t.Errorf("a callback panicked: %v\n%s", v, stack) }
	e, err := scheduler.OpenAsync(cfg)
	require.NoError(t, err)
	return closing(t, e)
}

func closing[E engine](t testing.TB, e E) E {
	t.Cleanup(func() { e.Close(0) })
	return e
}

// registryAt returns the registry of the test environment. Its Redis is at addr and has the
// given policy, lines of TOML.
func registryAt(t testing.TB, addr, policy string) *registry.Registry {
	tables := registrytest.BuiltIn()
	tables.Endpoints = registrytest.Redis + "[endpoint.policy]\n" + policy
	server, err := registry.ParseServer(addr)
	require.NoError(t, err)
	return tables.Load().WithRedis(server)
}

// examplePlan loads one of the plans that rankd comes with.
func examplePlan(t testing.TB, reg *registry.Registry, name string) *plan.Graph {
	g, err := plan.NewLibrary(demo.Plans(), "the built-in examples", builtin.Catalog(), reg, nil).Get(name)
	require.NoError(t, err)
	return g
}

// run runs a plan for a user and returns the answer and how long it took. A timeout of 0 means
// that the request has no deadline.
func run(e engine, g *plan.Graph, user int64, timeout time.Duration) (*scheduler.Result, time.Duration) {
	start := time.Now()
	req := &scheduler.Execution{Graph: g, UserID: user}
	if timeout > 0 {
		req.Deadline = e.Clock().Now().Add(timeout)
	}
	answers := make(chan *scheduler.Result, 2) // one more than there may be
	e.Submit(req, func(r *scheduler.Result) { answers <- r })
	return <-answers, time.Since(start)
}

// A row is a candidate with its country, "" if there is none.
type row struct {
	id      int64
	country string
}

// rows returns the answer of concat_plan, or nil if there is none. An answer of the wrong shape
// fails the test.
func rows(t testing.TB, r *scheduler.Result) []row {
	t.Helper()
	if !assert.NoError(t, r.Err) || !assert.Len(t, r.Outputs, 1) {
		return nil
	}
	return plainRows(r)
}

// plainRows returns the answer of concat_plan, and fails the test if there is none.
func plainRows(r *scheduler.Result) []row {
	out := r.Outputs[0]
	countries := out.Batch.String(keyCountry)
	var all []row
	for i := range out.Len() {
		country, _ := countries.Value(int(out.Row(i)))
		all = append(all, row{out.ID(i), country})
	}
	return all
}

const keyCountry registry.KeyID = 3001

// concatRows is the answer of concat_plan for a user in the world of resptest.Followers.
func concatRows(user int64) []row {
	var all []row
	for _, list := range []string{"follow", "recommendation"} {
		for i := range 4 {
			id := resptest.ListEntry(list, user, i)
			all = append(all, row{id, resptest.Country(id)})
		}
	}
	return all
}
