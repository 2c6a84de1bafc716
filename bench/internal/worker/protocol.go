package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

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
	// RequestFile is a file of requests, a line each, as on stdin: an integer k of Round.Users means the one in line k. Engines read it;
	// absent means requests that have a user and Context alone.
	RequestFile string `json:"request_file,omitempty"`
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
	load.Load
	Warmup time.Duration `json:"warmup,omitempty"` // the same load before the round, not measured
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

// Report is the outcome of a round. Durations are nanoseconds. Counters and resources cover
// the measured part, without the warm-up. Immutable once built.
type Report struct {
	// Failure is the reason why the measurement is missing. All other fields are then zero.
	Failure string `json:"failure,omitempty"`

	// Result has no Heavy, too, where the worker is a build that does not know Round.Heavy and counts those requests among the others.
	load.Result
	load.Usage               // of the worker
	RedisCPU   time.Duration `json:"redis_cpu,omitempty"`  // of the server, if asked for
	ServerCPU  time.Duration `json:"server_cpu,omitempty"` // likewise, of the process behind Setup.Front
	Traffic    *load.Traffic `json:"traffic,omitempty"`    // absent if the target does not count

	Ages *Ages `json:"ages,omitempty"` // absent if not asked for, and from a worker that cannot tell

	Figures json.RawMessage `json:"figures,omitempty"` // of a load.Reporting target
}

// Sound returns an error unless requests were answered, all of them, and none failed.
func (r *Report) Sound() error {
	switch {
	case r.Failure != "":
		return errors.New(r.Failure)
	case r.Errors > 0:
		return fmt.Errorf("%d of %d requests failed, the first with: %s", r.Errors, r.Answered, r.FirstError)
	case r.Refused != nil:
		return fmt.Errorf("%d requests were refused", r.Refused.Answered)
	case r.Answered == 0:
		return errors.New("no request was answered")
	}
	return nil
}

// Ages are how old answers were: how long after the writer of a newer value had its OK. See Probe. Immutable once built.
type Ages struct {
	Answers int64          `json:"answers"`
	Stale   int64          `json:"stale"` // of the answers
	Ages    load.Histogram `json:"ages"`  // of the stale ones
}
