package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Label says what a result is about: a name in JSON and, if it has a head, a column of its own. Immutable.
type Label struct {
	Key   string
	Value any
	Head  string // of the column
	Text  string // in the column; empty: the value
}

func (l *Label) text() string {
	if l.Text != "" {
		return l.Text
	}
	if text := fmt.Sprint(l.Value); text != "" {
		return text
	}
	return unknown
}

// Item is a scenario or a subject. Immutable.
type Item struct {
	Name   string // in progress and errors
	Labels []Label
}

// Named returns items labeled by the key. The label has a column under this head; an empty head makes none.
func Named(key, head string, names ...string) (items []Item) {
	for _, name := range names {
		items = append(items, Item{name, []Label{{Key: key, Value: name, Head: head}}})
	}
	return items
}

// Experiment is a measurement to make. Immutable once it runs; one goroutine.
type Experiment struct {
	Scenarios, Subjects []Item
	Rounds              int
	Figures             []Figure
	// Takes reports whether a subject takes part in a scenario. Nil means that all do.
	Takes func(scenario, subject int) bool
	// Prepare runs before the rounds of a scenario; stop after them. It may return failures, one for each subject: those that are not
	// empty say why a subject takes no part. Nil means that there is nothing to prepare.
	Prepare func(ctx context.Context, scenario int) (failures []string, stop func(), err error)
	// Run has a subject run one round. An error ends the experiment.
	Run func(ctx context.Context, scenario, subject, round int) (Sample, error)
	// Say describes a sample in a few words, for the line of progress.
	Say      func(Sample) string
	Progress io.Writer
}

// Result is what the rounds of one subject tell in one scenario. Immutable once built.
type Result struct {
	Scenario, Subject int // indexes of the experiment
	Labels            []Label
	Failure           string
	Figures           map[string]Estimate // by key; what is unknown is not in it
	Errors            map[string]string
	Rounds            []Sample

	keys []string // of Figures, in order
}

// Measure runs all rounds. It returns the results by scenario and subject; nil where a subject takes no part. The error names the
// scenario and the subject. It is ctx's if ctx has ended: a process was stopped then, and its own error is not the reason.
func (e *Experiment) Measure(ctx context.Context) (results [][]*Result, err error) {
	p := progress{e: e, began: time.Now()}
	for s := range e.Scenarios {
		of, err := e.scenario(ctx, s, &p)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		results = append(results, of)
	}
	return results, nil
}

func (e *Experiment) scenario(ctx context.Context, s int, p *progress) ([]*Result, error) {
	results := make([]*Result, len(e.Subjects))
	for i, subject := range e.Subjects {
		if e.Takes == nil || e.Takes(s, i) {
			results[i] = &Result{Scenario: s, Subject: i, Labels: append(append([]Label{}, e.Scenarios[s].Labels...), subject.Labels...)}
		}
	}
	if e.Prepare != nil {
		failures, stop, err := e.Prepare(ctx, s)
		if stop != nil {
			defer stop()
		}
		if err != nil {
			return nil, e.named(s, "", err)
		}
		for i, failure := range failures {
			results[i].Failure = failure
		}
	}
	for round := range e.Rounds {
		for i := range results {
			i = (i + round) % len(results) // nobody is always the first
			r := results[i]
			if p.done++; r == nil || r.Failure != "" {
				continue
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			sample, err := e.Run(ctx, s, i, round)
			if err != nil {
				return nil, e.named(s, e.Subjects[i].Name, err)
			}
			if r.Failure = sample.Failure; r.Failure == "" {
				r.Rounds = append(r.Rounds, sample)
			}
			p.say(s, i, round, sample)
		}
	}
	e.fold(results)
	return results, nil
}

// named says in which scenario a subject failed.
func (e *Experiment) named(scenario int, subject string, err error) error {
	name := e.Scenarios[scenario].Name
	if name != "" && subject != "" {
		name += ", "
	}
	return fmt.Errorf("%s%s: %w", name, subject, err)
}

// fold computes the figures of a scenario.
func (e *Experiment) fold(results []*Result) {
	all := make([][]Sample, len(results))
	for i, r := range results {
		if r != nil && r.Failure == "" {
			all[i] = r.Rounds
		}
	}
	for i, r := range results {
		if r == nil || r.Failure != "" {
			continue
		}
		r.Figures, r.Errors = map[string]Estimate{}, map[string]string{}
		for _, f := range e.Figures {
			fold := f.Fold
			if fold == nil {
				fold = Median
			}
			if v, ok := fold(f.Key, all[i], all); ok {
				r.Figures[f.Key] = v
				r.keys = append(r.keys, f.Key)
			}
		}
		for _, s := range r.Rounds {
			for kind, text := range s.Errors {
				if text != "" && r.Errors[kind] == "" {
					r.Errors[kind] = text
				}
			}
		}
	}
}

// NewResult returns a result of figures that are exact, without rounds.
func NewResult(figures []Figure, values map[string]float64, labels ...Label) *Result {
	r := &Result{Labels: labels, Figures: map[string]Estimate{}}
	for _, f := range figures {
		if v, ok := values[f.Key]; ok {
			r.Figures[f.Key], r.keys = exact(v), append(r.keys, f.Key)
		}
	}
	return r
}

// Value returns a figure, 0 if it is unknown.
func (r *Result) Value(key string) float64 { return r.Figures[key].Median }

// Against returns the ratio of a figure to the same figure of another result, round by round.
func (r *Result) Against(other *Result, key string) Estimate {
	return EstimateOf(pairwise(r.Rounds, other.Rounds, key, key, Ratio))
}

// MarshalJSON writes the labels, then the figures, then the values of each round, as one object.
func (r *Result) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	var failed error
	add := func(key string, value any) {
		text, err := json.Marshal(value)
		if err != nil && failed == nil {
			failed = err
		}
		fmt.Fprintf(&out, ",%q:%s", key, text)
	}
	for _, l := range r.Labels {
		add(l.Key, l.Value)
	}
	if r.Failure != "" {
		add("failure", r.Failure)
	}
	for _, key := range r.keys {
		add(key, r.Figures[key])
	}
	if len(r.Errors) > 0 {
		add("first_errors", r.Errors)
	}
	rounds := []map[string]float64{}
	for _, s := range r.Rounds {
		rounds = append(rounds, s.Figures)
	}
	add("rounds", rounds)
	out.WriteByte('}')
	text := out.Bytes()
	text[0] = '{'
	return text, failed
}

// progress prints a line for each round. One goroutine.
type progress struct {
	e     *Experiment
	began time.Time
	done  int // rounds
}

func (p *progress) say(scenario, subject, round int, s Sample) {
	if p.e.Progress == nil || p.e.Say == nil {
		return
	}
	all := len(p.e.Scenarios) * p.e.Rounds * len(p.e.Subjects)
	left := time.Since(p.began) / time.Duration(p.done) * time.Duration(all-p.done)
	what := "failed: " + s.Failure
	if s.Failure == "" {
		what = p.e.Say(s)
	}
	name := p.e.Scenarios[scenario].Name
	if name != "" {
		name += ", "
	}
	fmt.Fprintf(p.e.Progress, "rankd: %d/%d, %v left: %sround %d of %d, %s: %s\n",
		p.done, all, left.Round(time.Second), name, round+1, p.e.Rounds, p.e.Subjects[subject].Name, what)
}
