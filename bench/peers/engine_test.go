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
	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testworld"
)

// specs are all of a peer's ways of sending and decoding.
var specs = []string{
	"rueidis", "rueidis:waves=groups", "rueidis:conns=4:delay=-1us", "rueidis:always=true:threshold=1:conns=1",
	"rueidis:waves=groups:threshold=2",
	"go-redis", "go-redis:threshold=1:batches=4", "go-redis:waves=groups:threshold=2",
	"go-redis:mode=pipeline:waves=groups", "go-redis:mode=fullduplex", "go-redis:mode=fullduplex:waves=groups",
	"go-redis:mode=auto", "go-redis:mode=auto:delay=-1us:batches=4",
}

// caching are the ways of sending of a peer that keeps what it has read. Its answers are the
// same, and it sends fewer commands.
var caching = []string{"rueidis-cache", "rueidis-cache:broadcast=true:waves=groups", "rueidis-cache:bytes=1048576"}

// plans are the plans written in this package.
var plans = []string{"concat_plan", "complex_dag", "reels_plan_a", "regex_plan", "parallel_sleep_plan"}

// candidate is a candidate as an answer shows it: by the names of its fields.
type candidate struct {
	ID     int64
	Fields map[string]any
}

// engine is rankd's sequential engine with one plan. The peers must agree with it.
type engine struct{ *rankd.Engine }

var fanoutParam = regexp.MustCompile(`"fanout": \d+`)

// openEngine opens an engine on the Redis at addr. It runs an example plan. fanout overrides
// the fanout of every node, unless it is 0.
func openEngine(t testing.TB, addr, name string, fanout int) *engine {
	t.Helper()
	text, err := fs.ReadFile(artifacts.Plans(), name+".plan.json")
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
func show(plan string, answer []Candidate) []candidate {
	scores := map[string]string{"complex_dag": "score", "reels_plan_a": "final_score"}
	var shown []candidate
	for _, a := range answer {
		c := candidate{ID: a.ID, Fields: map[string]any{}}
		if name, ok := scores[plan]; ok {
			c.Fields[name] = a.Score
		}
		if a.Country.Known {
			c.Fields["country"] = a.Country.Value
		}
		shown = append(shown, c)
	}
	return shown
}

// open opens a peer on a server.
func open(t testing.TB, spec, addr string, fanout int) (*Ranker, Store) {
	t.Helper()
	s, err := ParseSpec(spec)
	require.NoError(t, err)
	store, err := s.Open(addr)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return NewRanker(store, s.Waves, fanout), store
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
	for _, name := range plans {
		for _, fanout := range []int{0, 1, 100} {
			users := 300
			switch {
			case name == "parallel_sleep_plan" && fanout != 0:
				continue // has none
			case name == "parallel_sleep_plan":
				users = 3
			case fanout != 0, name == "complex_dag":
				users = 40
			}
			e := openEngine(t, server.Addr, name, fanout)
			want := make([][]candidate, users)
			for i := range want {
				want[i] = e.run(t, userAt(i, users))
			}
			for _, spec := range slices.Concat(specs, caching) {
				t.Run(fmt.Sprintf("%s/fanout=%d/%s", name, fanout, spec), func(t *testing.T) {
					r, _ := open(t, spec, server.Addr, fanout)
					run, err := r.Plan(name)
					require.NoError(t, err)
					for i := range want {
						user := userAt(i, users)
						answer, err := run(context.Background(), Request{UserID: user})
						require.NoError(t, err)
						require.Equal(t, want[i], show(name, answer), "user %d", user)
					}
				})
			}
		}
	}
}

// userAt spreads users over the data set. The first user and some beyond the end are among
// them.
func userAt(i, n int) int64 { return int64(1 + i*(devredis.Users+devredis.Users/n*2)/n) }

func TestCommandsAreTheEngines(t *testing.T) {
	server := startRedis(t)
	for _, name := range plans {
		for _, spec := range specs {
			t.Run(name+"/"+spec, func(t *testing.T) {
				e := openEngine(t, server.Addr, name, 0)
				before := e.commands()
				e.run(t, 1)
				want := e.commands() - before
				r, store := open(t, spec, server.Addr, 0)
				run, err := r.Plan(name)
				require.NoError(t, err)
				_, err = run(context.Background(), Request{UserID: 1})
				require.NoError(t, err)
				assert.Equal(t, want, store.Traffic().Commands)
			})
		}
	}
}
