// Package schedulertest, which follows the engine's needs, has plans and tasks for the tests of the engines: nodes of an artifact,
// graphs of them, and a Redis that never answers. It imports no engine, so that their own tests can use it.
package schedulertest
