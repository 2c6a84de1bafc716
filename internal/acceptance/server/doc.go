// Package endtoend has the tests that run the program "rankd serve" as a process of its own and call it from
// outside: with clients that others wrote, with thousands of connections, and for a while under faults. It
// holds no code but tests.
//
//	clients_test  redis-cli, redis-benchmark, Python's redis, curl, wrk and ab, unmodified (bench/peers has go-redis and rueidis)
//	crowd_test    10,000 idle and 1,000 slow connections within 300 MB
//	soak_test     faults of Redis and rude clients; the flag -soak says for how long
//
// The environment says which clients have to be there:
//
//	RANKD_REQUIRE_CLIENTS=1                   a client that is not installed fails its test
//	RANKD_REDIS_PYTHON=/path/to/python3       has the module redis (default: /usr/bin/python3)
package server
