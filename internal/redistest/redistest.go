// Package redistest starts real redis-servers for tests.
//
// The program to start is named by the environment, so that tests that need it
// are skipped where there is none, and cannot be skipped unnoticed where there must be
// one:
//
//	RANKD_REDIS_SERVER=/path/to/redis-server   use this one
//	RANKD_REQUIRE_REDIS=1                      fail instead of skipping
package redistest

import (
	"os"
	"testing"

	"github.com/rankd/rankd/internal/redisserver"
)

// Server is a redis-server that belongs to one test. Any goroutine.
type Server struct{ *redisserver.Server }

// Start starts an empty redis-server on a free loopback port, without
// persistence, and returns once it accepts connections. Further arguments are
// passed on ("--maxclients", "10"). It is killed when the test ends.
// Where the environment names no redis-server the test is skipped.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary := os.Getenv("RANKD_REDIS_SERVER")
	if binary == "" {
		if os.Getenv("RANKD_REQUIRE_REDIS") == "1" {
			t.Fatal("RANKD_REQUIRE_REDIS is set, but RANKD_REDIS_SERVER names no redis-server")
		}
		t.Skip("RANKD_REDIS_SERVER names no redis-server")
	}
	s, err := redisserver.Start(binary, t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return &Server{s}
}

// Restart starts a killed server again, empty, on the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.Again(); err != nil {
		t.Fatal(err)
	}
}
