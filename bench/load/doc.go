// Package load, which is not covered by the compatibility promise, puts load on a target and measures its
// answers.
//
// A Target is anything that answers requests for users: an engine, or a peer in
// another module. The load is one of two:
//
//   - closed loop: each of a fixed number of clients sends its next request when the last
//     one is answered. It measures the throughput, and the latency with that many requests
//     in flight. A slow target slows its clients down.
//   - open loop: requests arrive at a fixed rate, whatever the target does, as they do in
//     service. Latency counts from the instant at which a request was due to arrive, not
//     from its sending. A target that stalls for a second is charged for all requests that
//     waited, which corrects coordinated omission. Arrivals beyond the bound of requests in
//     flight are shed and counted.
//
// A client is not a goroutine: the callback of one answer sends the next request. With an
// asynchronous target, the load therefore measures the target and not goroutine
// switches around it. A target that needs a goroutine per request starts it itself.
//
// Latencies of successful requests go into an HdrHistogram, in nanoseconds, with three
// significant digits. Failures are counted, not timed. Refusals (ErrRefused) are counted and timed apart.
package load
