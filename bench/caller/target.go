package caller

import (
	"fmt"
	"sync"
	"time"

	"github.com/rankd/rankd/bench/load"
)

// The fronts that can be called.
const (
	RESP = "resp"
	HTTP = "http"
)

// Options say whom to call, and how. Immutable.
type Options struct {
	Front string // RESP or HTTP
	Addr  string // "host:port"
	Plan  string
	// Connections is the number of connections. The clients of a load share them in turn.
	Connections int
	// Deadline bounds each request, and the request says so. Zero means that it says nothing.
	Deadline time.Duration
}

// Target calls one front of a server. Any goroutine.
type Target struct {
	conns []*conn

	mu   sync.Mutex
	next int // the connection of the next client
}

// Open opens all connections. A connection that breaks later fails its requests, and is not opened again.
func Open(o Options) (*Target, error) {
	var speak protocol
	switch o.Front {
	case RESP:
		speak = newRESP(o)
	case HTTP:
		speak = newHTTP(o)
	default:
		return nil, fmt.Errorf("front is %q, and must be %s or %s", o.Front, RESP, HTTP)
	}
	if o.Connections < 1 {
		return nil, fmt.Errorf("caller: %d connections", o.Connections)
	}
	t := new(Target)
	for range o.Connections {
		c, err := dial(o.Addr, speak)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.conns = append(t.conns, c)
	}
	return t, nil
}

// NewClient implements load.Target.
func (t *Target) NewClient(answered func(err error)) load.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &client{conn: t.conns[t.next], answered: answered}
	t.next = (t.next + 1) % len(t.conns)
	return c
}

// Close implements load.Target.
func (t *Target) Close() {
	for _, c := range t.conns {
		c.close()
	}
}

// client has at most one request in flight. One goroutine at a time.
type client struct {
	conn     *conn
	answered func(err error)
}

// Send implements load.Client.
func (c *client) Send(user int64) { c.conn.send(c, user) }
