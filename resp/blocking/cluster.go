package blocking

import (
	"errors"
	"sync"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/clusterclient"
)

// A Cluster is for a Redis Cluster what a Client is for a server. It has a loop of its own, with a clusterclient.Client
// on it: a call goes there, and its replies come back as copies. The first call starts the loop. Calls share
// connections, and a master that does not answer has its commands answered with an error that names it. Any goroutine.
type Cluster struct {
	opts   resp.Options // of each node; Addr lists nodes to begin with
	spare  spareBuffers
	host   *reactor.Reactor
	loop   *loop.Loop
	client *clusterclient.Client // loop only, once it is started

	mu              sync.Mutex // guards what follows
	started, closed bool
}

// NewCluster returns a client that has not connected yet. o.Addr lists one or more nodes, as "host:port,host:port";
// the others are found. Deadlines are instants on clk, which must run in real time. onPanic receives a panic on the loop,
// which contains it: see loop.Config.
func NewCluster(clk clock.Clock, o resp.Options, onPanic func(recovered any, stack []byte)) *Cluster {
	o = o.WithDefaults()
	o.NoCoalesceReads = true // Its callers measure or write, as those of a Client.
	host := reactor.New(reactor.Config{Clock: clk, OnPanic: onPanic, BusyPoll: -1})
	return &Cluster{
		opts: o, spare: make(spareBuffers, buffersKeep),
		host: host, loop: host.Loop(), client: clusterclient.New(host.Loop(), host, o),
	}
}

// Do is Do of a Client.
func (c *Cluster) Do(b *resp.Batch, deadline clock.Time, use func(resp.Replies) error) error {
	return c.spare.do(c.opts.Limits, func(buf *ReplyBuffer) (resp.Replies, error) { return c.Exchange(b, deadline, buf) }, use)
}

// Exchange is Do with the replies left in buf, as Exchange of a Client.
func (c *Cluster) Exchange(b *resp.Batch, deadline clock.Time, buf *ReplyBuffer) (resp.Replies, error) {
	b.MustBeWhole()
	buf.gathered.Reset()
	if err := c.start(); err != nil {
		return resp.Replies{}, err
	}
	ended := make(chan error, 1)
	over := false // loop only
	end := func(err *error) {
		if !over { // A call whose Do has panicked may end once more, and nobody waits for it.
			over = true
			ended <- *err
		}
	}
	call := &resp.Call{Batch: *b, Deadline: deadline, Watch: buf.Watch, Done: func(call *resp.Call) {
		if over {
			return
		}
		err := errPanicked
		defer end(&err)
		buf.gathered.Add(call.Replies)
		err = call.Err
	}}
	posted := c.loop.Post(func() {
		begun, err := false, errPanicked
		defer func() {
			if !begun {
				end(&err)
			}
		}()
		err = c.client.Do(call)
		begun = err == nil
	})
	if posted {
		select {
		case err := <-ended:
			return buf.gathered.Replies(), err
		case <-c.loop.Done():
		}
	}
	return resp.Replies{}, c.opError(resp.ErrClosed, nil)
}

// start starts the loop, unless it runs.
func (c *Cluster) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError(resp.ErrClosed, nil)
	}
	err := c.host.Start()
	if c.started = c.started || err == nil; err != nil {
		return c.opError(resp.ErrConnect, err)
	}
	return nil
}

// errPanicked ends a call in whose work rankd itself has panicked: somebody waits for it.
var errPanicked = errors.New("a callback of the client panicked")

func (c *Cluster) opError(kind, cause error) error {
	return &resp.OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}

// Close closes the connections and ends the loop. Calls under way fail, later ones return resp.ErrClosed. A second call
// does nothing.
func (c *Cluster) Close() {
	c.mu.Lock()
	started := c.started
	c.closed = true
	c.mu.Unlock()
	if started {
		c.loop.Post(func() { c.client.Close(); c.host.Stop() })
		<-c.loop.Done()
	}
}

// Stats returns the counters of all nodes together as they are now.
func (c *Cluster) Stats() (s resp.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		read := make(chan resp.Stats, 1)
		if c.loop.Post(func() { read <- c.client.Stats() }) {
			return <-read
		}
		<-c.loop.Done() // Nothing touches the counters any more.
	}
	return c.client.Stats()
}

// Addr returns the addresses of the nodes to begin with: see resp.Options.
func (c *Cluster) Addr() string { return c.opts.Addr }
