package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/trace"
)

// standsIn are the members of a plan in whose place another one answers if it has fewer than three rows.
const standsIn = `"lenient": {"answer_by": "50%"}, "min_rows": [3], "below": "spare"`

// fallbackPlan returns the artifact of a plan whose output is its last node.
func fallbackPlan(name, members, nodes, outputs string) *fstest.MapFile {
	if members != "" {
		members = `"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1", "cap.rankd.output_names.v1"], ` + members + ","
	}
	return &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, %s "nodes": [%s], "outputs": %s}`, name, members, nodes, outputs)}
}

func fixedRows(id string, n int) string {
	return fmt.Sprintf(`{"node_id": %q, "op": "fixed_source", "inputs": [], "params": {"row_count": %d}}`, id, n)
}

func asleep(id, input, params string) string {
	return fmt.Sprintf(`{"node_id": %q, "op": "test::sleep", "inputs": [%q], "params": {%s}}`, id, input, params)
}

// fallbackPlans are plans with what stands in for them.
func fallbackPlans() fstest.MapFS {
	hangs := fixedRows("a", 9) + "," + asleep("b", "a", `"duration_ms": 60000`)
	shelves := `"output_names": ["home", "deals"], "lenient": {"answer_by": "50%"}, "min_rows": [1, 2]`
	folder := fstest.MapFS{"aliases.toml": {Data: []byte("page = { a = \"short\", b = \"enough\", b_share = 0 }\nlight = \"spare\"\n")}}
	for name, p := range map[string][3]string{
		"spare": {"", fixedRows("a", 5), `["a"]`}, "enough": {standsIn, fixedRows("a", 4), `["a"]`}, "short": {standsIn, fixedRows("a", 2), `["a"]`},
		"fails": {standsIn, fixedRows("a", 4) + "," + asleep("b", "a", `"duration_ms": 0, "fail_after_sleep": true`), `["b"]`},
		"hangs": {standsIn, hangs, `["b"]`},
		// It would fall back itself, and to a plan that would do the same.
		"poor": {strings.Replace(standsIn, "spare", "short", 1), fixedRows("a", 1), `["a"]`}, "ring": {strings.Replace(standsIn, "spare", "gnir", 1), fixedRows("a", 1), `["a"]`},
		"gnir":    {strings.Replace(standsIn, "spare", "ring", 1), fixedRows("a", 0), `["a"]`},
		"unlucky": {strings.Replace(standsIn, "spare", "fails", 1), fixedRows("a", 1), `["a"]`},
		"worst":   {strings.Replace(standsIn, "spare", "fails", 1), fixedRows("a", 4) + "," + asleep("b", "a", `"duration_ms": 1, "fail_after_sleep": true`), `["b"]`},
		"late":    {strings.Replace(standsIn, "spare", "hangs", 1), fixedRows("a", 1), `["a"]`},
		"strict":  {strings.Replace(standsIn, "spare", "firm", 1), fixedRows("a", 1), `["a"]`},
		"firm":    {`"min_rows": [3], "below": "error"`, fixedRows("a", 2), `["a"]`},
		"shelves": {shelves + `, "below": "shelf"`, fixedRows("a", 3) + "," + fixedRows("b", 1), `["a", "b"]`},
		"shelf":   {`"output_names": ["home", "deals"], "min_rows": [0, 0]`, fixedRows("a", 6) + "," + fixedRows("b", 7), `["a", "b"]`},
	} {
		folder[name+".plan.json"] = fallbackPlan(name, p[0], p[1], p[2])
	}
	return folder
}

// TestAnotherPlanAnswers: a plan with too few rows, that fails, or that does not end by its share of the time, has the answer of the
// plan that it names. That one falls back to nobody. If it fails, the answer is what rows there were. The answer, the log and the
// metrics say so.
func TestAnotherPlanAnswers(t *testing.T) {
	for _, c := range []struct {
		plan, by string // asked, and answers
		rows     int
		reason   string
		below    int    // outputs that are below minimum in the answer
		failed   string // why the fallback failed
		err      string // in place of an answer
	}{
		{plan: "enough", by: "enough", rows: 4}, {plan: "spare", by: "spare", rows: 5},
		{plan: "short", by: "spare", rows: 5, reason: "Below minimum"}, {plan: "page", by: "spare", rows: 5, reason: "Below minimum"},
		{plan: "fails", by: "spare", rows: 5, reason: "Node execution failed"}, {plan: "hangs", by: "spare", rows: 5, reason: "Node execution timeout"},
		{plan: "poor", by: "short", rows: 2, reason: "Below minimum", below: 1}, {plan: "ring", by: "gnir", reason: "Below minimum", below: 1},
		{plan: "unlucky", by: "unlucky", rows: 1, below: 1, failed: "Node execution failed"}, {plan: "late", by: "late", rows: 1, below: 1, failed: "Node execution timeout"},
		{plan: "worst", err: "Node execution failed: node b (test::sleep): plan fails, in place of plan worst (node b (test::sleep): injected failure: fail_after_sleep is set): injected failure"},
		{plan: "strict", err: "Below minimum: plan firm, in place of plan strict (output 0 has 1 row, and the plan wants 3 at least): output 0 has 2 rows"},
		{plan: "shelves", by: "shelf", rows: 13, reason: "Below minimum"},
	} {
		t.Run(c.plan, func(t *testing.T) {
			t.Parallel()
			var log enginetest.SyncBuffer
			o := rankd.Options{
				Plans: fallbackPlans(), AllowRequestTrace: true, AllowRequestExplain: true, MaxInflight: 1, MaxQueue: 1,
				Logger: slog.New(slog.NewJSONHandler(&log, nil)),
			}
			enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
				begun := time.Now()
				r := rankd.Request{Plan: c.plan, UserID: 1, Timeout: time.Second, Trace: true, PlanVersion: true, Explain: rankd.Explain{All: true}}
				a, err := e.Rank(t.Context(), r)
				assert.Less(t, time.Since(begun), 10*time.Second)
				instead := c.plan
				if c.plan == "page" {
					instead = "short"
				}
				if m := e.Metrics(); e.StuckFor() == 0 && m.Requests > 0 { // The other models do not count them.
					assert.Equal(t, uint64(1), m.Requests)
					assert.Equal(t, uint64(1), m.Plans[instead].Requests)
				}
				fell := c.err != "" || c.reason != "" || c.failed != ""
				assert.Equal(t, fell, e.Metrics().Fallbacks == 1)
				assert.Zero(t, e.Metrics().Live)
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
					var failed *rankd.Error
					require.ErrorAs(t, err, &failed)
					assert.Equal(t, c.plan, failed.Version().InsteadOf)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, c.by, a.Plan)
				assert.Equal(t, c.rows, a.Len())
				assert.Len(t, a.BelowMinimum(), c.below)
				members := enginetest.AnswerJSON(t, a)
				if c.failed != "" {
					assert.Equal(t, c.failed, a.FailedFallback().Reason)
					assert.Contains(t, string(members["fallback_failed"]), `"instead_of":"`+c.plan+`","reason":"`+c.failed+`"`)
					assert.Equal(t, c.plan, a.Trace().PlanVersion.InsteadOf) // of what ran last
					assert.Equal(t, a.FailedFallback().Plan, a.Trace().PlanVersion.Plan)
					assert.Equal(t, c.plan, a.Explanation().PlanVersion.Plan)
					assert.Len(t, a.Explanation().Rows, c.rows)
					assert.NoError(t, a.Trace().Check())
				} else {
					assert.Nil(t, a.FailedFallback())
					assert.NotContains(t, members, "fallback_failed")
				}
				if c.reason == "" {
					assert.Nil(t, a.Fallback())
					assert.NotContains(t, members, "fallback")
					assert.Empty(t, a.Version().InsteadOf)
					require.NoError(t, e.Close())
					assert.Equal(t, c.failed != "", strings.Contains(log.String(), `"a fallback has failed","plan":"`+c.plan+`","fallback":"`))
					return
				}
				assert.Equal(t, c.reason, a.Fallback().Reason)
				assert.Equal(t, instead, a.Fallback().InsteadOf)
				var told struct{ Plan, InsteadOf, Reason, Detail string }
				require.NoError(t, json.Unmarshal([]byte(strings.Replace(string(members["fallback"]), "instead_of", "insteadof", 1)), &told))
				assert.Equal(t, c.by+" "+instead+" "+c.reason, told.Plan+" "+told.InsteadOf+" "+told.Reason)
				assert.NotEmpty(t, told.Detail)
				for _, v := range []rankd.Version{a.Version(), a.Trace().PlanVersion, a.Explanation().PlanVersion} {
					assert.Equal(t, c.by, v.Plan)
					assert.Equal(t, instead, v.InsteadOf)
				}
				assert.Contains(t, string(members["plan_version"]), `"instead_of":"`+instead+`"`)
				assert.NoError(t, a.Trace().Check())
				assert.Equal(t, trace.ForPlan, a.Trace().Segments()[0].For)
				require.NoError(t, e.Close())
				assert.Contains(t, log.String(), `"an answer is of a fallback","plan":"`+instead+`","fallback":"`+c.by+`"`)
			})
		})
	}
}

// TestManyLostSourcesHideNoLine: the log has room for ten lines a second, and those of the whole answer come first. What it leaves out is
// said within the next seconds, not a minute later.
func TestManyLostSourcesHideNoLine(t *testing.T) {
	var nodes, ids []string
	for i := range 16 {
		ids = append(ids, fmt.Sprintf(`"s%d"`, i))
		nodes = append(nodes, fmt.Sprintf(`{"node_id": "s%d", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "k%d"}}`, i, i))
	}
	nodes = append(nodes, fmt.Sprintf(`{"node_id": "all", "op": "union", "inputs": [%s], "params": {}}`, strings.Join(ids, ",")))
	folder := fallbackPlans()
	folder["many.plan.json"] = fallbackPlan("many", `"lenient": {"on_error": "auto", "answer_by": "50%"}, "min_rows": [3], "below": "fails"`, strings.Join(nodes, ","), `["all"]`)
	var log enginetest.SyncBuffer
	e, err := rankd.Open(rankd.Options{Plans: folder, Redis: "127.0.0.1:1", Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, err)
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "many", UserID: 1})
	require.NoError(t, err)
	assert.NotNil(t, a.FailedFallback())
	require.Eventually(t, func() bool {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "many", UserID: 1})
		require.NoError(t, err)
		said := 0
		for i := range 16 {
			said += strings.Count(log.String(), fmt.Sprintf(`"an answer is degraded","plan":"many","node":"s%d"`, i))
		}
		return said == 16
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, e.Close())
	for _, line := range []string{"an answer is below minimum", "a fallback has failed", "an answer is empty", "an answer is degraded"} {
		assert.Contains(t, log.String(), `"`+line+`"`)
	}
}

// TestAFallbackHasTheRestOfTheTime: shares of time in the fallback count from its beginning.
func TestAFallbackHasTheRestOfTheTime(t *testing.T) {
	folder := fallbackPlans()
	folder["spare.plan.json"] = fallbackPlan("spare", `"lenient": {"on_error": "auto", "answer_by": "50%"}`,
		`{"node_id": "a", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "none"}},`+fixedRows("b", 7)+`,{"node_id": "c", "op": "concat", "inputs": ["a"], "params": {"rhs": "b"}}`, `["c"]`)
	enginetest.ForModels(t, rankd.Options{Plans: folder}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "hangs", UserID: 1, Timeout: 4 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, 7, a.Len())
		assert.False(t, a.Degraded(), "%v", a.Completeness())
		assert.GreaterOrEqual(t, a.Elapsed, 2*time.Second)
		assert.Less(t, a.Elapsed, 4*time.Second)
	})
}

// TestAFallbackReadsRowsInMemory: of a third plan, which only the fallback needs, also once they are read anew.
func TestAFallbackReadsRowsInMemory(t *testing.T) {
	folder := fallbackPlans()
	for _, name := range []string{"hangs", "late"} { // A reload tries each new plan.
		delete(folder, name+".plan.json")
	}
	folder["items.plan.json"] = fallbackPlan("items", "", fixedRows("a", 6), `["a"]`)
	folder["spare.plan.json"] = fallbackPlan("spare", "", `{"node_id": "a", "op": "resident", "inputs": [], "params": {"plan": "items"}}`, `["a"]`)
	for _, chosen := range []string{"", "short"} { // The engine loads all plans of the folder, or what this one needs.
		enginetest.ForModels(t, rankd.Options{Plans: folder, Plan: chosen}, func(t *testing.T, e *rankd.Engine) {
			for range 2 {
				a, err := e.Rank(t.Context(), rankd.Request{Plan: "short", UserID: 1})
				require.NoError(t, err)
				assert.Equal(t, "spare", a.Plan)
				assert.Equal(t, 6, a.Len())
				_, err = e.Reload(t.Context())
				require.NoError(t, err)
			}
		})
	}
}

// TestWhatOnlyTheFallbackNeeds: integers of the request are checked at once, and what its keys need once it runs.
func TestWhatOnlyTheFallbackNeeds(t *testing.T) {
	folder, tables := fallbackPlans(), registrytest.BuiltIn()
	for i, name := range []string{"shop", "size"} {
		tables.Params += registrytest.Param(9901+i, name, "int", registrytest.Nullable, "context = true")
	}
	folder["enough.plan.json"] = fallbackPlan("enough", strings.Replace(standsIn, "spare", "keyed", 1), fixedRows("a", 4), `["a"]`)
	folder["short.plan.json"] = fallbackPlan("short", strings.Replace(standsIn, "spare", "keyed", 1), fixedRows("a", 2), `["a"]`)
	folder["keyed.plan.json"] = fallbackPlan("keyed", "", `{"node_id": "a", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "shop:{shop}"}}`, `["a"]`)
	folder["sizes.plan.json"] = fallbackPlan("sizes", strings.Replace(standsIn, "spare", "sized", 1), fixedRows("a", 4), `["a"]`)
	folder["sized.plan.json"] = &fstest.MapFile{Data: []byte(`{"schema_version": 1, "plan_name": "sized", 
		"nodes": [` + fixedRows("a", 9) + `, {"node_id": "b", "op": "take", "inputs": ["a"], "params": {"count": {"param_id": 9902, "max": 9}}}], "outputs": ["b"]}`)}
	enginetest.ForModels(t, rankd.Options{Plans: folder, Registry: tables.FS()}, func(t *testing.T, e *rankd.Engine) {
		for _, c := range []struct {
			plan, context string
			by, err       string
		}{
			{"enough", `{}`, "enough", ""}, {"short", `{"shop": 7}`, "keyed", ""},
			{"short", `{}`, "", `plan keyed, in place of plan short (output 0 has 2 rows, and the plan wants 3 at least): context member "shop": there is no value`},
			{"sizes", `{"size": 2}`, "sizes", ""}, {"sizes", `{}`, "", `plan sized, which answers in place of plan sizes if that has too few rows: context member "size"`},
			{"sizes", `{"size": 10}`, "", `plan sized, which answers in place of plan sizes`},
		} {
			r, err := e.ParseRequest([]byte(fmt.Sprintf(`{"user_id": 1, "plan": %q, "context": %s}`, c.plan, c.context)))
			require.NoError(t, err)
			a, err := e.Rank(t.Context(), r)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				var failed *rankd.Error
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, outcome.BadRequest, failed.Class, c)
				continue
			}
			require.NoError(t, err, c)
			assert.Equal(t, c.by, a.Plan)
		}
	})
}

// TestARequestThatInsistsHasItsOwnPlan: nodes of this plan are required, so that no other one answers.
func TestARequestThatInsistsHasItsOwnPlan(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{Plans: fallbackPlans()}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "short", UserID: 1, Require: []string{"a"}})
		require.NoError(t, err)
		assert.Equal(t, "short", a.Plan)
		assert.NotNil(t, a.BelowMinimum())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		cancel() // A body that sleeps already would sleep to its end.
		e.Submit(ctx, rankd.Request{Plan: "hangs", UserID: 1}, func(_ *rankd.Answer, err error) { ended <- err })
		_, err = e.Rank(ctx, rankd.Request{Plan: "hangs", UserID: 1})
		require.ErrorIs(t, err, rankd.ErrAbandoned)
		require.NoError(t, e.Shutdown(t.Context()))
		require.ErrorIs(t, <-ended, rankd.ErrAbandoned)
	})
}

// TestAFallbackThatCannotAnswerIsRefused: with the plan, by both names.
func TestAFallbackThatCannotAnswerIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		below, spare, want string
	}{
		"missing":       {"spar", fixedRows("a", 5), `plan short: below: plan spar cannot answer in its place: unknown plan "spar" in `},
		"an alias":      {"light", fixedRows("a", 5), `plan short: below: plan light cannot answer in its place: that is an alias, and must be a plan: name spare`},
		"refused":       {"spare", `{"node_id": "a", "op": "fixed", "inputs": []}`, `plan short: below: plan spare cannot answer in its place: `},
		"other rows":    {"users", fixedRows("a", 5), `plan short: below: plan users cannot answer in its place: the rows of output 0 are "product", and there "user"`},
		"other outputs": {"shelf", fixedRows("a", 5), `plan short: below: plan shelf cannot answer in its place: the outputs differ: 1 without names, and there home, deals`},
	} {
		t.Run(name, func(t *testing.T) {
			folder := fallbackPlans()
			folder["short.plan.json"] = fallbackPlan("short", strings.Replace(standsIn, "spare", c.below, 1), fixedRows("a", 2), `["a"]`)
			folder["spare.plan.json"] = fallbackPlan("spare", "", c.spare, `["a"]`)
			if name == "refused" {
				delete(folder, "aliases.toml")
			}
			o := rankd.Options{Plans: folder}
			if name == "other rows" {
				rows := func(of string) string {
					return fmt.Sprintf(`{"node_id": "a", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "k", "entity": %q}}`, of)
				}
				folder["short.plan.json"] = fallbackPlan("short", strings.Replace(standsIn, "spare", c.below, 1), rows("product"), `["a"]`)
				folder["users.plan.json"] = fallbackPlan("users", "", rows("user"), `["a"]`)
				tables := registrytest.BuiltIn().FS()
				tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\n[[entity]]\nname = \"user\"\n")}
				o.Registry = tables
			}
			e := enginetest.Open(t, o)
			for range 2 { // when it is loaded, and when it is looked up
				_, err := e.Rank(t.Context(), rankd.Request{Plan: "short", UserID: 1})
				require.ErrorIs(t, err, rankd.ErrInvalidPlan)
				require.ErrorContains(t, err, c.want)
				plans, err := e.Plans()
				require.NoError(t, err)
				for _, p := range plans {
					if p.Name == "short" {
						require.ErrorContains(t, p.Err, c.want)
					}
				}
			}
			o.Plan = "short"
			_, err := rankd.Open(o)
			require.ErrorContains(t, err, c.want)
		})
	}
}
