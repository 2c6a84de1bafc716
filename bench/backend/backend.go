package backend

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/redisserver"
	"github.com/rankd/rankd/resp/resptest"
)

// Options select the Redis. Immutable.
type Options struct {
	// Addr is a running server, "host:port", whose data is used as it is. Empty means to
	// start a server and fill it with the demo data set.
	Addr string
	// Server is the redis-server to start. Empty means redis-server on the PATH, or the
	// embedded Redis if the PATH has none.
	Server string
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
	for _, rtt := range o.Latencies {
		if rtt == 0 || b.proxies[rtt] != nil {
			continue
		}
		proxy, err := resptest.NewDelay(b.addr, rtt/2)
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
		if errors.Is(err, exec.ErrNotFound) {
			return b.startEmbedded()
		}
	}
	if o.Addr == "" {
		if err := b.startServer(server); err != nil {
			return err
		}
		if err := devredis.Load(ctx, b.addr); err != nil {
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

// Addr returns the address at which a round trip takes latency longer. latency must be one
// of Options.Latencies.
func (b *Backend) Addr(latency time.Duration) string {
	if latency == 0 {
		return b.addr
	}
	return b.proxies[latency].Addr()
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

// versionTimeout bounds the query for the server's version.
const versionTimeout = 5 * time.Second

// version asks the server for its version.
func version(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"); err != nil {
		return "", fmt.Errorf("redis %s: %w", addr, err)
	}
	return readVersion(bufio.NewReader(conn)), nil
}

// readVersion finds the version in the reply to INFO. It returns "unknown" if there is none:
// a benchmark can measure such a server, too.
func readVersion(reply *bufio.Reader) string {
	line, err := reply.ReadString('\n')
	size, convErr := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "$")))
	if err != nil || convErr != nil || !strings.HasPrefix(line, "$") {
		return "unknown"
	}
	lines := bufio.NewScanner(io.LimitReader(reply, int64(size)))
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "redis_version:"); ok {
			return "redis-server " + strings.TrimSpace(v)
		}
	}
	return "unknown"
}
