// Package rankdtest helps to test programs that embed rankd. Run runs one task without Redis
// and without an engine. StartRedis starts a Redis with demo data inside the process.
package rankdtest
