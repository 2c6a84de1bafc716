package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/bench/internal/delay"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// Options select the Redis. Immutable.
type Options struct {
	// Addr names a running server, as rankd.Options.Redis does. Without Data its data is used as it is. Empty
	// means to start a server.
	Addr string
	// Server is the redis-server to start. Empty means redis-server on the PATH, or the
	// embedded Redis if the PATH has none.
	Server string
	// Data fills the server. Nil means the demo data set in a server that Start has started, and nothing in another.
	Data func(ctx context.Context, server string) error
	// Real says that the embedded Redis does not take the place of a redis-server.
	Real bool
	// Latencies are the round trip times to add, each by a proxy. 0 needs no proxy.
	Latencies []time.Duration
}

// Backend is the Redis of a benchmark. Immutable once built; any goroutine.
type Backend struct {
	Version  string // "redis-server 7.0.15", "embedded miniredis"
	Embedded bool   // in this process: the figures are mostly miniredis's own
	PID      int    // of redis-server, if it is a process whose time this one can read; otherwise 0

	addr    string
	proxies map[time.Duration]*delay.Proxy
	stop    func()
}

// Start starts the server and the proxies that o asks for. Close ends them.
func Start(ctx context.Context, o Options) (*Backend, error) {
	b := &Backend{addr: o.Addr, proxies: make(map[time.Duration]*delay.Proxy), stop: func() {}}
	err := b.start(ctx, o)
	if err == nil {
		err = b.delay(o.Latencies)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// delay starts the proxies.
func (b *Backend) delay(latencies []time.Duration) error {
	server, err := registry.ParseOneServer(b.addr)
	if err != nil {
		return err
	}
	for _, rtt := range latencies {
		if rtt == 0 || b.proxies[rtt] != nil {
			continue
		}
		if server.Socket != "" {
			return errors.New("a latency can be added to a server with a host and a port, not to a unix socket")
		}
		proxy, err := delay.New(server.Addr(), rtt/2)
		if err != nil {
			return fmt.Errorf("delaying proxy: %w", err)
		}
		b.proxies[rtt] = proxy
	}
	return nil
}

func (b *Backend) start(ctx context.Context, o Options) error {
	fill := o.Data
	if o.Addr == "" {
		if err := b.startServer(o); err != nil {
			return err
		}
		if fill == nil {
			fill = devredis.Load
		}
	}
	if fill != nil {
		if err := fill(ctx, b.addr); err != nil {
			return err
		}
	}
	if b.Embedded {
		return nil
	}
	info, err := info(ctx, b.addr)
	if err != nil {
		return err
	}
	b.Version = findVersion(info)
	if b.PID == 0 {
		b.PID = findProcess(info, b.addr)
	}
	return nil
}

// startServer starts an empty server on a free port: redis-server without persistence, or the embedded one.
func (b *Backend) startServer(o Options) error {
	binary := o.Server
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("redis-server"); errors.Is(err, exec.ErrNotFound) && !o.Real {
			return b.startEmbedded()
		} else if err != nil {
			return fmt.Errorf("the data set needs a redis-server: %w", err)
		}
	}
	s, err := process.StartRedis(binary, os.TempDir()) // it writes nothing there
	if err != nil {
		return err
	}
	b.addr, b.PID, b.stop = s.Addr, s.Process().Pid, s.Kill
	return nil
}

func (b *Backend) startEmbedded() error {
	s, err := devredis.StartWith(nil)
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

// info asks the server for its section "server". It returns nothing if the server does not tell: a benchmark can measure such a
// server, too.
func info(ctx context.Context, server string) (text string, err error) {
	err = devredis.WithClient(ctx, server, func(client *blocking.Client) error {
		var b resp.Batch
		b.Cmd("INFO", "server")
		return client.Do(&b, 0, func(replies resp.Replies) error {
			if info := replies.At(0); info.Kind() == resp.Bulk {
				text = string(info.Bytes())
			}
			return nil
		})
	})
	return text, err
}

// findVersion finds the version in the reply to INFO.
func findVersion(info string) string {
	if v, ok := field(info, "redis_version"); ok {
		return "redis-server " + v
	}
	return "unknown"
}

// findProcess finds the server's process in the reply to INFO. It returns 0 unless the process runs on this machine, in the
// same space of process numbers, and is a redis-server.
func findProcess(info, server string) int {
	at, err := registry.ParseOneServer(server)
	if err != nil {
		return 0
	}
	if host, _, err := net.SplitHostPort(at.Addr()); at.Socket == "" && (err != nil || !net.ParseIP(host).IsLoopback() && host != "localhost") {
		return 0
	}
	text, _ := field(info, "process_id")
	pid, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || !strings.HasPrefix(string(name), "redis-server") {
		return 0
	}
	if _, err := load.ProcessCPU(pid); err != nil {
		return 0
	}
	return pid
}

// field returns a field of the reply to INFO.
func field(info, name string) (value string, ok bool) {
	for line := range strings.Lines(info) {
		if value, ok = strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
