// Package batch, which follows the engine's needs, ranks many users: it reads documents, and writes the answers in their order, with checkpoints.
//
//	Users ──▶ Line ──▶ engine, so many at a time ──▶ Line, in order ──▶ parts, each whole or not there ──▶ one file
//
// users.go reads users, job.go keeps parts and joins them, and pace.go bounds the load on Redis. line.go sends
// requests to the engine and returns their answers in order, for stdin, too.
package batch
