package batch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/outcome"
)

// The defaults of Job.
const (
	DefaultInFlight  = 64
	DefaultPartUsers = 10_000
)

// A Job ranks users and keeps their answers. One goroutine; Progress is called on it.
type Job struct {
	Engine *rankd.Engine
	Users  *Users // closed at the end
	// Scan finds the users if Users is nil. It writes them to a file in the folder of parts before the first one is ranked.
	Scan   *Scan
	Format rankd.Format
	// InFlight is how many run at a time. Zero means DefaultInFlight.
	InFlight int
	// CommandsPerSecond bounds the commands that all endpoints get together. Zero: no bound.
	CommandsPerSecond int
	// The job ranks share number Shard of Shards; a hash of the user chooses the share. Zero Shards means one.
	Shard, Shards int
	// Out is the file of the answers, a line each, in the order of the users. If it ends with a separator, it is a folder that keeps the parts.
	Out string
	// Lists sends the answers to Redis instead of Out.
	Lists *Lists
	// Parts is the folder of parts, and Failed is the file of the users that failed. Empty means beside Out.
	Parts, Failed string
	// PartUsers is how many users a part has. Zero means DefaultPartUsers.
	PartUsers int
	// Name says what the job is, such as where its users come from. A folder with parts of another job is refused.
	Name string
	// Progress is called once a second, and at the end. Nil: nobody is told.
	Progress func(Progress)
}

// Progress is how far a job has come. Immutable.
type Progress struct {
	Summary
	Read, Begun, Size int64 // bytes of users: so far, when the first user was ranked, and all; 0: nobody knows
	Found             int   // keys that a Scan has found so far; 0: it is over
	Ended             bool
}

// Summary is the outcome of a job, or of a part of it. Immutable.
type Summary struct {
	Users     int                `json:"users"`  // that were ranked, or failed
	Failed    int                `json:"failed"` // of these
	Kept      int                `json:"kept"`   // of these, those of parts that were there at the start
	Seconds   float64            `json:"seconds"`
	PerSecond float64            `json:"users_per_second"` // of those that were not kept
	Errors    map[string]Failure `json:"errors,omitempty"` // by class
	Skipped   int                `json:"keys_without_user,omitempty"`
	Version   int64              `json:"version,omitempty"` // of the lists
	Current   bool               `json:"current,omitempty"` // The pointer is at the version.
}

// Failure counts the users that failed in one way. Immutable.
type Failure struct {
	Count   int    `json:"count"`
	Example string `json:"example"` // the first error
}

// add adds a part.
func (s *Summary) add(part *Summary) {
	s.Users += part.Users
	s.Failed += part.Failed
	for class, f := range part.Errors {
		s.fail(class, f.Count, f.Example)
	}
}

func (s *Summary) fail(class string, n int, example string) {
	if s.Errors == nil {
		s.Errors = make(map[string]Failure)
	}
	f := s.Errors[class]
	s.Errors[class] = Failure{f.Count + n, cmp.Or(f.Example, example)}
}

// manifest says which job a folder of parts belongs to.
type manifest struct {
	Name      string `json:"job"`
	Digest    string `json:"digest"` // of the generation of plans, models and tables
	PartUsers int    `json:"part_users"`
	Shard     string `json:"shard"`
	Lists     string `json:"lists,omitempty"`   // the key
	Version   int64  `json:"version,omitempty"` // of the lists
}

// The files of a folder of parts. A part is whole once its summary is there.
const manifestFile = "job.json"

func partFile(part int, kind string) string { return fmt.Sprintf("part-%06d.%s", part, kind) }

// Kinds of files of a part.
const (
	kindAnswers = "jsonl"
	kindFailed  = "failed.jsonl"
	kindSummary = "summary.json"
)

// Run ranks all users and joins their parts. It passes over users whose part is whole already. After an end or a kill
// the same job therefore continues after the last whole part, if Users start again from the first. The error is one of a file, of Redis, of the
// users, or the cause of ctx. A user that fails is not an error.
func (j *Job) Run(ctx context.Context) (Summary, error) {
	if j.Users != nil {
		defer j.Users.Close()
	}
	if err := j.Check(); err != nil {
		return Summary{}, err
	}
	start := time.Now()
	r := &running{Job: j, folder: j.Parts, failed: cmp.Or(j.Failed, FailedFile(j.Out)), start: start, users: j.Users}
	if r.KeepsParts() {
		r.folder = j.Out
	}
	r.folder = cmp.Or(r.folder, j.Out+".parts")
	r.InFlight, r.PartUsers, r.Shards = cmp.Or(j.InFlight, DefaultInFlight), cmp.Or(j.PartUsers, DefaultPartUsers), max(j.Shards, 1)
	r.pace = pace{sent: r.commands, perSecond: j.CommandsPerSecond, due: start}
	defer func() {
		if j.Users == nil && r.users != nil { // the file that a Scan has written
			r.users.Close()
		}
	}()
	var err error
	if j.Lists != nil {
		err = devredis.WithAny(ctx, j.Lists.Redis, func(client devredis.Caller) error {
			r.lists = &lists{Lists: *j.Lists, running: r, client: client, ctx: ctx}
			return r.run(ctx)
		})
	} else {
		err = r.run(ctx)
	}
	r.report()
	return r.sum, err
}

// run opens the folder, ranks, and brings the parts together.
func (r *running) run(ctx context.Context) error {
	parts, err := r.open()
	if err == nil && r.users == nil {
		err = r.find(ctx)
	}
	if err == nil {
		err = r.skip(parts * r.PartUsers)
		r.begun = r.users.Read()
	}
	for ; err == nil && !r.ended; parts++ {
		err = r.part(ctx, parts)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if r.lists != nil {
		if err := r.join(parts, kindFailed, r.failed); err != nil {
			return err
		}
		if err := r.lists.swing(); err != nil {
			return err
		}
	} else if !r.KeepsParts() {
		if err := errors.Join(r.join(parts, kindAnswers, r.Out), r.join(parts, kindFailed, r.failed)); err != nil {
			return err
		}
	}
	if r.KeepsParts() {
		return nil
	}
	return os.RemoveAll(r.folder)
}

// KeepsParts reports whether the output is the folder of parts.
func (j *Job) KeepsParts() bool { return j.Lists == nil && os.IsPathSeparator(j.Out[len(j.Out)-1]) }

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
	skipped, err := r.Scan.find(ctx, r.folder, r.Engine, func(found int) {
		r.asked.Add(1)
		r.pace.hold(ctx)
		r.tell(&Summary{}, found)
	})
	if err != nil {
		return err
	}
	r.sum.Skipped = skipped
	file, err := os.Open(filepath.Join(r.folder, usersFile))
	if err == nil {
		r.users, err = NewUsers(file, JSONL, r.Engine.Registry())
	}
	return err
}

// running is a job under way.
type running struct {
	*Job
	folder, failed string
	users          *Users
	lists          *lists // nil: the answers are files
	start          time.Time
	pace           pace
	asked          atomic.Uint64 // commands that the engine has not sent; any goroutine
	begun          int64         // bytes of users when the first one was ranked
	told           time.Time     // when Progress was called last
	sum            Summary
	ended          bool // there are no more users
}

// open makes the folder, or reads what it has. It returns the number of whole parts.
func (r *running) open() (parts int, err error) {
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return 0, err
	}
	own := manifest{Name: r.Name, Digest: r.Engine.Generation().Digest, PartUsers: r.PartUsers, Shard: fmt.Sprintf("%d/%d", r.Shard, r.Shards)}
	if r.lists != nil {
		own.Lists, own.Version = r.Lists.Key, r.Lists.Version
	}
	file := filepath.Join(r.folder, manifestFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		// Parts without the file belong to a job whose folder was being removed.
		if err := r.remove(".*", "part-*", usersFile); err != nil {
			return 0, err
		}
		if r.lists != nil {
			if own.Version, err = r.lists.begin(); err != nil {
				return 0, err
			}
		}
		text, _ = json.Marshal(own)
		return 0, fileio.Replace(file, append(text, '\n'))
	}
	var there manifest
	if err == nil {
		err = json.Unmarshal(text, &there)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	if r.lists != nil {
		own.Version = cmp.Or(own.Version, there.Version)
		r.lists.Version = own.Version
	}
	if there != own {
		return 0, fmt.Errorf("%s has parts of another job (%+v, and not %+v): remove it, or name another output", r.folder, there, own)
	}
	if r.lists != nil {
		if err := r.lists.goOn(); err != nil {
			return 0, err
		}
	}
	if err := r.remove(".*"); err != nil { // what a part that was killed has left
		return 0, err
	}
	for ; ; parts++ {
		text, err := os.ReadFile(filepath.Join(r.folder, partFile(parts, kindSummary)))
		if errors.Is(err, os.ErrNotExist) {
			r.sum.Kept = r.sum.Users
			return parts, nil
		}
		var part Summary
		if err == nil {
			err = json.Unmarshal(text, &part)
		}
		if err != nil {
			return 0, err
		}
		r.sum.add(&part)
	}
}

// remove removes files of the folder by patterns, which are sound.
func (r *running) remove(patterns ...string) error {
	for _, pattern := range patterns {
		left, _ := filepath.Glob(filepath.Join(r.folder, pattern))
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// next returns the document of the next user of the shard, and its request or why there is none.
func (r *running) next() (doc []byte, q rankd.Request, refused, err error) {
	for {
		doc, err = r.users.Next()
		if err != nil {
			return nil, q, nil, err
		}
		q, refused = Parse(r.Engine, doc)
		user := userOf(&q)
		if refused != nil {
			user = string(doc)
		}
		if r.Shards == 1 || int(xxhash.Sum64String(user)%uint64(r.Shards)) == r.Shard {
			return doc, q, refused, nil
		}
	}
}

// skip passes over the users of whole parts.
func (r *running) skip(users int) error {
	for range users {
		if _, _, _, err := r.next(); err != nil {
			if errors.Is(err, io.EOF) {
				r.ended = true
				return nil
			}
			return err
		}
	}
	return nil
}

// part ranks the users of a part. A part without users leaves no file.
func (r *running) part(ctx context.Context, part int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line := NewLine(r.Engine, r.InFlight)
	users := 0
	var reading error // why reading has ended, but for the end of the part
	read := make(chan struct{})
	go func() {
		defer close(read)
		line.Read(func(p *Entry) (join, more bool) {
			r.pace.wait(ctx)
			if p.Input, p.Request, p.Err, reading = r.next(); reading != nil {
				return false, false
			}
			users++
			return true, users < r.PartUsers
		})
	}()
	sum := new(Summary)
	failed := newOutput(r.folder, partFile(part, kindFailed))
	defer failed.drop()
	var answers interface {
		open() error
		write(*Entry) error // of an answer that cannot be written, for that user
		failure() error
		keep() error
		drop()
	} = &lineFile{output: newOutput(r.folder, partFile(part, kindAnswers)), engine: r.Engine, format: r.Format}
	if r.lists != nil {
		answers = r.lists
	}
	defer answers.drop()
	err := errors.Join(answers.open(), failed.open())
	if err != nil {
		cancel(err)
	}
	for p := line.Next(ctx, func() {}); p != nil; p = line.Next(ctx, func() {}) {
		sum.Users++
		if p.Err == nil {
			p.Err = answers.write(p)
		}
		if p.Err != nil {
			class, text := ClassOf(p.Err)
			sum.Failed++
			sum.fail(class, 1, text)
			failed.write(append(p.Input, '\n'))
		}
		p.Empty()
		line.Free(p)
		if err := cmp.Or(answers.failure(), failed.err); err != nil {
			cancel(err)
		}
		r.tell(sum, 0)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // The reader may wait for users that never come.
	}
	<-read
	if reading != nil && !errors.Is(reading, io.EOF) {
		return reading
	}
	r.ended = reading != nil
	if sum.Users == 0 {
		return nil
	}
	if err := errors.Join(failed.keep(sum.Failed > 0), answers.keep()); err != nil {
		return err
	}
	text, _ := json.Marshal(sum)
	whole := newOutput(r.folder, partFile(part, kindSummary))
	defer whole.drop()
	if err := whole.open(); err != nil {
		return err
	}
	whole.write(append(text, '\n'))
	if err := whole.keep(true); err != nil {
		return err
	}
	r.sum.add(sum)
	return syncFolder(r.folder)
}

// ClassOf returns the class of the error of a user that failed, as metrics have it, and its text.
func ClassOf(err error) (class, text string) {
	var failed *rankd.Error
	if errors.As(err, &failed) {
		return failed.Class.Label(), failed.Error()
	}
	return outcome.BadRequest.Label(), err.Error()
}

// tell calls Progress once a second.
func (r *running) tell(part *Summary, found int) {
	now := time.Now()
	if r.Progress == nil || now.Sub(r.told) < time.Second {
		return
	}
	r.told = now
	sum := r.sum
	sum.Errors = nil
	sum.add(part)
	r.progress(sum, Progress{Found: found})
}

// progress calls Progress.
func (r *running) progress(sum Summary, p Progress) {
	p.Summary, p.Begun = r.timed(sum), r.begun
	if r.users != nil {
		p.Read, p.Size = r.users.Read(), r.users.Size()
	}
	r.Progress(p)
}

// report calls Progress at the end.
func (r *running) report() {
	r.sum = r.timed(r.sum)
	if r.Progress != nil {
		r.progress(r.sum, Progress{Ended: true})
	}
}

func (r *running) timed(sum Summary) Summary {
	elapsed := time.Since(r.start).Seconds()
	sum.Kept, sum.Seconds, sum.PerSecond = r.sum.Kept, elapsed, float64(sum.Users-r.sum.Kept)/elapsed
	return sum
}

// join makes one file of all parts' files of a kind. If there are none, it makes an empty file of answers, and no file of users that failed.
func (r *running) join(parts int, kind, path string) error {
	out := newOutput(filepath.Dir(path), filepath.Base(path))
	defer out.drop()
	if err := out.open(); err != nil {
		return err
	}
	some := kind == kindAnswers
	for part := range parts {
		text, err := os.Open(filepath.Join(r.folder, partFile(part, kind)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			some = true
			_, err = io.Copy(out.to, text)
			err = errors.Join(err, text.Close())
		}
		if err != nil {
			return err
		}
	}
	if err := out.keep(some); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// FailedFile returns the name of the file of users that failed, which lies beside the file of answers.
func FailedFile(out string) string {
	return strings.TrimSuffix(out, ".jsonl") + ".failed.jsonl"
}

// output is a file that appears whole or not at all. One goroutine.
type output struct {
	path string
	file *os.File
	to   *bufio.Writer
	err  error
}

func newOutput(folder, name string) *output { return &output{path: filepath.Join(folder, name)} }

func (o *output) open() (err error) {
	o.file, err = os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*")
	if err == nil {
		o.to = bufio.NewWriterSize(o.file, 1<<20)
	}
	return err
}

func (o *output) write(text []byte) {
	if o.err == nil {
		_, o.err = o.to.Write(text)
	}
}

// keep gives the file its name, if it is to stay.
func (o *output) keep(keeps bool) error {
	if !keeps {
		if err := os.Remove(o.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	const everybodyReads = 0o644
	err := cmp.Or(o.err, o.to.Flush())
	err = errors.Join(err, o.file.Chmod(everybodyReads), o.file.Sync(), o.file.Close())
	if err == nil {
		err = os.Rename(o.file.Name(), o.path)
	}
	if err == nil {
		o.file = nil
	}
	return err
}

// A lineFile has the answers of a part, a line each. One goroutine.
type lineFile struct {
	*output
	engine *rankd.Engine
	format rankd.Format
	buf    []byte
}

func (f *lineFile) write(p *Entry) error {
	err := f.engine.Intake().Contain(p.Answer.RequestID, func() { f.buf = p.Answer.AppendJSON(f.buf[:0], f.format) })
	if err == nil {
		f.output.write(f.buf)
	}
	return err
}

func (f *lineFile) failure() error { return f.err }

func (f *lineFile) keep() error { return f.output.keep(true) }

// drop removes a file that keep has not named.
func (o *output) drop() {
	if o.file != nil {
		_ = o.file.Close()
		_ = os.Remove(o.file.Name())
	}
}

// syncFolder makes the names in a folder survive a crash.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Check reports what is wrong with a job.
func (j *Job) Check() error {
	switch {
	case j.Users == nil && j.Scan == nil:
		return errors.New("a batch needs users")
	case j.Out == "" && j.Lists == nil:
		return errors.New("a batch needs an output")
	case j.Lists != nil && (j.Parts == "" || j.Failed == ""):
		return errors.New("a batch that writes lists needs a folder of parts and a file of users that fail")
	case j.Lists != nil && j.Shards > 1 && j.Lists.Version == 0:
		return errors.New("the shares of a version need its number")
	case j.Shards > 0 && (j.Shard < 0 || j.Shard >= j.Shards):
		return fmt.Errorf("shard %d of %d: the first one is 0", j.Shard, j.Shards)
	}
	return nil
}
