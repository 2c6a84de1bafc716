package record

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/record"
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
	Rows            []int          `json:"rows,omitempty"` // of each output
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

// ends are the words of record.End.
var ends = [...]string{record.NotRun: "not_run", record.Ended: "ended", record.Failed: "failed", record.Stopped: "stopped"}

// shower makes lines. One goroutine.
type shower struct {
	keys    *served.Keys
	private bool
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

func (s *shower) line(q *record.Request, h *record.Header) *line {
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
		for _, output := range q.Answer.Outputs {
			l.Rows = append(l.Rows, output.N)
		}
	}
	return l
}

func (p *Program) showCommand() *cobra.Command {
	var in input
	s := shower{}
	keyFile := ""
	return cmdline.WithFlags(&cobra.Command{
		Use: "show FILE|DIR... [flags]", Args: cobra.MinimumNArgs(1),
		Short: "Print requests, each as a line of JSON",
		Long: `Print the requests of files, each as a line of JSON: who asked, which nodes ran, and what became of
them. Users and requests have keyed hashes as their names: by the newest key of --user_key_file, as in
the log of what was served, and otherwise by a key that nobody has when the command has ended. A name
that is needed for rankd log or rankd record purge is printed with --private.`,
		Example: `  rankd record show records --user_key_file keys
  rankd record show a.rec --identity key.txt --private`,
		RunE: func(_ *cobra.Command, args []string) error {
			paths, err := in.open(args)
			if err != nil {
				return err
			}
			if s.keys = served.OneKey(); keyFile != "" {
				if s.keys, err = served.ReadKeys(keyFile); err != nil {
					return fmt.Errorf("--user_key_file: %w", err)
				}
			}
			for _, path := range paths {
				err := p.show(path, in.options, &s)
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
		in.setting(),
		{Name: "user_key_file", To: &keyFile, Help: "the `file` of the keys that make names of users and requests"},
		{Name: "private", To: &s.private, Help: "print users and requests by their ids, parameters, and the texts of errors"},
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
		text, err := json.Marshal(s.line(q, r.Header()), jsontext.AllowInvalidUTF8(true)) // Errors may quote any bytes.
		if err == nil {
			_, err = fmt.Fprintf(p.Stdout, "%s\n", text)
		}
		if err != nil {
			return err
		}
	}
}
