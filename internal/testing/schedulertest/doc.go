// Package schedulertest has plans and tasks for their tests. These are nodes of an artifact, graphs of them,
// and a Redis that never answers. The package does not import an engine, so the engines' own tests can import
// it.
package schedulertest
