package loop

// A Host polls for a loop and wakes it. Only the loop calls its methods.
type Host interface {
	// Wake ends the current wait soon, so that an iteration follows. The loop calls it
	// from any goroutine, under its inbox lock: Wake must neither block nor call the loop.
	// The loop does not call it again before that iteration, nor after Finish.
	Wake()
	// Flush sends the bytes that connections have buffered. Called on the loop, last in
	// each iteration.
	Flush()
	// Drain is called on the loop in each iteration of a stopping loop. The first call
	// closes everything that the host has open. Every call reports whether something is
	// still pending; its end must lead to another iteration.
	Drain() (pending bool)
	// Finish is the loop's last call, on the loop, once. The host releases all its
	// resources and then calls done, from any goroutine.
	Finish(done func())
}
