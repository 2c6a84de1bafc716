package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd/bench/load"
)

// Setup says on which Redis and plan to open a target. Immutable.
type Setup struct {
	// Redis is the address of the server that the target reads from, "host:port". It serves
	// all endpoints of the plan.
	Redis string `json:"redis"`
	// Plan is the plan's name. A peer knows only the plans written for it by hand.
	Plan string `json:"plan"`
	// Fanout overrides the fanout of every node of the plan that has one. Zero leaves
	// the plan's own.
	Fanout int `json:"fanout,omitempty"`
	// Artifact is the plan itself, with Fanout applied. Engines run it.
	Artifact string `json:"artifact,omitempty"`
	// Context is the context of each request, JSON as in a request. Engines read it; absent means none.
	Context string `json:"context,omitempty"`
	// UserName is the text of which users' ids are made, with {} in the place of an integer of Round.Users. Engines read it; absent
	// means the integers.
	UserName string `json:"user_name,omitempty"`
	// Scenario names a load of package placement, which brings its own plans. Only engines of
	// this build know it.
	Scenario string `json:"scenario,omitempty"`
	// JSON has an engine read each request as JSON and write each answer as JSON.
	JSON bool `json:"json,omitempty"`
	// Front is the front of a running server that the worker calls instead of an engine of its own: "resp" or
	// "http". Only callers read this field and those below, up to Serial.
	Front string `json:"front,omitempty"`
	// Server is the address of the front, "host:port".
	Server string `json:"server,omitempty"`
	// Connections is the number of connections to it.
	Connections int `json:"connections,omitempty"`
	// Deadline bounds each request, as the request asks for it. Zero means that it asks for none.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Serial numbers setups that are otherwise equal, so that each opens a target of its own.
	Serial int `json:"serial,omitempty"`
}

// Round is one measurement to make. Durations are nanoseconds. Immutable.
type Round struct {
	Setup
	Users       []int64       `json:"users"`
	Heavy       []int64       `json:"heavy,omitempty"` // users whose answers are measured apart
	Concurrency int           `json:"concurrency"`     // requests in flight; the bound in an open loop
	Rate        float64       `json:"rate,omitempty"`  // arrivals per second; absent means a closed loop
	Requests    int64         `json:"requests,omitempty"`
	Duration    time.Duration `json:"duration,omitempty"` // Requests or Duration ends the round
	Warmup      time.Duration `json:"warmup,omitempty"`   // the same load before the round, not measured
	// Ages has the worker measure the age of what the target serves from memory, beside the load. Figures of such a round
	// say less than those of others about the load itself.
	Ages bool `json:"ages,omitempty"`
	// RedisPID is the server's process if the worker shall report its CPU time; absent
	// means that it shall not.
	RedisPID int `json:"redis_pid,omitempty"`
	// RedisPIDs are those of several servers, in place of RedisPID, whose time is added up.
	RedisPIDs []int `json:"redis_pids,omitempty"`
	// ServerPID is likewise the process behind Setup.Front.
	ServerPID int `json:"server_pid,omitempty"`
}

// Load returns the measured load.
func (r *Round) Load() load.Load {
	return load.Load{
		Users: r.Users, Heavy: r.Heavy, Concurrency: r.Concurrency, Rate: r.Rate, Requests: r.Requests, Duration: r.Duration,
	}
}

// Report is the outcome of a round. Durations are nanoseconds. Counters and resources cover
// the measured part, without the warm-up. Immutable once built.
type Report struct {
	// Failure is the reason why the measurement is missing. All other fields are then zero.
	Failure string `json:"failure,omitempty"`

	Tally
	Elapsed time.Duration `json:"elapsed"`
	Shed    int64         `json:"shed,omitempty"` // arrivals that found Concurrency in flight
	Lag     Encoded       `json:"lag,omitempty"`  // see load.Result
	// Heavy is the measurement of Round.Heavy, which Tally leaves out. It is absent
	// without any, and where the worker is a build that does not know them and counts them there.
	Heavy *Tally `json:"heavy,omitempty"`
	// Refused is the measurement of the requests that the target refused, which Tally leaves out.
	Refused *Tally `json:"refused,omitempty"`

	CPU        time.Duration `json:"cpu"`         // of the worker, user and system
	Allocs     uint64        `json:"allocs"`      // heap objects
	AllocBytes uint64        `json:"alloc_bytes"` // heap bytes
	GCs        uint64        `json:"gcs"`
	RSSBytes   uint64        `json:"rss_bytes"`            // at the end of the round
	LiveBytes  uint64        `json:"live_bytes,omitempty"` // of the heap, at the last garbage collection of the round
	RedisCPU   time.Duration `json:"redis_cpu,omitempty"`  // of the server, if asked for
	ServerCPU  time.Duration `json:"server_cpu,omitempty"` // likewise, of the process behind Setup.Front
	Traffic    *load.Traffic `json:"traffic,omitempty"`    // absent if the target does not count

	Ages *Ages `json:"ages,omitempty"` // absent if not asked for, and from a worker that cannot tell

	Figures json.RawMessage `json:"figures,omitempty"` // of a load.Reporting target
}

// Encoded is an HdrHistogram of nanoseconds in the V2 compressed encoding; empty: none.
type Encoded string

// Encode encodes a histogram, which may be nil.
func Encode(h *hdrhistogram.Histogram) (Encoded, error) {
	if h == nil {
		return "", nil
	}
	text, err := h.EncodeV2()
	if err != nil {
		return "", fmt.Errorf("encode latencies: %w", err)
	}
	return Encoded(text), nil
}

// Histogram decodes the histogram.
func (e Encoded) Histogram() (*hdrhistogram.Histogram, error) {
	if e == "" {
		return nil, nil
	}
	h, err := hdrhistogram.Decode([]byte(e))
	if err != nil {
		return nil, fmt.Errorf("decode latencies: %w", err)
	}
	return h, nil
}

// Tally is the measurement of some of the requests of a round. Immutable once built.
type Tally struct {
	Answered   int64   `json:"answered"` // requests sent and answered, errors among them
	Errors     int64   `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	Latency    Encoded `json:"latency"`
}

func encodeTally(t *load.Tally) (*Tally, error) {
	if t == nil {
		return nil, nil
	}
	wire := &Tally{Answered: t.Answered, Errors: t.Errors}
	if t.FirstError != nil {
		wire.FirstError = t.FirstError.Error()
	}
	var err error
	wire.Latency, err = Encode(t.Latency)
	return wire, err
}

func (t *Tally) decode() (*load.Tally, error) {
	if t == nil {
		return nil, nil
	}
	res := &load.Tally{Answered: t.Answered, Errors: t.Errors}
	if t.FirstError != "" {
		res.FirstError = errors.New(t.FirstError)
	}
	var err error
	if res.Latency, err = t.Latency.Histogram(); res.Latency == nil {
		res.Latency = load.NewHistogram()
	}
	return res, err
}

// newReport encodes a result for the wire.
func newReport(r *load.Result, used load.Usage) (*Report, error) {
	all, err := encodeTally(&r.Tally)
	heavy, heavyErr := encodeTally(r.Heavy)
	refused, refusedErr := encodeTally(r.Refused)
	lag, lagErr := Encode(r.Lag)
	return &Report{
		Tally: *all, Elapsed: r.Elapsed, Shed: r.Shed, Lag: lag, Heavy: heavy, Refused: refused,
		CPU: used.CPU, Allocs: used.Allocs, AllocBytes: used.AllocBytes, GCs: used.GCs, RSSBytes: used.RSSBytes, LiveBytes: used.LiveBytes,
	}, errors.Join(err, heavyErr, refusedErr, lagErr)
}

// Result decodes the measurement.
func (r *Report) Result() (*load.Result, error) {
	if r.Failure != "" {
		return nil, errors.New(r.Failure)
	}
	all, err := r.Tally.decode()
	heavy, heavyErr := r.Heavy.decode()
	refused, refusedErr := r.Refused.decode()
	lag, lagErr := r.Lag.Histogram()
	if err := errors.Join(err, heavyErr, refusedErr, lagErr); err != nil {
		return nil, err
	}
	return &load.Result{Tally: *all, Elapsed: r.Elapsed, Shed: r.Shed, Lag: lag, Heavy: heavy, Refused: refused}, nil
}

// Ages are how old answers were: how long after the writer of a newer value had its OK. See Probe. Immutable once built.
type Ages struct {
	Answers int64   `json:"answers"`
	Stale   int64   `json:"stale"` // of the answers
	Ages    Encoded `json:"ages"`  // of the stale ones
}
