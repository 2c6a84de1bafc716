package record

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/recorder"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/trace/record"
)

// line is what show prints of a request.
type line struct {
	EngineRequestID string         `json:"engine_request_id"`
	RequestID       string         `json:"request_id,omitempty"`
	UserID          string         `json:"user_id"`
	Time            time.Time      `json:"time"`
	Plan            string         `json:"plan"`
	Alias           string         `json:"alias,omitempty"`
	Side            string         `json:"side,omitempty"`
	Traffic         string         `json:"traffic,omitempty"`
	Generation      string         `json:"generation"`
	Commit          string         `json:"commit"`
	Probability     float64        `json:"probability,omitzero"` // 0: it is marked
	ElapsedUS       int64          `json:"elapsed_us"`
	QueueDelayUS    int64          `json:"queue_delay_us"`
	Degraded        bool           `json:"degraded"`
	Params          jsontext.Value `json:"params,omitempty"`
	Failure         *failure       `json:"failure,omitempty"`
	Runs            []run          `json:"runs"`
	Outputs         []output       `json:"outputs,omitempty"`
}

type failure struct {
	Class string `json:"class"`
	Node  string `json:"node,omitempty"`
	Text  string `json:"text,omitempty"`
}

type run struct {
	Plan  string `json:"plan"`
	Nodes []node `json:"nodes"`
}

type node struct {
	ID      string   `json:"id"`
	Op      string   `json:"op"`
	End     string   `json:"end"`
	Failure *failure `json:"failure,omitempty"`
	Values  int      `json:"values"` // from outside
	Bytes   int      `json:"value_bytes"`
	Cached  int      `json:"cached,omitzero"`
	AgeMS   int64    `json:"age_ms,omitzero"`
	Rows    int      `json:"rows"`
}

// output is an output of the answer, with the values that are not private.
type output struct {
	Rows    int                         `json:"rows"`
	IDs     []jsontext.Value            `json:"ids"`
	Columns map[string][]jsontext.Value `json:"columns"`
}

// ends are the words of record.End.
var ends = [...]string{record.NotRun: "not_run", record.Ended: "ended", record.Failed: "failed", record.Stopped: "stopped"}

// shower makes lines. One goroutine.
type shower struct {
	keys    *served.Keys
	private bool

	generation string
	tables     *registry.Registry // of generation; nil: the file does not have them
}

// public reports whether a column of a request is not private. Nobody knows it of a column without tables.
func (s *shower) public(column string, generation string, from record.Source) bool {
	if s.private {
		return true
	}
	if s.generation != generation {
		s.generation, s.tables = generation, nil
		if g, err := from.Generation(generation); err == nil {
			tables := fstest.MapFS{}
			for _, f := range g.Tables {
				tables[f.Name] = &fstest.MapFile{Data: f.Bytes}
			}
			s.tables, _ = registry.Load(tables, g.Env) // nil: all is private
		}
	}
	if s.tables == nil {
		return false
	}
	key, ok := s.tables.KeyByName(column)
	return ok && !key.Private
}

// output returns an output of the answer to a request.
func (s *shower) output(rows *record.Rows, q *record.Request, from record.Source) (o output, err error) {
	values := func(c *record.Column) (all []jsontext.Value) {
		if c.Values == nil { // The request is marked.
			return nil
		}
		texts, problem := recorder.Values(c, rows.N)
		err = cmp.Or(err, problem)
		for _, text := range texts {
			all = append(all, jsontext.Value(text))
		}
		return all
	}
	o = output{rows.N, values(&rows.IDs), map[string][]jsontext.Value{}}
	for i := range rows.Columns {
		if c := &rows.Columns[i]; s.public(c.Name, q.Generation, from) {
			o.Columns[c.Name] = values(c)
		}
	}
	return o, err
}

// name returns the name of a user or of a request.
func (s *shower) name(id string) string {
	if s.private || id == "" {
		return id
	}
	return s.keys.Name(id)
}

func (s *shower) failure(f *record.Failure) *failure {
	if f == nil {
		return nil
	}
	shown := &failure{Class: f.Class, Node: f.Node}
	if s.private { // The text may quote data.
		shown.Text = f.Text
	}
	return shown
}

func (s *shower) line(q *record.Request, h *record.Header, from record.Source) (*line, error) {
	l := &line{
		EngineRequestID: s.name(uuid.UUID(q.ID).String()), RequestID: s.name(q.RequestID), UserID: s.name(q.User()), Time: q.Arrived,
		Plan: q.Plan, Alias: q.Alias, Side: q.Side, Traffic: q.Traffic, Generation: q.Generation, Commit: h.Commit, Probability: h.Sample,
		ElapsedUS: q.Elapsed.Microseconds(), QueueDelayUS: q.Waited.Microseconds(), Degraded: q.Degraded, Failure: s.failure(q.Failure),
	}
	if q.Marked {
		l.Probability = 0
	}
	if s.private {
		l.Params = q.Params
	}
	for i := range q.Runs {
		r := run{Plan: q.Runs[i].Plan}
		for _, n := range q.Runs[i].Nodes {
			shown := node{
				ID: n.ID, Op: n.Op, End: ends[min(int(n.End), len(ends)-1)], Failure: s.failure(n.Failure), Values: len(n.Values),
				Cached: n.Cached, AgeMS: n.Age.Milliseconds(), Rows: n.Rows.N,
			}
			for _, v := range n.Values {
				shown.Bytes += len(v.Bytes)
			}
			r.Nodes = append(r.Nodes, shown)
		}
		l.Runs = append(l.Runs, r)
	}
	if q.Answer != nil {
		for i := range q.Answer.Outputs {
			o, err := s.output(&q.Answer.Outputs[i], q, from)
			if err != nil {
				return nil, fmt.Errorf("request %s: %w", l.EngineRequestID, err)
			}
			l.Outputs = append(l.Outputs, o)
		}
	}
	return l, nil
}

func (p *Program) showCommand() *cobra.Command {
	var in cmdline.RecordFiles
	s := shower{}
	keyFile := ""
	return cmdline.WithFlags(&cobra.Command{
		Use: "show FILE|DIR... [flags]", Args: cobra.MinimumNArgs(1),
		Short: "Print requests, each as a line of JSON",
		Long: `Print the requests of files, each as a line of JSON: who asked, which nodes ran, and what became of
them. Users and requests have keyed hashes as their names: by the newest key of --user_key_file, as in
the log of what was served, and otherwise by a key that nobody has when the command has ended. A name
that is needed for rankd log or rankd record purge is printed with --private. Of an answer it prints
the ids and the columns that are not private in the tables of the request.`,
		Example: `  rankd record show records --user_key_file keys
  rankd record show a.rec --identity_file key.txt --private`,
		RunE: func(_ *cobra.Command, args []string) error {
			paths, err := in.Open(args)
			if err != nil {
				return err
			}
			if s.keys = served.OneKey(); keyFile != "" {
				if s.keys, err = served.ReadKeys(keyFile); err != nil {
					return fmt.Errorf("--user_key_file: %w", err)
				}
			}
			for _, path := range paths {
				err := p.show(path, in.Read, &s)
				if torn := (*record.Torn)(nil); errors.As(err, &torn) {
					p.torn(path, torn)
					continue
				}
				if err != nil {
					return cmdline.Runtime(fmt.Errorf("%s: %w", errtext.Name(path), err))
				}
			}
			return nil
		},
	}, nil, noCheck, []cmdline.Setting{
		in.Setting(),
		{Name: "user_key_file", To: &keyFile, Help: "the `file` of the keys that make names of users and requests"},
		{Name: "private", To: &s.private, Help: "print users and requests by their ids, parameters, private columns, and the texts of errors"},
	})
}

// show prints the requests of a file.
func (p *Program) show(path string, o record.ReadOptions, s *shower) error {
	r, err := record.Open(path, o)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		q, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		l, err := s.line(q, r.Header(), r)
		if err != nil {
			return err
		}
		text, err := json.Marshal(l, jsontext.AllowInvalidUTF8(true), json.Deterministic(true)) // Errors may quote any bytes.
		if err == nil {
			_, err = fmt.Fprintf(p.Stdout, "%s\n", text)
		}
		if err != nil {
			return err
		}
	}
}
