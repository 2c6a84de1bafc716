package demo_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

const (
	keyFinalScore registry.KeyID   = 2001
	keyScore      registry.KeyID   = 2002
	keyCountry    registry.KeyID   = 3001
	paramPenalty  registry.ParamID = 1 // media_age_penalty_weight
	paramWeight   registry.ParamID = 4
)

// row is a candidate in the simplest form. scored says whether score counts.
type row struct {
	id      int64
	country string // "" if there is none
	score   float64
	scored  bool
}

// dataSet is the demo data set, which is read key by key, with one request's user and parameters.
// The example plans below are written in these terms, row by row.
type dataSet struct {
	t       *testing.T
	redis   *respblocking.Client
	user    int64
	penalty float64 // 0: not set
	weight  float64 // 0: not set
}

// ask sends one command and returns the elements of its reply.
func (d *dataSet) ask(args ...string) (elements []string) {
	var b resp.Batch
	b.Cmd(args...)
	require.NoError(d.t, d.redis.Do(&b, 0, func(replies resp.Replies) error {
		for e := range replies.At(0).All() {
			elements = append(elements, string(e.Bytes()))
		}
		return replies.At(0).Err()
	}))
	return elements
}

func (d *dataSet) viewer() []row { return []row{d.person(d.user)} }

func (d *dataSet) person(id int64) row {
	fields := d.ask("HGETALL", fmt.Sprintf("user:%d", id))
	r := row{id: id}
	if i := slices.Index(fields, "country"); i >= 0 {
		r.country = fields[i+1]
	}
	return r
}

// list returns the first n ids in a list of each row.
func (d *dataSet) list(rows []row, name string, n int) (ids []int64) {
	for _, r := range rows {
		for _, text := range d.ask("LRANGE", fmt.Sprintf("%s:%d", name, r.id), "0", strconv.Itoa(n-1)) {
			id, err := strconv.ParseInt(text, 10, 64)
			require.NoError(d.t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

func (d *dataSet) people(rows []row, list string, n int) (out []row) {
	for _, id := range d.list(rows, list, n) {
		out = append(out, d.person(id))
	}
	return out
}

func (d *dataSet) follow(rows []row, n int) []row         { return d.people(rows, "follow", n) }
func (d *dataSet) recommendation(rows []row, n int) []row { return d.people(rows, "recommendation", n) }

func (d *dataSet) media(rows []row, n int) (out []row) {
	for _, id := range d.list(rows, "media", n) {
		out = append(out, row{id: id})
	}
	return out
}

// weigh gives each row the score id × weight, or id × fallback if no weight is set.
func weigh(rows []row, weight, fallback float64) []row {
	if weight == 0 {
		weight = fallback
	}
	for i := range rows {
		rows[i].score, rows[i].scored = float64(rows[i].id)*weight, true
	}
	return rows
}

func keep(rows []row, test func(row) bool) []row {
	return slices.DeleteFunc(rows, func(r row) bool { return !test(r) })
}

func best(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.score, a.score) })
	return rows
}

func take(rows []row, n int) []row { return rows[:min(n, len(rows))] }

// answers has for each example plan its answer, by the specification.
var answers = map[string]func(d *dataSet) []row{
	"simple_viewer": func(d *dataSet) []row { return d.viewer() },
	"viewer_filter": func(d *dataSet) []row { return keep(d.viewer(), func(r row) bool { return r.id > 5 }) },
	"parallel_fanout": func(d *dataSet) []row {
		return append(d.follow(d.viewer(), 100), d.recommendation(d.viewer(), 100)...)
	},
	"mixed_pipeline": func(d *dataSet) []row {
		scored := weigh(d.follow(d.viewer(), 100), d.weight, 0.5)
		return take(best(keep(scored, func(r row) bool { return r.score >= 0.5 })), 10)
	},
	"diamond": func(d *dataSet) []row {
		return append(d.follow(d.viewer(), 100), d.recommendation(d.viewer(), 100)...)
	},
	"complex_dag": func(d *dataSet) []row {
		left := weigh(d.media(d.follow(d.viewer(), 100), 100), d.weight, 0.1)
		right := weigh(d.media(d.recommendation(d.viewer(), 100), 100), d.weight, 0.1)
		return take(best(append(left, right...)), 50)
	},
	"concat_plan": func(d *dataSet) []row {
		return take(append(d.follow(d.viewer(), 4), d.recommendation(d.viewer(), 4)...), 8)
	},
	"reels_plan_a": func(d *dataSet) []row {
		scored := weigh(d.follow(d.viewer(), 10), d.penalty, 0.2)
		return take(keep(scored, func(r row) bool { return r.score >= 0.6 }), 5)
	},
	"regex_plan": func(d *dataSet) []row {
		return take(keep(d.follow(d.viewer(), 10), func(r row) bool { return strings.Contains(r.country, "US") }), 5)
	},
	"parallel_sleep_plan": func(d *dataSet) []row { return append(d.viewer(), d.viewer()...) },
}

// find returns the first user with a property.
func (d *dataSet) find(holds func(user int64) bool) int64 {
	for user := int64(1); user <= devredis.Users; user++ {
		if holds(user) {
			return user
		}
	}
	d.t.Fatal("no such user")
	return 0
}

// borderline returns a user and a weight for a plan of that fan-out. The plan sees at least
// that many rows. The last row scores exactly limit, and all others score less.
func (d *dataSet) borderline(fanout, least int, limit float64) (user int64, weight float64) {
	user = d.find(func(user int64) bool {
		ids := d.list([]row{{id: user}}, "follow", fanout)
		top := float64(slices.Max(ids))
		weight = limit / top
		return len(ids) >= least && float64(ids[len(ids)-1]) == top && top*weight == limit
	})
	return user, weight
}

// TestAnswers compares the answers of the example plans with the specification, on the demo
// data.
func TestAnswers(t *testing.T) {
	server, err := devredis.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	reg, err := registry.Default("test")
	require.NoError(t, err)
	reg = reg.WithRedis(registry.Server{Host: "127.0.0.1", Port: server.Port()})
	engine := blocking.OpenSequential(scheduler.Config{Registry: reg})
	t.Cleanup(func() { engine.Close(scheduler.Forever) })
	redis := respblocking.NewClient(clock.NewReal(), resp.Options{Addr: server.Addr()})
	t.Cleanup(redis.Close)
	library := plan.NewLibrary(demo.Plans(), "the examples", builtin.Catalog(), reg, nil)

	search := dataSet{t: t, redis: redis}
	atHalf, halfWeight := search.borderline(100, 1, 0.5)
	atPenalty, penaltyWeight := search.borderline(10, 10, 0.6)
	fromUS := func(r row) bool { return r.country == "US" }
	followsMany := search.find(func(user int64) bool {
		return len(keep(search.follow([]row{{id: user}}, 10), fromUS)) > 5
	})
	for name, c := range map[string]dataSet{
		"user 1, whose lists are the longest": {user: 1},
		"user 5":                              {user: 5},
		"user 6":                              {user: 6},
		"six of ten from the US":              {user: followsMany},
		"with parameters":                     {user: 1, weight: 0.25, penalty: 0.004},
		"a score of exactly 0.5":              {user: atHalf, weight: halfWeight},
		"a score of exactly 0.6":              {user: atPenalty, penalty: penaltyWeight},
	} {
		c.t, c.redis = t, redis
		for plan, answer := range answers {
			t.Run(name+"/"+plan, func(t *testing.T) {
				g, err := library.Get(plan)
				require.NoError(t, err)
				req := &scheduler.Execution{Graph: g, UserID: c.user}
				if c.penalty != 0 {
					req.Params.SetFloat(paramPenalty, c.penalty)
				}
				if c.weight != 0 {
					req.Params.SetFloat(paramWeight, c.weight)
				}
				results := make(chan *scheduler.Result, 1)
				engine.Submit(req, func(r *scheduler.Result) { results <- r })
				r := <-results
				require.NoError(t, r.Err)
				var got []row
				for _, out := range r.Outputs {
					got = append(got, rowsOf(out)...)
				}
				want := answer(&c)
				if len(want) == 0 {
					want = nil
				}
				assert.Equal(t, want, got)
			})
		}
	}
}

// rowsOf returns the rows of an output.
func rowsOf(out rowset.RowSet) (rows []row) {
	for i := range out.Len() {
		at, r := int(out.Row(i)), row{id: out.ID(i)}
		if countries := out.Batch.String(keyCountry); countries != nil {
			r.country, _ = countries.Value(at)
		}
		for _, key := range []registry.KeyID{keyFinalScore, keyScore} {
			if scores := out.Batch.Float(key); scores != nil {
				r.score, r.scored = scores.Values[at], true
			}
		}
		rows = append(rows, r)
	}
	return rows
}
