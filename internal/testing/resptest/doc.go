// Package resptest has servers that misbehave on demand, to try clients against.
//
// A Server speaks RESP2 and answers from a function, or, as a proxy, from a real server behind
// it. A Fault decides what becomes of each answer. A Script decides which fault meets which
// command, and may be changed at any time:
//
//	client ──commands──▶ reader ──one reply owed per command──▶ writer ──Fault──▶ client
//	                        │                                     ▲
//	                        └── Script decides the fault          └─ reply: Answer, or the backend
//
// The answers are made in the order of the commands, whatever the faults are. So a fault spoils
// exactly its own reply. A fault is a few lines on a Wire; those that are needed often are
// here:
//
//	srv.Set(resptest.Always(resptest.Silence()))                      // hangs
//	srv.Set(resptest.On(resptest.Instead("-LOADING ...\r\n"), "GET")) // one command is refused
//	srv.Set(resptest.After(10, resptest.Reset()))                     // 11th command of a connection
//	srv.Down(); srv.Up()                                              // crash and restart
//	srv.Set(nil)                                                      // well again
//
// Close leaves no goroutine and no descriptor behind.
package resptest
