// Package simnet is a network without sockets, in the virtual time of package
// loopsim: a transport.Dialer whose connections have latencies, cut the stream
// anywhere, and are refused, ignored and lost, all drawn from one seeded generator.
//
//	client (transport.Conn)             server (Peer)
//	  Write ─▶ out ─flush─▶ pieces, each some latency later ─▶ Peer.OnData
//	  OnData ◀─ pieces, each some latency later ◀──────────── Peer.Write
//
// Bytes of one direction arrive in order and at most once; those behind the place at
// which a connection is lost never do. The contract of transport.Handler is kept to the
// letter, and so that nobody can rely on more: bytes handed over are spoilt when the
// call returns.
package simnet
