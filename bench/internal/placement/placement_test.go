package placement

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/task"
)

// A library that gnet uses starts two goroutines from init.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// TestPlansOfScenarios: each plan loads, each is asked for, and no mode changes its answer.
func TestPlansOfScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			assert.ElementsMatch(t, slices.Collect(maps.Keys(s.Plans())), slices.Compact(slices.Sorted(slices.Values(s.Order))))
			var first map[string]string
			for _, v := range Variants("") {
				e, err := rankd.Open(v.Engine.Options(rankd.Options{Env: "test", Plans: s.Folder(), Tasks: []task.Spec{burnTask(burn)}}))
				require.NoError(t, err)
				answers := map[string]string{}
				for name := range s.Plans() {
					a, err := e.Rank(t.Context(), rankd.Request{Plan: name, UserID: 1})
					require.NoError(t, err)
					assert.NotZero(t, a.Output(0).Len())
					answers[name] = ids(a)
				}
				require.NoError(t, e.Close())
				if first == nil {
					first = answers
				}
				assert.Equal(t, first, answers, v.Name)
			}
		})
	}
}

func ids(a *rankd.Answer) string {
	var b []byte
	for i := range a.Output(0).Len() {
		b = append(strconv.AppendInt(b, a.Output(0).ID(i), 10), ' ')
	}
	return string(b)
}

func TestRandomPlansHaveTheirSize(t *testing.T) {
	for _, n := range []int{50, 500} {
		s := dags(n)
		assert.Len(t, s.Plans(), 8)
		assert.Equal(t, s.Plans(), dags(n).Plans(), "the same in every run")
		e, err := rankd.Open(rankd.Options{Env: "test", Plans: s.Folder(), Tasks: []task.Spec{burnTask(burn)}})
		require.NoError(t, err)
		for _, name := range s.Order {
			info, err := e.PlanInfo(name)
			require.NoError(t, err)
			assert.Len(t, info.Nodes, n)
		}
		require.NoError(t, e.Close())
	}
}

func scenarioOf(t *testing.T, name string) *Scenario {
	for _, s := range Scenarios() {
		if s.Name == name {
			return &s
		}
	}
	t.Fatal(name)
	return nil
}

// Requests on many rows ask for their own mode if the scenario says so, but the others do not.
func TestRequestsAskForAMode(t *testing.T) {
	inline := map[string]float64{}
	for _, name := range []string{"mix_large", "mix_asking"} {
		target, err := Open(rankd.Options{Env: "test", CPUThreads: 2, Scheduling: rankd.Scheduling{Mode: rankd.OffloadAll}}, name)
		require.NoError(t, err)
		answered := make(chan error)
		client := target.NewClient(func(err error) { answered <- err })
		for i, plan := range scenarioOf(t, name).Order[:60] {
			client.Send(int64(i + 1))
			require.NoError(t, <-answered, plan)
		}
		inline[name] = target.(load.Reporting).Figures().(map[string]float64)["inline_rate"]
		target.Close()
	}
	assert.Zero(t, inline["mix_large"])
	assert.Positive(t, inline["mix_asking"])
	assert.Less(t, inline["mix_asking"], 0.1, "one request of sixty")
}
