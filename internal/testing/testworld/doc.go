// Package testworld has what tests need around the code. It has real redis-servers, alone, as a
// cluster or with sentinels. It also has a headless Chromium, and a name server inside the
// process.
//
// The environment names the programs. A test that needs a missing one is skipped, or fails if
// the environment requires the program:
//
//	RANKD_REDIS_SERVER=/path/to/redis-server   use this one
//	RANKD_REQUIRE_REDIS=1                      fail instead of skipping
//	RANKD_CHROMIUM=/path/to/chromium           use this one
//	RANKD_REQUIRE_CHROMIUM=1                   fail instead of skipping
package testworld
