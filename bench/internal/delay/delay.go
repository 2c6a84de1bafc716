package delay

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout bounds the time in which a proxy connects to its backend, which is near.
const dialTimeout = 5 * time.Second

// readBytes is the size of one read from a socket.
const readBytes = 64 << 10

// A Proxy makes the way to a server longer. In either direction each byte
// arrives a fixed time after it was sent, and nothing else changes. Bytes on their way do not
// delay each other, so throughput and pipelining are those of the real server. It does not
// interpret the bytes. Any goroutine.
//
// Connecting is not delayed; an end of stream is, like a byte. How exact the time is
// depends on the machine's timers: see alarm.
type Proxy struct {
	backend string
	oneWay  time.Duration
	ln      net.Listener

	mu struct { // guards what Close changes
		sync.Mutex
		pipes  map[*pipe]struct{}
		closed bool
	}
	live sync.WaitGroup // goroutines; Add only under mu while not closed
}

// New starts a proxy on a free loopback port for the server at backend ("host:port"). A
// round trip through it takes twice oneWay longer than without it. Connections are accepted and
// closed while the backend cannot be reached.
func New(backend string, oneWay time.Duration) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &Proxy{backend: backend, oneWay: oneWay, ln: ln}
	d.mu.pipes = make(map[*pipe]struct{})
	d.live.Add(1)
	go d.accept()
	return d, nil
}

// Addr returns "127.0.0.1:port".
func (d *Proxy) Addr() string { return d.ln.Addr().String() }

// Close ends all connections and waits until nothing is left. A second call does
// nothing.
func (d *Proxy) Close() {
	_ = d.ln.Close() // fails in a second call
	d.mu.Lock()
	d.mu.closed = true
	for p := range d.mu.pipes {
		p.abort()
	}
	d.mu.Unlock()
	d.live.Wait()
}

func (d *Proxy) accept() {
	defer d.live.Done()
	for {
		conn, err := d.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one connection that was gone before it was accepted
		}
		d.mu.Lock()
		if d.mu.closed {
			_ = conn.Close()
		} else {
			d.live.Add(1)
			go d.serve(conn.(*net.TCPConn))
		}
		d.mu.Unlock()
	}
}

// serve serves one connection.
func (d *Proxy) serve(client *net.TCPConn) {
	defer d.live.Done()
	defer client.Close()
	conn, err := net.DialTimeout("tcp", d.backend, dialTimeout)
	if err != nil {
		return
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	there, err := newPipe(client, server, d.oneWay)
	if err != nil {
		return
	}
	defer there.alarm.close()
	back, err := newPipe(server, client, d.oneWay)
	if err != nil {
		return
	}
	defer back.alarm.close()
	if !d.adopt(there, back) {
		return
	}
	var both sync.WaitGroup
	both.Go(there.receive)
	both.Go(there.send)
	both.Go(back.receive)
	back.send()
	both.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.pipes, there)
	delete(d.mu.pipes, back)
}

func (d *Proxy) adopt(pipes ...*pipe) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return false
	}
	for _, p := range pipes {
		d.mu.pipes[p] = struct{}{}
	}
	return true
}

// pipeMaxBytes bounds the bytes on their way in one direction. It is far more than any
// sender has under way: 64 MiB within 20 ms are 3 GB/s. Beyond it the sender waits.
const pipeMaxBytes = 64 << 20

// A pipe is one direction of a connection. It is a queue of bytes, each with an instant before
// which it does not arrive. One goroutine receives, another sends.
type pipe struct {
	from, to *net.TCPConn
	delay    time.Duration
	alarm    alarm // of send

	mu      sync.Mutex
	changed sync.Cond
	bytes   []byte // on their way, oldest first, from head on
	head    int
	marks   []mark // one for each read, from first on; ascending in due and in end
	first   int
	taken   int64 // bytes handed out so far
	added   int64 // bytes received so far. Invariant: added-taken == len(bytes)-head
	over    error // why no more will come; nil while more may
}

// A mark says when the bytes before a position in the stream arrive.
type mark struct {
	end int64
	due time.Time
}

func newPipe(from, to *net.TCPConn, delay time.Duration) (*pipe, error) {
	alarm, err := newAlarm()
	if err != nil {
		return nil, err
	}
	p := &pipe{from: from, to: to, delay: delay, alarm: alarm}
	p.changed.L = &p.mu
	return p, nil
}

// abort ends the pipe at once.
func (p *pipe) abort() {
	reset(p.from)
	reset(p.to)
	p.alarm.close()
}

// receive reads and marks bytes until there are no more.
func (p *pipe) receive() {
	chunk := make([]byte, readBytes)
	for {
		n, err := p.from.Read(chunk)
		due := time.Now().Add(p.delay)
		p.mu.Lock()
		for n > 0 && len(p.bytes)-p.head > pipeMaxBytes && p.over == nil {
			p.changed.Wait()
		}
		p.bytes = append(p.bytes, chunk[:n]...)
		p.added += int64(n)
		p.marks = append(p.marks, mark{p.added, due})
		if err != nil && p.over == nil {
			p.over = err
		}
		over := p.over != nil
		p.changed.Broadcast()
		p.mu.Unlock()
		if over {
			return
		}
	}
}

// send writes bytes as they become due. Bytes that are due together leave in one call.
func (p *pipe) send() {
	var out []byte
	var err error
	for err == nil {
		due, ok := p.next()
		if !ok {
			break
		}
		if !p.alarm.wait(due) {
			err = net.ErrClosed
			break
		}
		out = p.take(out[:0], time.Now())
		if len(out) > 0 {
			_, err = p.to.Write(out)
		}
	}
	switch over := p.stop(err); {
	case err != nil: // Nobody is there to read what comes.
		reset(p.from)
	case over == io.EOF:
		_ = p.to.CloseWrite() // fails if it has ended
	default:
		reset(p.to)
	}
}

// next waits until bytes are on their way, or the end of the stream, and returns when
// they are due. It returns false if all has been sent.
func (p *pipe) next() (due time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.marks) == p.first && p.over == nil {
		p.changed.Wait()
	}
	if len(p.marks) == p.first {
		return time.Time{}, false
	}
	return p.marks[p.first].due, true
}

// take appends all bytes that are due at now to out.
func (p *pipe) take(out []byte, now time.Time) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.taken
	for ; p.first < len(p.marks) && !p.marks[p.first].due.After(now); p.first++ {
		end = p.marks[p.first].end
	}
	size := int(end - p.taken)
	out = append(out, p.bytes[p.head:p.head+size]...)
	p.taken = end
	p.bytes, p.head = compact(p.bytes, p.head+size)
	p.marks, p.first = compact(p.marks, p.first)
	p.changed.Broadcast()
	return out
}

// compact moves the rest of a queue from its head to the front, when that costs no more than
// what was taken.
func compact[E any](queue []E, head int) ([]E, int) {
	if rest := queue[head:]; len(rest) <= head {
		return append(queue[:0], rest...), 0
	}
	return queue, head
}

// stop also ends the other side of the pipe. It returns the reason of the first side that
// ended.
func (p *pipe) stop(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		p.over = err
	}
	p.changed.Broadcast()
	return p.over
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // Both fail only on a connection that has ended.
	_ = conn.Close()
}
