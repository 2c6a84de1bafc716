// Package overload, which follows the engine's needs, measures a server that is asked for more than it can do. Requests
// arrive in an open loop at several times the capacity that a closed loop has found just before. It reports how soon a
// refusal comes, counted from when the request was due, whether admitted requests answer within their deadline, and how
// much of the capacity is left for them.
//
// A refusal's own CPU time comes from a second server, which refuses everything: one request holds its only place.
package overload
