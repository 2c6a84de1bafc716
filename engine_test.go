package rankd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}

const (
	weighted = `{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}},
		{"node_id": "out", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2002, "expr_id": "e"}}`
)

func TestRankAnswersTheSameOnEveryModel(t *testing.T) {
	var first []string
	enginetest.ForModels(t, rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1, ID: "r1"})
		require.NoError(t, err)
		assert.Equal(t, "r1", a.RequestID)
		assert.Equal(t, "complex_dag", a.Plan)
		assert.Positive(t, a.Elapsed)
		var rows []string
		for c := range a.Candidates() {
			score, ok := c.Float("score")
			assert.True(t, ok)
			rows = append(rows, fmt.Sprint(c.ID(), score))
		}
		require.Len(t, rows, 50)
		require.Equal(t, 50, a.Len())
		if first == nil {
			first = rows
		}
		assert.Equal(t, first, rows)
	})
}

func TestAnswerColumns(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{})
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "concat_plan", UserID: 1})
	require.NoError(t, err)
	require.Equal(t, 1, a.Outputs())
	out := a.Output(0)
	assert.Equal(t, []rankd.Column{{Name: "country", Type: rankd.StringColumn}}, out.Columns())
	values, null, ok := out.Strings("country")
	require.True(t, ok)
	require.Len(t, values, out.Len())
	for i, c := range slices.Collect(out.Candidates()) {
		assert.Equal(t, out.ID(i), c.ID())
		value, valid := c.String("country")
		assert.Equal(t, values[i], value)
		assert.Equal(t, null == nil || !null[i], valid)
	}
	for _, name := range []string{"score", "title", "nothing"} {
		_, _, ok := out.Floats(name)
		assert.False(t, ok, name)
		_, ok = out.Candidate(0).Float(name)
		assert.False(t, ok, name)
	}
}

// A concat of a branch with a column and one without has nulls.
func TestAnswerNulls(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plans: enginetest.Plans(map[string]string{"p": `
		{"node_id": "a", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}},
		{"node_id": "b", "op": "core::vm", "inputs": ["a"], "params": {"out_key": 2002, "expr_id": "e"}},
		{"node_id": "out", "op": "core::concat", "inputs": ["a"], "params": {"rhs": "b"}}`})})
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Params: map[string]any{"weight": 0.25}})
	require.NoError(t, err)
	values, null, ok := a.Output(0).Floats("score")
	require.True(t, ok)
	assert.Equal(t, []bool{true, true, false, false}, null)
	assert.Equal(t, []float64{0, 0, 0.25, 0.25}, values)
	_, ok = a.Output(0).Candidate(1).Float("score")
	assert.False(t, ok)
}

func TestAnswerOutlivesItsEngine(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	e, err := rankd.Open(rankd.Options{Redis: redis.Addr()})
	require.NoError(t, err)
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "concat_plan", UserID: 1})
	require.NoError(t, err)
	before := a.AppendJSON(nil, rankd.FormatFields)
	for i := range 50 {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "concat_plan", UserID: int64(i + 2)})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	redis.Close()
	assert.Equal(t, enginetest.WithoutEngineID(t, before), enginetest.WithoutEngineID(t, a.AppendJSON(nil, rankd.FormatFields)))
}

func TestSchemaDeltas(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1, SchemaDeltas: true})
		require.NoError(t, err)
		require.NotEmpty(t, a.SchemaDeltas())
		assert.Contains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), `"schema_deltas":[{"node_id":`)
		a, err = e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1})
		require.NoError(t, err)
		assert.Nil(t, a.SchemaDeltas())
	})
}

// TestTrace: a request gets the trace of its own run, on each model, if the engine permits it.
func TestTrace(t *testing.T) {
	places := map[rankd.Model]trace.Place{rankd.Reactor: trace.OnLoop, rankd.Pool: trace.OnIOWorker, rankd.Sequential: trace.OnGoroutine}
	enginetest.ForModels(t, rankd.Options{AllowRequestTrace: true, Scheduling: rankd.Scheduling{Mode: rankd.OffloadAll}}, func(t *testing.T, e *rankd.Engine) {
		r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "complex_dag", "request_id": "a", "trace": true}`))
		require.NoError(t, err)
		a, err := e.Rank(t.Context(), r)
		require.NoError(t, err)
		tr := a.Trace()
		require.NoError(t, tr.Check())
		assert.Equal(t, "a", tr.RequestID)
		assert.Equal(t, "complex_dag", tr.Plan)
		assert.Len(t, tr.TraceID, 32)
		assert.WithinDuration(t, time.Now(), tr.At, time.Minute)
		assert.Positive(t, tr.Request.Ended)
		assert.LessOrEqual(t, tr.Request.Ended, a.Elapsed)
		assert.Zero(t, tr.Dropped)
		require.Len(t, tr.Nodes, 10)
		calls := 0
		for _, n := range tr.Nodes {
			assert.Equal(t, trace.OK, n.Status, n.ID)
			assert.Positive(t, n.RowsOut, n.ID)
		}
		for _, track := range tr.Tracks {
			if track.Kind == trace.RedisTrack {
				for _, s := range track.Slices {
					calls += s.Commands
					assert.Positive(t, s.Sent)
					assert.Positive(t, s.Received)
				}
			}
		}
		assert.Greater(t, calls, 100)
		assert.Equal(t, places[rankd.Model(tr.Engine)], tr.Nodes[0].Place)
		assert.Len(t, tr.CriticalPath(trace.Latency).Steps, 7)

		var doc struct{ Trace json.RawMessage }
		require.NoError(t, json.Unmarshal(a.AppendJSON(nil, rankd.FormatFlat), &doc))
		read, err := trace.Decode(doc.Trace)
		require.NoError(t, err)
		assert.Equal(t, tr, read)

		a, err = e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1})
		require.NoError(t, err)
		assert.Nil(t, a.Trace())
		assert.NotContains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), `"trace"`)
	})
}

// A request that fails has a trace, too, of what ran before.
func TestTraceOfAFailure(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{AllowRequestTrace: true}, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "parallel_sleep_plan", UserID: 1, Timeout: 10 * time.Millisecond, Trace: true})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, rankd.ErrTimeout)
		tr := failed.Trace()
		require.NotNil(t, tr)
		require.NoError(t, tr.Check())
		assert.NotEmpty(t, tr.Request.Error)
		assert.Equal(t, trace.Skipped, tr.Nodes[len(tr.Nodes)-1].Status)
		assert.Contains(t, string(failed.AppendJSON(nil)), `"trace":{"version":1`)

		_, err = e.Rank(t.Context(), rankd.Request{Plan: "nowhere", UserID: 1, Trace: true})
		require.ErrorAs(t, err, &failed)
		assert.Nil(t, failed.Trace(), "nothing ran")
	})
}

func TestTraceMustBePermitted(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
		_, parsing := e.ParseRequest([]byte(`{"user_id": 1, "plan": "diamond", "request_id": "a", "trace": true}`))
		_, ranking := e.Rank(t.Context(), rankd.Request{Plan: "diamond", UserID: 1, ID: "a", Trace: true})
		for _, err := range []error{parsing, ranking} {
			var failed *rankd.Error
			require.ErrorAs(t, err, &failed)
			assert.ErrorIs(t, err, rankd.ErrInvalidRequest)
			assert.Equal(t, "Invalid request", failed.Text)
			assert.Equal(t, `this engine does not allow "trace" in requests`, failed.Detail)
			assert.Equal(t, "a", failed.RequestID)
		}
		r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "diamond", "trace": false}`))
		require.NoError(t, err)
		a, err := e.Rank(t.Context(), r)
		require.NoError(t, err)
		assert.Nil(t, a.Trace())
	})
}

// TestTraceSample: one request in so many goes to the sink, answered or failed. A sink that
// panics harms nobody.
func TestTraceSample(t *testing.T) {
	for _, every := range []int{1, 3} {
		var mu sync.Mutex
		var taken []*trace.Recording
		sink := trace.SinkFunc(func(r *trace.Recording) {
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, r.Keep())
			panic("in the sink")
		})
		o := rankd.Options{TraceSample: every, TraceSink: sink, TraceDetail: trace.JustNodes, Logger: slog.New(slog.DiscardHandler)}
		enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
			taken = nil
			for i := range 7 {
				r := rankd.Request{Plan: "simple_viewer", UserID: 1, ID: strconv.Itoa(i)}
				if i == 3 {
					r = rankd.Request{Plan: "parallel_sleep_plan", UserID: 1, Timeout: time.Millisecond, ID: "3"}
				}
				a, err := e.Rank(t.Context(), r)
				require.Equal(t, i == 3, err != nil, err)
				if err == nil {
					assert.Nil(t, a.Trace(), "nobody asked for it")
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for k, r := range taken {
				tr := r.Trace()
				require.NoError(t, tr.Check())
				assert.Equal(t, strconv.Itoa(k*every), tr.RequestID)
				assert.Empty(t, tr.Tracks, "only nodes")
				assert.Equal(t, r.RequestID == "3", r.Err != nil)
			}
			assert.Len(t, taken, (7+every-1)/every)
		})
	}
}

func TestRequestErrors(t *testing.T) {
	o := rankd.Options{Plans: enginetest.Plans(map[string]string{"good": enginetest.ThreeRows, "bad": `{"node_id": "out", "op": "nope", "inputs": []}`,
		"weighted": weighted})}
	tests := []struct {
		name    string
		request rankd.Request
		class   error
		text    string
		detail  string
	}{
		{"NoPlan", rankd.Request{UserID: 1}, rankd.ErrInvalidRequest, "Invalid request", "plan is missing"},
		{"UnknownPlan", rankd.Request{Plan: "goood", UserID: 1}, rankd.ErrUnknownPlan, "Unknown plan", `"goood"`},
		{"PlanWithPath", rankd.Request{Plan: "../good", UserID: 1}, rankd.ErrUnknownPlan, "Unknown plan", "letters"},
		{"BadPlan", rankd.Request{Plan: "bad", UserID: 1}, rankd.ErrInvalidPlan, "Invalid plan", "nope"},
		{"NoUser", rankd.Request{Plan: "good"}, rankd.ErrInvalidRequest, "Invalid request", "user_id"},
		{"HugeUser", rankd.Request{Plan: "good", UserID: 1 << 32}, rankd.ErrInvalidRequest, "Invalid request", "user_id"},
		{"UnknownParam", rankd.Request{Plan: "good", UserID: 1, Params: map[string]any{"wieght": 1}},
			rankd.ErrInvalidRequest, "Invalid param_overrides", `"wieght"`},
		{"ParamType", rankd.Request{Plan: "good", UserID: 1, Params: map[string]any{"weight": "1"}},
			rankd.ErrInvalidRequest, "Invalid param_overrides", "number"},
		{"Node", rankd.Request{Plan: "weighted", UserID: 1}, rankd.ErrInvalidNode, "Invalid node", "null"},
	}
	enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				tt.request.ID = "it"
				a, err := e.Rank(t.Context(), tt.request)
				assert.Nil(t, a)
				require.ErrorIs(t, err, tt.class)
				var failed *rankd.Error
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, "it", failed.RequestID)
				assert.Equal(t, tt.text, failed.Text)
				assert.Contains(t, failed.Detail, tt.detail)
				assert.Contains(t, err.Error(), tt.text)

				done := make(chan error, 2)
				e.Submit(context.Background(), tt.request, func(a *rankd.Answer, err error) { done <- err })
				assert.ErrorIs(t, <-done, tt.class)
			})
		}
	})
}

func TestNodeErrorNamesTheNode(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plans: enginetest.Plans(map[string]string{"weighted": weighted})})
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "weighted", UserID: 1})
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "out", failed.Node)
	assert.Equal(t, "core::vm", failed.Op)
	assert.Equal(t, `{"request_id":"","error":"Invalid node","detail":`, string(failed.AppendJSON(nil))[:49])
}

func TestRedisErrors(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Redis: "127.0.0.1:1"})
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1})
	require.ErrorIs(t, err, rankd.ErrRedis)
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "Redis connection failed", failed.Text)
}

func TestParseRequest(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plans: enginetest.Plans(map[string]string{"weighted": weighted})})
	r, err := e.ParseRequest([]byte(`{"user_id": "7", "request_id": "a", "plan": "weighted", "deadline_ms": 900,
		"param_overrides": {"weight": 0.5}}`))
	require.NoError(t, err)
	assert.Equal(t, int64(7), r.UserID)
	assert.Equal(t, "a", r.ID)
	assert.Equal(t, "weighted", r.Plan)
	assert.Equal(t, 900*time.Millisecond, r.Timeout)

	for name, want := range map[string]float64{"parsed": 0.5, "on top": 2} {
		t.Run(name, func(t *testing.T) {
			r := r
			if name == "on top" {
				r.Params = map[string]any{"weight": 2}
			}
			a, err := e.Rank(t.Context(), r)
			require.NoError(t, err)
			score, _ := a.Output(0).Candidate(0).Float("score")
			assert.Equal(t, want, score)
		})
	}

	_, err = e.ParseRequest([]byte(`{"user_id": 0, "request_id": "b"}`))
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "b", failed.RequestID)
	_, err = e.ParseRequest([]byte(`{`))
	assert.ErrorIs(t, err, rankd.ErrInvalidRequest)
}

func TestRequestScheduling(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options rankd.Options
		doc     string
		detail  string // of the refusal; "" if there is none
	}{
		{"None", rankd.Options{}, `{"user_id": 1}`, ""},
		{"Null", rankd.Options{}, `{"user_id": 1, "scheduling": null}`, ""},
		{"NotPermitted", rankd.Options{}, `{"user_id": 1, "scheduling": "adaptive"}`, `this engine does not allow "scheduling" in requests`},
		{"NotAName", rankd.Options{}, `{"user_id": 1, "scheduling": 1}`, "scheduling must be the name of a scheduling mode"},
		{"Adaptive", rankd.Options{AllowRequestScheduling: true}, `{"user_id": 1, "scheduling": "adaptive"}`, ""},
		{"OffloadAll", rankd.Options{AllowRequestScheduling: true}, `{"user_id": 1, "scheduling": "offload_all"}`, ""},
		{"InlineAll", rankd.Options{AllowRequestScheduling: true}, `{"user_id": 1, "scheduling": "inline_all"}`, ""},
		{"Now", rankd.Options{}, `{"user_id": 1, "now": 0}`, `this engine does not allow "now" in requests`},
		{"AllowedNow", rankd.Options{AllowRequestNow: true}, `{"user_id": 1, "now": 0}`, ""},
		{"Unknown", rankd.Options{AllowRequestScheduling: true}, `{"user_id": 1, "scheduling": "Adaptive"}`, `scheduling must be adaptive, offload_all or inline_all, not "Adaptive"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Plans, tt.options.Plan = enginetest.Plans(map[string]string{"weighted": weighted}), "weighted"
			refused := func(t *testing.T, err error) {
				var failed *rankd.Error
				require.ErrorAs(t, err, &failed)
				assert.ErrorIs(t, err, rankd.ErrInvalidRequest)
				assert.Equal(t, "Invalid request", failed.Text)
				assert.Contains(t, failed.Detail, tt.detail)
			}
			enginetest.ForModels(t, tt.options, func(t *testing.T, e *rankd.Engine) {
				r, err := e.ParseRequest([]byte(tt.doc))
				if tt.detail != "" {
					refused(t, err)
					var doc struct{ Scheduling any }
					require.NoError(t, json.Unmarshal([]byte(tt.doc), &doc))
					name, isName := doc.Scheduling.(string)
					if !isName {
						return
					}
					r = rankd.Request{UserID: 1, Scheduling: rankd.SchedulingMode(name)} // one that Go code makes
				} else {
					require.NoError(t, err)
				}
				r.Params = map[string]any{"weight": 1}
				a, err := e.Rank(t.Context(), r)
				if tt.detail != "" {
					refused(t, err)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, 2, a.Output(0).Len())
			})
		})
	}
}

func TestPlanChoice(t *testing.T) {
	folder := enginetest.Plans(map[string]string{"three": enginetest.ThreeRows, "weighted": weighted})
	file := filepath.Join(t.TempDir(), "any.plan.json")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(folder["three.plan.json"].Data), "three", "odd name", 1)), 0o644))
	for _, tt := range []struct {
		name    string
		options rankd.Options
		ask     string
		rows    int // 0: refused
	}{
		{"ByName", rankd.Options{Plans: folder}, "three", 3},
		{"Own", rankd.Options{Plans: folder, Plan: "three"}, "", 3},
		{"OwnAndByName", rankd.Options{Plans: folder, Plan: "three"}, "three", 3},
		{"File", rankd.Options{PlanFile: file}, "", 3},
		{"Text", rankd.Options{PlanText: folder["three.plan.json"].Data}, "", 3},
		{"TextByName", rankd.Options{Plans: enginetest.Plans(nil), PlanText: folder["three.plan.json"].Data}, "three", 3},
		{"TextAndAnotherOfTheFolder", rankd.Options{Plans: folder, PlanText: []byte(`{"schema_version": 1, "plan_name": "x",
			"nodes": [{"node_id": "a", "op": "test::fixed_source", "inputs": []}], "outputs": ["a"]}`)}, "three", 3},
		{"FileByName", rankd.Options{PlanFile: file}, "odd name", 3},
		{"None", rankd.Options{Plans: folder}, "", 0},
		{"Synthetic", rankd.Options{Plans: folder, Synthetic: true}, "", 5},
		{"SyntheticAndByName", rankd.Options{Plans: folder, Synthetic: true}, "three", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Redis = "127.0.0.1:1" // not used
			e := enginetest.Open(t, tt.options)
			a, err := e.Rank(t.Context(), rankd.Request{Plan: tt.ask, UserID: 1})
			if tt.rows == 0 {
				require.ErrorIs(t, err, rankd.ErrInvalidRequest)
				_, err = e.PlanInfo(tt.ask)
				require.ErrorIs(t, err, rankd.ErrUnknownPlan)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.rows, a.Len())
		})
	}
}

func TestPlans(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Redis: "127.0.0.1:1", Plans: enginetest.Plans(map[string]string{"good": enginetest.ThreeRows,
		"bad": `{"node_id": "out", "op": "nope", "inputs": []}`})})
	all, err := e.Plans()
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "bad", all[0].Name)
	assert.ErrorContains(t, all[0].Err, "nope")
	assert.Nil(t, all[0].Info)
	assert.Equal(t, "good", all[1].Name)
	assert.Equal(t, "good", all[1].Info.Name)
	info, err := e.PlanInfo("good")
	require.NoError(t, err)
	assert.Equal(t, all[1].Info, info)
	_, err = e.PlanInfo("bad")
	assert.ErrorIs(t, err, rankd.ErrInvalidPlan)
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options rankd.Options
		texts   []string
	}{
		{"AllAtOnce", rankd.Options{Model: "threads", Redis: "nowhere", CPUThreads: -1, Plan: "a", PlanFile: "b"},
			[]string{"Model must be reactor, pool or sequential", "Redis must be host:port", "CPUThreads must not be negative", "Plan excludes PlanFile and PlanText"}},
		{"Env", rankd.Options{Env: "staging"}, []string{"staging"}},
		{"Plan", rankd.Options{Plan: "nope"}, []string{`"nope"`}},
		{"PlanFile", rankd.Options{PlanFile: "/no/such/file"}, []string{"/no/such/file"}},
		{"Tasks", rankd.Options{Tasks: []task.Spec{{Op: "core::vm"}}}, []string{"core::vm"}},
		{"PlanText", rankd.Options{PlanText: []byte("{")}, []string{"the plan: "}},
		{"PlanTextWithItsFile", rankd.Options{PlanFile: "mine", PlanText: []byte("{")}, []string{"mine: "}},
		{"PlanAndText", rankd.Options{Plan: "a", PlanText: []byte("{}")}, []string{"Plan excludes PlanFile and PlanText"}},
		{"Scheduling", rankd.Options{Scheduling: rankd.Scheduling{Mode: "fast", MaxInlineDepth: -1, InlineBudget: -1, InlineThreshold: -1}},
			[]string{`Scheduling.Mode must be adaptive, offload_all or inline_all, not "fast"`, "Scheduling.MaxInlineDepth must not be negative",
				"Scheduling.InlineBudget must not", "Scheduling.InlineThreshold must not"}},
		{"Registry", rankd.Options{Registry: fstest.MapFS{}}, []string{"the registry folder: keys.toml: "}},
		{"NamedRegistry", rankd.Options{Registry: fstest.MapFS{}, RegistryName: "tables/"}, []string{"tables/: keys.toml: ", "keys.toml"}},
		{"Embedded", rankd.Options{EmbeddedRedis: func() (string, func(), error) { return "", nil, errors.New("no port") }}, []string{"embedded redis: no port"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := rankd.Open(tt.options)
			require.Error(t, err)
			assert.Nil(t, e)
			for _, text := range tt.texts {
				assert.ErrorContains(t, err, text)
			}
		})
	}
}

func TestEmbeddedRedisIsStartedWhereItIsWanted(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options rankd.Options
		starts  int
	}{
		{"Dev", rankd.Options{}, 1},
		{"OwnRedis", rankd.Options{Redis: "127.0.0.1:1"}, 0},
		{"Prod", rankd.Options{Env: "prod"}, 0},
		{"BadPlan", rankd.Options{Plan: "nope"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			started, stopped := 0, 0
			tt.options.EmbeddedRedis = func() (string, func(), error) {
				started++
				return "127.0.0.1:1", func() { stopped++ }, nil
			}
			e, err := rankd.Open(tt.options)
			if tt.name == "BadPlan" {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				assert.Zero(t, stopped)
				require.NoError(t, e.Close())
				require.NoError(t, e.Close())
			}
			assert.Equal(t, tt.starts, started)
			assert.Equal(t, tt.starts, stopped)
		})
	}
}

func TestTimeouts(t *testing.T) {
	sleep := enginetest.Plans(map[string]string{"sleep": `{"node_id": "rows", "op": "test::fixed_source", "inputs": []},
		{"node_id": "out", "op": "test::sleep", "inputs": ["rows"], "params": {"duration_ms": 60000}}`})
	for _, tt := range []struct {
		name    string
		options rankd.Options
		request rankd.Request
		context time.Duration
		class   error
	}{
		{"Engine", rankd.Options{Timeout: time.Millisecond}, rankd.Request{}, 0, rankd.ErrTimeout},
		{"Request", rankd.Options{}, rankd.Request{Timeout: time.Millisecond}, 0, rankd.ErrTimeout},
		{"RequestShortensEngine", rankd.Options{Timeout: time.Hour}, rankd.Request{Timeout: time.Millisecond}, 0, rankd.ErrTimeout},
		{"EngineShortensRequest", rankd.Options{Timeout: time.Millisecond}, rankd.Request{Timeout: time.Hour}, 0, rankd.ErrTimeout},
		{"Node", rankd.Options{NodeTimeout: time.Millisecond}, rankd.Request{}, 0, rankd.ErrTimeout},
		{"Context", rankd.Options{}, rankd.Request{Timeout: time.Hour}, time.Millisecond, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Plans, tt.options.Plan = sleep, "sleep"
			enginetest.ForModels(t, tt.options, func(t *testing.T, e *rankd.Engine) {
				ctx := t.Context()
				if tt.context > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.context)
					defer cancel()
				}
				tt.request.UserID = 1
				_, err := e.Rank(ctx, tt.request)
				assert.ErrorIs(t, err, tt.class)
			})
		})
	}
}

// The deadline of a request is given or comes from its context. It ends the node that runs. The
// error names the deadline and the node, and has the trace.
func TestADeadlineNamesTheNodeThatRan(t *testing.T) {
	for _, model := range enginetest.Models {
		for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
			t.Run(string(model)+"/"+string(mode), func(t *testing.T) {
				g := enginetest.NewGate()
				e := enginetest.Open(t, rankd.Options{
					Model: model, Scheduling: rankd.Scheduling{Mode: mode, NoInlineExecution: true}, AllowRequestTrace: true,
					Tasks: g.Tasks(), Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated}), Plan: "gated",
				})
				rankd.Patient(e)
				late := func(rank func(timeout time.Duration) error) *rankd.Error {
					for timeout := 30 * time.Millisecond; ; timeout *= 2 { // until there is time to begin the node
						err := rank(timeout)
						var failed *rankd.Error
						require.ErrorAs(t, err, &failed)
						require.ErrorIs(t, err, rankd.ErrTimeout)
						if failed.Node == "held" && errors.Is(err, rankd.ErrNodeTimeout) {
							assert.Equal(t, "Node execution timeout", failed.Text)
							assert.NotNil(t, failed.Trace())
							return failed
						}
					}
				}
				failed := late(func(timeout time.Duration) error {
					_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Trace: true, Timeout: timeout})
					return err
				})
				assert.Regexp(t, `^the request's deadline of \d+ms passed while held \(test::gate\) ran$`, failed.Detail)
				assert.NotErrorIs(t, failed, context.DeadlineExceeded)

				failed = late(func(timeout time.Duration) error {
					ctx, cancel := context.WithTimeout(t.Context(), timeout)
					defer cancel()
					_, err := e.Rank(ctx, rankd.Request{UserID: 1, Trace: true, Timeout: time.Hour})
					return err
				})
				assert.ErrorIs(t, failed, context.DeadlineExceeded)
			})
		}
	}
}

// A request whose context is cancelled returns at once and starts no further node.
func TestRankEndsWithItsContext(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			g := enginetest.NewGate()
			e := enginetest.Open(t, rankd.Options{Model: model, Tasks: g.Tasks(), Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated}), Plan: "gated"})
			gaveUp := errors.New("gave up")
			ctx, cancel := context.WithCancelCause(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := e.Rank(ctx, rankd.Request{UserID: 1})
				failed <- err
			}()
			<-g.Entered
			cancel(gaveUp)
			err := <-failed
			assert.ErrorIs(t, err, gaveUp)
			assert.ErrorIs(t, err, context.Canceled)
			close(g.Opened)
			require.NoError(t, e.Close())
			assert.Zero(t, g.Marked, "no node starts for a request that nobody waits for")

			_, err = e.Rank(ctx, rankd.Request{UserID: 1})
			assert.ErrorIs(t, err, gaveUp, "a context that has ended already")
		})
	}
}

func TestCloseWaitsAndShutdownGivesUp(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			t.Run("Close", func(t *testing.T) {
				g := enginetest.NewGate()
				e := enginetest.Open(t, rankd.Options{Model: model, Tasks: g.Tasks(), Plan: "gated",
					Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated, "plain": enginetest.ThreeRows})})
				answered := make(chan error, 1)
				e.Submit(context.Background(), rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) { answered <- err })
				<-g.Entered
				closed := make(chan error, 1)
				go func() { closed <- e.Close() }()
				require.Eventually(t, func() bool { // intake stops first; requests are answered until then
					probed := make(chan error, 1)
					e.Submit(context.Background(), rankd.Request{Plan: "plain", UserID: 1}, func(_ *rankd.Answer, err error) { probed <- err })
					return errors.Is(<-probed, rankd.ErrClosed)
				}, 10*time.Second, time.Millisecond)
				close(g.Opened)
				assert.NoError(t, <-answered)
				assert.NoError(t, <-closed)
				_, err := e.Rank(t.Context(), rankd.Request{UserID: 1})
				assert.ErrorIs(t, err, rankd.ErrClosed)
			})
			t.Run("Shutdown", func(t *testing.T) {
				g := enginetest.NewGate()
				e := enginetest.Open(t, rankd.Options{Model: model, Tasks: g.Tasks(), Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated}), Plan: "gated"})
				answered := make(chan error, 1)
				e.Submit(context.Background(), rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) { answered <- err })
				<-g.Entered
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				assert.ErrorIs(t, e.Shutdown(ctx), context.Canceled)
				assert.ErrorIs(t, <-answered, rankd.ErrClosed)
			})
			// Shutdown returns soon after its context ends, whatever a body does.
			t.Run("Shutdown while a body never looks", func(t *testing.T) {
				g := enginetest.NewGate()
				deaf := g.Tasks()
				deaf[0].Run = func(c *task.Ctx) (rowset.RowSet, error) {
					g.Entered <- struct{}{}
					<-g.Opened
					return c.Inputs[0], nil
				}
				e := enginetest.Open(t, rankd.Options{Model: model, Tasks: deaf, Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated}), Plan: "gated"})
				rankd.Patient(e)
				answered := make(chan error, 1)
				e.Submit(context.Background(), rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) { answered <- err })
				<-g.Entered
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(enough)
				err := e.Shutdown(ctx)
				require.ErrorIs(t, err, enough)
				bodies := 0
				if model == rankd.Reactor {
					bodies = 1
				}
				assert.EqualError(t, err, fmt.Sprintf("rankd: shutdown: enough: 1 requests fail that have not ended, and %d bodies run on", bodies))
				if model == rankd.Reactor {
					assert.ErrorIs(t, <-answered, rankd.ErrClosed)
				}
				close(g.Opened)
				require.NoError(t, e.Close())
			})
		})
	}
}

// A body must not wait for an engine, wherever it runs: the call is refused instead of
// deadlocking.
func TestBodiesMustNotWaitForAnEngine(t *testing.T) {
	for _, model := range enginetest.Models {
		for _, place := range []task.Place{task.Computes, task.Waits, task.OnLoop} {
			t.Run(string(model)+place.String(), func(t *testing.T) {
				var e *rankd.Engine
				var rank, closed error
				body := func(*task.Ctx) (rowset.RowSet, error) {
					_, rank = e.Rank(context.Background(), rankd.Request{Plan: "calls", UserID: 1})
					closed = e.Close()
					e.Metrics()
					return rowset.Dense(&rowset.Batch{}), nil
				}
				calls := task.Spec{Op: "test::calls", Output: task.Source, Place: place, Run: body}
				e = enginetest.Open(t, rankd.Options{Model: model, CPUThreads: 1, IOThreads: 1, Tasks: []task.Spec{calls},
					Plans: enginetest.Plans(map[string]string{"calls": `{"node_id": "out", "op": "test::calls", "inputs": []}`})})
				_, err := e.Rank(t.Context(), rankd.Request{Plan: "calls", UserID: 1})
				assert.ErrorIs(t, err, rankd.ErrPanic) // of Metrics
				assert.ErrorIs(t, rank, rankd.ErrCallback)
				assert.ErrorIs(t, closed, rankd.ErrCallback)
			})
		}
	}
}

// callbackCases are requests whose callbacks run in different places.
var callbackCases = []struct {
	name    string
	request rankd.Request
}{
	{"Answer", rankd.Request{Plan: "simple_viewer", UserID: 1}},
	{"Synthetic", rankd.Request{UserID: 1}},
	{"Refused", rankd.Request{Plan: "simple_viewer", UserID: -1}},
}

// A callback must not wait for its engine: the call is refused instead of deadlocking.
func TestCallbacksMustNotWait(t *testing.T) {
	for _, model := range enginetest.Models {
		for _, test := range callbackCases {
			t.Run(string(model)+test.name, func(t *testing.T) {
				e := enginetest.Open(t, rankd.Options{Model: model, Synthetic: true})
				type seen struct {
					rank, closed, shutdown error
					metrics                error
				}
				done := make(chan seen, 1)
				e.Submit(context.Background(), test.request, func(*rankd.Answer, error) {
					var got seen
					defer func() {
						got.metrics, _ = recover().(error)
						done <- got
					}()
					_, got.rank = e.Rank(context.Background(), test.request)
					got.closed = e.Close()
					got.shutdown = e.Shutdown(context.Background())
					e.Metrics()
				})
				got := <-done
				assert.ErrorIs(t, got.rank, rankd.ErrCallback)
				assert.ErrorIs(t, got.closed, rankd.ErrCallback)
				assert.ErrorIs(t, got.shutdown, rankd.ErrCallback)
				assert.ErrorIs(t, got.metrics, rankd.ErrCallback)
			})
		}
	}
}

// A callback that panics harms nobody else and is logged, wherever it runs.
func TestPanicInACallbackIsLogged(t *testing.T) {
	for _, model := range enginetest.Models {
		for _, test := range callbackCases {
			t.Run(string(model)+test.name, func(t *testing.T) {
				var log enginetest.SyncBuffer
				e := enginetest.Open(t, rankd.Options{Model: model, Synthetic: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				e.Submit(context.Background(), test.request, func(*rankd.Answer, error) { panic("boom") })
				require.Eventually(t, func() bool { return strings.Contains(log.String(), "boom") }, 10*time.Second, time.Millisecond)
				_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1})
				assert.NoError(t, err)
			})
		}
	}
}

// A negative timeout must not mean that there is no bound. It may come from time.Until of an
// instant that has passed.
func TestANegativeTimeoutIsRefused(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{})
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1, Timeout: -time.Second})
	assert.ErrorIs(t, err, rankd.ErrInvalidRequest)
	assert.EqualError(t, err, "Invalid request: Timeout must not be negative, got -1s")
}

func TestMetrics(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{})
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1})
	require.NoError(t, err)
	m := e.Metrics()
	assert.EqualValues(t, 1, m.Requests)
	assert.EqualValues(t, 1, m.Redis[0].RoundTrips)

	require.NoError(t, e.Close())
	m = e.Metrics()
	assert.EqualValues(t, 1, m.Requests, "they stay when the engine is closed")
	assert.EqualValues(t, 1, m.Redis[0].RoundTrips)
}

// Each computing node counts once in the metrics, for the engine and for its plan.
func TestMetricsOfPlacement(t *testing.T) {
	const requests = 5
	for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
		t.Run(string(mode), func(t *testing.T) {
			e := enginetest.Open(t, rankd.Options{Plans: enginetest.Plans(map[string]string{"weighted": weighted}), Plan: "weighted", Scheduling: rankd.Scheduling{Mode: mode}})
			for range requests {
				_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Params: map[string]any{"weight": 1}})
				require.NoError(t, err)
			}
			m := e.Metrics()
			require.Contains(t, m.Plans, "weighted")
			for _, s := range []rankd.PlacementStats{m.Placement, m.Plans["weighted"]} {
				switch mode {
				case rankd.OffloadAll:
					assert.Zero(t, s.Inline)
					assert.EqualValues(t, requests, s.Offloaded)
					assert.EqualValues(t, requests, s.QueueDelay.Count)
				case rankd.InlineAll:
					assert.Zero(t, s.Offloaded)
					assert.GreaterOrEqual(t, s.Inline, uint64(requests), "the source may run inline, too")
				default:
					assert.GreaterOrEqual(t, s.Inline+s.Offloaded, uint64(requests))
				}
			}
		})
	}
}

// A body that outlives its node counts as late or as cancelled, for the engine and for its plan. Here
// Shutdown gives up the nodes; a deadline does the same.
func TestMetricsOfAbandonedWork(t *testing.T) {
	entered := make(chan struct{})
	abandoned := func(op string, end error) task.Spec {
		return task.Spec{Op: "test::" + op, Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			entered <- struct{}{}
			<-c.Context().Done()
			return c.Inputs[0], end
		}}
	}
	const nodes = `{"node_id": "rows", "op": "test::fixed_source", "inputs": []}, {"node_id": "out", "op": "test::%s", "inputs": ["rows"]}`
	e := enginetest.Open(t, rankd.Options{Tasks: []task.Spec{abandoned("stubborn", nil), abandoned("obedient", task.ErrCancelled)}, Plans: enginetest.Plans(map[string]string{
		"late": fmt.Sprintf(nodes, "stubborn"), "early": fmt.Sprintf(nodes, "obedient"),
	})})
	failed := make(chan error)
	for _, plan := range []string{"late", "early"} {
		e.Submit(context.Background(), rankd.Request{UserID: 1, Plan: plan}, func(_ *rankd.Answer, err error) { go func() { failed <- err }() })
		<-entered
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, e.Shutdown(ended), context.Canceled)
	for range 2 {
		require.ErrorIs(t, <-failed, rankd.ErrClosed)
	}
	require.NoError(t, e.Close())
	m := e.Metrics()
	for name, want := range map[string][2]uint64{"late": {1, 0}, "early": {0, 1}} {
		require.Contains(t, m.Plans, name)
		assert.Equal(t, want, [2]uint64{m.Plans[name].LateCompletions, m.Plans[name].Cancelled}, name)
	}
	assert.EqualValues(t, 1, m.Placement.LateCompletions)
	assert.EqualValues(t, 1, m.Placement.Cancelled)
}

func TestPlacementRates(t *testing.T) {
	assert.Zero(t, new(rankd.PlacementStats).InlineRate(), "of no nodes")
	s := rankd.PlacementStats{Inline: 6, Offloaded: 4, Fused: 2}
	assert.Equal(t, []float64{0.6, 0.4, 0.2}, []float64{s.InlineRate(), s.OffloadRate(), s.FusedRate()})
}

func BenchmarkRank(b *testing.B) {
	e := enginetest.Open(b, rankd.Options{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Rank(ctx, rankd.Request{Plan: "simple_viewer", UserID: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

// Rank and Close use this check to detect a callback: it reads the stack.
func BenchmarkInCallback(b *testing.B) {
	for b.Loop() {
		rankd.InCallback()
	}
}

// TestFormerGenerationsGo checks that an engine holds two generations, however many it has had.
func TestFormerGenerationsGo(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			p := enginetest.OpenProject(t, rankd.Options{Model: model})
			params, err := os.ReadFile(filepath.Join(p.Dir, "tables/params.toml"))
			require.NoError(t, err)
			var gone []func() bool
			counted := map[string]uint64{}
			for v := 2; v < 12; v++ {
				p.Says("versioned")
				gone = append(gone, rankd.Gone(p.Engine))
				p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", v))
				p.Write("tables/params.toml", string(params)+fmt.Sprintf("\n[[param]]\nid = 900\nname = \"more_%d\"\ntype = \"int\"\n", v))
				_, err := p.Reload(t.Context())
				require.NoError(t, err)
				for name, s := range p.Metrics().Plans {
					assert.GreaterOrEqual(t, s.Inline+s.Offloaded, counted[name], "counters stay")
					counted[name] = s.Inline + s.Offloaded
				}
			}
			p.Says("versioned") // and those that are used again are not among the former ones
			for i, gone := range gone[:len(gone)-2] {
				assert.Eventually(t, func() bool { runtime.GC(); return gone() }, 10*time.Second, time.Millisecond, "generation %d", i+1)
			}
		})
	}
}

// TestWhatIsTheSameIsShared: a model and a plan whose files have not changed are not read
// twice.
func TestWhatIsTheSameIsShared(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	p.Write("plans/other.plan.json", enginetest.VersionPlan("other", 5))
	_, err := p.Plans()
	require.NoError(t, err)
	other := rankd.GraphOf(p.Engine, "other")
	p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", 2))
	_, err = p.Reload(t.Context())
	require.NoError(t, err)
	assert.Same(t, other, rankd.GraphOf(p.Engine, "other"))
	assert.Equal(t, 2, p.Says("versioned"))
}
