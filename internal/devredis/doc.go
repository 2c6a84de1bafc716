// Package devredis is the Redis inside the process: a miniredis on a loopback port, loaded with a demo data set, so
// that a machine with only Go can answer requests. The engine talks to it over TCP like to any other server.
// WithClient and Write open a blocking client of a server that a user has named, to load data or to ask for its
// version: engines have clients of their own.
//
// The data set is computed from a fixed seed, so every process, and every real server filled by [Load], has the same
// data. It has [Users] users:
//
//	user:{id}            hash: name, and country for 19 of 20 users
//	follow:{id}          list of 4–120 user ids, each once
//	recommendation:{id}  list of 4–120 user ids, each once
//	media:{id}           list of 4–40 media ids
//
// Country is skewed as one would expect of a service: a third of the users are
// in the US, and the tail is long. User 1 has full lists, for demos and benchmarks.
package devredis
