// Package batch ranks many users: it reads documents, and writes the answers in their order, with
// checkpoints.
//
//	Users ──▶ Line ──▶ engine, as many as the window allows ──▶ Line, in order ──▶ a file that grows, or lists ──▶ its name, or the pointer
//
// users.go and scan.go find users. job.go ranks them, window.go and pace.go bound how many at a time, and retry.go
// ranks degraded ones again. state.go, checkpoint.go and disk.go keep how far a job is. lists.go writes to Redis.
// line.go sends requests to the engine and returns their answers in order, for stdin, too.
package batch
