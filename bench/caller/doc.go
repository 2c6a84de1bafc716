// Package caller, which is not covered by the compatibility promise, has the clients that put load on a
// running "rankd serve": targets of package load, with connections of their own to one of its fronts.
//
//	RESP   commands "RANK plan user", pipelined: many requests share a connection
//	HTTP   "POST /v1/rank/{plan}" on keep-alive connections
//
// The clients are small on purpose: they share the machine with the server that they measure. They read no more of an
// answer than its end and its outcome. A [Foreign] client is one that others wrote: redis-benchmark, wrk, ab.
package caller
