package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/relevance"
)

const evalLong = `Run requests through plans, and say how good their answers are, by judgments: which rows are relevant to a request.

A judgment belongs to a request by its request_id or, if the request has none, by its user. Beside each mean stands how
many of the rows nobody has judged: they count as rows that are not relevant. docs/is-it-better.md says what the
figures cannot know.`

const evalExamples = `  rankd eval --judgments j.qrels --requests r.jsonl --plan_name complex_dag
  rankd eval --judgments j.csv --requests r.jsonl --plan old/home.plan.ts --plan new/home.plan.ts --measures ndcg@10,mrr
  rankd eval --judgments j.qrels --requests r.jsonl --plan home.plan.ts --write_run runs   # for trec_eval`

// The values of --gains, --no_relevant and --no_answer.
const (
	gainsLinear, gainsExponential = "linear", "exponential"
	countsZero, countsNot         = "zero", "leave_out"
)

// evalOptions are the flags of rankd eval. Immutable once checked.
type evalOptions struct {
	options // those that it shares with the root command

	judgments, requests         string
	plans, planNames            []string
	measures                    []string
	gains, noRelevant, noAnswer string
	relevantFrom, inFlight      int
	json                        bool
	perRequest, runs            string

	parsed []relevance.Measure // of measures, set by check
}

func (o *evalOptions) settings() []cmdline.Setting {
	return slices.Concat([]cmdline.Setting{
		{Name: "judgments", To: &o.judgments, Help: "read judgments from this `file`: .qrels as for trec_eval, .csv with the columns request, id and grade, or .jsonl with these members"},
		{Name: "requests", To: &o.requests, Help: "run the requests in this `file`, one a line, as on the stdin of rankd"},
		{Name: "measures", To: &o.measures, Default: []string{"ndcg@10", "map", "mrr", "precision@10", "recall@10", "hit@10", "rbp(0.8)"},
			Help: "compute these `measures`: ndcg, map, mrr and rbp(p), of all rows or as in ndcg@10, precision@k, recall@k and hit@k"},
		{Name: "gains", To: &o.gains, Default: gainsLinear, OneOf: []string{gainsLinear, gainsExponential}, Help: "`gains` of nDCG: linear (the grade) or exponential (2^grade-1)"},
		{Name: "relevant_from", To: &o.relevantFrom, Default: 1, Least: 1, Most: 1000, Help: "take rows from this `grade` on as relevant, for all measures but nDCG"},
		{Name: "no_relevant", To: &o.noRelevant, Default: countsNot, OneOf: []string{countsNot, countsZero},
			Help: "`what` becomes of requests that have judgments, but no relevant rows: leave_out, or zero as in trec_eval"},
		{Name: "no_answer", To: &o.noAnswer, Default: countsZero, OneOf: []string{countsZero, countsNot},
			Help: "`what` becomes of requests that fail or are answered without rows: zero as in trec_eval -c, or leave_out as in trec_eval without it"},
		{Name: "in_flight", To: &o.inFlight, Default: 16, Least: 1, Most: 1 << 10, Help: "run this `number` of requests at the same time"},
		{Name: "json", To: &o.json, Help: "print the figures as JSON"},
		{Name: "per_request", To: &o.perRequest, Help: "write the values of each request to this `file`, a line of JSON for each plan and request"},
		{Name: "write_run", To: &o.runs, Help: "write the answers of each plan to this `folder`, in files <plan>.run that trec_eval reads"},
		{Name: "plan", To: &o.plans, Help: "run the plan in this `file`, an artifact or <name>.plan.ts; may be given again, also beside --plan_name"},
		{Name: "plan_name", To: &o.planNames, Help: "run the plan of this `name`, from --plan_dir or of the built-in examples; may be given again"},
	}, slices.DeleteFunc(o.PlanSettings(), func(s cmdline.Setting) bool { return s.Name == "plan" || s.Name == "plan_name" }),
		o.EngineSettings(), o.SchedulingSettings(), o.DeadlineSettings())
}

// evalCommand returns "rankd eval".
func (p *program) evalCommand(ctx context.Context) *cobra.Command {
	var o evalOptions
	o.EngineFlags.Options = p.own
	o.tracing, o.AllowRequestNow = true, true
	cmd := &cobra.Command{
		Use: "eval", Short: "Say how good the answers of plans are, by judgments", Long: evalLong, Example: evalExamples,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return p.eval(ctx, &o)
		},
	}
	return cmdline.Dress(cmd, o.settings(), "0  each request has an answer",
		"1  a request failed, or no request counts; or a file could not be written",
		"2  bad usage, a bad plan, or a file with a bad line")
}

// check reports all that is wrong with the options at once, and completes them.
func (o *evalOptions) check(given *pflag.FlagSet) error {
	problems := []error{cmdline.CheckValues(given)}
	if err := o.ChooseEngine(given); err != nil {
		problems = append(problems, err)
	} else {
		problems = append(problems, o.checkEffect(given))
	}
	problems = append(problems, o.Check(given, o.settings()))
	for _, flag := range []string{"judgments", "requests"} {
		if !given.Changed(flag) {
			problems = append(problems, fmt.Errorf("rankd eval needs --%s", flag))
		}
	}
	if len(o.plans)+len(o.planNames) == 0 {
		problems = append(problems, errors.New("rankd eval needs a plan: --plan_name or --plan"))
	}
	files := map[string]bool{}
	for _, plan := range slices.Concat(o.plans, o.planNames) {
		if file := runFile(plan); files[file] {
			problems = append(problems, fmt.Errorf("the plan %s is given twice", errtext.Quote(plan)))
		} else {
			files[file] = true
		}
	}
	for i, name := range o.measures {
		m, err := relevance.Parse(name)
		if slices.Contains(o.measures[:i], name) {
			err = fmt.Errorf("%s stands there twice", errtext.Quote(name))
		}
		if err != nil {
			err = fmt.Errorf("--measures: %w", err)
		}
		o.parsed, problems = append(o.parsed, m), append(problems, err)
	}
	return errors.Join(problems...)
}

// runFile returns the name of the file of a plan's answers, without its end.
func runFile(plan string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(filepath.ToSlash(plan), "/", "_")), "_")
}

// evaluated are the figures of one plan, as --json prints them.
type evaluated struct {
	Plan string `json:"plan"`
	relevance.Counts
	Failed         int    `json:"failed"`
	FirstFailure   string `json:"first_failure,omitempty"`
	Degraded       int    `json:"degraded"`
	Fallback       int    `json:"fallback"` // answers of another plan
	RepeatedRows   int    `json:"repeated_rows"`
	JudgedRows     int    `json:"judged_rows"`               // of the requests that were answered
	JudgedAbsent   int    `json:"judged_rows_absent"`        // those that stood in no answer
	JudgmentsAlone int    `json:"judgments_without_request"` // judged requests that the file of requests lacks

	Measures []measured `json:"measures"`
}

// measured is one measure of a plan.
type measured struct {
	Name     string   `json:"name"`
	Mean     float64  `json:"mean"`
	Residual *float64 `json:"residual,omitempty"`
	Judged   float64  `json:"judged"`
	Unjudged int      `json:"unjudged"`
	Rows     int      `json:"rows"`
}

// evalLine is a line of --per_request.
type evalLine struct {
	Plan     string              `json:"plan"`
	Request  string              `json:"request"`
	Rows     int                 `json:"rows"`
	Error    string              `json:"error,omitempty"`
	Degraded bool                `json:"degraded,omitempty"`
	Fallback bool                `json:"fallback,omitempty"`
	LeftOut  string              `json:"left_out,omitempty"`
	Measures map[string]measured `json:"measures,omitempty"`
}

// evaluation is an evaluation under way. One goroutine.
type evaluation struct {
	*evalOptions
	judgments map[string]relevance.Grades
	lines     bytes.Buffer // of --per_request
	plans     []evaluated
}

// eval runs the requests through each plan and prints the figures.
func (p *program) eval(ctx context.Context, o *evalOptions) error {
	file, err := os.Open(o.judgments)
	if err != nil {
		return err
	}
	defer file.Close()
	v := &evaluation{evalOptions: o}
	if v.judgments, err = relevance.Read(o.judgments, file); err != nil {
		return fmt.Errorf("%s: %w", errtext.Name(o.judgments), err)
	}
	p.tune(o.CPUThreads)
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	failed := false
	for i, plan := range slices.Concat(o.plans, o.planNames) {
		one := o.options
		if one.PlanFile = plan; i >= len(o.plans) {
			one.PlanFile, one.Plan = "", plan
		}
		e, err := openEngine(&one, setting{stderr: p.stderr, plans: p.plans, redis: redis})
		if err != nil {
			return err
		}
		if err := errors.Join(v.run(ctx, e, plan), e.Close()); err != nil {
			return err
		}
		failed = failed || v.plans[i].Failed > 0
	}
	if o.perRequest != "" {
		if err := fileio.Replace(o.perRequest, v.lines.Bytes()); err != nil {
			return cmdline.Runtime(fmt.Errorf("--per_request: %w", err))
		}
	}
	if err := v.print(p.stdout); err != nil {
		return cmdline.Runtime(err)
	}
	if failed {
		return cmdline.ErrFailed
	}
	return nil
}

// run runs the requests through the plan of an engine and adds its figures.
func (v *evaluation) run(ctx context.Context, e *rankd.Engine, plan string) error {
	file, err := os.Open(v.requests)
	if err != nil {
		return err
	}
	users, err := batch.NewUsers(file, batch.JSONL, e.Registry())
	if err != nil {
		return err
	}
	defer users.Close()
	line, seen := batch.NewLine(e, v.inFlight), map[string]bool{}
	var bad error // of the goroutine that reads, until it has ended
	read := make(chan struct{})
	go func() {
		defer close(read)
		line.Read(func(p *batch.Entry) (join, more bool) {
			p.Request, bad = nextRequest(e, users, seen)
			return bad == nil, bad == nil
		})
	}()
	t := relevance.Table{Measures: v.parsed, Choices: relevance.Choices{
		RelevantFrom: v.relevantFrom, Exponential: v.gains == gainsExponential, NoRelevantZero: v.noRelevant == countsZero, NoAnswerSkip: v.noAnswer == countsNot}}
	figures := evaluated{Plan: plan}
	var answers bytes.Buffer // of --write_run
	var failure error
	for p := line.Next(ctx, func() {}); p != nil; p = line.Next(ctx, func() {}) {
		if failure == nil {
			if failure = v.add(p, &t, &figures, &answers); failure != nil {
				line.Stop()
			}
		}
		p.Empty()
		line.Free(p)
	}
	<-read
	switch {
	case failure != nil:
		return failure
	case ctx.Err() != nil:
		return ctx.Err()
	case bad != io.EOF:
		return bad
	case t.Counted == 0:
		return cmdline.Runtime(fmt.Errorf("%s: no request counts: of %d, %d have no judgments, %d no relevant row, and %d no answer; judgments name a request by its request_id or, without one, by its user. %s",
			errtext.Name(v.requests), t.Requests, t.WithoutJudgments, t.WithoutRelevant, t.Unanswered, figures.FirstFailure))
	}
	figures.Counts = t.Counts
	for id := range v.judgments {
		if !seen[id] {
			figures.JudgmentsAlone++
		}
	}
	for i := range v.parsed {
		mean, judged := t.Mean(i)
		figures.Measures = append(figures.Measures, measuredOf(&v.parsed[i], mean, judged))
	}
	v.plans = append(v.plans, figures)
	if v.runs == "" {
		return nil
	}
	if err = os.MkdirAll(v.runs, 0o777); err == nil {
		err = fileio.Replace(filepath.Join(v.runs, runFile(plan)+".run"), answers.Bytes())
	}
	if err != nil {
		err = fmt.Errorf("--write_run: %w", err)
	}
	return cmdline.Runtime(err)
}

func measuredOf(m *relevance.Measure, v relevance.Value, judged float64) measured {
	all := measured{Name: m.Name, Mean: v.Value, Judged: judged, Unjudged: v.Unjudged, Rows: v.Rows}
	if m.HasResidual() {
		all.Residual = &v.Residual
	}
	return all
}

// nextRequest returns the next request, with the name that judgments have for it as its id. The error is io.EOF at the end.
func nextRequest(e *rankd.Engine, users *batch.Users, seen map[string]bool) (rankd.Request, error) {
	doc, refused, err := users.Next()
	if err = cmp.Or(err, refused); err != nil {
		return rankd.Request{}, err
	}
	q, err := batch.Parse(e, doc)
	switch {
	case err != nil:
	case q.ID == "":
		err = errors.New("request_id is empty")
	case q.Plan != "":
		err = errors.New("the request names a plan, but --plan and --plan_name say which plans answer")
	case seen[q.ID]:
		err = fmt.Errorf("request %s stands there twice: each has a request_id of its own, or a user of its own", errtext.Quote(q.ID))
	}
	if err != nil {
		return q, fmt.Errorf("%s: %w", users.Place(), err)
	}
	seen[q.ID] = true
	return q, nil
}

// add adds the outcome of a request.
func (v *evaluation) add(p *batch.Entry, t *relevance.Table, figures *evaluated, answers *bytes.Buffer) error {
	request := p.Request.ID
	line := evalLine{Plan: figures.Plan, Request: request}
	var ids []string
	if p.Err != nil {
		figures.Failed++
		line.Error = p.Err.Error()
		figures.FirstFailure = cmp.Or(figures.FirstFailure, fmt.Sprintf("request %s: %v", errtext.Quote(request), p.Err))
	} else {
		there := make(map[string]bool, p.Answer.Len())
		for i := range p.Answer.Outputs() {
			rows := p.Answer.Output(i)
			for k := range rows.Len() {
				id := rows.IDText(k)
				if there[id] {
					figures.RepeatedRows++
					continue
				}
				there[id] = true
				ids = append(ids, id)
			}
		}
		for id := range v.judgments[request] {
			if figures.JudgedRows++; !there[id] {
				figures.JudgedAbsent++
			}
		}
		if line.Degraded = p.Answer.Degraded(); line.Degraded {
			figures.Degraded++
		}
		if line.Fallback = p.Answer.Fallback() != nil; line.Fallback {
			figures.Fallback++
		}
	}
	var values []relevance.Value
	values, line.LeftOut = t.Add(ids, v.judgments[request])
	if v.perRequest != "" {
		line.Rows, line.Measures = len(ids), make(map[string]measured, len(values))
		for i, value := range values {
			line.Measures[v.parsed[i].Name] = measuredOf(&v.parsed[i], value, value.Judged())
		}
		text, _ := json.Marshal(&line) // It has nothing that JSON lacks.
		v.lines.Write(append(text, '\n'))
	}
	if v.runs == "" {
		return nil
	}
	for i, id := range ids {
		for _, name := range [...]string{request, id} {
			if strings.ContainsFunc(name, unicode.IsSpace) {
				return fmt.Errorf("--write_run: %s has white space, which parts the columns of a run file", errtext.Quote(name))
			}
		}
		fmt.Fprintf(answers, "%s Q0 %s %d %d %s\n", request, id, i+1, len(ids)-i, runFile(figures.Plan))
	}
	return nil
}

// choices are the decisions in which tools differ, as --json prints them.
type choices struct {
	Gains        string `json:"gains"`
	RelevantFrom int    `json:"relevant_from"`
	Unjudged     string `json:"unjudged"`
	Ideal        string `json:"ideal"`
	NoRelevant   string `json:"no_relevant"`
	NoAnswer     string `json:"no_answer"`
}

// print prints the figures of all plans.
func (v *evaluation) print(w io.Writer) error {
	if v.json {
		return json.NewEncoder(w).Encode(struct {
			Options choices     `json:"options"`
			Plans   []evaluated `json:"plans"`
		}{choices{v.gains, v.relevantFrom, "not_relevant", "judgments", v.noRelevant, v.noAnswer}, v.plans})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measure\tplan\tmean\tresidual\tjudged\tunjudged rows")
	for i := range v.parsed {
		for k := range v.plans {
			plan := &v.plans[k]
			m, residual := &plan.Measures[i], "-"
			if m.Residual != nil {
				residual = fmt.Sprintf("%.4f", *m.Residual)
			}
			fmt.Fprintf(table, "%s\t%s\t%.4f\t%s\t%.1f %%\t%d of %d\n", m.Name, errtext.Text(plan.Plan), m.Mean, residual, 100*m.Judged, m.Unjudged, m.Rows)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range v.plans {
		plan := &v.plans[i]
		fmt.Fprintf(w, "\n%s: %s, %d counted\n", errtext.Text(plan.Plan), errtext.Count(plan.Requests, "request"), plan.Counted)
		for _, row := range [...]struct {
			n    int
			text string
		}{
			{plan.WithoutJudgments, "left out, without judgments"}, {plan.WithoutRelevant, "without relevant rows: " + v.noRelevant}, {plan.Unanswered, "without an answer: " + v.noAnswer},
			{plan.Failed, "failed; the first one: " + plan.FirstFailure}, {plan.Degraded, "with degraded answers"}, {plan.Fallback, "answered by a fallback, another plan"},
			{plan.RepeatedRows, "rows whose id stood further up; they were taken out"},
			{plan.JudgedAbsent, fmt.Sprintf("of %d judged ids stood in no answer; ids are compared as text", plan.JudgedRows)}, {plan.JudgmentsAlone, "in the judgments alone: nobody asked"},
		} {
			if row.n > 0 {
				fmt.Fprintf(w, "  %d %s\n", row.n, row.text)
			}
		}
	}
	_, err := fmt.Fprintf(w, "\ngains: %s; relevant from grade %d; unjudged rows are not relevant; the ideal list comes from the judgments;\nno relevant rows: %s; no answer: %s\n",
		v.gains, v.relevantFrom, v.noRelevant, v.noAnswer)
	return err
}
