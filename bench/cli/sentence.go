package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/rankd/rankd/bench/eventloop"
	"github.com/rankd/rankd/bench/kernels"
)

// loopSentence returns the answer of a mode of bench loop in one sentence. results has at least
// one element.
func loopSentence(results []any) string {
	switch last := results[len(results)-1].(type) {
	case *eventloop.PostsResult:
		return "The loop runs " + bestAndWorst(results,
			func(r *eventloop.PostsResult) float64 { return r.PerSecond },
			func(r *eventloop.PostsResult) string {
				return fmt.Sprintf("%.2f M posts/s from %d producer(s)", r.PerSecond/1e6, r.Producers)
			})
	case *eventloop.TimersResult:
		return fmt.Sprintf("The loop fires %.2f M timers/s, 99 %% of them at most %v late.", last.PerSecond/1e6, p99(last.Latency))
	case *eventloop.SleepResult:
		return fmt.Sprintf("The loop ends %d sleeping tasks %.1f× as fast as %d blocked workers.", last.Tasks, last.Speedup, last.Workers)
	case *eventloop.OffloadResult:
		return "The pool hands back " + bestAndWorst(results,
			func(r *eventloop.OffloadResult) float64 { return r.PerSecond },
			func(r *eventloop.OffloadResult) string {
				return fmt.Sprintf("%.0f jobs/s with %d bytes each and %d in flight", r.PerSecond, r.PayloadBytes, r.InFlight)
			})
	case *eventloop.InterferenceResult:
		first := results[0].(*eventloop.InterferenceResult)
		text := fmt.Sprintf("A timer fires at most %v late (p99) beside %d busy workers", p99(first.Timer), first.Workers)
		if len(results) > 1 {
			text += fmt.Sprintf(", and at most %v beside %d", p99(last.Timer), last.Workers)
		}
		return text + "."
	default:
		panic(fmt.Sprintf("bench: no sentence for %T", last))
	}
}

// bestAndWorst names the results with the largest and the smallest figure, or the only result.
func bestAndWorst[R any](results []any, figure func(*R) float64, text func(*R) string) string {
	byFigure := func(a, b any) int { return int(max(-1, min(1, figure(a.(*R))-figure(b.(*R))))) }
	best := text(slices.MaxFunc(results, byFigure).(*R))
	if len(results) == 1 {
		return best + "."
	}
	return best + " at best, and " + text(slices.MinFunc(results, byFigure).(*R)) + " at worst."
}

// kernelsSentence returns the answer of bench kernels: the order of the kernels at the largest
// number of rows that was measured.
func kernelsSentence(results []*kernels.Result) string {
	rows := slices.MaxFunc(results, func(a, b *kernels.Result) int { return a.Rows - b.Rows }).Rows
	var fastest, slowest *kernels.Result
	for _, r := range results {
		if r.Rows != rows {
			continue
		}
		if fastest == nil || r.NsPerRow < fastest.NsPerRow {
			fastest = r
		}
		if slowest == nil || r.NsPerRow > slowest.NsPerRow {
			slowest = r
		}
	}
	return fmt.Sprintf("On %d rows %s is the fastest kernel, with %.3g ns a row, and %s the slowest, with %.3g ns.", rows,
		fastest.Kernel, fastest.NsPerRow, slowest.Kernel, slowest.NsPerRow)
}

func p99(l eventloop.Latency) time.Duration {
	return time.Duration(l.P99 * float64(time.Microsecond)).Round(100 * time.Nanosecond)
}
