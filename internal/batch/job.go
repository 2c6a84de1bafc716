package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
)

// The defaults of Job.
const (
	DefaultInFlight        = 64
	DefaultCheckpointUsers = 10_000
)

// A Job ranks users and keeps their answers. One goroutine; Progress and Warn are called on it.
type Job struct {
	Engine *rankd.Engine
	Users  *Users // closed at the end
	// Scan finds the users if Users is nil. It writes them to a file beside the checkpoints before the first one is ranked.
	Scan   *Scan
	Format rankd.Format
	// InFlight is how many run at a time, at most: fewer do while nodes run out of time. Zero means DefaultInFlight.
	InFlight int
	// CommandsPerSecond bounds the commands that all endpoints get together. Zero: no bound.
	CommandsPerSecond int
	// The job ranks share number Shard of Shards; a hash of the user chooses the share. Zero Shards means one.
	Shard, Shards int
	// Out is the file of the answers, a line each, in the order of the users. A link leads to the file that it names. A device or a named pipe gets the
	// answers as they come, and the job cannot go on after its end.
	Out string
	// Lists sends the answers to Redis instead of Out.
	Lists *Lists
	// Checkpoints is the file that says how far the job is, and Failed is the file of the users that failed. Empty means beside Out.
	Checkpoints, Failed string
	// CheckpointUsers is how many users there are between two checkpoints. Zero means DefaultCheckpointUsers.
	CheckpointUsers int
	// Restart begins anew, whatever is there of a job that has not ended.
	Restart bool
	// RetryDegraded runs users with degraded answers again at the end. Those whose answers are degraded then, too, have failed.
	RetryDegraded bool
	// Bounds keep an output back. Nil means DefaultBounds for Lists, and otherwise NoBounds.
	Bounds *Bounds
	// Settings are what answers depend on, besides the generation, by name. A job goes on only with the same ones.
	Settings map[string]string
	// Progress is called once a second, and at the end, and Warn with what is no error and should be known. Nil: nobody is told.
	Progress func(Progress)
	Warn     func(text string)

	disk disk
}

// Progress is how far a job has come. Immutable.
type Progress struct {
	Summary
	Read, Begun, Size int64 // bytes of users: so far, when the first user was ranked, and all; 0: nobody knows
	Found             int   // keys that a Scan has found so far; 0: it is over
	Ended             bool
}

// running is a job under way. One goroutine; another one reads users meanwhile.
type running struct {
	*Job
	users  *Users
	pace   pace
	start  time.Time
	asked  atomic.Uint64 // commands that the engine has not sent; any goroutine
	begun  int64         // bytes of users when the first one was ranked
	told   time.Time     // when Progress was called last
	kept   int           // users that were there at the start
	window *window

	checkpoints *checkpoints // nil: the output is a stream
	checkpoint               // the next one
	digest      string       // of the generation
	documents   xxhash.Digest
	answers     *output // of files; nil: lists
	lists       *lists  // nil: files
	failures    *output // nil: a stream, and nobody keeps them
	retries     *output // nil: degraded answers are answers
	buf         []byte
}

// Run ranks all users. After an end or a kill at any instant, the same job goes on behind its last checkpoint, if Users start again from the first. The error is
// one of a file, of Redis, of the users, of what has changed since, or the cause of ctx. A user that fails is not an error.
func (j *Job) Run(ctx context.Context) (Summary, error) {
	if j.Users != nil {
		defer j.Users.Close()
	}
	r := &running{Job: new(*j), start: time.Now(), users: j.Users}
	if err := r.complete(); err != nil {
		return Summary{}, err
	}
	defer r.close()
	var err error
	if j.Lists != nil {
		err = devredis.WithAny(ctx, j.Lists.Redis, func(client devredis.Caller) error {
			r.lists = &lists{Lists: *j.Lists, running: r, client: client, ctx: ctx}
			return r.run(ctx)
		})
	} else {
		err = r.run(ctx)
	}
	sum := r.timed()
	if r.Progress != nil {
		r.progress(sum, Progress{Ended: true})
	}
	return sum, err
}

// complete fills in what the job leaves open, and checks it.
func (r *running) complete() error {
	if err := r.Check(); err != nil {
		return err
	}
	bounds := NoBounds
	if r.Lists != nil {
		bounds = DefaultBounds
	} else if err := r.follow(); err != nil {
		return err
	}
	r.Bounds = cmp.Or(r.Bounds, &bounds)
	r.Checkpoints, r.Failed = cmp.Or(r.Checkpoints, r.Out+".checkpoints"), cmp.Or(r.Failed, FailedFile(r.Out))
	r.InFlight, r.CheckpointUsers, r.Shards = cmp.Or(r.InFlight, DefaultInFlight), cmp.Or(r.CheckpointUsers, DefaultCheckpointUsers), max(r.Shards, 1)
	r.window = &window{limit: r.InFlight} // of a job that goes on with its retries
	r.pace = pace{sent: r.commands, perSecond: r.CommandsPerSecond, due: r.start}
	if r.Warn == nil {
		r.Warn = func(string) {}
	}
	return nil
}

// follow replaces a link by the file that it leads to.
func (r *running) follow() error {
	const linksMost = 40
	for range linksMost {
		if info, err := os.Stat(r.Out); err == nil && !info.Mode().IsRegular() {
			if info.IsDir() {
				return fmt.Errorf("%s is a folder: name a file in it", r.Out)
			}
			return nil // a stream, which may have no name
		} else if own, broken := os.Stdout.Stat(); err == nil && broken == nil && os.SameFile(own, info) {
			return fmt.Errorf("%s is stdout, which goes to a file and gets the summary: name another file", r.Out)
		}
		to, err := os.Readlink(r.Out)
		if err != nil {
			return nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(r.Out), to)
		}
		r.Out = to
	}
	return fmt.Errorf("%s is a link that leads nowhere", r.Out)
}

// streams reports whether the output is a device or a named pipe.
func (r *running) streams() bool {
	info, err := os.Stat(r.Out)
	return r.lists == nil && err == nil && !info.Mode().IsRegular()
}

// path returns the name of a file of the job that lies beside its checkpoints.
func (r *running) path(kind string) string {
	return strings.TrimSuffix(r.Checkpoints, ".checkpoints") + "." + kind
}

// run ranks, from where the job is, and gives the output its name.
func (r *running) run(ctx context.Context) error {
	if _, err := r.Engine.Plans(); err != nil { // A generation has a digest only then.
		return err
	}
	r.digest = r.Engine.Generation().Digest
	if err := r.open(ctx); err != nil {
		return err
	}
	var err error
	if r.users == nil && r.State == stateRanking {
		err = r.find(ctx)
	}
	if err == nil && r.users != nil {
		err = r.skip()
	}
	if err == nil && r.State == stateRanking {
		err = r.rank(ctx)
	}
	if err == nil && r.State == stateRetry {
		err = r.retry(ctx)
	}
	if err == nil {
		err = r.finish()
	}
	return err
}

// commands returns how many commands the engine and the lists have sent. Any goroutine.
func (r *running) commands() uint64 {
	sent := r.asked.Load()
	for _, s := range r.Engine.Metrics().Redis {
		sent += s.Commands
	}
	return sent
}

// find finds the users.
func (r *running) find(ctx context.Context) error {
	path := r.path("users")
	skipped, found, err := r.Scan.find(ctx, r.disk, path, r.Engine, func(found int) {
		r.asked.Add(1)
		r.pace.hold(ctx)
		r.tell(found)
	})
	if err != nil {
		return err
	}
	if found {
		r.Summary.Skipped = skipped
	}
	file, err := os.Open(path)
	if err == nil {
		r.users, err = NewUsers(file, JSONL, r.Engine.Registry())
	}
	return err
}

// next returns the document of the next user of the share, and its request or why there is none.
func (r *running) next() (doc []byte, q rankd.Request, refused, err error) {
	for {
		doc, refused, err = r.users.Next()
		if err != nil {
			return nil, q, nil, err
		}
		place := r.users.Place()
		if refused == nil {
			if q, refused = Parse(r.Engine, doc); refused != nil {
				refused = fmt.Errorf("%s: %w", place, refused)
			}
		}
		user := userOf(&q)
		if refused != nil {
			user = string(doc)
		}
		if r.Shards == 1 || r.shareOf(user) == r.Shard {
			return doc, q, refused, nil
		}
	}
}

// share names the share that the job ranks.
func (r *running) share() string { return fmt.Sprintf("%d/%d", r.Shard, r.Shards) }

// shareOf returns the number of the share that a user is in.
func (r *running) shareOf(user string) int { return int(xxhash.Sum64String(user) % uint64(r.Shards)) }

// rank ranks the users that are left.
func (r *running) rank(ctx context.Context) error {
	r.window = newWindow(r.InFlight)
	ended, err := r.each(ctx, r.next, func(p *Entry) (err error) {
		r.hear(p.Input)
		r.Done++
		if r.retries != nil && p.Err == nil && p.Answer.Degraded() {
			place := int64(0) // Lists have none.
			if r.answers != nil {
				place = r.answers.bytes
			}
			err = r.retries.write(fmt.Appendf(nil, "%d %s\n", place, p.Input))
		} else {
			err = r.outcome(p)
		}
		if err == nil && r.Done%r.CheckpointUsers == 0 {
			err = r.reach(stateRanking)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !ended:
		return errors.Join(context.Cause(ctx), r.reach(stateRanking)) // Those under way have their answers.
	case r.retries != nil && r.retries.bytes > 0:
		return r.reach(stateRetry)
	}
	return r.reach(stateWhole)
}

// each ranks users from next, as many at a time as the window allows. It hands their outcomes to take, in order. It reports whether there are no more users.
func (r *running) each(ctx context.Context, next func() ([]byte, rankd.Request, error, error), take func(*Entry) error) (ended bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line := NewLine(r.Engine, r.window.most)
	r.window.begin(line)
	var reading error // why reading has ended
	read := make(chan struct{})
	go func() {
		defer close(read)
		line.Read(func(p *Entry) (join, more bool) {
			r.pace.wait(ctx)
			if p.Input, p.Request, p.Err, reading = next(); reading != nil {
				return false, false
			}
			return true, true
		})
	}()
	flush := func() {}
	if r.checkpoints == nil {
		flush = func() { _ = r.answers.to.Flush() } // The next write has the error.
	}
	for p := line.Next(ctx, flush); p != nil; p = line.Next(ctx, flush) {
		if err == nil {
			if err = take(p); err != nil {
				cancel(err)
			}
		}
		r.window.saw(late(p))
		p.Empty()
		r.window.free(line, p)
		r.tell(0)
	}
	if err != nil || ctx.Err() != nil {
		return false, err // The reader may wait for users that never come.
	}
	<-read
	if errors.Is(reading, io.EOF) {
		return true, nil
	}
	return false, reading
}

// outcome keeps the outcome of a user.
func (r *running) outcome(p *Entry) error {
	sum := &r.Summary
	sum.Users++
	if p.Err == nil {
		p.Err = r.Engine.Intake().Contain(p.Answer.RequestID, func() {
			if r.lists != nil {
				r.lists.encode(p.Answer)
			} else {
				r.buf = p.Answer.AppendJSON(r.buf[:0], r.Format)
			}
		})
	}
	if p.Err != nil {
		sum.fail(ClassOf(p.Err))
		var err error
		if r.lists != nil {
			err = r.lists.write(p)
		}
		if r.failures != nil && err == nil {
			err = r.failures.write(append(p.Input, '\n'))
		}
		return err
	}
	if v := p.Answer.Version(); v.GenerationDigest != r.digest && v.Plan != "" {
		return fmt.Errorf("the plans, models or tables have changed while the batch ran: generation %s, and then %s; --restart ranks all again", r.digest, v.GenerationDigest)
	}
	sum.Add(p.Answer)
	if r.lists != nil {
		return r.lists.write(p)
	}
	return r.answers.write(r.buf)
}

// tell calls Progress once a second.
func (r *running) tell(found int) {
	now := time.Now()
	if r.Progress == nil || now.Sub(r.told) < time.Second {
		return
	}
	r.told = now
	r.progress(r.timed(), Progress{Found: found})
}

// progress calls Progress.
func (r *running) progress(sum Summary, p Progress) {
	p.Summary, p.Begun = sum, r.begun
	if r.users != nil {
		p.Read, p.Size = r.users.Read(), r.users.Size()
	}
	r.Progress(p)
}

// timed returns the summary with the time so far.
func (r *running) timed() Summary {
	sum := r.Summary
	sum.Kept, sum.Seconds, sum.GoesOn = r.kept, time.Since(r.start).Seconds(), r.checkpoints != nil
	if sum.Failed > 0 && sum.GoesOn {
		sum.FailedFile = r.Failed
	}
	sum.PerSecond = float64(sum.Users-r.kept) / sum.Seconds
	return sum
}

// FailedFile returns the name of the file of users that failed, which lies beside the file of answers.
func FailedFile(out string) string {
	return strings.TrimSuffix(out, ".jsonl") + ".failed.jsonl"
}

// Check reports what is wrong with a job.
func (j *Job) Check() error {
	switch {
	case j.Users == nil && j.Scan == nil:
		return errors.New("a batch needs users")
	case j.Out == "" && j.Lists == nil:
		return errors.New("a batch needs an output")
	case j.Lists == nil && os.IsPathSeparator(j.Out[len(j.Out)-1]):
		return fmt.Errorf("%s is a folder: name a file in it", j.Out)
	case j.Lists != nil && (j.Checkpoints == "" || j.Failed == ""):
		return errors.New("a batch that writes lists needs a file of checkpoints and one of users that fail")
	case j.Lists != nil && j.Shards > 1 && j.Lists.Version == 0:
		return errors.New("the shares of a version need its number")
	case j.Shards > 0 && (j.Shard < 0 || j.Shard >= j.Shards):
		return fmt.Errorf("shard %d of %d: the first one is 0", j.Shard, j.Shards)
	}
	return nil
}
