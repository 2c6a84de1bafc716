package placement

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
)

// BenchmarkScenario runs each scenario that has one request in flight, with adaptive placement.
// It is for profiles, and for the memory that a request takes.
func BenchmarkScenario(b *testing.B) {
	for _, s := range Scenarios() {
		if s.Concurrency != 1 {
			continue
		}
		b.Run(s.Name, func(b *testing.B) {
			e, err := rankd.Open(rankd.Options{Env: "test", Plans: s.Folder(), CPUThreads: 1})
			require.NoError(b, err)
			defer e.Close()
			took := load.NewHistogram()
			done := make(chan error)
			left, sent := 0, time.Time{}
			var answered func(*rankd.Answer, error) // on the loop
			send := func(now time.Time) {
				sent = now
				e.Submit(context.Background(), rankd.Request{UserID: 1, Plan: s.Name}, answered)
			}
			answered = func(_ *rankd.Answer, err error) {
				now := time.Now()
				_ = took.RecordValue(int64(now.Sub(sent))) // fails only out of range: minutes
				if left--; left == 0 || err != nil {
					done <- err
					return
				}
				send(now)
			}
			run := func(requests int) {
				left = requests
				send(time.Now())
				require.NoError(b, <-done)
			}
			run(100) // the placement learns
			took.Reset()
			b.ReportAllocs()
			b.ResetTimer()
			run(b.N)
			b.ReportMetric(float64(took.ValueAtPercentile(50)), "p50-ns")
		})
	}
}
