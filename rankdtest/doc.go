// Package rankdtest helps to test tasks, plans and programs that embed rankd.
//
// [Run] runs one task without Redis and without an engine.
//
// A whole plan runs in an engine as it does in production. [StartRedisWith] starts a Redis inside the process with
// data of the test, and rankd.Options.Now fixes the date for now() and age() in plans:
//
//	redis, err := rankdtest.StartRedisWith(map[string]any{"follow:7": []int64{8, 9}})
//	e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Now: func() time.Time { return noon }, …})
//
// Package rankdtest/plantest runs the tests of plans, which are written in TypeScript next to
// the plans.
//
// One engine serves a table of cases: [Redis.Replace] changes the data between two of them.
//
// docs/glossary.md explains the words that this package shares with others.
package rankdtest
