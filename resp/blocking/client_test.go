package blocking

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// A server is a scripted peer on a loopback port. Each connection gets the next script. The
// last script is used again and again.
type server struct {
	t    testing.TB
	ln   net.Listener
	done sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// A script serves one connection; the connection is closed when it returns.
type script func(s *session)

// A session is the server's end of one connection.
type session struct {
	net.Conn
	in *bufio.Reader
}

// command reads one command, or returns nil at the end of the connection.
func (s *session) command() []string {
	var n int
	if _, err := fmt.Fscanf(s.in, "*%d\r\n", &n); err != nil {
		return nil
	}
	args := make([]string, n)
	for i := range args {
		var size int
		if _, err := fmt.Fscanf(s.in, "$%d\r\n", &size); err != nil {
			return nil
		}
		buf := make([]byte, size+2)
		for filled := 0; filled < len(buf); {
			k, err := s.in.Read(buf[filled:])
			if err != nil {
				return nil
			}
			filled += k
		}
		args[i] = string(buf[:size])
	}
	return args
}

// echo answers every command with its last argument, byte by byte.
var echo = echoIn(1)

// echoIn answers every command with its last argument, in pieces of size bytes.
func echoIn(size int) script {
	return func(s *session) {
		for args := s.command(); args != nil; args = s.command() {
			for piece := range slices.Chunk(redcon.AppendBulkString(nil, args[len(args)-1]), size) {
				if _, err := s.Write(piece); err != nil {
					return
				}
			}
		}
	}
}

// say answers the first command with text and waits for the end.
func say(text string) script {
	return func(s *session) {
		s.command()
		if _, err := s.Write([]byte(text)); err != nil {
			return
		}
		s.command()
	}
}

// hang reads and never answers.
func hang(s *session) {
	for s.command() != nil {
	}
}

// hangUp reads one command and closes the connection.
func hangUp(s *session) { s.command() }

func serve(t testing.TB, scripts ...script) *server {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveOn(t, ln, scripts...)
}

func serveOn(t testing.TB, ln net.Listener, scripts ...script) *server {
	s := &server{t: t, ln: ln}
	s.done.Go(func() {
		for i := 0; ; i++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, nc)
			s.mu.Unlock()
			s.done.Go(func() {
				defer nc.Close()
				scripts[min(i, len(scripts)-1)](&session{nc, bufio.NewReader(nc)})
			})
		}
	})
	t.Cleanup(s.close)
	return s
}

func (s *server) addr() string { return s.ln.Addr().String() }

func (s *server) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	for _, nc := range s.conns {
		_ = nc.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func openClient(t testing.TB, o resp.Options) *Client {
	c := NewClient(clock.NewReal(), o)
	t.Cleanup(c.Close)
	return c
}

// get runs a batch of n commands and returns the replies as text.
func get(t testing.TB, c *Client, prefix string, n int, deadline clock.Time) (replies string, err error) {
	b := gets(prefix, n)
	err = c.Do(b, deadline, func(r resp.Replies) error {
		replies = text(t, r)
		return nil
	})
	return replies, err
}

// gets returns a batch of n commands, which echo answers with got(prefix, n).
func gets(prefix string, n int) *resp.Batch {
	b := new(resp.Batch)
	for i := range n {
		b.Cmd("GET", prefix+":"+strconv.Itoa(i))
	}
	return b
}

func got(prefix string, n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, prefix+":"+strconv.Itoa(i))
	}
	return strings.Join(parts, "; ")
}

func text(t testing.TB, r resp.Replies) string {
	t.Helper()
	var parts []string
	for _, reply := range r.All() {
		require.Equal(t, resp.Bulk, reply.Kind())
		parts = append(parts, string(reply.Bytes()))
	}
	return strings.Join(parts, "; ")
}

func TestDo(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 100} {
		c := openClient(t, resp.Options{Addr: serve(t, echo).addr(), MaxInflight: 8})
		for range 2 {
			text, err := get(t, c, "a", n, 0)
			require.NoError(t, err)
			require.Equal(t, got("a", n), text)
		}
		assert.Equal(t, uint64(2*((n+7)/8)), c.Stats().RoundTrips)
	}
}

func TestDoReturnsTheErrorOfUse(t *testing.T) {
	c := openClient(t, resp.Options{Addr: serve(t, echo).addr()})
	var b resp.Batch
	b.Cmd("PING")
	failed := errors.New("no")
	require.Equal(t, failed, c.Do(&b, 0, func(resp.Replies) error { return failed }))
	require.NoError(t, c.Do(&b, 0, func(resp.Replies) error { return nil }), "the connection is unharmed")
	assert.Equal(t, uint64(1), c.Stats().Connects)
}

// TestViewsOutliveOtherCalls: while one caller looks at its replies, others use the
// connection.
func TestViewsOutliveOtherCalls(t *testing.T) {
	c := openClient(t, resp.Options{Addr: serve(t, echo).addr()})
	var b resp.Batch
	b.Cmd("GET", "outer")
	err := c.Do(&b, 0, func(outer resp.Replies) error {
		for i := range 10 {
			text, err := get(t, c, strconv.Itoa(i), 3, 0)
			require.NoError(t, err)
			require.Equal(t, got(strconv.Itoa(i), 3), text)
		}
		require.Equal(t, "outer", string(outer.At(0).Bytes()))
		return nil
	})
	require.NoError(t, err)
}

func TestExchangeKeepsRepliesUntilTheNext(t *testing.T) {
	c := openClient(t, resp.Options{Addr: serve(t, echo).addr(), MaxInflight: 4})
	var one, two ReplyBuffer
	exchange := func(buf *ReplyBuffer, prefix string, n int) resp.Replies {
		r, err := c.Exchange(gets(prefix, n), 0, buf)
		require.NoError(t, err)
		return r
	}
	a := exchange(&one, "a", 3)
	b := exchange(&two, "b", 10) // in parts
	require.Equal(t, got("a", 3), text(t, a))
	require.Equal(t, got("b", 10), text(t, b))
	b = exchange(&two, "c", 9)
	require.Equal(t, got("c", 9), text(t, b))
	require.Equal(t, got("a", 3), text(t, a))
	_, err := c.Exchange(new(resp.Batch), c.clock.Now(), &one)
	require.ErrorIs(t, err, resp.ErrTimeout)
}

func TestManyGoroutines(t *testing.T) {
	c := openClient(t, resp.Options{Addr: serve(t, echo).addr(), MaxInflight: 4, RequestTimeout: time.Minute})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 20 {
				prefix := fmt.Sprintf("%d/%d", g, i)
				text, err := get(t, c, prefix, i%6, 0)
				assert.NoError(t, err)
				assert.Equal(t, got(prefix, i%6), text)
			}
		})
	}
	all.Wait()
	assert.Equal(t, uint64(1), c.Stats().Connects)
}

// TestEachCallHasAConnectionToItself: a call that finds no free connection waits no longer than
// its deadline.
func TestEachCallHasAConnectionToItself(t *testing.T) {
	const connections = 3
	heard, answer := make(chan struct{}), make(chan struct{})
	s := serve(t, func(s *session) {
		for args := s.command(); args != nil; args = s.command() {
			heard <- struct{}{}
			<-answer
			_, _ = s.Write(redcon.AppendBulkString(nil, args[len(args)-1]))
		}
	})
	c := openClient(t, resp.Options{Addr: s.addr(), Connections: connections, RequestTimeout: time.Minute})
	var all sync.WaitGroup
	for i := range connections + 1 {
		all.Go(func() {
			text, err := get(t, c, strconv.Itoa(i), 1, 0)
			assert.NoError(t, err)
			assert.Equal(t, got(strconv.Itoa(i), 1), text)
		})
	}
	for range connections {
		<-heard
	}
	_, err := get(t, c, "late", 1, c.clock.Now().Add(20*time.Millisecond))
	require.ErrorIs(t, err, resp.ErrTimeout)
	require.ErrorContains(t, err, "not sent, other calls have the connections")
	close(answer)
	<-heard
	all.Wait()
	stats := c.Stats()
	assert.Equal(t, [4]uint64{connections, connections + 1, connections + 1, 1},
		[4]uint64{stats.Connects, stats.Batches, stats.Asked, stats.TimedOut})
}

func TestFailures(t *testing.T) {
	// It is long enough for all answers that come, on any machine, and shorter than the default
	// bounds.
	const soon = 500 * time.Millisecond
	short := resp.Options{RequestTimeout: soon}
	for _, c := range []struct {
		name  string
		opts  resp.Options
		first script
		kind  error
		text  string
	}{
		{"no answer", short, hang, resp.ErrTimeout, "no byte within 500ms"},
		{"half an answer", short, say("$5\r\nab"), resp.ErrTimeout, "no byte within 500ms"},
		{"closed without an answer", resp.Options{}, hangUp, resp.ErrConnectionLost, "connection lost: "},
		{"garbage", resp.Options{}, say("garbage\r\n"), resp.ErrProtocol, "connection lost: protocol error"},
		{"an answer too many", resp.Options{}, say("+OK\r\n+OK\r\n"), resp.ErrProtocol, "reply to no command"},
		{"600 MB bulk string", resp.Options{}, say("$600000000\r\n"), resp.ErrProtocol, "bulk string of 600000000 bytes"},
		{"more than is kept", resp.Options{MaxReplyBytes: 20_000}, say("$30000\r\n" + strings.Repeat("x", 30_000)),
			resp.ErrTooLarge, "replies too large: more than 20000 bytes (max_reply_bytes)"},
		{"wrong password", resp.Options{Password: "p"}, say("-WRONGPASS no\r\n"), resp.ErrConnect, "cannot connect: WRONGPASS ("},
		{"closed in the greeting", resp.Options{Password: "p"}, hangUp, resp.ErrConnect, "cannot connect: "},
		{"no answer to the greeting", resp.Options{Password: "p", ConnectTimeout: soon}, hang,
			resp.ErrConnect, "connect timeout"},
		{"no answer to the greeting, equal timeouts", resp.Options{Password: "p", ConnectTimeout: soon,
			RequestTimeout: soon}, hang, resp.ErrConnect, "connect timeout"},
		{"no answer to the greeting in time for the call", resp.Options{Password: "p", RequestTimeout: soon},
			hang, resp.ErrTimeout, "i/o timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.opts.Addr = serve(t, c.first, echo).addr()
			client := openClient(t, c.opts)
			_, err := get(t, client, "a", 1, 0)
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, c.opts.Addr)
			// The next call has a new connection.
			text, err := get(t, client, "b", 2, 0)
			require.NoError(t, err)
			require.Equal(t, got("b", 2), text)
			assert.Equal(t, uint64(2), client.Stats().Connects)
			assert.Equal(t, uint64(1), client.Stats().Failed)
		})
	}
}

// TestASlowAnswerIsNotSilence: an answer that comes byte by byte may take longer than
// RequestTimeout, up to the call's deadline.
func TestASlowAnswerIsNotSilence(t *testing.T) {
	const silence = 500 * time.Millisecond
	drips := func(s *session) {
		answer := redcon.AppendBulkString(nil, s.command()[1])
		for len(answer) > 0 {
			time.Sleep(silence / 10) // the server's pace; the answer has twelve bytes
			_, _ = s.Write(answer[:1])
			answer = answer[1:]
		}
		s.command()
	}
	for _, c := range []struct {
		name     string
		deadline time.Duration
		want     error
	}{
		{"no deadline", 0, nil},
		{"a deadline after the answer", time.Minute, nil},
		{"a deadline before it", silence / 2, resp.ErrTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := openClient(t, resp.Options{Addr: serve(t, drips).addr(), RequestTimeout: silence})
			deadline := clock.Time(0)
			if c.deadline > 0 {
				deadline = client.clock.Now().Add(c.deadline)
			}
			text, err := get(t, client, "0123", 1, deadline)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, got("0123", 1), text)
		})
	}
}

// TestUnreadBytesAreNotSilence: a goroutine may be late to look. A call does not fail if its
// answer has already come.
func TestUnreadBytesAreNotSilence(t *testing.T) {
	client := openClient(t, resp.Options{Addr: serve(t, echo).addr(), RequestTimeout: time.Minute})
	_, err := get(t, client, "a", 1, 0)
	require.NoError(t, err)
	cn := client.conns[0]
	_, err = cn.Write(gets("b", 1).Encoded())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return cn.checkIdle() != nil }, 10*time.Second, time.Millisecond)
	cn.heardAt, cn.by = time.Now().Add(-time.Hour), time.Time{}
	require.NoError(t, cn.SetReadDeadline(cn.silentBy()))
	n, err := cn.Read(make([]byte, 100))
	require.NoError(t, err)
	assert.Positive(t, n)
}

// TestCallsWaitTheirTurn: a call that waits for a connection fails only by its deadline.
func TestCallsWaitTheirTurn(t *testing.T) {
	const silence = 500 * time.Millisecond
	slow := func(s *session) {
		for args := s.command(); args != nil; args = s.command() {
			time.Sleep(silence / 5) // the server's pace
			_, _ = s.Write(redcon.AppendBulkString(nil, args[len(args)-1]))
		}
	}
	client := openClient(t, resp.Options{Addr: serve(t, slow).addr(), RequestTimeout: silence})
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			_, err := get(t, client, strconv.Itoa(i), 1, 0)
			assert.NoError(t, err)
		})
	}
	all.Wait()
}

// TestIdleConnectionIsChecked: if something arrives on a connection with no unanswered command,
// the client does not send on it any more.
func TestIdleConnectionIsChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		idle func(s *session) // the server does this after its first answer
		want error
	}{
		{"an answer too many", func(s *session) { _, _ = s.Write([]byte("+unasked\r\n")) }, resp.ErrProtocol},
		{"part of an answer too many", func(s *session) { _, _ = s.Write([]byte("$3")) }, resp.ErrProtocol},
		{"the end", func(s *session) { _ = s.Close() }, io.EOF},
		{"a reset", func(s *session) {
			_ = s.Conn.(*net.TCPConn).SetLinger(0)
			_ = s.Close()
		}, syscall.ECONNRESET},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered := make(chan struct{})
			commands := 0
			first := func(s *session) {
				s.command()
				_, _ = s.Write([]byte("$3\r\na:0\r\n"))
				<-answered
				c.idle(s)
				for s.command() != nil {
					commands++
				}
			}
			s := serve(t, first, echo)
			client := openClient(t, resp.Options{Addr: s.addr()})
			text, err := get(t, client, "a", 1, 0)
			require.NoError(t, err)
			require.Equal(t, got("a", 1), text)
			cn := client.conns[0]
			require.NoError(t, cn.checkIdle())
			close(answered)
			// The operating system decides when it arrives.
			var found error
			require.Eventually(t, func() bool {
				found = cn.checkIdle()
				return found != nil
			}, 10*time.Second, time.Millisecond)
			require.ErrorIs(t, found, c.want)

			text, err = get(t, client, "b", 1, 0)
			require.NoError(t, err)
			require.Equal(t, got("b", 1), text)
			assert.Equal(t, uint64(2), client.Stats().Connects)
			assert.Zero(t, client.Stats().Failed)
			s.close()
			assert.Zero(t, commands, "nothing was sent on the connection that is unfit")
		})
	}
}

func TestPartsBeyondMaxReplyBytes(t *testing.T) {
	c := openClient(t, resp.Options{Addr: serve(t, echo).addr(), MaxInflight: 2, MaxReplyBytes: 100})
	_, err := get(t, c, "0123456789", 20, 0)
	require.ErrorIs(t, err, resp.ErrTooLarge)
}

func TestUnreachable(t *testing.T) {
	s := serve(t, echo)
	s.close()
	c := openClient(t, resp.Options{Addr: s.addr()})
	_, err := get(t, c, "a", 1, 0)
	require.ErrorIs(t, err, resp.ErrConnect)
	require.ErrorContains(t, err, s.addr())
}

func TestGreeting(t *testing.T) {
	heard := make(chan []string, 10)
	s := serve(t, func(s *session) {
		for args := s.command(); args != nil; args = s.command() {
			heard <- args
			if _, err := s.Write(redcon.AppendOK(nil)); err != nil {
				return
			}
		}
	})
	c := openClient(t, resp.Options{Addr: s.addr(), Username: "u", Password: "p", Database: 2, ClientName: "n", LibName: "l", LibVersion: "v"})
	var b resp.Batch
	b.Cmd("PING")
	require.NoError(t, c.Do(&b, 0, func(resp.Replies) error { return nil }))
	for _, want := range [][]string{{"AUTH", "u", "p"}, {"SELECT", "2"}, {"CLIENT", "SETNAME", "n"},
		{"CLIENT", "SETINFO", "LIB-NAME", "l"}, {"CLIENT", "SETINFO", "LIB-VER", "v"}, {"PING"}} {
		assert.Equal(t, want, <-heard)
	}
	assert.Equal(t, s.addr(), c.Addr())
}

// The table has what a server answers to the greeting, and the outcome of the call. The server
// hangs up after that.
func TestGreetingRefused(t *testing.T) {
	all := resp.Options{Password: "hidden", ClientName: "n", LibName: "l", LibVersion: "v"}
	for _, c := range []struct {
		name, replies string
		want          string // in the error; empty: the connection is used
	}{
		{"an old server", "+OK\r\n+OK\r\n-ERR Unknown subcommand\r\n-ERR Unknown subcommand\r\n", ""},
		{"no permission for names", "+OK\r\n-NOPERM client|setname\r\n-NOPERM x\r\n-NOPERM x\r\n", ""},
		{"full, one answer of four", "-ERR max number of clients reached\r\n", "cannot connect: ERR max number of clients reached"},
		{"full, behind AUTH", "+OK\r\n-ERR max number of clients reached\r\n", "cannot connect: ERR max number of clients reached"},
		{"wrong password", "-WRONGPASS invalid\r\n", "cannot connect: WRONGPASS ("},
		{"quotes the password", "-ERR unknown command 'AUTH', with args beginning with: 'hid'\r\n", "rankd does not show it"},
		{"an answer too many", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "reply to no command"},
		{"another language", "HTTP/1.1 400\r\n", "unknown type byte 'H'"},
		{"half an answer", "+O", "cannot connect: EOF"},
		{"a long answer", "$2097152\r\n" + strings.Repeat("x", 2<<20) + "\r\n", "too many unread bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(s *session) {
				s.command()
				_, _ = s.Write([]byte(c.replies)) // fails if the client has hung up
				if c.want == "" {
					for range 3 {
						s.command()
					}
					echo(s)
				}
			})
			o := all
			o.Addr = s.addr()
			_, err := get(t, openClient(t, o), "a", 1, 0)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, resp.ErrConnect)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "hid")
		})
	}
}

func TestDeadline(t *testing.T) {
	c := openClient(t, resp.Options{Addr: serve(t, hang).addr(), RequestTimeout: time.Hour})
	_, err := get(t, c, "a", 1, c.clock.Now())
	require.ErrorIs(t, err, resp.ErrTimeout)
	require.ErrorContains(t, err, "the deadline of the call has passed")
	assert.Zero(t, c.Stats().Connects)
	_, err = get(t, c, "a", 1, c.clock.Now().Add(20*time.Millisecond))
	require.ErrorIs(t, err, resp.ErrTimeout)
}

// TestDeadlineWhileWaitingForTheConnection: a call does not wait for another one longer than
// its own deadline.
func TestDeadlineWhileWaitingForTheConnection(t *testing.T) {
	heard := make(chan struct{})
	s := serve(t, func(s *session) {
		s.command()
		close(heard)
		s.command()
	})
	c := openClient(t, resp.Options{Addr: s.addr(), RequestTimeout: time.Hour})
	var other sync.WaitGroup
	other.Go(func() {
		_, err := get(t, c, "a", 1, 0)
		assert.ErrorIs(t, err, resp.ErrClosed, "Close ends it")
	})
	<-heard
	_, err := get(t, c, "b", 1, c.clock.Now().Add(200*time.Millisecond))
	require.ErrorIs(t, err, resp.ErrTimeout)
	require.ErrorContains(t, err, "other calls have the connections")
	other.Go(func() {
		_, err := get(t, c, "c", 1, 0)
		assert.ErrorIs(t, err, resp.ErrClosed)
	})
	c.Close()
	c.Close()
	other.Wait()
	_, err = get(t, c, "d", 1, 0)
	require.ErrorIs(t, err, resp.ErrClosed)
}

func TestLargeReplyGrowsTheBufferForOneCall(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	c := openClient(t, resp.Options{
		Addr: serve(t, say(string(redcon.AppendBulkString(nil, large))), echo).addr(), RequestTimeout: time.Minute,
	})
	var b resp.Batch
	b.Cmd("GET", "large")
	require.NoError(t, c.Do(&b, 0, func(r resp.Replies) error {
		require.Equal(t, large, string(r.At(0).Bytes()))
		return nil
	}))
	r := &ReplyBuffer{buf: make([]byte, 3*readBytesKeep)}
	c.spare.give(r, c.opts.Limits)
	assert.Equal(t, readBytes, len(r.buf))
}

// hashValues is the number of fields and values in a hash of five fields.
const hashValues = 10

// answerHashes answers all that one read returns with one hash, and allocates nothing.
func answerHashes(s *session) {
	answer := redcon.AppendArray(nil, hashValues)
	for range hashValues {
		answer = redcon.AppendBulkString(answer, "a value")
	}
	in := make([]byte, 1000)
	for {
		if _, err := s.Read(in); err != nil {
			return
		}
		if _, err := s.Write(answer); err != nil {
			return
		}
	}
}

func TestExchangeDoesNotAllocate(t *testing.T) {
	p := NewClient(clock.NewReal(), resp.Options{
		RequestTimeout: time.Minute, Connections: 2, Addr: serve(t, answerHashes).addr(),
	})
	defer p.Close()
	var b resp.Batch
	b.Cmd("HGETALL", "user:1")
	var buf ReplyBuffer
	once := func() {
		if _, err := p.Exchange(&b, 0, &buf); err != nil {
			panic(err)
		}
	}
	once()
	once() // The other connection is made.
	assert.Zero(t, testing.AllocsPerRun(100, once))
}

func TestDoDoesNotAllocate(t *testing.T) {
	c := openClient(t, resp.Options{RequestTimeout: time.Minute, Addr: serve(t, answerHashes).addr()})
	var b resp.Batch
	b.Cmd("HGETALL", "user:1")
	fields := 0
	use := func(r resp.Replies) error {
		fields += r.At(0).Len()
		return nil
	}
	once := func() {
		if err := c.Do(&b, 0, use); err != nil {
			panic(err)
		}
	}
	once()
	assert.Zero(t, testing.AllocsPerRun(100, once))
	assert.Equal(t, hashValues*102, fields)
}
