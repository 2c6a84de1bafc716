// Package backend, which is not covered by the compatibility promise, gives a benchmark its Redis: a server
// that the user names, a redis-server of its own, or the embedded one if none is installed. Proxies in front
// of it add latency.
package backend
