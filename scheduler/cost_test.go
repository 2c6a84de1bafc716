package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCostModelFindsBothParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var m costModel
	truth := func(rows int) time.Duration { return time.Duration(800 + 12*rows) }
	for range 400 {
		rows := [...]int{0, 10, 100, 1000, 10_000}[rng.IntN(5)]
		m.learn(rows, truth(rows))
	}
	for _, rows := range []int{0, 10, 100, 1000, 10_000} {
		assert.InEpsilon(t, float64(truth(rows)), float64(m.predict(rows)), 0.1, "rows %d", rows)
	}
}

func TestCostModelOfOneSizeIsExactAfterOneRun(t *testing.T) {
	for _, rows := range []int{0, 1, 10, 64, 5000} {
		var m costModel
		m.learn(rows, 3*time.Microsecond)
		assert.InDelta(t, float64(3*time.Microsecond), float64(m.predict(rows)), 2, "rows %d", rows)
	}
}

// The model knows at once that a node is expensive that begins to take 5 ms instead of 1 µs.
// The way back takes longer.
func TestCostModelUnlearns(t *testing.T) {
	for _, rows := range []int{1, 10, 1000} {
		var m costModel
		for range 1000 {
			m.learn(rows, time.Microsecond)
		}
		m.learn(rows, 5*time.Millisecond)
		assert.Greater(t, m.predict(rows), 2*time.Millisecond, "rows %d", rows)
		runs := 0
		for m.predict(rows) >= 10*time.Microsecond {
			m.learn(rows, time.Microsecond)
			runs++
		}
		assert.LessOrEqual(t, runs, 12, "rows %d", rows)
	}
}

func TestCostModelKnowsOnlyWhatItHasSeen(t *testing.T) {
	var m costModel
	assert.False(t, m.knows(0), "nothing is measured")
	m.learn(10, time.Microsecond)
	assert.True(t, m.knows(512))
	assert.False(t, m.knows(513))
	m.learn(1000, time.Microsecond)
	assert.True(t, m.knows(8000))
	assert.False(t, m.knows(8001))
}

func TestCostModelStaysWithinReason(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var m costModel
	for range 10_000 {
		m.learn(rng.IntN(100_000), time.Duration(rng.IntN(10_000_000)))
		assert.GreaterOrEqual(t, m.predict(rng.IntN(1_000_000)), time.Duration(0))
	}
}

func BenchmarkCostModel(b *testing.B) {
	var m costModel
	for b.Loop() {
		m.learn(10, time.Microsecond)
		if m.predict(10) > time.Second {
			b.Fatal("expensive")
		}
	}
}
