// Package task is what an author of tasks needs. The tasks that rankd comes with are in package
// task/builtin.
//
// A Spec describes a task: its op name, its parameters, how many inputs it takes, the shape
// that its output must have, its body, and where the body runs:
//
//	Place     asynchronous engine               two-pool engine
//	Computes  CPU pool; the body computes       CPU workers
//	Waits     the loop, as a coroutine          I/O workers
//	OnLoop    the loop, as a coroutine          CPU workers
//
// A body on the loop may wait for Redis or a timer, and must not compute for long. A node of
// Place OnLoop whose Cost is high runs on the CPU pool.
//
// A task has one body for all engines. It waits through its Ctx, which suspends a coroutine or
// blocks a goroutine.
//
// Each run checks the number of inputs, contains a panic, and checks the output against the
// Spec, so that a wrong task fails only its request. It also counts each new batch against the
// rows that the nodes of a request may make together: see Ctx.MakeRows. Package rankdtest runs
// a task in a test.
//
// # Helpers
//
// The built-in tasks use these, and so may a task of your own:
//
//	Invalidf                          a parameter is out of its range
//	Quote                             a text in an error, cut short
//	Redis.CheckKind, Redis.Errorf     a reply of the wrong kind
//	ErrCancelled, Ctx.Cancelled       nobody waits for the result any more
//	Ctx.Sleep, Ctx.Await              a time, a function on a goroutine of its own
//	Ctx.Context                       a context.Context for libraries that take one
//	Ctx.MakeRows, Ctx.RowsLeft        the rows that the request may make
//	Ctx.Key, Ctx.KeyByName            key lookup, by number and by name
//	Columns, ColumnParam, KeyParams,  a Spec's Reads and Writes
//	ExprKeys, Union
//	Ctx.RedisKey                      the Redis keys of a key template
//	Ctx.CountMalformed                texts from Redis that did not parse
//	ParseID                           an id at the start of a list entry
//	rowset.FloatBuilder, …            a column, row by row; there is a builder for each type
//	rowset.ParseFloat, …              a value from a text of Redis
//	rowset.Scatter                    one value per active row → columns of the batch
//
// docs/glossary.md explains the words that this package shares with others.
package task
