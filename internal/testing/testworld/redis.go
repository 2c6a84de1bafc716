package testworld

import (
	"os"
	"testing"

	"github.com/rankd/rankd/internal/process"
)

// Redis is a redis-server that belongs to one test. Any goroutine.
type Redis struct{ *process.Redis }

// StartRedis starts an empty redis-server on a free loopback port, without persistence. It
// returns once the server accepts connections. Further arguments are passed on ("--maxclients",
// "10"). The server is killed when the test ends. The test is skipped if the environment names
// no redis-server.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	binary := os.Getenv("RANKD_REDIS_SERVER")
	if binary == "" {
		if os.Getenv("RANKD_REQUIRE_REDIS") == "1" {
			t.Fatal("RANKD_REQUIRE_REDIS is set, but RANKD_REDIS_SERVER names no redis-server")
		}
		t.Skip("RANKD_REDIS_SERVER names no redis-server: set it to the path of one, or run .ci/test")
	}
	s, err := process.StartRedis(binary, t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return &Redis{s}
}

// Restart starts a killed server again, empty, on the same port.
func (s *Redis) Restart(t testing.TB) {
	t.Helper()
	if err := s.Again(); err != nil {
		t.Fatal(err)
	}
}
