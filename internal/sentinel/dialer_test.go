package sentinel

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/resp"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// array encodes texts.
func array(texts ...string) []byte {
	out := redcon.AppendArray(nil, len(texts))
	for _, text := range texts {
		out = redcon.AppendBulkString(out, text)
	}
	return out
}

func serve(t *testing.T, answer resptest.Answer) string {
	s, err := resptest.NewServer(answer)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s.Addr()
}

// A world has a sentinel, servers, and a client of the master on its own loop.
type world struct {
	t        *testing.T
	named    atomic.Pointer[string] // the sentinel's answer
	reactor  *reactor.Reactor
	dialer   *Dialer
	client   *resp.Client
	sentinel string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	none := "-ERR No such master with that name\r\n"
	w.named.Store(&none)
	w.sentinel = serve(t, func(args []string) []byte {
		if args[0] == "SUBSCRIBE" {
			return array("subscribe", args[1], "1")
		}
		return []byte(*w.named.Load())
	})
	w.reactor = reactor.New(reactor.Config{OnPanic: func(recovered any, stack []byte) { t.Errorf("panic: %v\n%s", recovered, stack) }})
	require.NoError(t, w.reactor.Start())
	o := resp.Options{Addr: w.sentinel, Master: "m"}
	w.dialer = NewDialer(w.reactor.Loop(), w.reactor, o)
	w.client = resp.NewClient(w.reactor.Loop(), w.dialer, o)
	t.Cleanup(func() {
		w.reactor.Loop().Post(w.client.Close)
		w.dialer.Close()
		w.reactor.Stop()
		<-w.reactor.Loop().Done()
	})
	return w
}

// names has the sentinel name a master.
func (w *world) names(addr string, epoch int) {
	host, port, _ := net.SplitHostPort(addr)
	text := string(array("ip", host, "port", port, "config-epoch", fmt.Sprint(epoch)))
	w.named.Store(&text)
}

// get asks the master for its name.
func (w *world) get() (text string, err error) {
	done := make(chan struct{})
	call := &resp.Call{Done: func(call *resp.Call) {
		if err = call.Err; err == nil {
			text = string(call.Replies.At(0).Bytes())
		}
		close(done)
	}}
	call.Batch.Cmd("GET", "x")
	require.True(w.t, w.reactor.Loop().Post(func() {
		if err = w.client.Do(call); err != nil {
			close(done)
		}
	}))
	<-done
	return text, err
}

// The client connects to the master that the sentinel names. It connects to another master when
// there is one, even if the connection to the old one still works. It refuses a server that
// says that it is not a master.
func TestTheClientFollowsTheMaster(t *testing.T) {
	w := newWorld(t)
	var role atomic.Pointer[string]
	slave, master := "slave", "master"
	role.Store(&slave)
	server := func(name string, role func() string) string {
		return serve(t, func(args []string) []byte {
			if args[0] == "ROLE" {
				return array(role())
			}
			return redcon.AppendBulkString(nil, name)
		})
	}
	one := server("one", func() string { return "master" })
	two := server("two", func() string { return *role.Load() })
	_, err := w.get()
	require.ErrorIs(t, err, resp.ErrConnect)
	require.ErrorContains(t, err, "sentinel "+w.sentinel+": ERR No such master")
	w.names(one, 1)
	require.Eventually(t, func() bool { text, err := w.get(); return err == nil && text == "one" }, 10*time.Second, time.Millisecond)
	w.names(two, 2)
	heard := make(chan string, 1)
	w.reactor.Loop().Post(func() {
		w.dialer.ask(5*time.Second, func(err error) {
			assert.NoError(t, err)
			heard <- w.dialer.master
		})
	})
	require.Equal(t, two, <-heard)
	require.Eventually(t, func() bool { _, err = w.get(); return err != nil }, 10*time.Second, time.Millisecond, "the old connection ends")
	_, err = w.get()
	require.ErrorContains(t, err, "no master by its own account")
	role.Store(&master)
	require.Eventually(t, func() bool { text, err := w.get(); return err == nil && text == "two" }, 10*time.Second, time.Millisecond)
}

// A handler notes what it hears.
type handler struct{ heard chan error }

func (h *handler) OnConnect(err error)    { h.heard <- err }
func (h *handler) OnData(data []byte) int { return len(data) }
func (h *handler) OnClose(error)          { h.heard <- transport.ErrClosed }

// A connection that is closed before the master is known still has its OnConnect, once and
// later.
func TestCloseBeforeTheMasterIsKnown(t *testing.T) {
	w := newWorld(t)
	w.names("127.0.0.1:1", 1)
	h := &handler{make(chan error, 10)}
	w.reactor.Loop().Post(func() {
		c := w.dialer.Dial("", transport.DialOptions{}, h)
		assert.NoError(t, c.Write([]byte("early")))
		assert.Equal(t, 5, c.Unsent())
		c.Close(nil)
		c.Close(nil)
		assert.ErrorIs(t, c.Write([]byte("x")), transport.ErrClosed)
		assert.Empty(t, h.heard)
	})
	assert.ErrorIs(t, <-h.heard, transport.ErrClosed)
	done := make(chan struct{})
	w.reactor.Loop().Post(func() { assert.Empty(t, w.dialer.conns); close(done) })
	<-done
	assert.Empty(t, h.heard)
}
