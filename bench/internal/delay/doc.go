// Package delay makes the way to a server longer, for benchmarks of a Redis that is not beside the engine. It is not
// covered by the compatibility promise.
package delay
