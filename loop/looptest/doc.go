// Package looptest drives a loop with a manual clock, from the goroutine of the
// test: no other goroutine, no sleep, and every run the same.
//
//	h := looptest.New(t)
//	h.Loop.Post(func() { ... })
//	h.Settle()                        // runs what there is to run
//	h.Advance(50 * time.Millisecond)  // fires what falls due on the way
//
// A simulated world plugs in as the poll: see Harness.OnPoll.
package looptest
