package resp

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// A network is a transport.Dialer without sockets. Its events happen in the poll phase of the
// harness's iterations, and only then, as with real sockets. Each connection has a server that
// answers at once, unless it is muted. It answers GET x with x, ERR x with an error, LIST x y
// with the array of x and y, and any other command with +OK.
type network struct {
	t      testing.TB
	h      *looptest.Harness
	conns  []*peer  // all ever dialed
	events []func() // of the next poll

	refuse error // outcome of dials; nil: accepted
	mute   bool  // servers keep their answers until answer is called
	silent bool  // dials have no outcome
	// greet, if set, answers a command in place of the server.
	greet func(args []string) (answer []byte, ok bool)
	// executed counts the commands that reached a server, by their text.
	executed map[string]int
	log      func(format string, args ...any) // receives what happens; may be nil
}

// note logs what happens on a connection, by its number from 1.
func (p *peer) note(format string, args ...any) {
	if p.net.log != nil {
		p.net.log("connection %d "+format, append([]any{slices.Index(p.net.conns, p) + 1}, args...)...)
	}
}

// A peer is the server's end of a connection, and also the client's handle of it.
type peer struct {
	net     *network
	handler transport.Handler
	opts    transport.DialOptions

	connected bool
	closed    bool     // closed by one side; OnClose has come or is to come
	queued    []byte   // written but not flushed
	writes    int      // flushes that carried something
	commands  int      // received
	answers   [][]byte // to come, one per command
	inbox     []byte   // arrived at the client but not consumed by it
}

func newNetwork(t testing.TB) *network {
	n := &network{t: t, h: looptest.New(t), executed: map[string]int{}}
	n.h.OnPoll = func() {
		events := n.events
		n.events = nil
		for _, e := range events {
			e()
		}
	}
	n.h.OnFlush = func() {
		for _, p := range n.conns {
			p.flush()
		}
	}
	return n
}

// settle runs iterations until nothing more happens.
func (n *network) settle() {
	n.t.Helper()
	for n.h.Settle(); n.busy(); n.h.Settle() {
	}
}

// busy reports whether the next iteration will have something to do.
func (n *network) busy() bool {
	return len(n.events) > 0 || slices.ContainsFunc(n.conns, (*peer).flushable)
}

// advance moves the clock by d in steps. It stops at each instant at which a timer is due, and
// settles there.
func (n *network) advance(d time.Duration) {
	n.t.Helper()
	end := n.h.Clock.Now().Add(d)
	for n.settle(); n.h.Clock.Now() < end; n.settle() {
		n.h.Clock.Advance(end.Earlier(n.h.Loop.Due()).Sub(n.h.Clock.Now()))
	}
}

// Dial implements transport.Dialer.
func (n *network) Dial(addr string, opts transport.DialOptions, h transport.Handler) transport.Conn {
	p := &peer{net: n, handler: h, opts: opts}
	n.conns = append(n.conns, p)
	p.note("is dialed")
	if n.silent {
		// The transport promises an outcome within ConnectTimeout.
		var timer *loop.Timer
		timer = n.h.Loop.NewTimer(func() {
			timer.Close(nil)
			if !p.closed {
				p.closed = true
				p.note("is closed: %v", transport.ErrConnectTimeout)
				h.OnConnect(transport.ErrConnectTimeout)
			}
		})
		require.NoError(n.t, timer.Start(opts.ConnectTimeout, 0))
		return p
	}
	refuse := n.refuse
	n.events = append(n.events, func() {
		if p.closed {
			return
		}
		p.connected = refuse == nil
		p.closed = !p.connected
		if p.connected {
			p.note("is made")
		} else {
			p.note("is refused")
		}
		h.OnConnect(refuse)
	})
	return p
}

// last returns the connection that was dialed last.
func (n *network) last() *peer {
	require.NotEmpty(n.t, n.conns)
	return n.conns[len(n.conns)-1]
}

// Write implements transport.Conn.
func (p *peer) Write(b []byte) error {
	if p.closed {
		return transport.ErrClosed
	}
	if len(p.queued)+len(b) > p.opts.UnsentMaxBytes {
		p.Close(transport.ErrUnsentLimit)
		return transport.ErrUnsentLimit
	}
	p.queued = append(p.queued, b...)
	return nil
}

// Unsent implements transport.Conn.
func (p *peer) Unsent() int { return len(p.queued) }

// Close implements transport.Conn.
func (p *peer) Close(reason error) {
	if p.closed {
		return
	}
	p.closed = true
	if reason == nil {
		reason = transport.ErrClosed
	}
	p.note("is closed: %v", reason)
	p.net.events = append(p.net.events, func() {
		if p.connected {
			p.handler.OnClose(reason)
		} else {
			p.handler.OnConnect(reason)
		}
	})
}

func (p *peer) flushable() bool { return len(p.queued) > 0 && p.connected && !p.closed }

// flush hands the written bytes to the server.
func (p *peer) flush() {
	if !p.flushable() {
		return
	}
	p.writes++
	var commands []string
	rest := p.queued
	for len(rest) > 0 {
		complete, args, _, left, err := redcon.ReadNextCommand(rest, nil)
		require.NoError(p.net.t, err)
		require.True(p.net.t, complete)
		rest = left
		p.commands++
		commands = append(commands, string(bytes.Join(args, []byte(" "))))
		p.answers = append(p.answers, p.execute(args))
	}
	p.queued = p.queued[:0]
	p.note("carries %s", showCommands(commands))
	if !p.net.mute {
		p.answer(len(p.answers))
	}
}

func (p *peer) execute(args [][]byte) []byte {
	var text []string
	for _, a := range args {
		text = append(text, string(a))
	}
	if len(text) > 1 {
		p.net.executed[text[1]]++
	}
	if p.net.greet != nil {
		if answer, ok := p.net.greet(text); ok {
			return answer
		}
	}
	switch text[0] {
	case "GET":
		return redcon.AppendBulkString(nil, text[1])
	case "ERR":
		return redcon.AppendError(nil, "ERR "+text[1])
	case "LIST":
		b := redcon.AppendArray(nil, len(text)-1)
		for _, a := range text[1:] {
			b = redcon.AppendBulkString(b, a)
		}
		return b
	default:
		return redcon.AppendOK(nil)
	}
}

// answer sends the answers to the next n commands, as one piece.
func (p *peer) answer(n int) {
	if n > 0 {
		p.arrive(slices.Concat(p.answers[:n]...))
		p.answers = p.answers[n:]
	}
}

// arrive has bytes reach the client at the next poll.
func (p *peer) arrive(b []byte) {
	p.net.events = append(p.net.events, func() {
		if p.closed {
			return
		}
		p.inbox = append(p.inbox, b...)
		// The client gets a copy, which is spoiled afterwards: a view must not outlive the
		// call.
		data := slices.Clone(p.inbox)
		consumed := p.handler.OnData(data)
		require.LessOrEqual(p.net.t, consumed, len(data))
		for i := range data {
			data[i] = '!'
		}
		p.inbox = p.inbox[consumed:]
	})
}

// hangUp ends the connection from the server's side.
func (p *peer) hangUp() { p.Close(io.EOF) }
