package resptest

import (
	"bytes"
	"net"
	"time"
)

// A Fault delivers the reply to one command, or does something else in its place. It is called
// on the goroutine that writes to that connection. It may block that goroutine: later replies
// then wait. A nil Fault delivers.
type Fault func(w *Wire, reply []byte)

// A Wire is the writing side of one connection, as a Fault has it. Its methods have
// no effect on a connection that has ended. Only the goroutine that was given it may touch it.
type Wire struct {
	conn *net.TCPConn
	gone <-chan struct{} // closed when the client has gone, or the server closes

	// Arrived is when the command that is being answered had been read.
	Arrived time.Time

	mute bool
}

// Write sends p at once, in one segment if it is small. The client's side has TCP_NODELAY set,
// so what is written byte by byte leaves byte by byte.
func (w *Wire) Write(p []byte) {
	if w.mute || len(p) == 0 {
		return
	}
	if _, err := w.conn.Write(p); err != nil {
		w.Close()
	}
}

// WaitUntil waits, but not longer than the client stays.
func (w *Wire) WaitUntil(t time.Time) {
	d := time.Until(t)
	if d <= 0 || w.mute {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.gone:
		w.mute = true
	}
}

// Mute drops everything that would be written from now on. The connection stays open, and
// commands are read.
func (w *Wire) Mute() { w.mute = true }

// CloseWrite ends the stream to the client, which can still send.
func (w *Wire) CloseWrite() {
	if !w.mute {
		_ = w.conn.CloseWrite() // fails on a connection that has ended
		w.mute = true
	}
}

// Close closes the connection; what was written before still arrives.
func (w *Wire) Close() {
	w.mute = true
	_ = w.conn.Close()
}

// Reset ends the connection as a crash does: the client finds it reset, and what it
// has not read yet may be lost.
func (w *Wire) Reset() {
	w.mute = true
	reset(w.conn)
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // Both fail only on a connection that has ended.
	_ = conn.Close()
}

// Silence answers neither this command nor any later one of the connection.
func Silence() Fault { return func(w *Wire, _ []byte) { w.Mute() } }

// Late delivers each reply d after its command arrived. Replies to commands that came together
// are late together.
func Late(d time.Duration) Fault {
	return func(w *Wire, reply []byte) {
		w.WaitUntil(w.Arrived.Add(d))
		w.Write(reply)
	}
}

// Hold delivers the reply, and those after it, once release is closed. So does a server that is
// suspended and continues.
func Hold(release <-chan struct{}) Fault {
	return func(w *Wire, reply []byte) {
		select {
		case <-release:
			w.Write(reply)
		case <-w.gone:
		}
	}
}

// Drip delivers byte by byte, with a pause after each. A pause of 0 splits the reply
// at every byte and wastes no time.
func Drip(pause time.Duration) Fault {
	return func(w *Wire, reply []byte) {
		for i := range reply {
			w.Write(reply[i : i+1])
			if pause > 0 {
				w.WaitUntil(time.Now().Add(pause))
			}
		}
	}
}

// Instead sends other bytes in place of the reply: an error, a value of another type,
// or something that is not RESP at all.
func Instead(bytes string) Fault { return func(w *Wire, _ []byte) { w.Write([]byte(bytes)) } }

// Garbage sends, in place of the reply, bytes with which no RESP value begins.
func Garbage() Fault { return Instead("\x00\x17HTTP/1.1 400 Bad Request\r\n\r\n") }

// Excess delivers the reply and, in the same segment, a reply that nobody asked for.
func Excess() Fault {
	return func(w *Wire, reply []byte) { w.Write(append(bytes.Clone(reply), "+excess\r\n"...)) }
}

// HugeBulk announces a bulk string of that many bytes in place of the reply, and sends the
// first few of them.
func HugeBulk(announced string) Fault {
	return Instead("$" + announced + "\r\n" + "these bytes are the first of very many")
}

// Endless sends a bulk string of 500 MB in place of the reply, as fast as the client reads it.
func Endless() Fault {
	return func(w *Wire, _ []byte) {
		const total = 500_000_000
		w.Write([]byte("*1\r\n$500000000\r\n"))
		block := bytes.Repeat([]byte("x"), 1<<16)
		for sent := 0; sent < total && !w.mute; sent += len(block) {
			w.Write(block[:min(len(block), total-sent)])
		}
		w.Write([]byte("\r\n")) // A client that reads all of it stays in step.
	}
}

// HalfThen sends the first half of the reply and then has another fault handle the second.
func HalfThen(next Fault) Fault {
	return func(w *Wire, reply []byte) {
		half := len(reply) / 2
		w.Write(reply[:half])
		next(w, reply[half:])
	}
}

// HalfClose ends the stream to the client without an answer.
func HalfClose() Fault { return func(w *Wire, _ []byte) { w.CloseWrite() } }

// Hangup closes the connection without an answer.
func Hangup() Fault { return func(w *Wire, _ []byte) { w.Close() } }

// Reset resets the connection without an answer.
func Reset() Fault { return func(w *Wire, _ []byte) { w.Reset() } }

// LastWords sends bytes and closes, as a server turns away a client.
func LastWords(bytes string) Fault {
	return func(w *Wire, _ []byte) {
		w.Write([]byte(bytes))
		w.CloseWrite() // Close would reset the connection if commands are unread, and lose the words.
	}
}
