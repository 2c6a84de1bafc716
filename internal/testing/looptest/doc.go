// Package looptest drives a loop with a manual clock from the test's goroutine. It uses no other goroutine
// and never sleeps, so every run is the same.
//
//	h := looptest.New(t)
//	h.Loop.Post(func() { ... })
//	h.Settle()                        // runs all pending callbacks
//	h.Advance(50 * time.Millisecond)  // fires the timers that fall due on the way
//
// Harness.OnPoll plugs in a simulated world as the poll.
package looptest
