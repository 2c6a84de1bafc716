package eventloop

import (
	"context"
	"io/fs"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// RoundTripsResult compares a request with nothing else in flight with the round trips that its plan needs. Immutable.
type RoundTripsResult struct {
	Requests int     `json:"requests"`
	Request  Latency `json:"request"`
	Plain    Latency `json:"plain"` // plainTrips HGETALLs, one after the other, on a blocking connection
	Ratio    float64 `json:"p50_ratio"`
}

// plainTrips is how many round trips concat_plan needs, one after the other.
const plainTrips = 3

// RoundTrips ranks concat_plan for user 1 on the server at addr, n times. Requests and plain round trips take turns, one by one: on a
// virtual machine a round trip takes 9 µs or 60 µs, depending on whether a core has had the time to fall asleep, and that lasts for
// seconds. Side by side, both meet the same machine.
func RoundTrips(n, cpuThreads int, addr string) (*RoundTripsResult, error) {
	text, err := fs.ReadFile(artifacts.Plans(), "concat_plan.plan.json")
	if err != nil {
		return nil, err
	}
	engine, err := rankd.Open(rankd.Options{Redis: addr, PlanFile: "concat_plan", PlanText: text, CPUThreads: cpuThreads})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	c := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer c.Close()
	var b resp.Batch
	b.Cmd("HGETALL", "user:1")
	requests, plain := load.NewHistogram(), load.NewHistogram()
	took, answered := time.Duration(0), make(chan error, 1)
	for range n {
		began := time.Now()
		engine.Submit(context.Background(), rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) {
			took = time.Since(began)
			answered <- err
		})
		if err := <-answered; err != nil {
			return nil, err
		}
		requests.Record(took)
		began = time.Now()
		for range plainTrips {
			if err := c.Do(&b, 0, func(resp.Replies) error { return nil }); err != nil {
				return nil, err
			}
		}
		plain.Record(time.Since(began))
	}
	r := &RoundTripsResult{Requests: n, Request: summarize(requests), Plain: summarize(plain)}
	r.Ratio = r.Request.P50 / r.Plain.P50
	return r, nil
}
