package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace/record"
)

// waitingBytes bounds what waits to become records.
const waitingBytes = 64 << 20

// ErrBehind: requests end faster than their records can be made and written.
var ErrBehind = errors.New("records are written too slowly")

// Salt is what users are hashed with to choose those whose requests are recorded.
const Salt = "record"

// Config says which requests are recorded, and where records go. Immutable.
type Config struct {
	To    record.Sink
	Users float64 // in a hundred, by Salt
	// Generations gives what a generation is made of.
	Generations func(*generation.Generation) (*record.Generation, error)
	// Report is called with the error when records begin to get lost, and with nil when they are written again. It must not
	// wait. It reports whether it has said so, and is called again otherwise. Any goroutine calls it.
	Report func(error) bool
}

// A Job is a request that has ended, and is to become a record. It belongs to the Recorder once Put has it.
type Job struct {
	scheduler.Capture
	Request    record.Request // without what the rest of the Job says
	Result     *scheduler.Result
	Generation *generation.Generation
	Params     expr.Params
	Residents  taskrun.Residents // nil: the plan reads none
}

// Recorder makes records beside the requests. Any goroutine.
type Recorder struct {
	config Config
	users  plan.Alias // side B is recorded
	queue  *fileio.Queue[*Job]
	losses fileio.Losses

	written, dropped, failed atomic.Uint64

	// The goroutine of queue has the rest.
	digester   digester
	generation *generation.Generation // of known
	plans      int                    // of it, that were loaded
	known      *record.Generation
	unknown    error // why known is missing
	flushed    time.Time
}

// New returns a recorder. Close ends it.
func New(c Config) *Recorder {
	r := &Recorder{config: c, users: plan.Alias{B: plan.SideB, BShare: c.Users, Salt: Salt}}
	r.losses.To = c.Report
	r.queue = fileio.NewGatheringQueue(waitingBytes, r.take, r.flush)
	return r
}

// Wants reports whether a request is recorded. Requests of users without consent are not.
func (r *Recorder) Wants(q *request.Request) bool {
	if q.NoConsent || r.config.Users >= 100 {
		return !q.NoConsent
	}
	var room [rowset.IDBytesMax]byte
	side, _ := r.users.Side(request.AppendUser(room[:0], q))
	return side == plan.SideB
}

// jobBytes is about how many bytes a job holds beside its rows and values.
const jobBytes = 4096

// Put makes a record of a request. If too much waits, it drops and counts the request. It never waits.
func (r *Recorder) Put(j *Job) {
	size := jobBytes
	for i := range j.Runs {
		run := &j.Runs[i]
		for k := range run.Nodes {
			if n, t := &run.Nodes[k], &run.Tapes[k]; n.Ran && n.Err == nil { // Otherwise its body may still write.
				size += len(t.Bytes) + t.Replies.Size() + 8*n.Out.N
			}
		}
	}
	if !r.queue.Add(size, func() *Job { return j }) {
		r.lose(&r.dropped, ErrBehind)
	}
}

func (r *Recorder) lose(count *atomic.Uint64, err error) {
	count.Add(1)
	r.losses.Report(err)
}

// take makes the record of a request.
func (r *Recorder) take(j *Job) {
	defer func() {
		if recovered := recover(); recovered != nil {
			r.lose(&r.failed, fmt.Errorf("a record has made the recorder panic: %v", recovered))
		}
	}()
	err := r.fill(j)
	if err == nil {
		err = r.config.To.Add(&j.Request, r)
	}
	if err != nil {
		r.lose(&r.failed, err)
		return
	}
	r.written.Add(1)
	r.losses.Report(nil)
}

// fill completes the record of a job.
func (r *Recorder) fill(j *Job) error {
	q, d := &j.Request, &r.digester
	if graphs := len(j.Generation.Plans()); j.Generation != r.generation || graphs != r.plans {
		r.generation, r.plans = j.Generation, graphs
		r.known, r.unknown = r.config.Generations(j.Generation)
	}
	if r.unknown != nil {
		return r.unknown
	}
	q.Generation, q.Params = r.known.Digest, request.AppendParams(nil, &j.Params, j.Generation.Registry)
	residents := make(map[string]string)
	for i := range j.Runs {
		for _, name := range j.Runs[i].Graph.Resident {
			if kept, err := j.Residents.Resident(name); err == nil { // Otherwise its node has failed.
				residents[name] = d.pin(name, kept, j.Generation.Registry)
			}
		}
	}
	d.fill(q, &j.Capture, j.Result)
	for i := range q.Runs {
		q.Runs[i].Residents = residents
	}
	return nil
}

// Generation implements record.Source.
func (r *Recorder) Generation(string) (*record.Generation, error) { return r.known, nil }

// Resident implements record.Source.
func (r *Recorder) Resident(plan, digest string) (*record.Resident, error) {
	p := r.digester.pinned[plan]
	if p.digest != digest {
		return nil, fmt.Errorf("the resident rows of plan %s are gone", plan)
	}
	rows, _ := residentRows(p.of, r.generation.Registry)
	return &record.Resident{Plan: plan, Digest: digest, Rows: rows}, nil
}

// flushEvery is how often records are written at most: the more a frame of a file has, the better it is compressed.
const flushEvery = time.Second

// flush has records written that were made, now and then.
func (r *Recorder) flush() {
	if now := time.Now(); now.Sub(r.flushed) >= flushEvery {
		r.flushed = now
		r.writeOut()
	}
}

func (r *Recorder) writeOut() {
	if err := r.config.To.Flush(); err != nil {
		r.lose(&r.failed, err)
	}
}

// Counts are what became of the requests that were to have a record. A copy; any goroutine.
type Counts struct {
	Written uint64
	Dropped uint64 // since too much waited
	Failed  uint64 // that could not be made or written
}

// Counts says what became of the records so far.
func (r *Recorder) Counts() Counts {
	return Counts{r.written.Load(), r.dropped.Load(), r.failed.Load()}
}

// Close makes the records of what waits. If ctx ends first, what waits is lost and counted, and the error is the cause of ctx. It does not close To.
func (r *Recorder) Close(ctx context.Context) error {
	before := r.queue.Dropped()
	err := r.queue.Close(ctx)
	if r.dropped.Add(r.queue.Dropped() - before); err == nil { // The goroutine has ended.
		r.writeOut()
	}
	return err
}
