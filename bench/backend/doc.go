// Package backend gives a benchmark its Redis: one that the user names, a
// redis-server of its own, or, where none is installed, the one inside the
// process; and proxies in front of it that make the network longer.
package backend
