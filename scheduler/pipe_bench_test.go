package scheduler

import (
	"fmt"
	"testing"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func BenchmarkPipeline(b *testing.B) {
	for _, rows := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			w := newPlacedWorld(b, 0, Placement{})
			w.cpu.auto = true
			g := pipelineGraph(b, rows)
			done := 0
			fin := func(r *Result) {
				if r.Err != nil {
					b.Error(r.Err)
				}
				done++
			}
			x := &Execution{Graph: g, UserID: 1}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n++ {
				done = 0
				*x = Execution{Graph: g, UserID: 1}
				w.Submit(x, fin)
				for done == 0 {
					w.Harness.Iterate()
				}
			}
		})
	}
}

func pipelineGraph(b *testing.B, rows int) *plan.Graph {
	return graph(b, trusting(b), "t", source(rows), vmNode("v", "src"), node("f", "filter", "v", `"pred_id": "big"`, ""),
		node("s", "sort", "f", `"by": 2001, "order": "desc"`, ""), node("t", "take", "s", `"count": 10`, ""))
}

func trusting(b *testing.B) *task.Catalog {
	c, err := task.Engine(taskrun.Key{}).NewTrustingCatalog(builtin.Specs())
	if err != nil {
		b.Fatal(err)
	}
	return c
}
