package program

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/loop/latency"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
)

// metricsReport is the line that --metrics prints. docs/placement.md#metrics-of-placement explains its fields.
type metricsReport struct {
	Scheduling rankd.SchedulingMode       `json:"scheduling"` // for requests without a mode of their own
	Requests   uint64                     `json:"requests"`
	Failed     uint64                     `json:"failed"`
	Nodes      placementReport            `json:"nodes"` // of all plans
	Plans      map[string]placementReport `json:"plans"`
	// Of the loop, for all plans. CallbackCPU is absent where the system does not tell.
	Callback    timesReport  `json:"loop_callback"`
	CallbackCPU *timesReport `json:"loop_callback_cpu,omitempty"`
	Redis       redisReport  `json:"redis"` // of all endpoints
	// Of each endpoint of kind http that was asked, by its id. docs/remote.md explains the fields.
	HTTP map[string]remote.Stats `json:"http,omitempty"`
}

// redisReport says what was asked of Redis. docs/redis.md explains its fields.
type redisReport struct {
	Asked         uint64 `json:"asked"`
	Sent          uint64 `json:"sent"`
	Shared        uint64 `json:"shared"`
	TooLarge      uint64 `json:"too_large"`
	BytesReceived uint64 `json:"bytes_received"`
	Malformed     uint64 `json:"malformed"`
	CacheHits     uint64 `json:"cache_hits"`
	CacheMisses   uint64 `json:"cache_misses"`
	Redirected    uint64 `json:"redirected,omitempty"`
	Refreshes     uint64 `json:"refreshes,omitempty"`
	Strangers     uint64 `json:"strangers,omitempty"`
	ReplicaReads  uint64 `json:"replica_reads,omitempty"`
}

// placementReport says where computing nodes ran. The rates are shares of Inline and Offloaded
// together.
type placementReport struct {
	Inline      uint64  `json:"inline"`
	Offloaded   uint64  `json:"offloaded"`
	Fused       uint64  `json:"fused"` // of the offloaded nodes
	InlineRate  float64 `json:"inline_rate"`
	OffloadRate float64 `json:"offload_rate"`
	FusedRate   float64 `json:"fused_rate"`
	Deferred    uint64  `json:"deferred"`
	TopK        uint64  `json:"top_k"`

	Degraded        uint64 `json:"degraded"`
	LateCompletions uint64 `json:"late_completions"`
	Cancelled       uint64 `json:"cancelled"`

	InlineTime timesReport `json:"inline_time"`
	QueueDelay timesReport `json:"queue_delay"`
	RoundTrip  timesReport `json:"offload_round_trip"`

	// As in metricsReport, of the callbacks that worked for the plan.
	Callback    timesReport  `json:"loop_callback"`
	CallbackCPU *timesReport `json:"loop_callback_cpu,omitempty"`
}

// timesReport is a distribution of times.
type timesReport struct {
	Count  uint64  `json:"count"`
	P50US  float64 `json:"p50_us"`
	P99US  float64 `json:"p99_us"`
	P999US float64 `json:"p999_us"`
	MaxUS  float64 `json:"max_us"`
}

// printMetrics writes the metrics of an engine with that registry as one line of JSON.
func printMetrics(w io.Writer, mode rankd.SchedulingMode, reg *registry.Registry, m *rankd.Metrics) error {
	report := metricsReport{
		Scheduling: mode, Requests: m.Requests, Failed: m.Failed, Nodes: reportPlacement(&m.Placement),
		Plans: make(map[string]placementReport), Callback: reportTimes(m.Loop.CallbackTime), CallbackCPU: reportKnown(m.Loop.CallbackCPU),
		Redis: reportRedis(m), HTTP: reportRemote(reg, m.Remote),
	}
	for name, s := range m.Plans {
		report.Plans[name] = reportPlacement(&s)
	}
	if err := json.NewEncoder(w).Encode(report); err != nil {
		return fmt.Errorf("writing the metrics: %w", err)
	}
	return nil
}

func reportPlacement(s *rankd.PlacementStats) placementReport {
	rounded := func(rate float64) float64 { return math.Round(rate*1e4) / 1e4 }
	return placementReport{
		Inline: s.Inline, Offloaded: s.Offloaded, Fused: s.Fused, Deferred: s.Deferred, TopK: s.TopK,
		InlineRate: rounded(s.InlineRate()), OffloadRate: rounded(s.OffloadRate()), FusedRate: rounded(s.FusedRate()),
		Degraded: s.Degraded, LateCompletions: s.LateCompletions, Cancelled: s.Cancelled,
		InlineTime: reportTimes(s.InlineTime), QueueDelay: reportTimes(s.QueueDelay), RoundTrip: reportTimes(s.OffloadRoundTrip),
		Callback: reportTimes(s.CallbackTime), CallbackCPU: reportKnown(s.CallbackCPU),
	}
}

func reportTimes(q latency.Quantiles) timesReport {
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return timesReport{Count: q.Count, P50US: us(q.P50), P99US: us(q.P99), P999US: us(q.P999), MaxUS: us(q.Max)}
}

func reportRedis(m *rankd.Metrics) redisReport {
	var s resp.Stats
	for _, of := range m.Redis {
		s.Add(of)
	}
	r := redisReport{
		Asked: s.Asked, Sent: s.Commands, Shared: s.Asked - s.Commands, TooLarge: s.TooLarge, BytesReceived: s.BytesReceived,
		Malformed: m.Malformed, Redirected: s.Redirected, Refreshes: s.Refreshes, Strangers: s.Strangers, ReplicaReads: s.ReplicaReads,
	}
	for _, s := range m.Caches {
		r.CacheHits += s.Hits
		r.CacheMisses += s.Misses
	}
	return r
}

// reportRemote reports the endpoints that were asked.
func reportRemote(reg *registry.Registry, endpoints []remote.Stats) map[string]remote.Stats {
	reports := make(map[string]remote.Stats)
	for i, s := range endpoints {
		if ep := reg.EndpointAt(i); s.Calls > 0 && ep != nil {
			reports[ep.ID] = s
		}
	}
	return reports
}

// reportKnown returns nil for a distribution of nothing.
func reportKnown(q latency.Quantiles) *timesReport {
	if q.Count == 0 {
		return nil
	}
	t := reportTimes(q)
	return &t
}
