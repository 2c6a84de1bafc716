package testworld

import (
	"sync"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// BrokenRows are a task and a trace sink with a bug: the answers of users with an even id break whoever encodes them.
// The sink must get each request. Any goroutine.
type BrokenRows struct {
	Rows int // of each answer

	mu   sync.Mutex
	made map[string]*rowset.Batch // of the requests that run, by their ids
}

// Task returns the task, test::broken.
func (b *BrokenRows) Task() task.Spec {
	return task.Spec{Op: "test::broken", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		ids := make([]int64, b.Rows)
		for i := range ids {
			ids[i] = int64(i + 1)
		}
		batch := &rowset.Batch{IDs: ids}
		if c.UserID%2 == 0 {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.made == nil {
				b.made = make(map[string]*rowset.Batch)
			}
			b.made[c.RequestID] = batch
		}
		return rowset.Dense(batch), nil
	}}
}

// Take implements rankd.TraceSink.
func (b *BrokenRows) Take(r *trace.Recording) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if batch := b.made[r.RequestID]; batch != nil {
		batch.IDs = nil
		delete(b.made, r.RequestID)
	}
}
