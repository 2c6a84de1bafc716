package caller

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
)

// A protocol writes requests and reads answers. Immutable.
type protocol interface {
	// appendRequest appends the request for a user.
	appendRequest(dst []byte, user int64) []byte
	// readAnswer reads one answer. outcome is nil for a success; broken says that nothing sound can follow.
	readAnswer(r *bufio.Reader) (outcome, broken error)
}

// readBytes is the size of a connection's read buffer: some hundred answers of a small plan.
const readBytes = 32 << 10

// conn is a connection on which answers come in the order of the requests. Its goroutine reads. Requests that are sent
// while it hands out answers leave together, before it reads again. Any goroutine.
type conn struct {
	nc    net.Conn
	speak protocol
	done  chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	out     []byte    // requests not written yet
	waiting []*client // for their answers, in order
	reading bool      // the goroutine waits for bytes: it flushes nothing
	broken  error     // nothing is sent any more
}

func dial(addr string, speak protocol) (*conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, speak: speak, done: make(chan struct{}), reading: true}
	go c.run()
	return c, nil
}

// close ends the connection, and returns when its requests have failed.
func (c *conn) close() {
	_ = c.nc.Close() // may be closed
	<-c.done
}

// send sends the request of a client.
func (c *conn) send(from *client, user int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		go from.answered(c.broken) // never inside Send
		return
	}
	c.out = c.speak.appendRequest(c.out, user)
	c.waiting = append(c.waiting, from)
	if c.reading {
		c.flush()
	}
}

// flush writes the requests. The caller holds mu. Reading reports a write that fails, since it closes the connection.
func (c *conn) flush() {
	if len(c.out) == 0 {
		return
	}
	if _, err := c.nc.Write(c.out); err != nil {
		_ = c.nc.Close()
	}
	c.out = c.out[:0]
}

// Read implements io.Reader for the buffer of run: it sends what is to be sent before it waits.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.flush()
	c.reading = true
	c.mu.Unlock()
	n, err := c.nc.Read(p)
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	return n, err
}

// run hands out answers until the connection breaks.
func (c *conn) run() {
	defer close(c.done)
	r := bufio.NewReaderSize(c, readBytes)
	for {
		outcome, broken := c.speak.readAnswer(r)
		if broken != nil {
			c.fail(broken)
			return
		}
		from := c.first()
		if from == nil {
			c.fail(errors.New("an answer came without a request"))
			return
		}
		from.answered(outcome)
	}
}

// first takes the client who waits longest, nil if nobody does.
func (c *conn) first() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	from := c.waiting[0]
	c.waiting = c.waiting[1:]
	return from
}

// fail ends the connection and fails its requests.
func (c *conn) fail(reason error) {
	_ = c.nc.Close()
	c.mu.Lock()
	c.broken = fmt.Errorf("connection to %s: %w", c.nc.RemoteAddr(), reason)
	failed := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, from := range failed {
		from.answered(c.broken)
	}
}
