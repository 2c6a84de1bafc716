package resp

import (
	"errors"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

type connState uint8

const (
	connDown     connState = iota // no connection, none being made
	connDialing                   // OnConnect is to come
	connGreeting                  // connected; AUTH and the like are unanswered
	connReady                     // takes calls
	connClosing                   // given up; OnClose is to come
)

// A conn is one of a client's connections. It reconnects whenever it is lost. While it is ready it holds what was
// gathered and what is in flight. Loop only.
//
//	down ──dial──▶ dialing ──▶ greeting ──▶ ready ──▶ closing
//	  ▲               │           └───────────┴──shut──▶ │
//	  └───────────────┴──────────────────────────────────┘ lost
type conn struct {
	client  *Client
	number  int // in client.conns
	state   connState
	tr      transport.Conn // of the current or the last connection
	decoder *Decoder
	hellos  hellos
	greeted int          // answered commands of the greeting
	outbox  outbox       // leaves next
	flights ring[flight] // in flight, oldest first
	parts   ring[part]   // of the flights, in order
	// decoding says that the decoder has been set to the first flight.
	decoding bool
	unread   int // bytes that the transport keeps for later
	// shed is the number of its replies that the decoder has dropped.
	shed int
	// delivering is set while a callback sees replies. If OnData finds it set, the callback
	// has panicked, and the count of consumed bytes is lost.
	delivering bool

	sentIn    uint64     // the iteration in which commands were last sent
	heardAt   clock.Time // when bytes last came
	usable    bool       // this connection was ready at some time
	connected bool       // some connection was ready before
	readyBy   clock.Time // the current attempt fails at this instant
	backoff   Backoff    // of the attempts to connect
	lastErr   error      // why there is no connection; nil when ready

	redirection redirection
}

// dial starts an attempt to connect. Its caller has set the timer for the limit.
func (cn *conn) dial(now clock.Time) {
	c := cn.client
	c.stats.Connects++
	cn.state = connDialing
	cn.usable, cn.decoding, cn.delivering, cn.unread = false, false, false, 0
	cn.readyBy = now.Add(c.opts.ConnectTimeout)
	options := c.opts.dialOptions()
	options.Prepare = cn.hellos.prepare(&c.opts)
	cn.tr = c.dialer.Dial(c.opts.Addr, options, cn)
}

// OnConnect implements transport.Handler.
func (cn *conn) OnConnect(err error) {
	switch {
	case err != nil:
		cn.lost(err)
	case cn.state != connDialing:
		// Given up meanwhile; OnClose is to come.
	case cn.hellos.begin().Batch.Len() == 0:
		cn.becomeReady()
	default:
		cn.state = connGreeting
		cn.greeted = 0
		cn.decoder.Reset(1)
		if err := cn.tr.Write(cn.hellos.now.Batch.buf); err != nil {
			cn.shut(err)
		}
	}
}

func (cn *conn) becomeReady() {
	c := cn.client
	cn.state = connReady
	cn.usable, cn.lastErr = true, nil
	cn.backoff.Ready(c.loop.Now())
	c.ready++
	if cn.connected {
		c.stats.Reconnects++
	}
	cn.connected = true
	cn.redirect()
	if c.queue.waiting() > 0 {
		c.connect(c.loop.Now())
	}
	c.pumpLater()
}

// OnData implements transport.Handler.
func (cn *conn) OnData(data []byte) (consumed int) {
	if cn.delivering {
		cn.shut(errPanicked)
	}
	if cn.state == connGreeting {
		return cn.readGreeting(data)
	}
	cn.client.stats.BytesReceived += uint64(len(data) - cn.unread)
	cn.heardAt = cn.client.loop.Now()
	consumed = cn.read(data)
	cn.unread = len(data) - consumed
	return consumed
}

// read delivers the parts whose replies are complete.
func (cn *conn) read(data []byte) (consumed int) {
	// Bytes already read cannot answer commands that a callback sends now.
	for answerable := cn.flights.len; cn.state == connReady; {
		rest := data[consumed:]
		if answerable == 0 {
			if len(rest) > 0 {
				cn.shut(ErrUnsolicited)
				break
			}
			cn.decoder.Reset(0) // An idle connection holds no replies.
			return consumed
		}
		if !cn.decoding {
			cn.decoder.Reset(cn.flights.front().commands)
			cn.decoding, cn.shed = true, 0
		}
		n, done, err := cn.decoder.Decode(rest)
		if err != nil {
			cn.shut(err)
			break
		}
		consumed += n
		cn.deliver()
		switch {
		case cn.state != connReady: // A callback has closed the client.
		case done:
			cn.flightAnswered()
			answerable--
		case n > 0 && !cn.decoder.skipping: // The end of a reply that nobody wanted.
		default:
			if unread := max(len(rest)-n, cn.decoder.need); unread >= cn.client.shedBytes {
				consumed += cn.shedReplies(unread)
			}
			return consumed
		}
	}
	return len(data) // The rest of a closed connection is ignored.
}

// readGreeting reads the answers to AUTH and the like, one by one: after the first that refuses the connection, no
// other may come.
func (cn *conn) readGreeting(data []byte) (consumed int) {
	hello := cn.hellos.now
	for cn.greeted < hello.Batch.Len() {
		n, done, err := cn.decoder.Decode(data[consumed:])
		if err == nil && !done {
			return consumed
		}
		if err == nil {
			err = hello.Check(cn.greeted, cn.decoder.Replies().At(0))
		}
		if err != nil {
			cn.shut(err)
			return len(data)
		}
		consumed += n
		cn.greeted++
		cn.decoder.Reset(1)
	}
	if consumed < len(data) {
		cn.shut(ErrUnsolicited)
		return len(data)
	}
	cn.becomeReady()
	return consumed
}

// OnClose implements transport.Handler.
func (cn *conn) OnClose(reason error) { cn.lost(reason) }

// shut gives the connection up: nothing more is sent on it or read from it. The calls
// in flight fail when OnClose comes.
func (cn *conn) shut(reason error) {
	if cn.state == connDown || cn.state == connClosing {
		return
	}
	cn.leaveReady()
	cn.state = connClosing
	cn.tr.Close(reason)
}

// leaveReady keeps the client's count of ready connections.
func (cn *conn) leaveReady() {
	if cn.state != connReady {
		return
	}
	c := cn.client
	c.ready--
	cn.redirection.to = 0
	if c.forgotten != nil {
		c.forgotten()
	}
	if c.ready == 0 {
		c.downSince = c.loop.Now()
		c.boundWait()
	}
}

// boundWait makes tick run when calls will have waited too long for a connection, if any wait and there is none.
func (c *Client) boundWait() {
	if c.ready == 0 && c.queue.waiting() > 0 {
		c.schedule(c.downSince.Add(min(c.opts.RequestTimeout, c.opts.ConnectTimeout)))
	}
}

// lost is the one way back to down: the attempt has failed, or the connection ended.
func (cn *conn) lost(reason error) {
	if cn.state == connDown {
		return
	}
	c := cn.client
	now := c.loop.Now()
	cn.leaveReady()
	cn.state = connDown
	cn.lastErr = reason
	cn.backoff.Ended(now)
	cn.decoder.Reset(0)
	if cn.usable {
		cn.failSent(c.opError(ErrConnectionLost, reason))
	} else if !c.mayConnect() {
		c.failUnsent(c.opError(ErrConnect, reason))
	}
	if c.closed {
		return
	}
	if c.queue.waiting() > 0 {
		c.boundWait() // What was only gathered waits now, too.
		c.connect(now)
	}
}

// failSent fails every call that has sent a command on this connection. Calls that were only gathered wait for the
// next connection, unless they did not fit into the buffer: they would not fit there either.
func (cn *conn) failSent(err error) {
	c := cn.client
	for cn.flights.len > 0 {
		f := cn.flights.pop()
		c.queue.answered(f.commands - f.answered)
		c.queue.release(f.bulk)
	}
	for cn.parts.len > 0 {
		cn.parts.pop()
	}
	for call := c.underWay.First(); call != nil; {
		next := call.place.Next() // failLater moves the call to another list.
		if call.conn == cn && (call.launched > 0 || errors.Is(err, transport.ErrUnsentLimit)) {
			c.failLater(call, err)
		}
		call = next
	}
	cn.ungather()
}

// ungather makes the calls of the outbox wait again.
func (cn *conn) ungather() {
	c, o := cn.client, &cn.outbox
	c.queue.answered(o.len)
	c.queue.release(o.bulk)
	for i := range o.parts {
		p := &o.parts[i]
		if !p.wanted() || p.call.conn == nil {
			continue
		}
		call := p.call
		call.conn, call.gathered = nil, 0
		if call.waitsIn == nil {
			c.queue.push(call)
		}
	}
	o.reset()
}

// failUnsent fails every call that has sent nothing.
func (c *Client) failUnsent(err error) {
	for call := c.underWay.First(); call != nil; {
		next := call.place.Next() // failLater moves the call to another list.
		if call.conn == nil {
			c.failLater(call, err)
		}
		call = next
	}
}

// mayConnect reports whether a call may still get a connection from an attempt that is
// under way.
func (c *Client) mayConnect() bool {
	for _, cn := range c.conns {
		if cn.state == connDialing || cn.state == connGreeting || cn.state == connReady {
			return true
		}
	}
	return false
}

// stalledBy returns when the server will have sent no byte for StallTimeout while commands are out. The connection has some.
func (cn *conn) stalledBy() clock.Time {
	return max(cn.flights.front().sentAt, cn.heardAt).Add(cn.client.opts.StallTimeout)
}

// tick ends a greeting that had taken too long when the loop last looked at its sockets, or a connection that had stalled then.
func (cn *conn) tick(looked clock.Time) {
	c := cn.client
	switch cn.state {
	case connGreeting:
		if cn.readyBy.Passed(looked) {
			cn.shut(transport.ErrConnectTimeout)
			return
		}
		c.schedule(cn.readyBy)
	case connReady:
		if cn.flights.len == 0 {
			return
		}
		if cn.stalledBy().Passed(looked) {
			cn.shut(errStalled)
			return
		}
		c.schedule(cn.stalledBy())
	}
}
