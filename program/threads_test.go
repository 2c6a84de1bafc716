package program

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// meeting has bodies wait until that many run at the same time. Any goroutine.
type meeting struct {
	wanted int
	all    chan struct{} // closed when they have met
	giveUp <-chan struct{}

	mu            sync.Mutex
	running, most int
}

// join is the body of a task.
func (m *meeting) join(*task.Ctx) (rowset.RowSet, error) {
	m.mu.Lock()
	m.running++
	m.most = max(m.most, m.running)
	if m.running == m.wanted {
		close(m.all)
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.running--
		m.mu.Unlock()
	}()
	select {
	case <-m.all:
		return rowset.Dense(&rowset.Batch{IDs: []int64{1}}), nil
	case <-m.giveUp:
		return rowset.RowSet{}, fmt.Errorf("fewer than %d bodies run side by side", m.wanted)
	}
}

// TestAsManyWorkersAsAskedFor: the flags say how many bodies run at the same time. A test of
// results could not tell them from bodies that run one after another.
func TestAsManyWorkersAsAskedFor(t *testing.T) {
	const workers = 5 // more than a default
	for _, c := range []struct {
		args  string
		place task.Place
	}{
		{"--cpu_threads=5", task.Computes},
		{"--engine=pool --cpu_threads=5 --io_threads=1", task.Computes},
		{"--engine=pool --cpu_threads=1 --io_threads=5", task.Waits},
	} {
		t.Run(c.args, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // only a failed test waits that long
			defer cancel()
			m := &meeting{wanted: workers, all: make(chan struct{}), giveUp: ctx.Done()}
			var nodes, outputs []string
			for i := range workers {
				nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "op": "meet", "inputs": []}`, i))
				outputs = append(outputs, fmt.Sprintf(`"n%d"`, i))
			}
			path := writePlan(t, t.TempDir(), "meet", fmt.Sprintf(`{"schema_version": 1, "plan_name": "meet", "nodes": [%s], "outputs": [%s]}`,
				strings.Join(nodes, ","), strings.Join(outputs, ",")))

			o := options{}
			cmd := newCommand(&o, nil)
			require.NoError(t, cmd.ParseFlags(append(strings.Fields(c.args), "--env=test", "--plan="+path)))
			require.NoError(t, o.check(cmd.Flags()))
			engine, err := engineOptions(&o)
			require.NoError(t, err)
			engine.Tasks = []task.Spec{{Op: "test::meet", Run: m.join, Place: c.place, Output: task.Source}}
			e, err := rankd.Open(engine)
			require.NoError(t, err)
			defer e.Close()
			_, err = e.Rank(ctx, rankd.Request{UserID: 1})
			assert.NoError(t, err)
			assert.Equal(t, workers, m.most)
		})
	}
}

// TestDefaultThreads: the program has the library's default of CPU workers, and four I/O
// workers. The help has the default, with one line per flag.
func TestDefaultThreads(t *testing.T) {
	o := run(t, nil, "--help")
	require.Equal(t, exitOK, o.status)
	for flag, workers := range map[string]int{"cpu_threads": rankd.DefaultCPUThreads(), "io_threads": 4} {
		assert.Regexp(t, fmt.Sprintf(`(?m)--%s number .*\(default %d\)$`, flag, workers), o.stdout)
	}
}
