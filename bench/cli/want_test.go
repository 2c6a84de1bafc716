package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/engines"
)

// An engine may be written in any of its forms; the aim has its full name.
func TestWantsNameEngines(t *testing.T) {
	specs, err := engines.ParseSpecs("reactor,binary:/old/rankd,pool:redis_pool=2,io_threads=3")
	require.NoError(t, err)
	o := compareOptions{fleet: fleet{specs: specs}, concurrency: []int{1, 64}, latencies: []time.Duration{0}, writes: []int{0},
		wantTexts: []string{"p99 reactor <= 1 binary:/old/rankd at 64", "p50 pool:io_threads=3,redis_pool=2 <= 2 reactor"}}
	require.NoError(t, o.parseWants())
	assert.Equal(t, []compare.Want{
		{Figure: "p99", Engine: "reactor", Bound: compare.AtMost(1), To: "binary:/old/rankd:reactor", At: []float64{64}},
		{Figure: "p50", Engine: "pool:redis_pool=2,io_threads=3", Bound: compare.AtMost(2), To: "reactor"},
	}, o.wants)
}
