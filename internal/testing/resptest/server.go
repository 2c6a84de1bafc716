package resptest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

// owedMax bounds the commands of one connection that were read but not answered. A server that
// is slower than its client stops reading at that bound.
const owedMax = 1 << 14

// readBytes is the size of one read from a socket.
const readBytes = 64 << 10

// An Answer returns the reply to a command, encoded. It is called from many
// goroutines, and must not change args.
type Answer func(args []string) []byte

// A Server is a Redis whose replies meet the faults that a Script wants. Any goroutine.
type Server struct {
	addr string
	open func() (source, error) // from which a new connection gets its replies

	script   atomic.Pointer[Script]
	conns    atomic.Int64
	commands atomic.Int64

	mu struct { // guards what Down, Up and Close change
		sync.Mutex
		listener net.Listener // nil: down
		open     map[*session]struct{}
		closed   bool
	}
	live sync.WaitGroup // goroutines; Add only under mu while not closed
}

// A session is one accepted connection and the source of its replies.
type session struct {
	conn *net.TCPConn
	src  source // guarded by the server's mu until serve has set it
}

// abort ends the session from outside. It also ends the source, because a reader may be stuck
// in handing it commands.
func (c *session) abort() {
	reset(c.conn)
	if c.src != nil {
		c.src.close()
	}
}

// A source has the replies for one connection, in the order of its commands.
type source interface {
	// sent is told of bytes that hold whole commands, before reply is asked for the replies to
	// them.
	sent(raw []byte) error
	// reply returns the reply to the next command. It is valid until the next call.
	reply(args []string) ([]byte, error)
	// ended is closed when no replies will come beyond those that have come; nil: never.
	ended() <-chan struct{}
	// close makes all of them fail. A second call does nothing. Any goroutine.
	close()
}

// NewServer starts a server on a free loopback port that answers from a function.
func NewServer(answer Answer) (*Server, error) {
	return start(func() (source, error) { return answer, nil })
}

// NewProxy starts a server on a free loopback port that gets its answers from the server at
// backend ("host:port"). Each connection that it accepts has one to the backend. Connections
// are accepted and closed while the backend cannot be reached.
func NewProxy(backend string) (*Server, error) {
	return start(func() (source, error) { return dialBackend(backend) })
}

func start(open func() (source, error)) (*Server, error) {
	s := &Server{addr: "127.0.0.1:0", open: open}
	s.mu.open = make(map[*session]struct{})
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// Addr returns "127.0.0.1:port". It stays the same over Down and Up.
func (s *Server) Addr() string { return s.addr }

// Set replaces the script, for commands that arrive from now on. Nil means no faults.
func (s *Server) Set(script Script) { s.script.Store(&script) }

// Accepted returns the number of connections accepted so far.
func (s *Server) Accepted() int { return int(s.conns.Load()) }

// Commands returns the number of commands received so far.
func (s *Server) Commands() int { return int(s.commands.Load()) }

// Down refuses connections from now on and resets those that are open, as a crash
// does. A server that is down stays so.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.listener != nil {
		_ = s.mu.listener.Close() // fails on a listener that is closed
		s.mu.listener = nil
	}
	for c := range s.mu.open {
		c.abort()
	}
}

// Up accepts connections again, on the same port. The error is the operating
// system's: while the server was down another process may have taken the port.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.closed:
		return fmt.Errorf("listen on %s: %w", s.addr, net.ErrClosed)
	case s.mu.listener != nil:
		return nil
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.addr = listener.Addr().String() // changes in the first call only
	s.mu.listener = listener
	s.live.Add(1)
	go s.accept(listener)
	return nil
}

// Close ends the server and waits until nothing is left of it. A second call does
// nothing.
func (s *Server) Close() {
	s.Down()
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.live.Wait()
}

func (s *Server) accept(listener net.Listener) {
	defer s.live.Done()
	for {
		c, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // of one connection that was gone before it was accepted
		}
		conn := c.(*net.TCPConn)
		number := int(s.conns.Add(1))
		session := &session{conn: conn}
		if !s.adopt(listener, session) {
			reset(conn)
			return
		}
		go s.serve(session, number)
	}
}

// adopt adds c to the server's connections, unless the server went down meanwhile.
func (s *Server) adopt(listener net.Listener, c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.listener != listener {
		return false
	}
	s.mu.open[c] = struct{}{}
	s.live.Add(1)
	return true
}

// connect gives c its source, unless the server went down meanwhile.
func (s *Server) connect(c *session) bool {
	src, err := s.open()
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.listener == nil {
		src.close()
		return false
	}
	c.src = src
	return true
}

// owed is a reply that a client waits for.
type owed struct {
	args    []string
	arrived time.Time
	fault   Fault
}

// serve serves one connection. It reads the commands, and another goroutine answers them.
func (s *Server) serve(c *session, number int) {
	defer s.live.Done()
	defer func() {
		_ = c.conn.Close() // A fault may have closed it.
		s.mu.Lock()
		delete(s.mu.open, c)
		s.mu.Unlock()
	}()
	gone := make(chan struct{})
	wire := &Wire{conn: c.conn, gone: gone, Arrived: time.Now()}
	if fault := s.fault(Event{Conn: number}); fault != nil {
		fault(wire, nil)
	}
	if !s.connect(c) {
		return
	}
	queue := make(chan owed, owedMax)
	written := make(chan struct{})
	go func() {
		defer close(written)
		answer(wire, c.src, queue)
	}()
	s.read(c, number, queue, written)
	// The client has gone. The server drops what it still owes, as Redis does.
	close(gone)
	c.src.close()
	close(queue)
	<-written
}

// read reads commands until the connection ends or its bytes are malformed.
func (s *Server) read(c *session, number int, queue chan<- owed, written <-chan struct{}) {
	var buf []byte
	chunk := make([]byte, readBytes)
	for command := 0; ; {
		n, err := c.conn.Read(chunk)
		if err != nil {
			return
		}
		arrived := time.Now()
		buf = append(buf, chunk[:n]...)
		var batch []owed
		rest := buf
		for {
			complete, args, _, left, err := redcon.ReadNextCommand(rest, nil)
			if err != nil {
				return
			}
			if !complete {
				break
			}
			rest = left
			if len(args) == 0 {
				continue // an empty line is not a command
			}
			command++
			s.commands.Add(1)
			e := Event{Conn: number, Command: command, Args: texts(args)}
			batch = append(batch, owed{e.Args, arrived, s.fault(e)})
		}
		if err := c.src.sent(buf[:len(buf)-len(rest)]); err != nil {
			return
		}
		buf = append(buf[:0], rest...)
		for _, o := range batch {
			select {
			case queue <- o:
			case <-written:
				return
			}
		}
	}
}

func (s *Server) fault(e Event) Fault {
	if script := s.script.Load(); script != nil && *script != nil {
		return (*script)(e)
	}
	return nil
}

// answer writes the replies that are owed, until no more will come. The connection also ends
// when its source ends and has given all replies.
func answer(wire *Wire, src source, queue <-chan owed) {
	for {
		o, ok := next(queue, src.ended())
		if !ok {
			break
		}
		reply, err := src.reply(o.args)
		if err != nil {
			break
		}
		wire.Arrived = o.arrived
		if o.fault == nil {
			wire.Write(reply)
		} else {
			o.fault(wire, reply)
		}
	}
	wire.Close()
}

// next waits for something in the queue. It returns false if the queue is closed, or
// is empty while the source has ended.
func next(queue <-chan owed, ended <-chan struct{}) (o owed, ok bool) {
	select {
	case o, ok = <-queue:
		return o, ok
	default:
	}
	select {
	case o, ok = <-queue:
	case <-ended:
	}
	return o, ok
}

func texts(args [][]byte) []string {
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = string(a)
	}
	return all
}

// An Answer is a source by itself.
func (a Answer) sent([]byte) error                   { return nil }
func (a Answer) reply(args []string) ([]byte, error) { return a(args), nil }
func (a Answer) ended() <-chan struct{}              { return nil }
func (a Answer) close()                              {}
