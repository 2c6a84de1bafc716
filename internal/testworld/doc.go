// Package testworld has what tests need around the code: real redis-servers, alone, as a cluster or with sentinels; a headless Chromium; and
// a name server inside the process.
//
// The environment names the programs. A test that needs one is skipped where there is none, and fails where there must be one:
//
//	RANKD_REDIS_SERVER=/path/to/redis-server   use this one
//	RANKD_REQUIRE_REDIS=1                      fail instead of skipping
//	RANKD_CHROMIUM=/path/to/chromium           use this one
//	RANKD_REQUIRE_CHROMIUM=1                   fail instead of skipping
package testworld
