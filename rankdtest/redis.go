package rankdtest

import (
	"fmt"

	"github.com/rankd/rankd/internal/devredis"
)

// Redis is a Redis inside the process, filled with the demo data of 1,000 users. Any goroutine.
type Redis struct{ server *devredis.Server }

// StartRedis starts a server on a free port of 127.0.0.1. Close ends it.
func StartRedis() (*Redis, error) {
	server, err := devredis.Start()
	if err != nil {
		return nil, fmt.Errorf("rankdtest: %w", err)
	}
	return &Redis{server}, nil
}

// Addr returns the server's address, "127.0.0.1:port", as rankd.Options.Redis takes it.
func (r *Redis) Addr() string { return r.server.Addr() }

// Close stops the server and waits until it has.
func (r *Redis) Close() { r.server.Close() }
