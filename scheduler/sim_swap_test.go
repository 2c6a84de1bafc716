package scheduler

import (
	"math/rand/v2"
	"reflect"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// This file has what the simulation knows of plans that change. At any step of a request, other
// plans may take the place of the present ones, for other tables with the same endpoints. The
// engine then keeps the new plans and those just before.

// simSwaps are the generations of a world. One goroutine.
type simSwaps struct {
	rng    *rand.Rand // for what concerns swaps, so that worlds without them stay as they are; nil: there are none
	left   int
	texts  map[*plan.Graph][]byte // the artifacts
	former []*plan.Graph          // of the generation before
	crowd  *plan.Graph            // a plan of each generation; nil: there is none
}

// drawSwaps draws how often the plans of a world change. Most worlds keep theirs.
func (w *simWorld) drawSwaps() {
	rng := rand.New(rand.NewPCG(w.seed, 0x73776170))
	if rng.Float64() < 0.3 {
		w.swaps.rng, w.swaps.left = rng, 1+rng.IntN(6)
	}
}

// step is called at each step of each request: when it comes, when a body begins and ends, and when it is answered.
func (w *simWorld) step() {
	if s := &w.swaps; s.left > 0 && !w.sim.Ended() && s.rng.Float64() < 0.05 {
		s.left--
		w.swap()
	}
}

// swap makes the next generation, for requests that come later. Some plans stay the same, the
// others are loaded again.
func (w *simWorld) swap() {
	s, reg := &w.swaps, w.lab.reg.WithEndpointsOf(w.lab.reg)
	s.former = w.plans
	w.plans = nil
	for _, g := range s.former {
		if s.rng.Float64() < 0.7 {
			text := s.texts[g]
			next, err := plan.Load(g.Name, text, w.lab.tasks, reg)
			if err != nil {
				panic(err) // It has loaded before.
			}
			s.texts[next] = text
			g = next
		}
		w.plans = append(w.plans, g)
	}
	w.logf("the plans change")
	w.engine.Keep(w.keptPlans(), w.endpoints())
}

// endpoints returns those of all generations.
func (w *simWorld) endpoints() map[*registry.Endpoint]bool {
	all := make(map[*registry.Endpoint]bool)
	for _, ep := range w.lab.reg.Endpoints() {
		all[ep] = true
	}
	return all
}

// keptPlans are the plans that requests may begin with.
func (w *simWorld) keptPlans() map[*plan.Graph]bool {
	kept := make(map[*plan.Graph]bool)
	for _, plans := range [][]*plan.Graph{w.plans, w.swaps.former, {w.swaps.crowd}} {
		for _, g := range plans {
			kept[g] = true
		}
	}
	return kept
}

// checkSwapped checks an engine whose requests have ended and which is told once more what to
// keep. It must have forgotten all other plans, but not their counts. The engine is told once
// more because a request may have waited while the plans changed twice: its plan stays until
// the next change.
func (w *simWorld) checkSwapped() {
	if w.swaps.rng == nil || w.sim.Ended() {
		return
	}
	kept, before := w.keptPlans(), w.engine.counted()
	for g, p := range w.engine.profiles {
		w.check(p.live == 0, "plan %s has %d requests and bodies after all have ended", g.Name, p.live)
		w.check(!p.retired, "plan %s is gone, all its requests have ended, and the engine has not forgotten it", g.Name)
	}
	w.engine.Keep(kept, w.endpoints())
	if err := w.sim.Settle(); err != nil {
		w.violate("%v", err)
	}
	for g := range w.engine.profiles {
		w.check(kept[g], "the engine has not forgotten plan %s, which is gone", g.Name)
	}
	w.check(reflect.DeepEqual(w.engine.counted(), before), "counts have changed with the plans")
}
