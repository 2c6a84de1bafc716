// Package batch, which follows the engine's needs, ranks many users: documents in, answers out in their order, with checkpoints.
//
//	Users ──▶ Line ──▶ engine, so many at a time ──▶ Line, in order ──▶ parts, each whole or not there ──▶ one file
//
// users.go reads users, job.go keeps parts and joins them, pace.go bounds what Redis bears, and line.go is the way to the engine and back, which
// stdin has, too.
package batch
