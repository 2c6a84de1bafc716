package loop

// A Host polls for a loop and wakes it. Its methods are called by the loop only.
type Host interface {
	// Wake ends the current wait soon, so that a turn follows. It is called from
	// any goroutine, under the loop's inbox lock: it must not block and not call
	// the loop. Between a Wake and the turn it leads to there is no other, and
	// none after Finish.
	Wake()
	// Flush hands over what connections have buffered. Called on the loop, last in
	// each iteration.
	Flush()
	// Drain is called on the loop in each iteration of a stopping loop: the first
	// call closes what the host has open, every call reports whether something is
	// still on its way. What ends it must lead to another turn.
	Drain() (pending bool)
	// Finish is called on the loop, once, as the last thing. The host releases
	// what it holds and then calls done, from any goroutine.
	Finish(done func())
}
