package scheduler

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/plan"
)

var soakRounds = flag.Int("rounds", 6, "number of rounds of TestSoak")

// TestSoak runs closed loops of clients, each with one request in flight. Some requests must
// time out, others must succeed: each outcome is known beforehand and checked. After each round
// nothing may be left in the engine or in the process.
func TestSoak(t *testing.T) {
	const clients, each = 12, 12
	late := []*plan.Graph{
		builtinGraph(t, "x", source(50), sleepNode("x", "src", ample)),
		builtinGraph(t, "x", source(50), busyNode("x", "src", ample)),
		builtinGraph(t, "z", source(50), sleepNode("x", "src", ample), busyNode("y", "src", ample), concatNode("z", "x", "y")),
		builtinGraph(t, "y", source(50), sleepNode("x", "src", time.Millisecond), busyNode("y", "x", ample)),
	}
	quick := []*plan.Graph{
		builtinGraph(t, "x", source(50), vmNode("x", "src")),
		builtinGraph(t, "z", source(50), sleepNode("x", "src", time.Millisecond), vmNode("z", "x")),
		builtinGraph(t, "z", source(50), busyNode("x", "src", time.Millisecond), sleepNode("y", "x", 0), vmNode("z", "y")),
	}
	openWorld(t, Config{}).Close(0) // opens whatever the process opens once
	before := openFDs(t)
	for round := range *soakRounds {
		w := openWorld(t, Config{CPUThreads: 2 + round%3})
		var mustFail atomic.Uint64
		var all sync.WaitGroup
		for client := range clients {
			var next func(i int)
			next = func(i int) {
				if i == each {
					all.Done()
					return
				}
				user := int64(1 + client*each + i)
				// Every third request is late by its own deadline. Its CPU work gives its
				// worker back at once, so the others are in time on any machine.
				if (client+i+round)%3 == 0 {
					mustFail.Add(1)
					req := weighted(w.within(late[(client+i)%len(late)], 3*time.Millisecond), user)
					w.Submit(req, func(r *Result) {
						var err *TimeoutError
						assert.ErrorAs(t, r.Err, &err)
						assert.Nil(t, r.Outputs)
						next(i + 1)
					})
					return
				}
				w.Submit(weighted(w.within(quick[(client+i)%len(quick)], ample), user), func(r *Result) {
					if assert.NoError(t, r.Err) {
						assert.NoError(t, checkScores(r.Outputs[0], user, 50))
					}
					next(i + 1)
				})
			}
			all.Add(1)
			next(0)
		}
		all.Wait()
		w.Close(Forever)
		assertNothingLeft(t, w.Async)
		c := w.counted()
		assert.Equal(t, uint64(clients*each), c.Requests)
		assert.Equal(t, mustFail.Load(), c.Failed)
		assert.Equal(t, c.NodeTimeouts, c.Cancelled+c.LateCompletions, "each abandoned body has ended")
		assert.Equal(t, before, openFDs(t), "descriptors")
	}
}
