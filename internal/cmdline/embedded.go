package cmdline

import "github.com/rankd/rankd/internal/devredis"

// EmbeddedRedis is the Redis inside the process. It starts when an engine first needs it. The zero value is ready.
// One goroutine.
type EmbeddedRedis struct {
	server    *devredis.Server // nil until it starts
	announced bool
}

// Start returns the address of the server for rankd.Options.EmbeddedRedis. Several engines, one after
// the other, use the same one.
func (r *EmbeddedRedis) Start() (addr string, stop func(), err error) {
	if r.server == nil {
		if r.server, err = devredis.Start(); err != nil {
			return "", nil, err
		}
	}
	return r.server.Addr(), func() {}, nil
}

// Addr returns the address of the server, or "" if it does not run.
func (r *EmbeddedRedis) Addr() string {
	if r.server == nil {
		return ""
	}
	return r.server.Addr()
}

// Announce calls tell with the address and the number of users, once, if the server runs.
func (r *EmbeddedRedis) Announce(tell func(addr string, users int)) {
	if r.server == nil || r.announced {
		return
	}
	r.announced = true
	tell(r.server.Addr(), devredis.Users)
}

// Close stops the server, if it runs.
func (r *EmbeddedRedis) Close() {
	if r.server != nil {
		r.server.Close()
	}
}
