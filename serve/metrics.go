package serve

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
)

// noPlan is the label of requests that did not name a plan of the library. No plan can have this name.
const noPlan = "(none)"

// durations are the bounds of the histograms, in seconds: from the time of a cheap plan to the patience of a client.
var durations = []float64{100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10}

// metrics are the figures of the service. Labels come from the plans of the library and from the tables of this package, never from a
// request. Any goroutine.
type metrics struct {
	requests   *prometheus.CounterVec        // plan, front, class
	duration   *prometheus.HistogramVec      // plan, front
	queueDelay *prometheus.HistogramVec      // plan
	shed       *prometheus.CounterVec        // plan, reason
	lacking    [lacks]*prometheus.CounterVec // plan, front
	rows       *prometheus.HistogramVec      // plan, front
	paid       [costs]*prometheus.CounterVec // plan, caller

	connections [fronts]prometheus.Gauge
	opened      [fronts]prometheus.Counter
	cut         [fronts][cuts]prometheus.Counter
	unlogged    prometheus.Counter
}

// newMetrics registers the metrics. r may be nil. unsent returns the bytes that clients have not taken.
func newMetrics(r prometheus.Registerer, unsent func() int64) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: durations}, labels)
	}
	m := &metrics{
		requests:   counter("rankd_requests_total", "Requests that have ended, by outcome.", "plan", "front", "class"),
		duration:   histogram("rankd_request_duration_seconds", "Time from the arrival of a request that ran or waited to its end.", "plan", "front"),
		queueDelay: histogram("rankd_request_queue_delay_seconds", "Time that requests waited for admission, for those that waited.", "plan"),
		shed:       counter("rankd_requests_shed_total", "Requests that were refused at once since the queue was full, or whose deadline passed in it.", "plan", "reason"),
		lacking: [lacks]*prometheus.CounterVec{
			counter("rankd_answers_degraded_total", "Answers with something missing.", "plan", "front"),
			counter("rankd_answers_empty_total", "Answers without rows.", "plan", "front"),
			counter("rankd_answers_below_minimum_total", "Answers with fewer rows than their plans want.", "plan", "front"),
			counter("rankd_answers_fallback_total", "Answers of the plans that stand in for those that were asked for.", "plan", "front"),
		},
		rows: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rankd_answer_rows", Help: "Rows of answers, of all outputs together.",
			Buckets: []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000}}, []string{"plan", "front"}),
		paid: [costs]*prometheus.CounterVec{
			counter("rankd_caller_commands_total", "Commands to Redis that requests got replies to, shared ones among them.", "plan", "caller"),
			counter("rankd_caller_reply_bytes_total", "Bytes of these replies.", "plan", "caller"),
			counter("rankd_caller_compute_seconds_total", "Time that nodes of requests computed, on the loop and on CPU workers.", "plan", "caller"),
		},
		unlogged: prometheus.NewCounter(prometheus.CounterOpts{Name: "rankd_log_lines_dropped_total", Help: "Failed requests and connections without a line in the log, because of its rate limit."}),
	}
	connections := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "rankd_connections", Help: "Connections of clients."}, []string{"front"})
	opened := counter("rankd_connections_opened_total", "Connections of clients that were accepted.", "front")
	cut := counter("rankd_connections_cut_total", "Connections of clients that the server ended or refused, by reason.", "front", "reason")
	for _, f := range []Front{RESP, HTTP} {
		m.connections[f] = connections.WithLabelValues(f.String())
		m.opened[f] = opened.WithLabelValues(f.String())
		for why := range m.cut[f] {
			m.cut[f][why] = cut.WithLabelValues(f.String(), Cut(why).String())
		}
	}
	if r != nil {
		r.MustRegister(m.requests, m.duration, m.queueDelay, m.shed, m.rows, m.unlogged, connections, opened, cut,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "rankd_unsent_bytes", Help: "Answers that clients have not taken, encoded or waiting for their turn."},
				func() float64 { return float64(unsent()) }))
		for _, of := range slices.Concat(m.paid[:], m.lacking[:]) {
			r.MustRegister(of)
		}
	}
	return m
}

// planMetrics are the metrics of one plan, by front. They exist from the first request on. Any goroutine.
type planMetrics [fronts]atomic.Pointer[series]

// series are the metrics of one plan and one front. Any goroutine.
type series struct {
	requests         [outcome.Count]prometheus.Counter
	duration         prometheus.Observer
	queueDelay       prometheus.Observer
	refused, expired prometheus.Counter
	lacking          [lacks]prometheus.Counter
	rows             prometheus.Observer
}

// lacks is in how many ways an answer may lack something: see series.lack.
const lacks = 4

// lack counts what an answer lacks.
func (s *series) lack(a *rankd.Answer) {
	for i, so := range [lacks]bool{a.Degraded(), a.Len() == 0, a.BelowMinimum() != nil, a.Fallback() != nil} {
		if so {
			s.lacking[i].Inc()
		}
	}
}

// costs is how many kinds of cost requests have: those of rankd.Cost.
const costs = 3

// paid is what one caller has paid for one plan. Any goroutine.
type paid [costs]prometheus.Counter

// callersMax is how many names of callers the metrics of a plan tell apart: a file of tokens may change for ever.
const callersMax = 256

// otherCallers is the label of the callers beyond these. No caller can have this name.
const otherCallers = "(others)"

// payments are what the callers of one plan have paid. Any goroutine.
type payments struct {
	known atomic.Pointer[map[string]*paid] // never changed, but replaced
	mu    sync.Mutex                       // held while known is replaced
}

// of returns what a caller has paid for a plan. It allocates nothing, but for a caller that is new.
func (p *payments) of(m *metrics, plan, caller string) *paid {
	known := p.known.Load()
	if known != nil && (*known)[caller] != nil {
		return (*known)[caller]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]*paid{}
	if known = p.known.Load(); known != nil {
		if len(*known) >= callersMax {
			caller = otherCallers
		}
		if (*known)[caller] != nil {
			return (*known)[caller]
		}
		all = maps.Clone(*known)
	}
	one := new(paid)
	for i := range one {
		one[i] = m.paid[i].WithLabelValues(plan, caller)
	}
	all[caller] = one
	p.known.Store(&all)
	return one
}

func (p *paid) add(c rankd.Cost) {
	p[0].Add(float64(c.Commands))
	p[1].Add(float64(c.ReplyBytes))
	p[2].Add(c.Compute.Seconds())
}

// of returns the metrics of a plan and a front.
func (p *planMetrics) of(m *metrics, plan string, f Front) *series {
	if known := p[f].Load(); known != nil {
		return known
	}
	s := &series{
		duration: m.duration.WithLabelValues(plan, f.String()), queueDelay: m.queueDelay.WithLabelValues(plan),
		refused: m.shed.WithLabelValues(plan, "queue_full"), expired: m.shed.WithLabelValues(plan, "deadline"),
		rows: m.rows.WithLabelValues(plan, f.String()),
	}
	for i := range s.lacking {
		s.lacking[i] = m.lacking[i].WithLabelValues(plan, f.String())
	}
	for c := range s.requests {
		s.requests[c] = m.requests.WithLabelValues(plan, f.String(), outcome.Class(c).Label())
	}
	p[f].Store(s) // Another goroutine may have stored one of the same counters.
	return s
}

// observe counts how long a request took, if it ran or waited, and how long it waited.
func (s *series) observe(elapsed, delay time.Duration) {
	if elapsed > 0 {
		s.duration.Observe(elapsed.Seconds())
	}
	if delay > 0 {
		s.queueDelay.Observe(delay.Seconds())
	}
}
