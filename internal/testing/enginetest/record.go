package enginetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace/record"
)

// Records keeps records in memory: it is a record.Sink and their record.Source. The zero value is ready. Any goroutine, but for Requests: once
// the engine is closed.
type Records struct {
	Requests []*record.Request

	mu     sync.Mutex
	common map[string]any // generations and resident rows, by their digests
}

// Add implements record.Sink.
func (s *Records) Add(r *record.Request, from record.Source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.common == nil {
		s.common = make(map[string]any)
	}
	keep := func(key string, get func() (any, error)) (err error) {
		if s.common[key] == nil {
			s.common[key], err = get()
		}
		return err
	}
	s.Requests = append(s.Requests, r)
	err := keep(r.Generation, func() (any, error) { return from.Generation(r.Generation) })
	for _, run := range r.Runs {
		for name, digest := range run.Residents {
			if err == nil {
				err = keep(name+" "+digest, func() (any, error) { return from.Resident(name, digest) })
			}
		}
	}
	return err
}

// Flush implements record.Sink.
func (s *Records) Flush() error { return nil }

// Generation implements record.Source.
func (s *Records) Generation(digest string) (*record.Generation, error) {
	if g, ok := s.common[digest].(*record.Generation); ok {
		return g, nil
	}
	return nil, fmt.Errorf("there is no generation %s", digest)
}

// Resident implements record.Source.
func (s *Records) Resident(plan, digest string) (*record.Resident, error) {
	if r, ok := s.common[plan+" "+digest].(*record.Resident); ok {
		return r, nil
	}
	return nil, fmt.Errorf("there are no rows %s of plan %s", digest, plan)
}

// FolderOf returns files of a record as a folder.
func FolderOf(files []record.File, ending string) fstest.MapFS {
	folder := fstest.MapFS{}
	for _, f := range files {
		folder[f.Name+ending] = &fstest.MapFile{Data: f.Bytes}
	}
	return folder
}

// ReplayAll runs the requests again, on each model and in each mode, by engines that are made of the records alone. What tasks that are not
// rankd's do differently is no failure.
func (s *Records) ReplayAll(t testing.TB, tasks []task.Spec) {
	t.Helper()
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
			if model == rankd.Reactor || mode == plan.Adaptive { // The others have no modes.
				s.replayOn(t, rankd.Options{Model: model, Scheduling: rankd.Scheduling{Mode: mode}, Tasks: tasks})
			}
		}
	}
}

func (s *Records) replayOn(t testing.TB, o rankd.Options) {
	t.Helper()
	engines := map[string]*rankd.Engine{}
	for _, r := range s.Requests {
		e := engines[r.Generation]
		if e == nil {
			g, err := s.Generation(r.Generation)
			require.NoError(t, err)
			o.NoSecrets, o.Env, o.AllowRequestTraffic = true, g.Env, true
			o.Registry, o.Plans, o.Models = FolderOf(g.Tables, ""), FolderOf(g.Plans, ".plan.json"), FolderOf(g.Models, "")
			e, err = rankd.Open(o)
			require.NoError(t, err)
			engines[r.Generation] = e
		}
		again, err := e.Intake().Replay(context.Background(), r, s, rankd.Request{})
		require.NoError(t, err)
		if d := again.Difference; d != nil && !d.Foreign {
			assert.Fail(t, "a replay differs", "%s %s: plan %s, user %d: %v", o.Model, o.Scheduling.Mode, r.Plan, r.UserID, d)
		}
		if again.Answer != nil {
			assert.Contains(t, string(again.Answer.AppendJSON(nil, rankd.FormatFlat)), `"engine_request_id":"`+request.ID(r.ID)+`"`, "it is the answer of the record")
		}
	}
	for _, e := range engines {
		for _, redis := range e.Metrics().Redis {
			assert.Zero(t, redis.Commands, "a replay asks nobody")
		}
		assert.NoError(t, e.Close())
	}
}
