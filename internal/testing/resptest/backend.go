package resptest

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/tidwall/redcon"
)

// dialTimeout bounds the time in which a proxy connects to its backend, which is near.
const dialTimeout = 5 * time.Second

var (
	errBackendEnded = errors.New("resptest: the backend has closed the connection")
	errNotRESP      = errors.New("resptest: the backend sends no RESP2")
)

// A backend gets the replies from a real server. Another goroutine reads all the time, which
// notices the end even when nobody waits for a reply.
type backend struct {
	conn   net.Conn
	chunks chan []byte   // what was read, handed over; closed at the end
	gone   chan struct{} // closed with chunks
	closed chan struct{} // closed by close
	once   sync.Once

	// The goroutine that calls reply owns these.
	buf  []byte
	used int // buf[:used] is the reply handed out last
}

func dialBackend(addr string) (*backend, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	b := &backend{conn: conn, chunks: make(chan []byte), gone: make(chan struct{}), closed: make(chan struct{})}
	go b.read()
	return b, nil
}

func (b *backend) read() {
	defer close(b.gone)
	defer close(b.chunks)
	for {
		chunk := make([]byte, readBytes)
		n, err := b.conn.Read(chunk)
		if err != nil {
			return
		}
		select {
		case b.chunks <- chunk[:n]:
		case <-b.closed:
			return
		}
	}
}

func (b *backend) sent(raw []byte) error {
	_, err := b.conn.Write(raw)
	return err
}

func (b *backend) reply([]string) ([]byte, error) {
	b.buf = append(b.buf[:0], b.buf[b.used:]...)
	b.used = 0
	for {
		// There are zero bytes if the reply is incomplete or malformed: only the type tells.
		if n, _ := redcon.ReadNextRESP(b.buf); n > 0 {
			b.used = n
			return b.buf[:n], nil
		}
		if len(b.buf) > 0 && !isType(b.buf[0]) {
			return nil, errNotRESP
		}
		chunk, ok := <-b.chunks
		if !ok {
			return nil, errBackendEnded
		}
		b.buf = append(b.buf, chunk...)
	}
}

func isType(c byte) bool {
	switch redcon.Type(c) {
	case redcon.Integer, redcon.String, redcon.Bulk, redcon.Array, redcon.Error:
		return true
	}
	return false
}

func (b *backend) ended() <-chan struct{} { return b.gone }

// close waits until the goroutine is gone. A second call does nothing.
func (b *backend) close() {
	b.once.Do(func() {
		close(b.closed)
		_ = b.conn.Close() // It may be closed by its peer.
	})
	<-b.gone
}
