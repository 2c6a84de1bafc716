// Package rankdprom shows the metrics of an engine to Prometheus.
//
//	prometheus.MustRegister(rankdprom.New(engine))
//
// docs/reference/metrics.md lists the metrics: those that rankd serve has of its engine. The others in that table count what its
// fronts do, and come from package serve.
package rankdprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/drift"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/latency"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// Collector is a prometheus.Collector with the metrics of one engine. Each scrape asks the engine for them, once. Two engines in
// one registry need a label each: prometheus.WrapRegistererWith adds it. Immutable; any goroutine.
type Collector struct {
	engine     *rankd.Engine
	ofReloads  []figure[versions]
	ofDigest   []figure[versions]
	ofVersion  []figure[versions]
	ofEngine   []figure[rankd.Metrics]
	ofResident []figure[rankd.Resident]
	ofEndpoint []figure[calls]
	ofRedis    []figure[resp.Stats]
	ofCache    []figure[rowcache.Stats]
	ofPlan     []figure[rankd.PlacementStats]
	ofOp       []figure[opStats]
	ofKey      []figure[task.Values]
	ofColumn   []figure[rankd.DriftColumn]
	ofSampled  []figure[rankd.DriftSampled]
	ofScores   *prometheus.Desc
	histograms []histogram
}

// versions are what an engine has loaded, and what became of its reloads.
type versions struct {
	rankd.Generation
	rankd.Reloads
}

// opStats are what the tasks of one op have cost.
type opStats = scheduler.OpStats

// histogram is one distribution of an engine. Immutable.
type histogram struct {
	desc *prometheus.Desc
	read func(*rankd.Metrics) *latency.Buckets
}

// figure is one metric, and how to read it from a source. Immutable.
type figure[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*S) float64
}

// calls are what the clients of Redis and those of services both count.
type calls struct {
	begun, failed, timedOut, connects, bytesSent, bytesReceived uint64
	inflight, waiting                                           int
}

func ofRedis(s *resp.Stats) *calls {
	return &calls{s.Batches, s.Failed, s.TimedOut, s.Connects, s.BytesSent, s.BytesReceived, s.Inflight, s.Waiting}
}

func ofService(s *remote.Stats) *calls {
	return &calls{s.Calls, s.Failed, s.TimedOut, s.Connects, s.BytesSent, s.BytesReceived, s.Inflight, s.Waiting}
}

// New returns the metrics of an engine. They may be scraped until the engine closes, and after it.
func New(e *rankd.Engine) *Collector {
	type all = rankd.Metrics
	const endpoint, plan, side = "endpoint", "plan", "side"
	return &Collector{ // Each line below is one metric.
		engine: e,
		ofEngine: []figure[all]{
			gauge("rankd_requests_running", "Requests that run now.", func(m *all) float64 { return float64(m.Live) }),
			gauge("rankd_requests_waiting", "Requests that wait for admission now.", func(m *all) float64 { return float64(m.Admission.Waiting) }),
			counter("rankd_loop_iterations_total", "Iterations of the loop.", func(m *all) float64 { return float64(m.Loop.Iterations) }),
			counter("rankd_loop_io_callbacks_total", "I/O callbacks of the loop.", func(m *all) float64 { return float64(m.Loop.Events) }),
			counter("rankd_loop_idle_seconds_total", "Time that the loop spent waiting for work.", func(m *all) float64 { return m.Loop.Idle.Seconds() }),
			counter("rankd_loop_late_timers_total", "Timers that fired more than 10 ms late.", func(m *all) float64 { return float64(m.Loop.LateTimers) }),
			counter("rankd_loop_panics_total", "Panics of callbacks, which the loop contained.", func(m *all) float64 { return float64(m.Loop.Panics) }),
			gauge("rankd_loop_lag_seconds", "Time until the loop answered this scrape.", func(m *all) float64 { return m.Lag.Seconds() }),
			gauge("rankd_loop_longest_callback_seconds", "The longest callback since the start.", func(m *all) float64 { return m.Loop.LongestCallback.Seconds() }),
			counter("rankd_loop_stuck_total", "Times that one callback held up the loop for over a second.", func(m *all) float64 { return float64(m.Stuck) }),
			gauge("rankd_loop_stuck_seconds", "How long one callback has held up the loop now.", func(m *all) float64 { return m.StuckFor.Seconds() }),
			gauge("rankd_functions_running", "Functions of task.Ctx.Await that run now.", func(m *all) float64 { return float64(m.Awaits.Running) }),
			counter("rankd_functions_late_total", "Functions of task.Ctx.Await whose results came after everybody had stopped waiting.", func(m *all) float64 { return float64(m.Awaits.Late) }),
			gauge("rankd_loop_posts_pending", "Posts of other goroutines that wait for the loop now.", func(m *all) float64 { return float64(m.Loop.PostsPending) }),
			counter("rankd_cpu_jobs_total", "Jobs that CPU workers have finished.", func(m *all) float64 { return float64(m.CPU.Finished) }),
			gauge("rankd_cpu_jobs_running", "Jobs that CPU workers run now.", func(m *all) float64 { return float64(m.CPU.Running) }),
			gauge("rankd_cpu_jobs_queued", "Jobs that wait for a CPU worker now.", func(m *all) float64 { return float64(m.CPU.Queued) }),
			counter("rankd_cpu_job_queue_delay_seconds_total", "Total time that jobs waited for a CPU worker.", func(m *all) float64 { return m.CPU.WaitTotal.Seconds() }),
			counter("rankd_cpu_job_run_seconds_total", "Total time that CPU workers ran jobs.", func(m *all) float64 { return m.CPU.RunTotal.Seconds() }),
		},
		ofReloads: []figure[versions]{
			gauge("rankd_generation", "The number of the generation of plans, models and tables that requests begin with.", func(v *versions) float64 { return float64(v.Number) }),
			gauge("rankd_generation_loaded_timestamp_seconds", "When that generation was loaded, in seconds since 1970.", func(v *versions) float64 { return loadedSeconds(v.Loaded) }),
			counter("rankd_reloads_total", "Reloads that succeeded.", func(v *versions) float64 { return float64(v.Succeeded) }),
			counter("rankd_reload_failures_total", "Reloads that failed, and changed nothing.", func(v *versions) float64 { return float64(v.Failed) }),
		},
		ofDigest: []figure[versions]{
			gauge("rankd_generation_info", "1 for the digest of the generation that requests begin with.", one, "digest"),
		},
		ofVersion: []figure[versions]{
			gauge("rankd_plan_info", "1 for the digest of each plan of the generation that requests begin with.", one, plan, "digest"),
		},
		ofResident: []figure[rankd.Resident]{
			gauge("rankd_resident_rows", "Rows of a plan that the engine keeps for others.", func(r *rankd.Resident) float64 { return float64(r.Rows) }, plan),
			gauge("rankd_resident_bytes", "Approximate number of bytes of these rows.", func(r *rankd.Resident) float64 { return float64(r.Bytes) }, plan),
			gauge("rankd_resident_loaded_timestamp_seconds", "When the run that returned these rows ended, in seconds since 1970; 0: there is none.", func(r *rankd.Resident) float64 { return loadedSeconds(r.Loaded) }, plan),
			counter("rankd_resident_runs_total", "Runs of the plan that succeeded.", func(r *rankd.Resident) float64 { return float64(r.Runs) }, plan),
			counter("rankd_resident_failures_total", "Runs of the plan that failed, so that the former rows stayed.", func(r *rankd.Resident) float64 { return float64(r.Failures) }, plan),
		},
		ofEndpoint: []figure[calls]{
			counter("rankd_endpoint_calls_total", "Calls of nodes to a Redis or a service.", func(c *calls) float64 { return float64(c.begun) }, endpoint),
			counter("rankd_endpoint_calls_failed_total", "Calls that ended with an error.", func(c *calls) float64 { return float64(c.failed) }, endpoint),
			counter("rankd_endpoint_calls_timed_out_total", "Calls that failed because they ran out of time.", func(c *calls) float64 { return float64(c.timedOut) }, endpoint),
			gauge("rankd_endpoint_in_flight", "Commands to a Redis, or requests to a service, without an answer now.", func(c *calls) float64 { return float64(c.inflight) }, endpoint),
			gauge("rankd_endpoint_calls_waiting", "Calls that are unsent or partly sent now.", func(c *calls) float64 { return float64(c.waiting) }, endpoint),
			counter("rankd_endpoint_connects_total", "Attempts to connect.", func(c *calls) float64 { return float64(c.connects) }, endpoint),
			counter("rankd_endpoint_sent_bytes_total", "Bytes sent; to a service, of bodies that got an answer.", func(c *calls) float64 { return float64(c.bytesSent) }, endpoint),
			counter("rankd_endpoint_received_bytes_total", "Bytes received; from a service, of bodies.", func(c *calls) float64 { return float64(c.bytesReceived) }, endpoint),
		},
		ofRedis: []figure[resp.Stats]{
			counter("rankd_endpoint_round_trips_total", "Times that commands were sent to a Redis together.", func(s *resp.Stats) float64 { return float64(s.RoundTrips) }, endpoint),
			counter("rankd_endpoint_commands_asked_total", "Commands to a Redis that nodes asked for.", func(s *resp.Stats) float64 { return float64(s.Asked) }, endpoint),
			counter("rankd_endpoint_commands_sent_total", "Commands sent to a Redis: fewer than asked for, since equal reads are shared.", func(s *resp.Stats) float64 { return float64(s.Commands) }, endpoint),
			counter("rankd_endpoint_calls_too_large_total", "Calls to a Redis that failed for the length of their replies.", func(s *resp.Stats) float64 { return float64(s.TooLarge) }, endpoint),
			counter("rankd_endpoint_reconnects_total", "Connections to a Redis that replaced lost ones.", func(s *resp.Stats) float64 { return float64(s.Reconnects) }, endpoint),
			counter("rankd_endpoint_redirected_total", "Commands sent again, to another node of a Redis Cluster or later to the same one.", func(s *resp.Stats) float64 { return float64(s.Redirected) }, endpoint),
			counter("rankd_endpoint_strangers_total", "Connections refused, since another server was at the address of a node of a Redis Cluster.", func(s *resp.Stats) float64 { return float64(s.Strangers) }, endpoint),
			counter("rankd_endpoint_refreshes_total", "Times that the nodes of a Redis Cluster were asked for the map of slots.", func(s *resp.Stats) float64 { return float64(s.Refreshes) }, endpoint),
			counter("rankd_endpoint_replica_reads_total", "Commands that were for a replica of a Redis Cluster first.", func(s *resp.Stats) float64 { return float64(s.ReplicaReads) }, endpoint),
			gauge("rankd_endpoint_nodes", "Nodes of a Redis Cluster to which there is a client now.", func(s *resp.Stats) float64 { return float64(s.Nodes) }, endpoint),
			gauge("rankd_endpoint_connections_ready", "Connections to a Redis that can take calls now.", func(s *resp.Stats) float64 { return float64(s.Ready) }, endpoint),
		},
		ofCache: []figure[rowcache.Stats]{
			counter("rankd_cache_hits_total", "Keys whose value was in memory.", func(s *rowcache.Stats) float64 { return float64(s.Hits) }, endpoint),
			counter("rankd_cache_misses_total", "Keys whose value was not in memory.", func(s *rowcache.Stats) float64 { return float64(s.Misses) }, endpoint),
			counter("rankd_cache_expired_total", "Of the misses, those whose value was too old.", func(s *rowcache.Stats) float64 { return float64(s.Expired) }, endpoint),
			counter("rankd_cache_untrusted_total", "Of the misses, those because the server had not reported changes for too long.", func(s *rowcache.Stats) float64 { return float64(s.Untrusted) }, endpoint),
			counter("rankd_cache_dropped_total", "Times that all values were dropped: the server said so, or its connection ended.", func(s *rowcache.Stats) float64 { return float64(s.Dropped) }, endpoint),
			counter("rankd_cache_kept_total", "Values that were kept.", func(s *rowcache.Stats) float64 { return float64(s.Kept) }, endpoint),
			counter("rankd_cache_raced_total", "Values that were not kept, since their key changed while it was read.", func(s *rowcache.Stats) float64 { return float64(s.Raced) }, endpoint),
			counter("rankd_cache_invalidated_total", "Values that were dropped, since their key changed.", func(s *rowcache.Stats) float64 { return float64(s.Invalidated) }, endpoint),
			counter("rankd_cache_evicted_total", "Values evicted to make room for others.", func(s *rowcache.Stats) float64 { return float64(s.Evicted) }, endpoint),
			gauge("rankd_cache_values", "Values in memory now.", func(s *rowcache.Stats) float64 { return float64(s.Entries) }, endpoint),
			gauge("rankd_cache_bytes", "Bytes that values and their index take now.", func(s *rowcache.Stats) float64 { return float64(s.Bytes) }, endpoint),
		},
		ofPlan: []figure[rankd.PlacementStats]{
			counter("rankd_nodes_inline_total", "Computing nodes that ran on the loop.", func(s *rankd.PlacementStats) float64 { return float64(s.Inline) }, plan),
			counter("rankd_nodes_offloaded_total", "Computing nodes that ran on a CPU worker.", func(s *rankd.PlacementStats) float64 { return float64(s.Offloaded) }, plan),
			counter("rankd_nodes_fused_total", "Of the offloaded nodes, those that shared a job with others.", func(s *rankd.PlacementStats) float64 { return float64(s.Fused) }, plan),
			counter("rankd_requests_deferred_total", "Times that cheap nodes of a request waited for the loop's next iteration.", func(s *rankd.PlacementStats) float64 { return float64(s.Deferred) }, plan),
			counter("rankd_node_timeouts_total", "Nodes whose deadline passed while they ran.", func(s *rankd.PlacementStats) float64 { return float64(s.NodeTimeouts) }, plan),
			counter("rankd_node_late_completions_total", "Nodes that were given up and ran to their end.", func(s *rankd.PlacementStats) float64 { return float64(s.LateCompletions) }, plan),
			counter("rankd_nodes_cancelled_total", "Nodes that were given up and stopped early.", func(s *rankd.PlacementStats) float64 { return float64(s.Cancelled) }, plan),
		},
		ofOp: []figure[opStats]{
			counter("rankd_op_runs_total", "Nodes that ended, by op.", func(s *opStats) float64 { return float64(s.Runs) }, "op"),
			counter("rankd_op_run_seconds_total", "Total time of nodes from start to end. For ops that wait, it includes the waits.", func(s *opStats) float64 { return s.Time.Seconds() }, "op"),
		},
		ofKey: []figure[task.Values]{
			counter("rankd_values_read_total", "Values that lookup has read, by key.", func(s *task.Values) float64 { return float64(s.Read) }, "key"),
			counter("rankd_values_null_total", "Of these, those that were missing: they are null or have the key's default.", func(s *task.Values) float64 { return float64(s.Missing) }, "key"),
			counter("rankd_values_malformed_total", "Texts from Redis or a service that did not parse, and failed no node, by the key that they were for.", func(s *task.Values) float64 { return float64(s.Malformed) }, "key"),
		},
		ofColumn: []figure[rankd.DriftColumn]{
			counter("rankd_column_rows_total", "Rows of which a node has read the column, in sampled requests.", func(c *rankd.DriftColumn) float64 { return float64(c.Rows) }, plan, side, "column"),
			counter("rankd_column_null_total", "Of these, those without a value.", func(c *rankd.DriftColumn) float64 { return float64(c.Nulls) }, plan, side, "column"),
			counter("rankd_column_default_total", "Of these rows, those whose value equals the default of the key.", func(c *rankd.DriftColumn) float64 { return float64(c.Defaults) }, plan, side, "column"),
			counter("rankd_column_memory_total", "Keys whose value for the column was in memory, in sampled requests.", func(c *rankd.DriftColumn) float64 { return float64(c.Memory) }, plan, side, "column"),
			counter("rankd_column_memory_old_total", "Of these, those that were read more than a minute before.", func(c *rankd.DriftColumn) float64 { return float64(c.Old) }, plan, side, "column"),
		},
		ofSampled: []figure[rankd.DriftSampled]{
			counter("rankd_column_samples_total", "Requests whose columns were counted: about one a second for each plan and side.", func(s *rankd.DriftSampled) float64 { return float64(s.Counted) }, plan, side),
			counter("rankd_column_samples_lost_total", "Requests that were due, and not counted since too many others were.", func(s *rankd.DriftSampled) float64 { return float64(s.Lost) }, plan, side),
		},
		ofScores: prometheus.NewDesc("rankd_column_scores", "Numbers that the plan has written in the column, in sampled requests. The quantiles are of the last five to ten minutes, within a tenth.", []string{plan, side, "column"}, nil),
		histograms: []histogram{
			distribution("rankd_loop_callback_seconds", "Time that callbacks of the loop took. The sum is estimated.", func(m *all) *latency.Buckets { return &m.Loop.CallbackBuckets }),
			distribution("rankd_node_inline_seconds", "Time that computing nodes took on the loop. The sum is estimated.", func(m *all) *latency.Buckets { return &m.Placement.InlineBuckets }),
			distribution("rankd_node_queue_delay_seconds", "Time from the hand-over of offloaded nodes, a job each or several in one, to their start on a CPU worker. The sum is estimated.", func(m *all) *latency.Buckets { return &m.Placement.QueueBuckets }),
			distribution("rankd_node_start_delay_seconds", "Time from when a node was ready to its start, for all nodes wherever they ran. The sum is estimated.", func(m *all) *latency.Buckets { return &m.Placement.StartBuckets }),
		},
	}
}

// sideOf returns the label of a side of an alias: "home:b". It is empty for requests that named the plan.
func sideOf(alias, side string) string {
	if alias == "" {
		return ""
	}
	return alias + ":" + side
}

func one(*versions) float64 { return 1 }

func loadedSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1e3
}

func counter[S any](name, help string, read func(*S) float64, labels ...string) figure[S] {
	return figure[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

func distribution(name, help string, read func(*rankd.Metrics) *latency.Buckets) histogram {
	return histogram{prometheus.NewDesc(name, help, nil, nil), read}
}

func gauge[S any](name, help string, read func(*S) float64, labels ...string) figure[S] {
	return figure[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	describe(to, c.ofEngine)
	describe(to, c.ofReloads)
	describe(to, c.ofDigest)
	describe(to, c.ofVersion)
	describe(to, c.ofResident)
	describe(to, c.ofEndpoint)
	describe(to, c.ofRedis)
	describe(to, c.ofCache)
	describe(to, c.ofPlan)
	describe(to, c.ofOp)
	describe(to, c.ofKey)
	describe(to, c.ofColumn)
	describe(to, c.ofSampled)
	to <- c.ofScores
	for _, h := range c.histograms {
		to <- h.desc
	}
}

func describe[S any](to chan<- *prometheus.Desc, figures []figure[S]) {
	for _, f := range figures {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	m := c.engine.Metrics()
	collect(to, c.ofEngine, &m)
	v := versions{c.engine.Generation(), c.engine.Reloads()}
	collect(to, c.ofReloads, &v)
	collect(to, c.ofDigest, &v, v.Digest)
	for _, p := range v.Plans {
		collect(to, c.ofVersion, &v, p.Name, p.Digest)
	}
	for _, r := range c.engine.Residents() {
		collect(to, c.ofResident, &r, r.Plan)
	}
	for _, endpoint := range c.engine.Registry().Endpoints() {
		i := endpoint.Index
		if i >= len(m.Redis) || i >= len(m.Remote) { // A reload has brought it since.
			continue
		}
		switch endpoint.Kind {
		case registry.Redis:
			collect(to, c.ofEndpoint, ofRedis(&m.Redis[i]), endpoint.Name)
			collect(to, c.ofRedis, &m.Redis[i], endpoint.Name)
			if m.Caches != nil { // The blocking engines have none.
				collect(to, c.ofCache, &m.Caches[i], endpoint.Name)
			}
		case registry.HTTP:
			collect(to, c.ofEndpoint, ofService(&m.Remote[i]), endpoint.Name)
		}
	}
	for name, s := range m.Plans {
		collect(to, c.ofPlan, &s, name)
	}
	if _, counted := m.Values["id"]; !counted { // The families are there from the start.
		collect(to, c.ofKey, new(task.Values), "id")
	}
	for key, n := range m.Values {
		collect(to, c.ofKey, &n, key)
	}
	for op, s := range m.Ops {
		collect(to, c.ofOp, &s, op)
	}
	columns, sampled := c.engine.Drift()
	for _, s := range sampled {
		collect(to, c.ofSampled, &s, s.Plan, sideOf(s.Alias, s.Side))
	}
	for _, d := range columns {
		labels := []string{d.Plan, sideOf(d.Alias, d.Side), d.Name}
		collect(to, c.ofColumn, &d, labels...)
		if d.Scores != nil {
			quantiles := make(map[float64]float64, len(d.Scores.At))
			for i, x := range d.Scores.At {
				quantiles[drift.Quantiles[i]] = x
			}
			to <- prometheus.MustNewConstSummary(c.ofScores, d.Scores.Count, d.Scores.Sum, quantiles, labels...)
		}
	}
	for _, h := range c.histograms {
		b := h.read(&m)
		buckets := make(map[float64]uint64, len(b.Below))
		for i, n := range b.Below {
			buckets[latency.Bound(i).Seconds()] = n
		}
		to <- prometheus.MustNewConstHistogram(h.desc, b.Count, b.Sum.Seconds(), buckets)
	}
}

func collect[S any](to chan<- prometheus.Metric, figures []figure[S], from *S, labels ...string) {
	for _, f := range figures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(from), labels...)
	}
}
