package rankdbeam

import (
	"context"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/batch"
)

// Namespace has all counters: users, failed, failed_<class> by class of error, degraded, empty, below_minimum and fallback by what answers lack, and engines, which counts the engines that workers have opened.
const Namespace = "rankd"

// Failed is a user that failed: a dead letter. Immutable.
type Failed struct {
	Request string // which users take, so that it runs again
	Class   string // as metrics have it
	Error   string
}

// Register makes the transform known to Beam. A program calls it once before beam.Init, on the
// workers, too. complete sets the options of each engine that do not travel with a pipeline,
// such as tasks or a logger. It may be nil.
func Register(complete func(*rankd.Options)) {
	process.Lock()
	process.complete = complete
	process.Unlock()
	register.DoFn4x1[context.Context, string, func(string), func(Failed), error](&rankFn{})
	register.Emitter1[string]()
	register.Emitter1[Failed]()
	register.Function1x1(requestOf)
	beam.RegisterType(reflect.TypeFor[Failed]())
}

// Rank ranks users, and returns their answers and the users that failed. A user is a string: an
// id, or a request as on stdin. An answer is a line as on stdout, without the line end. An
// answer is emitted while a later user of the bundle is processed. So a bundle's answers need
// one window: rank before you window.
func Rank(s beam.Scope, c Config, users beam.PCollection) (answers, failed beam.PCollection) {
	return beam.ParDo2(s.Scope("rankd.Rank"), &rankFn{Config: c}, users)
}

// Requests returns the requests of users that failed, as texts that Rank accepts.
func Requests(s beam.Scope, failed beam.PCollection) beam.PCollection {
	return beam.ParDo(s.Scope("rankd.Requests"), requestOf, failed)
}

func requestOf(f Failed) string { return f.Request }

// rankFn ranks the users of one bundle after another, several users at a time. One goroutine.
type rankFn struct {
	Config Config

	engine *openEngine
	opened bool // this copy has opened it, and no bundle has counted that
	line   *batch.Line
	text   []byte
	counts counts
}

// counts are the counters of a rankFn. One goroutine.
type counts struct {
	users, failed, degraded, empty, below, fallback, engines beam.Counter
	classes                                                  map[string]beam.Counter
}

// Setup opens the engine of the process, unless another copy has opened it.
func (f *rankFn) Setup(ctx context.Context) (err error) {
	f.counts = counts{
		users: beam.NewCounter(Namespace, "users"), failed: beam.NewCounter(Namespace, "failed"),
		degraded: beam.NewCounter(Namespace, "degraded"), empty: beam.NewCounter(Namespace, "empty"), engines: beam.NewCounter(Namespace, "engines"),
		below: beam.NewCounter(Namespace, "below_minimum"), fallback: beam.NewCounter(Namespace, "fallback"),
		classes: make(map[string]beam.Counter),
	}
	f.engine, f.opened, err = acquire(&f.Config)
	return err
}

// StartBundle makes a new line, since the last bundle may have failed with users under way.
func (f *rankFn) StartBundle(ctx context.Context, _ func(string), _ func(Failed)) {
	if f.opened {
		f.opened = false
		f.counts.engines.Inc(ctx, 1)
	}
	f.line = batch.NewLine(f.engine.Engine, batch.DefaultInFlight)
}

// ProcessElement starts the request of a user. It first waits for the oldest request if the
// line is full.
func (f *rankFn) ProcessElement(ctx context.Context, user string, answer func(string), failed func(Failed)) error {
	p := f.line.Take()
	for ; p == nil; p = f.line.Take() {
		if err := f.next(ctx, answer, failed); err != nil {
			return err
		}
	}
	p.Input = batch.Document(user)
	p.Request, p.Err = batch.Parse(f.engine.Engine, p.Input)
	f.line.Join(p)
	return nil
}

// FinishBundle waits for all users under way.
func (f *rankFn) FinishBundle(ctx context.Context, answer func(string), failed func(Failed)) error {
	for f.line.Waiting() > 0 {
		if err := f.next(ctx, answer, failed); err != nil {
			return err
		}
	}
	return nil
}

// next emits the outcome of the oldest user under way.
func (f *rankFn) next(ctx context.Context, answer func(string), failed func(Failed)) error {
	p := f.line.Next(ctx, func() {})
	if p == nil {
		return context.Cause(ctx)
	}
	f.counts.users.Inc(ctx, 1)
	if p.Err == nil {
		f.text = p.Answer.AppendJSON(f.text[:0], f.Config.Format)
		answer(string(f.text[:len(f.text)-1]))
		for _, lack := range [...]struct {
			is  bool
			sum beam.Counter
		}{
			{p.Answer.Degraded(), f.counts.degraded}, {p.Answer.Len() == 0, f.counts.empty},
			{p.Answer.BelowMinimum() != nil, f.counts.below}, {p.Answer.Fallback() != nil, f.counts.fallback},
		} {
			if lack.is {
				lack.sum.Inc(ctx, 1)
			}
		}
	} else {
		class, text := batch.ClassOf(p.Err)
		f.counts.fail(ctx, class)
		failed(Failed{string(p.Input), class, text})
	}
	p.Empty()
	f.line.Free(p)
	return nil
}

func (c *counts) fail(ctx context.Context, class string) {
	c.failed.Inc(ctx, 1)
	counter, known := c.classes[class]
	if !known {
		counter = beam.NewCounter(Namespace, "failed_"+class)
		c.classes[class] = counter
	}
	counter.Inc(ctx, 1)
}

// Teardown closes the engine if no other copy uses it.
func (f *rankFn) Teardown() error { return f.engine.release() }
