package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/trace"
)

// One request runs and one waits. A third is refused at once, without another goroutine. The
// one that waits is abandoned.
func TestAdmission(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			g := enginetest.NewGate()
			e := enginetest.Open(t, rankd.Options{
				Model: model, MaxInflight: 1, MaxQueue: 1, Tasks: g.Tasks(), Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated, "plain": enginetest.ThreeRows}), Plan: "gated",
			})
			answers := make(chan error, 4)
			done := func(_ *rankd.Answer, err error) { answers <- err }
			require.NoError(t, e.Intake().Start(context.Background(), rankd.Request{UserID: 1}, done))
			<-g.Entered
			ctx, cancel := context.WithCancelCause(context.Background())
			require.NoError(t, e.Intake().Start(ctx, rankd.Request{UserID: 2}, done))
			err := e.Intake().Start(context.Background(), rankd.Request{UserID: 3, ID: "third"}, done)
			require.ErrorIs(t, err, rankd.ErrOverloaded)
			assert.Equal(t, `{"request_id":"third","error":"Overloaded","detail":"too many requests: the run limit and the queue are full"}`+"\n",
				string(err.(*rankd.Error).AppendJSON(nil)))
			e.Submit(context.Background(), rankd.Request{UserID: 4}, done)
			assert.ErrorIs(t, <-answers, rankd.ErrOverloaded)
			m := e.Metrics()
			assert.Equal(t, []int{1, 1}, []int{m.Live, m.Admission.Waiting})
			assert.EqualValues(t, 2, m.Admission.Refused)
			gone := errors.New("the caller has gone")
			cancel(gone)
			close(g.Opened)
			first, second := <-answers, <-answers
			if first != nil {
				first, second = second, first
			}
			require.NoError(t, first)
			requireClasses(t, second, rankd.ErrAbandoned, context.Canceled, gone)
			assert.Equal(t, "Request cancelled: the caller has gone", second.Error())
			assert.Positive(t, second.(*rankd.Error).QueueDelay)
			assert.Empty(t, answers)
		})
	}
}

// A running request that is abandoned starts no further node.
func TestAbandoned(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			g := enginetest.NewGate()
			e := enginetest.Open(t, rankd.Options{Model: model, Tasks: g.Tasks(), Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated}), Plan: "gated"})
			answered := make(chan error, 1)
			ctx, cancel := context.WithCancelCause(context.Background())
			require.NoError(t, e.Intake().Start(ctx, rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) { answered <- err }))
			<-g.Entered
			gone := errors.New("the caller has gone")
			cancel(gone)
			close(g.Opened)
			requireClasses(t, <-answered, rankd.ErrAbandoned, context.Canceled, gone)
			assert.Zero(t, g.Marked)
			require.ErrorIs(t, e.Intake().Start(ctx, rankd.Request{UserID: 1}, enginetest.Nobody(t)), gone)
		})
	}
}

func requireClasses(t *testing.T, err error, classes ...error) {
	t.Helper()
	for _, class := range classes {
		require.ErrorIs(t, err, class)
	}
}

// Each request gets its error either from Start or in its callback, never in both.
func TestStartRefusesAtOnce(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plan: "simple_viewer"})
	never := enginetest.Nobody(t)
	require.ErrorIs(t, e.Intake().Start(context.Background(), rankd.Request{UserID: 0}, never), rankd.ErrInvalidRequest)
	require.ErrorIs(t, e.Intake().Start(context.Background(), rankd.Request{UserID: 1, Trace: true}, never), rankd.ErrInvalidRequest)
	later := make(chan error, 2)
	require.NoError(t, e.Intake().Start(context.Background(), rankd.Request{UserID: 1, Plan: "nobody_has_it"}, func(_ *rankd.Answer, err error) { later <- err }))
	err := <-later
	require.ErrorIs(t, err, rankd.ErrUnknownPlan)
	assert.Equal(t, err, error(e.Intake().UnknownPlan("", "nobody_has_it")))
	require.NoError(t, e.Close())
	require.ErrorIs(t, e.Intake().Start(context.Background(), rankd.Request{UserID: 1}, never), rankd.ErrClosed)
	require.ErrorIs(t, e.Intake().Start(context.Background(), rankd.Request{UserID: 1, Plan: "diamond"}, never), rankd.ErrClosed)
	assert.Empty(t, later)
}

// A nil callback is a bug of the program, and is found at once.
func TestANilCallback(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plan: "simple_viewer"})
	assert.Panics(t, func() { e.Submit(t.Context(), rankd.Request{UserID: 1}, nil) })
	assert.Panics(t, func() { _ = e.Intake().Start(t.Context(), rankd.Request{UserID: 1}, nil) })
}

// The zero values are empty.
func TestZeroAnswer(t *testing.T) {
	var a rankd.Answer
	assert.Zero(t, a.Len()+a.Outputs()+int(a.QueueDelay()))
	assert.Empty(t, slices.Collect(a.Candidates()))
	assert.Nil(t, a.SchemaDeltas())
	assert.Nil(t, a.Completeness())
	assert.Nil(t, a.Explanation())
	assert.False(t, a.Degraded())
	assert.Nil(t, a.Trace())
	assert.Contains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), `"candidates":[]`)
	var o rankd.Output
	assert.Zero(t, o.Len())
	assert.Empty(t, slices.Collect(o.Candidates()))
	assert.Empty(t, o.Columns())
	_, _, ok := o.Floats("score")
	assert.False(t, ok)
	var c rankd.Candidate
	assert.Zero(t, c.ID())
	_, ok = c.String("country")
	assert.False(t, ok)
}

func TestAdmissionOptions(t *testing.T) {
	for want, o := range map[string]rankd.Options{
		"MaxQueue needs MaxInflight":       {MaxQueue: 1},
		"MaxInflight must not be negative": {MaxInflight: -1},
		"MaxQueue must not be negative":    {MaxInflight: 1, MaxQueue: -1},
	} {
		_, err := rankd.Open(o)
		assert.ErrorContains(t, err, want)
	}
}

// A trace says how long its request waited for admission.
func TestTraceOfAQueue(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			g := enginetest.NewGate()
			e := enginetest.Open(t, rankd.Options{
				Model: model, MaxInflight: 1, MaxQueue: 1, AllowRequestTrace: true, Tasks: g.Tasks(), Plans: enginetest.Plans(map[string]string{"gated": enginetest.Gated}), Plan: "gated",
			})
			ask := func(user int64) <-chan *rankd.Answer {
				answer := make(chan *rankd.Answer, 1)
				require.NoError(t, e.Intake().Start(context.Background(), rankd.Request{UserID: user, Trace: true}, func(a *rankd.Answer, err error) {
					assert.NoError(t, err)
					answer <- a
				}))
				return answer
			}
			first := ask(1)
			<-g.Entered
			next := ask(2)                           // It may be answered before the first, but on the loop.
			for e.Metrics().Admission.Waiting == 0 { // the loop has not seen the request yet
			}
			close(g.Opened)
			assert.Zero(t, (<-first).Trace().Request.QueueDelay)
			second := <-next
			ran := second.Trace()
			assert.Positive(t, ran.Request.QueueDelay)
			assert.Equal(t, second.QueueDelay(), ran.Request.QueueDelay)
			require.NoError(t, ran.Check())
			assert.Contains(t, ran.Segments()[:2], segmentOf(ran, "place"))
		})
	}
}

// segmentOf returns the first segment in which a request waits for that reason.
func segmentOf(t *trace.Trace, reason trace.Reason) trace.Segment {
	for _, s := range t.Segments() {
		if s.For == reason {
			return s
		}
	}
	return trace.Segment{}
}
