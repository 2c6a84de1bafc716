package backend

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/redisclient"
	"github.com/rankd/rankd/internal/redisserver"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/resp/resptest"
)

// Options select the Redis. Immutable.
type Options struct {
	// Addr names a running server, as rankd.Options.Redis does, whose data is used as it is. Empty
	// means to start a server and fill it with the demo data set.
	Addr string
	// Server is the redis-server to start. Empty means redis-server on the PATH, or the
	// embedded Redis if the PATH has none.
	Server string
	// Data fills the server that Start has started. Nil means the demo data set. The embedded Redis does
	// not take its place.
	Data func(ctx context.Context, server string) error
	// Latencies are the round trip times to add, each by a proxy. 0 needs no proxy.
	Latencies []time.Duration
}

// Backend is the Redis of a benchmark. Immutable once built; any goroutine.
type Backend struct {
	Version  string // "redis-server 7.0.15", "embedded miniredis"
	Embedded bool   // in this process: the figures are mostly miniredis's own
	PID      int    // of the server that Start has started; 0 for a server of the user

	addr    string
	proxies map[time.Duration]*resptest.Delay
	stop    func()
}

// Start starts the server and the proxies that o asks for. Close ends them.
func Start(ctx context.Context, o Options) (*Backend, error) {
	b := &Backend{addr: o.Addr, proxies: make(map[time.Duration]*resptest.Delay), stop: func() {}}
	if err := b.start(ctx, o); err != nil {
		return nil, err
	}
	server, err := registry.ParseServer(b.addr)
	if err != nil {
		b.Close()
		return nil, err
	}
	for _, rtt := range o.Latencies {
		if rtt == 0 || b.proxies[rtt] != nil {
			continue
		}
		if server.Socket != "" {
			b.Close()
			return nil, errors.New("a latency can be added to a server with a host and a port, not to a unix socket")
		}
		proxy, err := resptest.NewDelay(server.Addr(), rtt/2)
		if err != nil {
			b.Close()
			return nil, fmt.Errorf("delaying proxy: %w", err)
		}
		b.proxies[rtt] = proxy
	}
	return b, nil
}

func (b *Backend) start(ctx context.Context, o Options) (err error) {
	server := o.Server
	if server == "" && o.Addr == "" {
		server, err = exec.LookPath("redis-server")
		if errors.Is(err, exec.ErrNotFound) && o.Data == nil {
			return b.startEmbedded()
		}
		if err != nil {
			return fmt.Errorf("the data set needs a redis-server: %w", err)
		}
	}
	if o.Addr == "" {
		if err := b.startServer(server); err != nil {
			return err
		}
		fill := devredis.Load
		if o.Data != nil {
			fill = o.Data
		}
		if err := fill(ctx, b.addr); err != nil {
			b.Close()
			return err
		}
	}
	if b.Version, err = version(ctx, b.addr); err != nil {
		b.Close()
	}
	return err
}

func (b *Backend) startEmbedded() error {
	s, err := devredis.Start()
	if err != nil {
		return err
	}
	b.addr, b.Embedded, b.Version, b.stop = s.Addr(), true, "embedded miniredis", s.Close
	return nil
}

// Addr returns the server, in the form of rankd.Options.Redis, with an address at which a round trip
// takes latency longer. latency must be one of Options.Latencies. It may hold a password.
func (b *Backend) Addr(latency time.Duration) string {
	if latency == 0 {
		return b.addr
	}
	proxy := b.proxies[latency].Addr()
	if u, err := url.Parse(b.addr); err == nil && u.Host != "" {
		u.Host = proxy
		return u.String()
	}
	return proxy
}

// Close ends the server and the proxies that Start has started.
func (b *Backend) Close() {
	for _, p := range b.proxies {
		p.Close()
	}
	b.stop()
}

// startServer starts an empty redis-server without persistence on a free port.
func (b *Backend) startServer(binary string) error {
	s, err := redisserver.Start(binary, os.TempDir()) // it writes nothing there
	if err != nil {
		return err
	}
	b.addr, b.PID, b.stop = s.Addr, s.Process().Pid, s.Kill
	return nil
}

// version asks the server for its version. It returns "unknown" if the server does not tell: a
// benchmark can measure such a server, too.
func version(ctx context.Context, server string) (found string, err error) {
	found = "unknown"
	err = redisclient.With(ctx, server, func(client *blocking.Client) error {
		var b resp.Batch
		b.Cmd("INFO", "server")
		return client.Do(&b, 0, func(replies resp.Replies) error {
			if info := replies.At(0); info.Kind() == resp.Bulk {
				found = findVersion(string(info.Bytes()))
			}
			return nil
		})
	})
	return found, err
}

// findVersion finds the version in the reply to INFO.
func findVersion(info string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return "redis-server " + strings.TrimSpace(v)
		}
	}
	return "unknown"
}
