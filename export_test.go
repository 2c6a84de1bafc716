package rankd

import (
	"time"
	"weak"

	"github.com/rankd/rankd/plan"
)

var InCallback = inCallback

// Patient has e wait for the outcome of a request for an hour after the deadline of the context
// of Rank.
func Patient(e *Engine) { e.lateAnswer = time.Hour }

// Gone returns a function. It reports whether the garbage collector has freed the present
// generation with its tables and plans.
func Gone(e *Engine) func() bool {
	g := e.kept.Present()
	generation, registry, library := weak.Make(g), weak.Make(g.Registry), weak.Make(g.Library)
	return func() bool { return generation.Value() == nil && registry.Value() == nil && library.Value() == nil }
}

// GraphOf returns a plan of the present generation.
func GraphOf(e *Engine, name string) *plan.Graph {
	graph, _ := e.kept.Present().Choose(name)
	return graph
}
