// Package placement, which follows the engine's needs, measures the scheduling modes of the
// reactor. A [Scenario] is one or more plans that need no Redis and a load on them. A
// [Variant] is a setting of the scheduling.
//
//	scenarios × variants ─▶ interleaved rounds, each on an engine of its own ─▶ medians, ratios ─▶ an answer, a table
package placement
