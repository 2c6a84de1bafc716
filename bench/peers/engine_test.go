package peers

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// direct are the ways in which rueidis sends and decodes, and specs those of all peers.
var (
	direct = []string{"rueidis", "rueidis:conns=4:delay=-1us"}
	specs  = append(slices.Clone(direct), "go-redis", "go-redis:pool=2")
)

// caching are the ways of sending of a peer that keeps what it has read. Its answers are the
// same, and it sends fewer commands.
var caching = []string{"rueidis-cache", "rueidis-cache:broadcast=true", "rueidis-cache:bytes=1048576"}

// candidate is a candidate as an answer shows it: by the names of its fields.
type candidate struct {
	ID     int64
	Fields map[string]any
}

// engine is rankd's sequential engine with one plan. The peers must agree with it.
type engine struct{ *rankd.Engine }

var fanoutParam = regexp.MustCompile(`"fanout": \d+`)

// openEngine opens an engine with concat_plan on the Redis at addr. fanout overrides the fanout of every node, unless it
// is 0.
func openEngine(t testing.TB, addr string, fanout int) *engine {
	t.Helper()
	const name = "concat_plan"
	text, err := fs.ReadFile(demo.Plans(), name+".plan.json")
	require.NoError(t, err)
	if fanout > 0 {
		text = fanoutParam.ReplaceAll(text, fmt.Appendf(nil, `"fanout": %d`, fanout))
	}
	e, err := rankd.Open(rankd.Options{Redis: addr, PlanFile: name, PlanText: text, Model: rankd.Sequential})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return &engine{e}
}

// run returns the engine's answer.
func (e *engine) run(t testing.TB, user int64) []candidate {
	t.Helper()
	return e.rank(t, rankd.Request{UserID: user})
}

// rank returns the engine's answer to a request.
func (e *engine) rank(t testing.TB, request rankd.Request) (shown []candidate) {
	t.Helper()
	answer, err := e.Rank(t.Context(), request)
	require.NoError(t, err)
	for i := range answer.Outputs() {
		columns := answer.Output(i).Columns()
		for c := range answer.Output(i).Candidates() {
			fields := map[string]any{}
			for _, column := range columns {
				if value, ok := c.Float(column.Name); ok {
					fields[column.Name] = value
				} else if value, ok := c.Int(column.Name); ok {
					fields[column.Name] = value
				} else if value, ok := c.Bool(column.Name); ok {
					fields[column.Name] = value
				} else if value, ok := c.Set(column.Name); ok {
					fields[column.Name] = value
				} else if value, ok := c.String(column.Name); ok {
					fields[column.Name] = value
				}
			}
			shown = append(shown, candidate{ID: c.ID(), Fields: fields})
		}
	}
	return shown
}

// commands returns how many commands the engine has sent.
func (e *engine) commands() (sent uint64) {
	for _, s := range e.Metrics().Redis {
		sent += s.Commands
	}
	return sent
}

// show converts a peer's answer to the same form.
func show(answer []Candidate) []candidate {
	var shown []candidate
	for _, a := range answer {
		c := candidate{ID: a.ID, Fields: map[string]any{}}
		if a.Country.Known {
			c.Fields["country"] = a.Country.Value
		}
		shown = append(shown, c)
	}
	return shown
}

// openPlan opens a peer's plan on a server.
func openPlan(t testing.TB, spec, addr, plan string, fanout int) (Plan, Store) {
	t.Helper()
	s, err := ParseSpec(spec)
	require.NoError(t, err)
	run, store, err := s.Open(addr, plan, fanout)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return run, store
}

// startRedis starts a redis-server with the demo data.
func startRedis(t testing.TB) *testworld.Redis {
	t.Helper()
	server := testworld.StartRedis(t)
	require.NoError(t, devredis.Load(context.Background(), server.Addr))
	return server
}

func TestAnswersAreTheEngines(t *testing.T) {
	server := startRedis(t)
	for _, fanout := range []int{0, 1, 100} {
		users := 300
		if fanout != 0 {
			users = 40
		}
		e := openEngine(t, server.Addr, fanout)
		want := make([][]candidate, users)
		for i := range want {
			want[i] = e.run(t, userAt(i, users))
		}
		for _, spec := range slices.Concat(specs, caching) {
			t.Run(fmt.Sprintf("fanout=%d/%s", fanout, spec), func(t *testing.T) {
				run, _ := openPlan(t, spec, server.Addr, "concat_plan", fanout)
				for i := range want {
					user := userAt(i, users)
					answer, err := run(context.Background(), Request{UserID: user})
					require.NoError(t, err)
					require.Equal(t, want[i], show(answer), "user %d", user)
				}
			})
		}
	}
}

// userAt spreads users over the data set. The first user and some beyond the end are among
// them.
func userAt(i, n int) int64 { return int64(1 + i*(devredis.Users+devredis.Users/n*2)/n) }

func TestCommandsAreTheEngines(t *testing.T) {
	server := startRedis(t)
	e := openEngine(t, server.Addr, 0)
	e.run(t, 1)
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			run, store := openPlan(t, spec, server.Addr, "concat_plan", 0)
			_, err := run(context.Background(), Request{UserID: 1})
			require.NoError(t, err)
			assert.Equal(t, e.commands(), store.Traffic().Commands)
		})
	}
}
