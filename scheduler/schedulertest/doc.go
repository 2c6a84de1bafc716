// Package schedulertest has plans and tasks for the tests of the engines: nodes of an artifact, graphs of them, and a Redis that never
// answers. It is for tests of this module, and imports no engine, so that their own tests can use it.
package schedulertest
