package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// Threads that compute share the cores, and no thread uses two cores at once.
func TestMachineSharesItsCores(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name           string
		cores          int
		workers        []time.Duration // what each computes
		loop           time.Duration   // the same
		ended          []time.Duration // when each has computed
		loopEnded, all time.Duration
	}{
		{name: "one", cores: 2, workers: []time.Duration{ms}, ended: []time.Duration{ms}, all: ms},
		{name: "a core for each", cores: 2, workers: []time.Duration{ms, 3 * ms}, ended: []time.Duration{ms, 3 * ms}, all: 3 * ms},
		{name: "one core for two", cores: 1, workers: []time.Duration{ms, 3 * ms}, ended: []time.Duration{2 * ms, 4 * ms}, all: 4 * ms},
		{name: "two cores for three", cores: 2, workers: []time.Duration{2 * ms, 2 * ms, 4 * ms}, ended: []time.Duration{3 * ms, 3 * ms, 5 * ms}, all: 5 * ms},
		{name: "the loop has no core of its own", cores: 1, workers: []time.Duration{ms}, loop: ms, ended: []time.Duration{2 * ms}, loopEnded: 2 * ms, all: 2 * ms},
		{name: "the loop alone", cores: 1, loop: ms, loopEnded: ms, all: ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(tt.cores, costs{})
			ended := make([]time.Duration, len(tt.workers))
			began := m.sim.Now()
			for i, work := range tt.workers {
				m.Go(func() {
					m.compute(work)
					ended[i] = m.sim.Now().Sub(began)
				})
			}
			m.step(began) // they begin
			if tt.loop > 0 {
				m.compute(tt.loop)
				assert.Equal(t, tt.loopEnded, m.sim.Now().Sub(began))
			}
			require.NoError(t, m.runUntil(began.Add(tt.all)))
			assert.Equal(t, len(tt.workers), len(ended))
			assert.Empty(t, m.computing)
			if len(tt.ended) > 0 {
				assert.Equal(t, tt.ended, ended)
			}
			want := tt.loop
			for _, work := range tt.workers {
				want += work
			}
			assert.Equal(t, want, m.used)
			assert.Equal(t, tt.loopEnded, m.loopTime)
			require.NoError(t, m.sim.Stop())
		})
	}
}

// Two simulations are the same. None computes more than its cores can, and on few cores the
// workers never rest.
func TestSimulate(t *testing.T) {
	s := dags(50)
	first, err := Simulate(&s, []int{2, 16}, 200*time.Millisecond)
	require.NoError(t, err)
	again, err := Simulate(&s, []int{2, 16}, 200*time.Millisecond)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	require.Len(t, first, 6)
	for _, r := range first {
		f := r.Figures
		assert.LessOrEqual(t, f["requests_per_second"]*f["cpu_us"], 1.01e6*float64(r.Cores), r.Variant)
		assert.Greater(t, f["cpu_us"], 900.0, "%s: nine heavy nodes in eight plans, which come at random", r.Variant)
		assert.LessOrEqual(t, f["p50_us"], f["p99_us"])
		if r.Cores == 2 {
			assert.InDelta(t, 0, f["idle"], 0.02, r.Variant)
		} else {
			assert.Greater(t, f["idle"], 0.4, "%s: eight workers", r.Variant)
		}
	}
	assert.Greater(t, first[1].Figures["requests_per_second"], first[0].Figures["requests_per_second"], "cheap nodes cost more as jobs")
}

// burn uses processor time, whatever else the machine does.
func TestBurn(t *testing.T) {
	read := clock.NewThreadCPU()
	if read == nil {
		began := time.Now()
		burn(2 * time.Millisecond)
		assert.GreaterOrEqual(t, time.Since(began), 2*time.Millisecond)
		return
	}
	for range 100 {
		thread, before := read()
		burn(2 * time.Millisecond)
		if there, after := read(); there == thread {
			assert.GreaterOrEqual(t, after-before, 2*time.Millisecond)
			return
		}
	}
	t.Fatal("the goroutine changes threads whenever it burns")
}
