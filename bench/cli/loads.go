package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/internal/cmdline"
)

// loads is what isolation, serve and overload have in common: subjects take turns under the loads of situations, and bounds judge what they
// reach. One goroutine.
type loads struct {
	Rounds     int           `json:"rounds"`
	Duration   time.Duration `json:"duration_ns"` // of the longest load of a round
	Warmup     time.Duration `json:"warmup_ns"`   // before each closed loop
	CPUThreads int           `json:"cpu_threads"`

	redisServer, program string
	names, fronts        []string // of situations, and of rankd serve

	situations []situation
	of         string // what a subject is: an engine, a front, a caller
	subjects   []string
	run        func(engine int, r *worker.Round) (*worker.Report, error)
	prepare    func(ctx context.Context, situation int) (failures []string, stop func(), err error) // nil: nothing
	round      func(ctx context.Context, situation, subject, round int) (harness.Sample, error)
}

// situation is a load and the bounds on it: a row of the table of an experiment. Immutable.
type situation struct {
	name, doc string
	bounds    []bound
}

// bound is the most that a figure of a subject may be. Immutable.
type bound struct {
	aim, key, unit string
	most           float64
	subject        string // empty: each
}

// outlook is how an experiment shows what it found. Immutable.
type outlook struct {
	title    string
	settings fmt.Stringer
	table    *harness.TableSpec
	say      func(harness.Sample) string
	line     func(*harness.Result) string // a sentence for each result; nil: none
	failed   string                       // the figure that fails the run if it is not 0; empty: none
}

// loading completes a mode. start starts what the rounds need, and sets the subjects. The durations are defaults.
func (p *Program) loading(m mode, l *loads, duration time.Duration, show outlook, start func(*rig) error) mode {
	m.rows = append(m.rows,
		roundsRow(&l.Rounds),
		cmdline.Setting{Name: "duration", To: &l.Duration, Default: duration, Least: 1, Most: int64(time.Hour), Help: "how `long` the load of a round takes"},
		cmdline.Setting{Name: "warmup", To: &l.Warmup, Default: 300 * time.Millisecond, Most: int64(time.Hour), Help: "how `long` a closed loop runs before it is measured"},
		engineRow("cpu_threads", &l.CPUThreads),
		redisServerRow(&l.redisServer))
	m.report = func(ctx context.Context) (*harness.Report, error) {
		return p.measure(ctx, func(r *rig) (*harness.Experiment, error) {
			if err := start(r); err != nil {
				return nil, err
			}
			return l.experiment(&show), nil
		}, func(results [][]*harness.Result) *harness.Report { return l.report(&show, results) })
	}
	return m
}

// experiment returns the rounds to run.
func (l *loads) experiment(show *outlook) *harness.Experiment {
	e := &harness.Experiment{
		Subjects: harness.Named(l.of, l.of, l.subjects...), Rounds: l.Rounds, Figures: show.table.Figures, Prepare: l.prepare, Run: l.round, Say: show.say,
	}
	for _, s := range l.situations {
		e.Scenarios = append(e.Scenarios, harness.Named("scenario", "", s.name)...)
	}
	return e
}

// report shows each situation, judges the bounds, and names what failed.
func (l *loads) report(show *outlook, results [][]*harness.Result) *harness.Report {
	r := &harness.Report{Title: show.title, Settings: show.settings, Results: harness.Flatten(results)}
	for i, s := range l.situations {
		section := harness.Section{Title: s.name + ": " + s.doc, Tables: []harness.Table{show.table.Table(results[i])}}
		for j, result := range results[i] {
			name := s.name + ", " + l.subjects[j] + ": "
			r.Failed = r.Failed || result.Failure != "" || result.Value(show.failed) > 0
			if result.Failure != "" {
				r.Troubles = append(r.Troubles, name+"not measured: "+result.Failure)
				continue
			}
			if show.line != nil {
				section.Lines = append(section.Lines, l.subjects[j]+": "+show.line(result))
			}
			for _, b := range s.bounds {
				if cmp.Or(b.subject, l.subjects[j]) == l.subjects[j] {
					r.Verdicts = append(r.Verdicts, harness.Verdict{Aim: name + b.aim, Unit: b.unit, Estimate: result.Figures[b.key], Bound: harness.AtMost(b.most)})
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(result.Errors)) {
				r.Troubles = append(r.Troubles, fmt.Sprintf("%sthe first %s that failed: %s", name, kind, result.Errors[kind]))
			}
		}
		r.Sections = append(r.Sections, section)
	}
	return r
}
