// Package rankdbeam, which is not covered by the compatibility promise, ranks many users in pipelines of
// Apache Beam, on many machines. [Rank] is a transform from users to answers. Package batch does the same on
// one machine, and this package uses its line to the engine.
//
//	users ──▶ Rank: an engine per process, 64 users of a bundle at a time ──▶ answers, and users that failed
//
// transform.go has the transform, and config.go what travels with a pipeline to its workers.
package rankdbeam
