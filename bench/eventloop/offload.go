package eventloop

import (
	"time"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// OffloadResult is the cost of running work on the pool. Immutable.
type OffloadResult struct {
	Jobs         int     `json:"jobs"`
	InFlight     int     `json:"in_flight"`
	Workers      int     `json:"workers"`
	PayloadBytes int     `json:"payload_bytes"` // that each job reads and writes
	WallMS       float64 `json:"wall_ms"`
	PerSecond    float64 `json:"jobs_per_sec"`
	// Latency is from the submission on the loop to the hand-back on the loop.
	Latency Latency `json:"latency"`
}

// Offload runs a number of jobs on a pool, inFlight at a time. The completion of a job
// submits it again. A job adds up its payload and writes to it, so that the bytes travel to
// the worker's cache and back.
func Offload(jobs, inFlight, workers, payload int) (*OffloadResult, error) {
	host, stop, err := start()
	if err != nil {
		return nil, err
	}
	defer stop()
	l := host.Loop()
	pool := cpupool.New(l, cpupool.Config{Workers: workers})
	defer pool.Close()
	o := &offload{
		loop: l, clock: l.Clock(), pool: pool, left: jobs, took: load.NewHistogram(),
		done: make(chan error, inFlight), // each job reports once at most
	}
	began := time.Now()
	if !l.Post(func() { o.begin(min(inFlight, jobs), payload) }) {
		return nil, errStopped
	}
	if err := <-o.done; err != nil {
		return nil, err
	}
	wall := time.Since(began)
	return &OffloadResult{
		Jobs: jobs, InFlight: inFlight, Workers: workers, PayloadBytes: payload,
		WallMS: millis(wall), PerSecond: perSecond(jobs, wall), Latency: summarize(o.took),
	}, nil
}

// offload is the measurement under way. Loop only, except done.
type offload struct {
	loop  *loop.Loop
	clock clock.Clock
	pool  *cpupool.Pool
	left  int // to be submitted
	live  int
	took  load.Histogram
	done  chan error
}

func (o *offload) begin(inFlight, payload int) {
	for range inFlight {
		j := &offloadJob{offload: o, payload: make([]byte, payload)}
		j.job.Work, j.job.Done = j.work, j.handBack
		j.submit()
	}
}

// offloadJob is submitted again and again.
type offloadJob struct {
	*offload
	job     cpupool.Job
	payload []byte
	sent    clock.Time
	sum     byte
}

func (j *offloadJob) submit() {
	if j.left == 0 {
		return
	}
	j.left--
	j.live++
	j.sent = j.clock.Now()
	if err := j.pool.Submit(&j.job); err != nil {
		j.done <- err
	}
}

func (j *offloadJob) work() {
	for i := range j.payload {
		j.sum += j.payload[i]
		j.payload[i] = j.sum
	}
}

func (j *offloadJob) handBack(err error) {
	j.took.Record(j.clock.Now().Sub(j.sent))
	j.live--
	if err != nil {
		j.done <- err
		return
	}
	j.submit()
	if j.live == 0 {
		j.done <- nil
	}
}
