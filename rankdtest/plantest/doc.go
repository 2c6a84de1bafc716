// Package plantest, which is not covered by the compatibility promise, runs the tests of plans as "rankd
// test" does. These are the files <name>.plan.test.ts in the plans' folder:
//
//	func TestMain(m *testing.M) { compiler.Main(); os.Exit(m.Run()) }
//
//	func TestPlans(t *testing.T) {
//		plantest.Test(t, plantest.Config{Folder: "plans", Engine: rankd.Options{Registry: os.DirFS("registry"), Tasks: myTasks}})
//	}
//
// The code of a test runs in the compiler's sandbox, a child process, and its requests in an engine of this process:
//
//	feed.plan.test.ts ──▶ compiler.Test ── rank, explain, snapshot ──▶ world: engine, Redis, services
//	     (child)              ▲                                            │
//	                          └────────── functions for services ◀─────────┘
//
// Each world belongs to one file at a time. Its Redis holds what the test says, and its services answer what the test says.
package plantest
