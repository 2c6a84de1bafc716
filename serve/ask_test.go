package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// onStdin returns the line that rankd prints for a document on stdin.
func onStdin(t *testing.T, e *rankd.Engine, doc string) string {
	stream := request.NewStream(strings.NewReader(doc), 0)
	text, err := stream.Next()
	require.NotEqual(t, io.EOF, err)
	var r rankd.Request
	if err == nil {
		r, err = e.ParseRequest(text)
		err = stream.Locate(err, text)
	}
	if err != nil {
		return string(e.Intake().Refused(err).AppendJSON(nil))
	}
	a, err := e.Rank(context.Background(), r)
	if err != nil {
		return string(err.(*rankd.Error).AppendJSON(nil))
	}
	return string(a.AppendJSON(nil, rankd.FormatFlat))
}

var uuids = regexp.MustCompile(`"(engine_request_id|request_id)":"[0-9a-f]{8}-[0-9a-f-]{27}"`)

// Answers and errors have the same bytes as those on stdin.
func TestBodiesAreThoseOfStdin(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "rows"})
	for _, doc := range []string{
		`{"user_id": 1}`,
		`{"user_id": 1, "request_id": "mine"}`,
		`{"user_id": "2", "plan": "viewer", "request_id": "mine"}`,
		`{"user_id": 1, "plan": "weighted", "param_overrides": {"weight": 7}, "request_id": "mine"}`,
		`{"user_id": 1, "plan": "weighted", "param_overrides": {"wieght": 7}, "request_id": "mine"}`,
		`{"user_id": 1, "plan": "nobody_has_it", "request_id": "mine"}`,
		`{"user_id": 1, "plan": "../../etc/passwd", "request_id": "mine"}`,
		`{"user_id": 1, "plan": "` + strings.Repeat("x", 300) + `", "request_id": "mine"}`,
		`{"user_id": 1, "plan": "broken", "request_id": "mine"}`,
		`{"user_id": -1, "request_id": "mine"}`,
		`{"user_id": 1, "deadline_ms": 0, "request_id": "mine"}`,
		`{"user_id": 1, "scheduling": "sideways", "request_id": "mine"}`,
		`{"user_id": 1, "require": ["nobody"], "request_id": "mine"}`,
		`oops`, ``, " \n ", `{"user_id": 1`, "{\"user_id\":\n1,}", `{"user_id": 1} {"user_id": 2}`, `[1]`, "\xff", `{"user_id": 1e}`,
	} {
		reply := w.ask(func(q *serve.Query) { q.Body = []byte(doc) })
		want := uuids.ReplaceAllString(onStdin(t, w.Engine(), doc), "$1")
		assert.Equal(t, want, uuids.ReplaceAllString(string(reply.AppendBody(nil)), "$1")+"\n", doc)
		if strings.Contains(doc, "mine") && reply.Class != outcome.OK {
			assert.Equal(t, "mine", reply.RequestID)
		}
	}
}

// An error for an unknown plan names the nearest one only to a caller with the right to every
// plan.
func TestUnknownPlanNamesNoForeignPlan(t *testing.T) {
	w := openServer(t, rankd.Options{})
	ask := func(c *access.Caller) string {
		reply := w.ask(func(q *serve.Query) { q.Plan, q.User, q.Caller = []byte("hold"), []byte("1"), c })
		assert.Equal(t, outcome.UnknownPlan, reply.Class)
		return reply.Message()
	}
	assert.Contains(t, ask(root(t)), `the nearest is "held"`)
	assert.Equal(t, `Unknown plan: unknown plan "hold"`, ask(caller(t, access.Rules{Plans: []string{"rows", "hold"}})))
}

// There is a request for each class that ends that way.
func TestEachClass(t *testing.T) {
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool} {
		t.Run(string(model), func(t *testing.T) {
			w := openServer(t, rankd.Options{Model: model, MaxInflight: 1, MaxQueue: 1})
			seen := map[outcome.Class]bool{}
			expect := func(c outcome.Class, fill func(q *serve.Query)) {
				t.Helper()
				reply := w.ask(fill)
				assert.Equal(t, c.Label(), reply.Class.Label(), string(reply.AppendBody(nil)))
				assert.Equal(t, reply.RequestID, body(t, reply)["request_id"])
				seen[reply.Class] = true
				if c == outcome.OK {
					assert.Empty(t, reply.Message())
					return
				}
				assert.Contains(t, reply.Message(), body(t, reply)["error"])
			}
			user := func(plan string) func(q *serve.Query) {
				return func(q *serve.Query) { q.Plan, q.User = []byte(plan), []byte("1") }
			}
			expect(outcome.OK, user("rows"))
			expect(outcome.BadRequest, func(q *serve.Query) { q.Body = []byte(`{"user_id": 0}`) })
			expect(outcome.BadRequest, func(q *serve.Query) { q.Plan, q.User = []byte("rows"), []byte("zero") })
			expect(outcome.BadRequest, user("")) // The engine has no plan of its own.
			expect(outcome.BadRequest, func(q *serve.Query) { user("rows")(q); q.Timeout = -1 })
			expect(outcome.UnknownPlan, user("nobody_has_it"))
			expect(outcome.Unauthenticated, func(q *serve.Query) { user("rows")(q); q.Caller = nil })
			expect(outcome.Forbidden, func(q *serve.Query) { user("rows")(q); q.Caller = caller(t, access.Rules{}) })
			expect(outcome.Internal, user("broken"))
			expect(outcome.Timeout, func(q *serve.Query) { user("slow")(q); q.Timeout = time.Millisecond })

			running, ran := w.start(user("held"))
			<-w.gate.entered
			few := caller(t, access.Rules{Plans: []string{"*"}, MaxInflight: 1})
			require.True(t, few.Begin())
			expect(outcome.TooMany, func(q *serve.Query) { user("rows")(q); q.Caller = few })
			few.End()
			late := func(q *serve.Query) { user("rows")(q); q.Timeout = time.Millisecond }
			expect(outcome.Timeout, late) // in the queue
			ctx, abandon := context.WithCancel(context.Background())
			waiting, waited := w.start(func(q *serve.Query) { user("rows")(q); q.Context = ctx })
			expect(outcome.Overloaded, user("rows"))
			abandon()
			close(w.gate.opened)
			<-ran
			<-waited
			assert.Equal(t, outcome.OK, running.Reply.Class)
			assert.Equal(t, outcome.Abandoned, waiting.Reply.Class)
			seen[outcome.Abandoned] = true

			assert.EqualValues(t, 1, w.value(`rankd_requests_shed_total{plan="rows",reason="deadline"}`))
			assert.EqualValues(t, 1, w.value(`rankd_requests_shed_total{plan="rows",reason="queue_full"}`))
			assert.EqualValues(t, 1, w.value(`rankd_requests_total{class="abandoned",front="http",plan="rows"}`))
			assert.EqualValues(t, 1, w.value(`rankd_requests_total{class="unknown_plan",front="http",plan="(none)"}`))
			assert.EqualValues(t, 2, w.value(`rankd_request_queue_delay_seconds{plan="rows"}`))

			require.NoError(t, w.Engine().Close())
			expect(outcome.ShuttingDown, user("rows"))
			refused := w.Refuse(serve.RESP, outcome.TooLarge, "", "more than 5 bytes")
			assert.Equal(t, "Request too large: more than 5 bytes", refused.Message())
			seen[refused.Class] = true
			for _, c := range outcome.Classes() {
				if c != outcome.Unavailable && c != outcome.BelowMinimum { // TestRedisIsUnavailable, TestTooFewRows
					assert.True(t, seen[c], c.Label())
				}
			}
		})
	}
}

// TestTooFewRows: an answer below minimum says so, and is counted; or it is an error of a class of its own.
func TestTooFewRows(t *testing.T) {
	artifact := func(name, rows, below string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`{"schema_version": 1, "plan_name": "` + name + `", "outputs": ["out"], "min_rows": [4], "below": "` + below + `",
			"capabilities_required": ["cap.rankd.min_rows.v1"], "nodes": [{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": ` + rows + `}}]}`)}
	}
	w := openServer(t, rankd.Options{Plans: fstest.MapFS{"marked.plan.json": artifact("marked", "3", "mark"), "enough.plan.json": artifact("enough", "4", "error"), "failed.plan.json": artifact("failed", "0", "error"), "none.plan.json": artifact("none", "0", "mark")}})
	ask := func(plan string) *serve.Reply {
		return w.ask(func(q *serve.Query) { q.Plan, q.User = []byte(plan), []byte("1") })
	}
	marked := ask("marked")
	assert.Equal(t, outcome.OK, marked.Class)
	assert.Equal(t, map[string]any{"0": map[string]any{"rows": 3.0, "min_rows": 4.0}}, body(t, marked)["below_minimum"])
	assert.NotContains(t, body(t, ask("enough")), "below_minimum")
	failed := ask("failed")
	assert.Equal(t, outcome.BelowMinimum, failed.Class)
	assert.Equal(t, "Below minimum: output 0 has 0 rows, and the plan wants 4 at least", failed.Message())
	assert.Equal(t, outcome.OK, ask("none").Class)
	assert.EqualValues(t, 1, w.value(`rankd_answers_below_minimum_total{front="http",plan="marked"}`))
	assert.EqualValues(t, 0, w.value(`rankd_answers_empty_total{front="http",plan="marked"}`))
	assert.EqualValues(t, 1, w.value(`rankd_answers_below_minimum_total{front="http",plan="none"}`))
	assert.EqualValues(t, 1, w.value(`rankd_answers_empty_total{front="http",plan="none"}`))
	assert.EqualValues(t, 1, w.value(`rankd_requests_total{class="below_minimum",front="http",plan="failed"}`))
}

// TestAFallbackIsCountedWhereItWasAskedFor: the request counts for the plan that it named, or for the side of its alias, and
// the caller may ask for both plans, or for neither.
func TestAFallbackIsCountedWhereItWasAskedFor(t *testing.T) {
	artifact := func(name, rows, members string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`{"schema_version": 1, "plan_name": "` + name + `", "outputs": ["out"], ` + members + `
			"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1"], "nodes": [{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": ` + rows + `}}]}`)}
	}
	const below = `"lenient": {"answer_by": "80%"}, "min_rows": [4], "below": "spare",`
	w := openServer(t, rankd.Options{Plans: fstest.MapFS{
		"home.plan.json": artifact("home", "3", below), "spare.plan.json": artifact("spare", "5", ""), "aliases.toml": {Data: []byte(`page = "home"`)},
	}})
	ask := func(plan string, plans ...string) *serve.Reply {
		return w.ask(func(q *serve.Query) {
			q.Plan, q.User = []byte(plan), []byte("1")
			if plans != nil {
				q.Caller = caller(t, access.Rules{Plans: plans})
			}
		})
	}
	for _, plan := range []string{"home", "page"} {
		reply := ask(plan)
		assert.Equal(t, outcome.OK, reply.Class)
		assert.Equal(t, map[string]any{
			"plan": "spare", "instead_of": "home", "reason": "Below minimum", "detail": "output 0 has 3 rows, and the plan wants 4 at least",
		}, body(t, reply)["fallback"])
		assert.Equal(t, outcome.OK, ask(plan, plan, "spare").Class)
		refused := ask(plan, plan)
		assert.Equal(t, outcome.Forbidden, refused.Class)
		assert.Equal(t, "Not permitted: plan "+plan+" needs the permission for plan spare, too, which answers in its place if it has too few rows", refused.Message())
	}
	assert.EqualValues(t, 4, w.value(`rankd_answers_fallback_total{front="http",plan="home"}`))
	assert.EqualValues(t, 4, w.value(`rankd_requests_total{class="ok",front="http",plan="home"}`))
	assert.EqualValues(t, 0, w.value(`rankd_answers_below_minimum_total{front="http",plan="home"}`))
	assert.Equal(t, outcome.OK, ask("spare", "spare").Class)
	assert.EqualValues(t, 1, w.value(`rankd_requests_total{class="ok",front="http",plan="spare"}`))
	assert.EqualValues(t, 0, w.value(`rankd_answers_fallback_total{front="http",plan="spare"}`))
}

func TestRedisIsUnavailable(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "viewer", Redis: "127.0.0.1:1"})
	reply := w.ask(func(q *serve.Query) { q.User = []byte("1") })
	assert.Equal(t, outcome.Unavailable, reply.Class)
	assert.Contains(t, reply.Message(), "Redis connection failed: node out (core::viewer): ")
}

func TestWhatTheFrontKnowsGoesTogetherWithTheBody(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "rows"})
	for name, c := range map[string]struct {
		plan, user, body, id string
		class                outcome.Class
		wantID, wantError    string
	}{
		"the engine's own plan":    {"", "1", ``, "", outcome.OK, "", ""},
		"the plan of a path":       {"viewer", "1", ``, "h", outcome.OK, "h", ""},
		"the body's id goes first": {"viewer", "", `{"user_id": 1, "request_id": "b"}`, "h", outcome.OK, "b", ""},
		"the plan said twice":      {"viewer", "", `{"user_id": 1, "plan": "viewer"}`, "h", outcome.OK, "h", ""},
		"two plans":                {"viewer", "", `{"user_id": 1, "plan": "rows"}`, "h", outcome.BadRequest, "h", `plan is "rows", and the request came for plan "viewer"`},
		"two users":                {"viewer", "2", `{"user_id": 1}`, "h", outcome.BadRequest, "h", "user_id is 1, and the request came for user 2"},
		"a bad user":               {"viewer", "2x", `{}`, "h", outcome.BadRequest, "h", `user_id as a string must be decimal digits for an integer from 1 to 4294967295, got "2x"`},
		"a broken body":            {"viewer", "2", `{`, "h", outcome.BadRequest, "h", "the input ends in the middle of a document"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := w.ask(func(q *serve.Query) {
				q.Plan, q.User, q.Body, q.RequestID = []byte(c.plan), []byte(c.user), []byte(c.body), []byte(c.id)
			})
			assert.Equal(t, c.class.Label(), reply.Class.Label())
			if c.wantID != "" {
				assert.Equal(t, c.wantID, body(t, reply)["request_id"])
			}
			if c.wantError != "" {
				assert.Contains(t, body(t, reply)["detail"], c.wantError)
			}
		})
	}
}

// The shorter timeout counts.
func TestTimeouts(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "held"})
	defer close(w.gate.opened)
	for name, c := range map[string]struct {
		timeout time.Duration
		body    string
		limit   string
	}{
		"of the front":               {2 * time.Millisecond, `{"user_id": 1}`, "(deadline of|limit) 2ms"},
		"of the body":                {0, `{"user_id": 1, "deadline_ms": 3}`, "(deadline of|limit) 3ms"},
		"of both, the front's first": {2 * time.Millisecond, `{"user_id": 1, "deadline_ms": 60000}`, "(deadline of|limit) 2ms"},
		"of both, the body's first":  {time.Minute, `{"user_id": 1, "deadline_ms": 3}`, "(deadline of|limit) 3ms"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := w.ask(func(q *serve.Query) { q.Timeout, q.Body = c.timeout, []byte(c.body) })
			assert.Equal(t, outcome.Timeout, reply.Class)
			assert.Regexp(t, c.limit, reply.Message())
		})
	}
}

func TestGrants(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "rows"})
	for name, c := range map[string]struct {
		rules  access.Rules
		body   string
		detail string // of the refusal; empty: the request is answered
	}{
		"nothing, the engine's own plan":   {access.Rules{}, `{"user_id": 1}`, `plan "rows"`},
		"another plan":                     {access.Rules{Plans: []string{"rows"}}, `{"user_id": 1, "plan": "viewer"}`, `plan "viewer"`},
		"a plan that nobody has":           {access.Rules{Plans: []string{"rows"}}, `{"user_id": 1, "plan": "nobody_has_it"}`, `plan "nobody_has_it"`},
		"by pattern":                       {access.Rules{Plans: []string{"view*"}}, `{"user_id": 1, "plan": "viewer"}`, ""},
		"scheduling":                       {access.Rules{Plans: []string{"*"}}, `{"user_id": 1, "scheduling": "inline_all"}`, "scheduling is set"},
		"scheduling granted":               {access.Rules{Plans: []string{"*"}, Grants: []request.Grant{request.GrantScheduling}}, `{"user_id": 1, "scheduling": "inline_all"}`, ""},
		"trace":                            {access.Rules{Plans: []string{"*"}}, `{"user_id": 1, "trace": true}`, "trace is set"},
		"trace granted":                    {access.Rules{Plans: []string{"*"}, Grants: []request.Grant{request.GrantTrace}}, `{"user_id": 1, "trace": true}`, ""},
		"trace not asked for":              {access.Rules{Plans: []string{"*"}}, `{"user_id": 1, "trace": false}`, ""},
		"explain":                          {access.Rules{Plans: []string{"*"}}, `{"user_id": 1, "explain": [1]}`, "explain is set"},
		"explain granted":                  {access.Rules{Plans: []string{"*"}, Grants: []request.Grant{request.GrantExplain}}, `{"user_id": 1, "explain": [1]}`, ""},
		"an override":                      {access.Rules{Plans: []string{"*"}}, `{"user_id": 1, "param_overrides": {"weight": 1}}`, `param_overrides sets "weight"`},
		"an override granted":              {access.Rules{Plans: []string{"*"}, Overrides: []string{"weight"}}, `{"user_id": 1, "param_overrides": {"weight": 1}}`, ""},
		"one of two overrides":             {access.Rules{Plans: []string{"*"}, Overrides: []string{"weight"}}, `{"user_id": 1, "param_overrides": {"weight": 1, "blocklist_regex": "a"}}`, `param_overrides sets "blocklist_regex"`},
		"no overrides":                     {access.Rules{Plans: []string{"*"}}, `{"user_id": 1, "param_overrides": {}}`, ""},
		"a request that is wrong, besides": {access.Rules{}, `{"user_id": 0}`, "user_id must be"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := w.ask(func(q *serve.Query) { q.Caller, q.Body = caller(t, c.rules), []byte(c.body) })
			if c.detail == "" {
				assert.Equal(t, outcome.OK, reply.Class, string(reply.AppendBody(nil)))
				return
			}
			assert.Contains(t, reply.Message(), c.detail)
			if name != "a request that is wrong, besides" {
				assert.Equal(t, outcome.Forbidden, reply.Class)
			}
		})
	}
}

func TestPlans(t *testing.T) {
	w := openServer(t, rankd.Options{PlanFile: "own", PlanText: servetest.Artifact("own", `{"node_id": "out", "op": "test::fixed_source", "inputs": []}`).Data})
	names := func(c *access.Caller) (names []string) {
		for _, p := range w.Plans(c) {
			names = append(names, p.Name)
			assert.Equal(t, p.Name == "broken", p.Err != nil)
		}
		return names
	}
	assert.Equal(t, []string{"broken", "held", "own", "rows", "slow", "viewer", "weighted"}, names(root(t)))
	assert.Equal(t, []string{"viewer"}, names(caller(t, access.Rules{Plans: []string{"v*"}})))
	assert.Empty(t, names(caller(t, access.Rules{})))
	assert.Empty(t, names(nil))
	reply := w.ask(func(q *serve.Query) { q.Plan, q.User = []byte("own"), []byte("1") })
	assert.Equal(t, outcome.OK, reply.Class)
}

// A query serves one request after another. Nothing of a request remains in it.
func TestAQueryIsUsedAgain(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "rows"})
	done := make(chan struct{}, 1)
	q := w.NewQuery(serve.RESP, func(*serve.Query) { done <- struct{}{} })
	buffer := []byte(`{"user_id": 1, "request_id": "first"}`)
	q.Caller, q.Body = root(t), buffer
	gone, goes := context.WithCancel(context.Background())
	goes()
	q.Context = gone
	w.Ask(q)
	<-done
	assert.Equal(t, outcome.Abandoned, q.Reply.Class)
	q.Release()
	q.Caller, q.Body = root(t), buffer
	w.Ask(q)
	copy(buffer, bytes.Repeat([]byte("!"), len(buffer)))
	<-done
	assert.Equal(t, outcome.OK, q.Reply.Class)
	assert.Equal(t, "first", q.Reply.RequestID)
	q.Release()
	assert.Equal(t, serve.Reply{}, q.Reply)
	q.Caller, q.User = root(t), []byte("2")
	w.Ask(q)
	<-done
	assert.Equal(t, outcome.OK, q.Reply.Class)
	assert.NotEqual(t, "first", q.Reply.RequestID)
	assert.EqualValues(t, 2, w.value(`rankd_requests_total{class="ok",front="resp",plan="rows"}`))
}

func TestAnAbandonedRequestEnds(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "held"})
	ctx, abandon := context.WithCancel(context.Background())
	q, done := w.start(func(q *serve.Query) { q.Context, q.User = ctx, []byte("1") })
	<-w.gate.entered
	abandon()
	close(w.gate.opened)
	<-done
	assert.Contains(t, []string{"abandoned", "ok"}, q.Reply.Class.Label()) // The gate is the plan's last node.
}

// Requests that wait do not have a goroutine each. Requests that are refused do not have one,
// either.
func TestNoGoroutinePerRequest(t *testing.T) {
	const waiting = 400
	w := openServer(t, rankd.Options{Plan: "held", MaxInflight: 1, MaxQueue: waiting})
	done := make(chan struct{}, waiting+1)
	ask := func() {
		q := w.NewQuery(serve.RESP, func(*serve.Query) { done <- struct{}{} })
		q.Caller, q.User = w.caller, []byte("1")
		w.Ask(q)
	}
	ask()
	<-w.gate.entered
	before := runtime.NumGoroutine()
	for range waiting {
		ask()
	}
	for range waiting {
		ask()
		<-done // refused inside
	}
	assert.InDelta(t, before, runtime.NumGoroutine(), 5)
	assert.EqualValues(t, waiting, w.value(`rankd_requests_total{class="overloaded",front="resp",plan="held"}`))
	close(w.gate.opened)
	for range waiting + 1 {
		<-done
	}
	assert.EqualValues(t, waiting+1, w.value(`rankd_requests_total{class="ok",front="resp",plan="held"}`))
}

// A request that the engine refuses frees its caller's place.
func TestARefusedRequestIsNotUnderWay(t *testing.T) {
	w := openServer(t, rankd.Options{MaxInflight: 1})
	user := func(plan string) func(*serve.Query) {
		return func(q *serve.Query) { q.Plan, q.User = []byte(plan), []byte("1") }
	}
	_, ran := w.start(user("held"))
	<-w.gate.entered
	few := caller(t, access.Rules{Plans: []string{"*"}, MaxInflight: 1})
	for range 3 {
		r := w.ask(func(q *serve.Query) { user("rows")(q); q.Caller = few })
		assert.Equal(t, outcome.Overloaded, r.Class)
	}
	close(w.gate.opened)
	<-ran
}

// Fields that look like typing errors are refused. With Strict, all unknown fields are.
func TestUnknownFields(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "rows"})
	strict, err := serve.New(w.Engine(), serve.Options{Strict: true})
	require.NoError(t, err)
	for _, c := range []struct {
		member          string
		usual, strictly outcome.Class
	}{
		{`"trace": false`, outcome.OK, outcome.OK},
		{`"session": "x"`, outcome.OK, outcome.BadRequest},
		{`"contxt": {}`, outcome.BadRequest, outcome.BadRequest},
	} {
		fill := func(q *serve.Query) { q.Body = []byte(`{"user_id": 1, ` + c.member + `}`) }
		assert.Equal(t, c.usual, w.ask(fill).Class, c.member)
		assert.Equal(t, c.strictly, (&world{Service: strict, t: t, caller: w.caller}).ask(fill).Class, c.member)
	}
}

// A request for an alias counts, and is logged, as one for the plan of its side. A token that
// names the alias need not name the plans.
func TestAnAliasCountsAsItsSide(t *testing.T) {
	plans := maps.Clone(folder)
	plans[plan.AliasesFile] = &fstest.MapFile{Data: []byte(`page = { a = "rows", b = "weighted", b_share = 50 }`)}
	w := openServer(t, rankd.Options{Plans: plans, Plan: "page"})
	only := caller(t, access.Rules{Plans: []string{"page"}, Overrides: []string{"*"}})
	sides := map[string]float64{}
	for user := range 20 {
		for _, name := range []string{`"plan": "page", `, ""} {
			reply := w.ask(func(q *serve.Query) {
				q.Caller, q.Body = only, fmt.Appendf(nil, `{%s"param_overrides": {"weight": 7}, "user_id": %d}`, name, user+1)
			})
			require.Equal(t, outcome.OK, reply.Class, string(reply.AppendBody(nil)))
			v := body(t, reply)["plan_version"].(map[string]any)
			assert.Equal(t, "page", v["alias"])
			sides[v["plan"].(string)]++
		}
	}
	assert.Greater(t, min(sides["rows"], sides["weighted"]), 5.0)
	for plan, n := range sides {
		assert.Equal(t, n, w.value(`rankd_requests_total{class="ok",front="http",plan="`+plan+`"}`), plan)
	}
	assert.Zero(t, w.value(`rankd_requests_total{class="ok",front="http",plan="page"}`))
	assert.Equal(t, outcome.Forbidden, w.ask(func(q *serve.Query) { q.Caller, q.Plan, q.User = only, []byte("rows"), []byte("1") }).Class)
	require.Len(t, w.Aliases(only), 1)
	assert.Empty(t, w.Aliases(caller(t, access.Rules{Plans: []string{"rows"}})))

	var failed *serve.Reply
	for user := 1; failed == nil; user++ { // one on side b, whose score is null without a weight
		if reply := w.ask(func(q *serve.Query) { q.Body = fmt.Appendf(nil, `{"user_id": %d}`, user) }); reply.Class != outcome.OK {
			failed = reply
		}
	}
	assert.Equal(t, 1.0, w.value(`rankd_requests_total{class="`+failed.Class.Label()+`",front="http",plan="weighted"}`))
	lines := w.lines(2)
	line := lines[len(lines)-1]
	assert.Equal(t, []any{"weighted", "page", "b", 1.0}, []any{line["plan"], line["alias"], line["side"], line["generation"]})
	assert.Len(t, line["plan_digest"], 64)
}
