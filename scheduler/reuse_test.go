package scheduler

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// weightParam multiplies the ids in the plans of these tests.
const weightParam registry.ParamID = 4

// weighted returns a request whose rows tell which request they belong to: the user, the
// weight, and final_score = id × weight.
func weighted(req *Execution, user int64) *Execution {
	req.UserID = user
	req.Params = expr.Params{}
	req.Params.SetFloat(weightParam, float64(user))
	return req
}

// checkWeighted compares all that a body can see with what its request asked for.
func checkWeighted(c *task.Ctx, user int64, rows int) error {
	if c.UserID != user {
		return fmt.Errorf("user %d sees user %d", user, c.UserID)
	}
	if w, ok := c.Params.Float(weightParam); !ok || w != float64(user) {
		return fmt.Errorf("user %d sees weight %v", user, w)
	}
	return checkScores(c.Inputs[0], user, rows)
}

func checkScores(in rowset.RowSet, user int64, rows int) error {
	if in.Len() != rows {
		return fmt.Errorf("user %d has %d rows, not %d", user, in.Len(), rows)
	}
	score := in.Batch.Float(finalScore)
	if score == nil {
		return fmt.Errorf("user %d has no scores", user)
	}
	for i := range rows {
		if id, got := in.ID(i), score.Values[in.Row(i)]; id != int64(i+1) || got != float64(id*user) {
			return fmt.Errorf("user %d, row %d: id %d scores %v", user, i, id, got)
		}
	}
	return nil
}

// TestAbandonedWorkKeepsItsBuffers has bodies run on long after their request was answered,
// deaf to cancellation. Meanwhile hundreds of requests use and reuse whatever the free lists
// hold. An abandoned body must go on seeing its own inputs, parameters and user, and nobody may
// write to their memory. The values check the first, the race detector the second.
func TestAbandonedWorkKeepsItsBuffers(t *testing.T) {
	const (
		rows      = 500
		abandoned = 4
		rounds    = 40
	)
	entered := make(chan *task.Ctx)
	looks := make(chan struct{}, abandoned) // has one body look once at its own data
	var spoilt sync.Map                     // user → what it saw that was not its own
	deaf := task.Spec{
		Op: "test::deaf", Inputs: 1, Output: task.PassThrough,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			user := c.UserID
			entered <- c
			<-c.Context().Done() // the request is answered, and whatever is not this body's is in use again
			for range looks {
				if err := checkWeighted(c, user, rows); err != nil {
					spoilt.Store(user, err)
				}
			}
			return c.Inputs[0], nil
		},
	}
	tasks := builtins(t, deaf)
	scored := []string{source(rows), vmNode("vm", "src"),
		node("big", "filter", "vm", `"pred_id": "big"`, ""), node("ids", "sort", "big", `"by": 1`, "")}
	lateGraph := graph(t, tasks, "deaf", append(scored, node("deaf", "deaf", "ids", "", `"timeout_ms": 1000`))...)
	quickGraph := graph(t, tasks, "ids", scored...)

	time := clock.NewManual() // so that bodies are late only after they have begun
	w := openWorld(t, Config{CPUThreads: abandoned + 2, Clock: time})
	var reused Execution // the caller's memory is its own again after done
	for i := range int64(abandoned) {
		reused.Graph = lateGraph
		result := w.start(weighted(&reused, i+1))
		<-entered
		time.Advance(ms(1000))
		w.loop.Post(nil) // has the loop read the clock
		requireTimeout(t, (<-result).Err, ErrNodeTimeout)
	}
	require.Equal(t, abandoned, w.Metrics().Orphans)

	// Now everything else is used again and again, by many requests at a time, each with its
	// own values.
	for round := range int64(rounds) {
		for range abandoned {
			looks <- struct{}{}
		}
		var all sync.WaitGroup
		for i := range int64(16) {
			user := 1000 + round*16 + i
			req := weighted(&Execution{Graph: quickGraph}, user)
			all.Add(1)
			w.Submit(req, func(r *Result) {
				defer all.Done()
				req.Params.SetFloat(weightParam, -1) // done: nobody may be reading it
				if assert.NoError(t, r.Err) {
					assert.NoError(t, checkScores(r.Outputs[0], user, rows))
				}
			})
		}
		all.Wait()
	}
	close(looks)
	w.Close(Forever)
	spoilt.Range(func(user, err any) bool { return assert.NoError(t, err.(error)) })
	assert.Equal(t, uint64(abandoned), w.counted().LateCompletions)
}

// TestLateResultsAreDropped has bodies hand back late, with rows that nobody asked for, when
// the memory of their requests already serves other requests.
func TestLateResultsAreDropped(t *testing.T) {
	w := newHandWorld(t, 0)
	g := builtinGraph(t, "ids", source(3), vmNode("vm", "src"), node("ids", "sort", "vm", `"by": 1`, ""))
	var requests []*pending
	for user := range int64(8) {
		requests = append(requests, w.start(weighted(w.within(g, ms(10)), user+1)))
		w.Settle()
	}
	require.Len(t, w.cpu.queued, 8)
	var begun []func() // completions to come
	for range 4 {
		job := w.cpu.take() // these cannot be taken back, and have their results before they are late
		job.Work()
		begun = append(begun, func() { w.Loop.Post(func() { job.Done(nil) }) })
	}
	w.Advance(ms(10))
	for _, r := range requests {
		require.NotNil(t, r.Result)
		requireTimeout(t, r.Err, ErrNodeTimeout)
	}
	assert.Equal(t, 4, w.orphans.Len(), "four had not begun")

	w.cpu.auto = true
	for i, complete := range begun {
		user := int64(100 + i)
		p := w.start(weighted(w.within(g, ms(10)), user))
		complete() // its hand-back comes before that of the new request's vm
		w.Settle()
		require.NotNil(t, p.Result)
		requireRows(t, p.Result, 1, 2, 3)
		require.NoError(t, checkScores(p.Outputs[0], user, 3))
	}
	assert.Equal(t, Counts{Requests: 12, Failed: 8, NodeTimeouts: 8, Cancelled: 4, LateCompletions: 4}, w.counted())
}
