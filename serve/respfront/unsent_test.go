package respfront

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// cutBy returns how many connections were cut off for that reason.
func cutBy(t *testing.T, metrics *prometheus.Registry, why serve.Cut) float64 {
	families, err := metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if f.GetName() == "rankd_connections_cut_total" && l.GetName() == "reason" && l.GetValue() == why.String() && m.Counter.GetValue() > 0 {
					return m.Counter.GetValue()
				}
			}
		}
	}
	return 0
}

// TestAnswersThatNobodyReadsAreBounded has clients ask for 70 MB together and read nothing.
// Those that are not cut off get all of their answers in the end, and so does another client
// meanwhile.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const clients, requests, bound = 12, 24, 16 << 20
	metrics := prometheus.NewRegistry()
	w := newServiceWorld(t, everybody(t), Options{Options: session.Options{WriteTimeout: time.Hour}}, serve.Options{MaxUnsentBytes: bound, Registerer: metrics},
		func(o *rankd.Options) { o.MaxInflight, o.MaxQueue = 8, 2*clients*requests })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := w.listen(t, servetest.SmallSockets{Listener: l})
	before := servetest.LiveHeap()
	all := make([]*client, clients)
	for i := range all {
		all[i] = dial(t, addr)
		require.NoError(t, all[i].Conn.(*net.TCPConn).SetReadBuffer(64<<10))
		_, err := all[i].Write(bytes.Repeat(commands("RANK many 1"), requests))
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		waiting := true
		w.onLoop(func() {
			for s := range sessionsOf(w) {
				waiting = waiting && s.State().Owed > 0
			}
			waiting = waiting && w.Entered() == clients
		})
		m := w.engine.Metrics()
		return waiting && m.Live+m.Admission.Waiting == 0 && w.service.Unsent() > 0 && w.service.Unsent() <= bound
	}, "the slowest are cut off until the rest is within the bound")
	assert.Less(t, servetest.LiveHeap()-before, int64(2*bound))

	polite := dial(t, addr)
	polite.send("RANK many 1")
	assert.Greater(t, polite.receiveLong(), 100_000)
	served := 0
	for _, c := range all {
		n := 0
		for n < requests {
			if _, err := servetest.ReadReply(c.r); err != nil {
				break
			}
			n++
		}
		if n == requests {
			served++
		}
	}
	assert.Positive(t, served)
	assert.Equal(t, float64(clients-served), cutBy(t, metrics, serve.CutUnsent), "each other client was cut off")
	eventually(t, func() bool { return w.service.Unsent() == 0 }, "nothing is left")
}

// idle is a Sender that is never called.
type deaf struct{}

func (deaf) Room() {}
func (deaf) Cut()  {}

// TestAnAnswerThatIsEncodedCountsUntilItIsGone has a client leave while its answer is encoded.
func TestAnAnswerThatIsEncodedCountsUntilItIsGone(t *testing.T) {
	const bound = 8 << 20
	w := newServiceWorld(t, everybody(t), Options{}, serve.Options{MaxUnsentBytes: bound}, nil)
	c := w.wire()
	other := w.service.NewOutbox(deaf{})
	require.True(t, other.Encode(bound/2))
	w.onLoop(func() { c.receive(commands("RANK many 1")) })
	eventually(t, func() bool {
		asks := false
		w.onLoop(func() { asks = c.session.State().AsksRoom })
		return asks
	}, "there is no room for its answer")
	w.onLoop(func() {
		other.Close()
		w.Loop().Post(func() { // after the Room that follows, and before the goroutine comes back
			require.True(t, c.session.State().Encoding)
			c.closed = io.EOF
			c.session.OnClose(io.EOF)
			assert.Greater(t, w.service.Unsent(), int64(100_000), "a goroutine encodes it still")
		})
	})
	eventually(t, func() bool { return w.service.Unsent() == 0 }, "nothing is left")
}

// TestATraceCounts has answers of three rows wait with their traces.
func TestATraceCounts(t *testing.T) {
	caller, err := access.NewCaller(access.Rules{Name: "anyone", Plans: []string{"*"}, Grants: []request.Grant{request.GrantTrace}})
	require.NoError(t, err)
	w := newServiceWorld(t, access.Anyone(caller), Options{}, serve.Options{}, nil)
	c := w.wire()
	const requests = 40
	w.onLoop(func() {
		c.receive(commands("RANK gated 1")) // The others wait for it.
		for range requests {
			c.receive(commands(`RANK three 1 {"trace":true}`))
		}
	})
	eventually(t, func() bool { return w.service.Unsent() > requests*1000 }, "the traces wait")
	w.gate.passAll()
	eventually(t, func() bool {
		size := 0
		w.onLoop(func() { size = c.out.Len() })
		return size > requests*1000
	}, "they are long")
	eventually(t, func() bool { return w.service.Unsent() == 0 }, "nothing is left")
	w.hangUp(c)
}

// TestAnswersThatNobodyTookAreNotDelivered: of two requests in a row the first waits. The client goes, so the answer to the second,
// which is there, leaves a line that says so. The first has none.
func TestAnswersThatNobodyTookAreNotDelivered(t *testing.T) {
	log := new(servetest.Log)
	w := newWorld(t, everybody(t), Options{}, func(o *rankd.Options) { o.Served = log })
	c := dial(t, w.listenTCP(t))
	c.send("RANK three 1")
	c.receive()
	c.send("RANK gated 2", "RANK three 3")
	assert.EqualValues(t, 2, <-w.gate.entered)
	eventually(t, func() bool { m := w.engine.Metrics(); return m.Requests == 3 && m.Live == 1 }, "the second is answered")
	require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0)) // Otherwise it could still read.
	require.NoError(t, c.Close())
	eventually(t, func() bool { return w.engine.ServedLines().Written == 2 }, "two lines are written")
	users := regexp.MustCompile(`"user_id":(\d+),.*"delivered":(true|false)`).FindAllStringSubmatch(log.String(), -1)
	require.Len(t, users, 2)
	assert.Equal(t, []string{"1", "true", "3", "false"}, append(users[0][1:], users[1][1:]...))
}
