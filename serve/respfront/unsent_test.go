package respfront

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/servetest"
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

// TestAnswersThatNobodyReadsAreBounded has clients ask for 70 MB together and read nothing. Those whose answers stay get all of them in
// the end, and so does another client meanwhile.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const clients, requests, bound = 12, 24, 16 << 20
	metrics := prometheus.NewRegistry()
	w := newServiceWorld(t, everybody(t), Options{WriteTimeout: time.Hour}, serve.Options{MaxUnsentBytes: bound, Registerer: metrics},
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
				waiting = waiting && s.owed > 0
			}
			waiting = waiting && w.lastID == clients
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
			if _, err := readReply(c.r); err != nil {
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
