package eventloop

import (
	"fmt"
	"time"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/resp"
)

// InterferenceResult says how late the loop is while the pool is busy. Immutable.
type InterferenceResult struct {
	Workers    int     `json:"workers"` // busy all the time
	DurationMS float64 `json:"duration_ms"`

	Post  Latency `json:"post"`            // from Post, on another goroutine, to the run
	Timer Latency `json:"timer"`           // from when a timer was due to when it fired
	Reply Latency `json:"reply,omitzero"`  // from a PING to its reply; zero without a Redis
	Jobs  int     `json:"jobs"`            // done in that time
	Error string  `json:"error,omitempty"` // of the first PING that failed
}

// Settings of Interference. A thousand probes a second are enough to see a wait of a
// millisecond, and too few to be a load themselves.
const (
	probeEvery  = time.Millisecond
	jobDuration = 5 * time.Millisecond // of a job, which is submitted again when it is done
)

// Interference keeps the workers of a pool busy for d. It measures how long a post, a timer
// and a reply from the Redis that server names ("" for none) take to reach the loop. The caller
// sets GOMAXPROCS.
func Interference(workers int, d time.Duration, server string) (*InterferenceResult, error) {
	var redis resp.Options
	if server != "" {
		var err error
		if redis, err = devredis.ClientOptions(server); err != nil {
			return nil, err
		}
		redis.ClientName = "rankd-bench"
	}
	host, stop, err := start()
	if err != nil {
		return nil, err
	}
	defer stop()
	i := &interference{
		host: host, loop: host.Loop(), clock: host.Loop().Clock(),
		post: load.NewHistogram(), timer: load.NewHistogram(), reply: load.NewHistogram(),
	}
	i.pool = cpupool.New(i.loop, cpupool.Config{Workers: max(1, workers)})
	defer i.pool.Close()
	if !i.loop.Post(func() { i.begin(workers, redis) }) {
		return nil, errStopped
	}
	i.postFor(d)
	done := make(chan struct{})
	if !i.loop.Post(func() { i.end(done) }) {
		return nil, errStopped
	}
	<-done
	if i.err != nil {
		return nil, i.err
	}
	r := &InterferenceResult{
		Workers: workers, DurationMS: millis(d), Jobs: i.jobs,
		Post: summarize(i.post), Timer: summarize(i.timer), Error: i.pingError,
	}
	if server != "" {
		r.Reply = summarize(i.reply)
	}
	return r, nil
}

// interference is the measurement under way. Loop only.
type interference struct {
	host  *reactor.Reactor
	loop  *loop.Loop
	clock clock.Clock
	pool  *cpupool.Pool

	post, timer, reply load.Histogram
	jobs               int
	err                error  // the loop, the pool or the client has failed
	pingError          string // of the first PING that failed

	ended   bool
	probe   *loop.Timer
	probeAt clock.Time // when it is due
	client  *resp.Client
	ping    *loop.Timer
	call    resp.Call
	sent    clock.Time
}

func (i *interference) begin(workers int, redis resp.Options) {
	for range workers {
		j := new(cpupool.Job)
		j.Work = func() { burn(jobDuration) }
		j.Done = func(error) {
			if !i.ended { // later jobs do not count
				i.jobs++
				i.submit(j)
			}
		}
		i.submit(j)
	}
	i.probe = i.loop.NewTimer(func() {
		i.timer.Record(i.clock.Now().Sub(i.probeAt))
		i.startProbe()
	})
	i.startProbe()
	if redis.Addr == "" {
		return
	}
	i.client = resp.NewClient(i.loop, i.host, redis)
	i.call.Batch.Cmd("PING")
	i.call.Done = i.replied
	i.ping = i.loop.NewTimer(i.sendPing)
	i.sendPing()
}

func (i *interference) submit(j *cpupool.Job) {
	if err := i.pool.Submit(j); err != nil {
		i.err = fmt.Errorf("keep the pool busy: %w", err)
	}
}

func (i *interference) startProbe() {
	if i.ended {
		return
	}
	i.probeAt = i.clock.Now().Add(probeEvery)
	if err := i.probe.StartAt(i.probeAt); err != nil {
		i.err = err
	}
}

func (i *interference) sendPing() {
	if i.ended {
		return
	}
	i.sent = i.clock.Now()
	if err := i.client.Do(&i.call); err != nil {
		i.err = err
	}
}

func (i *interference) replied(c *resp.Call) {
	if i.ended {
		return // the client was closed with this call under way
	}
	if c.Err == nil {
		i.reply.Record(i.clock.Now().Sub(i.sent))
	} else if i.pingError == "" {
		i.pingError = c.Err.Error()
	}
	if err := i.ping.Start(probeEvery, 0); err != nil {
		i.err = err
	}
}

// end frees the resources of begin. The jobs in flight end by themselves.
func (i *interference) end(done chan struct{}) {
	i.ended = true
	i.probe.Close(nil)
	if i.client != nil {
		i.ping.Close(nil)
		i.client.Close()
	}
	close(done)
}

// postFor posts to the loop from this goroutine every probeEvery, for d.
func (i *interference) postFor(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(probeEvery) {
		sent := i.clock.Now()
		i.loop.Post(func() { i.post.Record(i.clock.Now().Sub(sent)) })
	}
}

// burn computes for d: it reads the clock.
func burn(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		continue
	}
}
