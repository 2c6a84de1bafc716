// Package load puts load on a target and measures what comes back.
//
// A Target is anything that answers requests for users: an engine, or a peer in
// another module. The load is one of two:
//
//   - closed loop: a fixed number of clients, each of which sends its next request
//     when the last one is answered. It finds the throughput, and says how long a request
//     takes when that many are in flight. A slow target slows its clients down.
//   - open loop: requests arrive at a fixed rate, whatever the target does, as
//     they do in service. Latency counts from the instant at which a request was due
//     to arrive, not from when it could be sent: a target that stalls for a second is
//     charged for all who waited, which is how coordinated omission is corrected.
//     What finds the bound of requests in flight reached is shed and counted.
//
// A client is no goroutine: the callback of one answer sends the next request. Where the
// target is asynchronous, what is measured is the target and not the switching
// between goroutines around it; a target that wants a goroutine per request starts
// it by itself.
//
// Latencies of requests that succeeded go into an HdrHistogram, in nanoseconds,
// with three significant digits; failures are counted, not timed.
package load
