// Package simnet is a network without sockets, in the virtual time of package loopsim. Its transport.Dialer
// delays, refuses, ignores and loses connections and cuts streams anywhere. One seeded generator draws all of
// this.
//
//	client (transport.Conn)             server (Peer)
//	  Write ─▶ out ─flush─▶ pieces, each some latency later ─▶ Peer.OnData
//	  OnData ◀─ pieces, each some latency later ◀──────────── Peer.Write
//
// Bytes of one direction arrive in order and at most once. Bytes behind the place at which
// a connection is lost never arrive. The network keeps the contract of transport.Handler
// and promises nothing more: it overwrites the bytes it has handed over when the call
// returns.
package simnet
