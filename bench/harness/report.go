package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is what an experiment found. Immutable once built.
type Report struct {
	Title    string
	Answer   string // one sentence: what was found
	Facts    Facts
	Settings fmt.Stringer // a line of text; in JSON as it is
	Sections []Section
	Troubles []string // failures in sentences, so that nobody has to search the tables
	Notes    []Note
	Verdicts []Verdict
	Results  []*Result
	Failed   bool // a request failed that should not
}

// Section shows what was measured under the same conditions. Immutable.
type Section struct {
	Title  string
	Lines  []string // sentences
	Charts []Chart  // the page alone has them
	Tables []Table
}

// Table is a table of texts: the heads of the columns, then the rows. Immutable.
type Table struct {
	Title string
	Rows  [][]string
}

// Head returns the heads of the columns.
func (t Table) Head() []string { return t.Rows[0] }

// Body returns the rows.
func (t Table) Body() [][]string { return t.Rows[1:] }

// Note is a list of sentences below the tables. Immutable.
type Note struct {
	Title string   `json:"title"`
	Lines []string `json:"lines"`
}

// EmbeddedWarning is shown beside all figures measured with the embedded Redis.
const EmbeddedWarning = "WARNING: Redis is the one inside this process (miniredis): " +
	"these figures are mostly its own. Install redis-server, or use --redis."

// Warning returns EmbeddedWarning where it is due.
func (r *Report) Warning() string {
	if r.Facts.Embedded {
		return EmbeddedWarning
	}
	return ""
}

// Flatten returns the results of all scenarios in one list.
func Flatten(results [][]*Result) (all []*Result) {
	for _, of := range results {
		for _, r := range of {
			if r != nil {
				all = append(all, r)
			}
		}
	}
	return all
}

// WriteJSON writes the report as one object, which begins with the answer. Charts and tables show what the results have.
func (r *Report) WriteJSON(w io.Writer) error {
	notes := r.Notes
	for _, s := range r.Sections {
		if len(s.Lines) > 0 {
			notes = append(notes, Note{s.Title, s.Lines})
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Answer   string       `json:"answer,omitempty"`
		Title    string       `json:"title"`
		Facts    Facts        `json:"facts"`
		Settings fmt.Stringer `json:"settings"`
		Results  []*Result    `json:"results"`
		Verdicts []Verdict    `json:"verdicts,omitempty"`
		Troubles []string     `json:"troubles,omitempty"`
		Notes    []Note       `json:"notes,omitempty"`
	}{r.Answer, r.Title, r.Facts, r.Settings, r.Results, r.Verdicts, r.Troubles, notes})
}

// WriteText writes the answer, then text tables.
func (r *Report) WriteText(w io.Writer) error {
	out := &errWriter{w: w}
	fmt.Fprintln(out, r.Title)
	if r.Answer != "" {
		fmt.Fprintln(out, r.Answer)
	}
	fmt.Fprintf(out, "\n%s\n%s\n", r.Facts, r.Settings)
	if warning := r.Warning(); warning != "" {
		fmt.Fprintln(out, warning)
	}
	for _, s := range r.Sections {
		if s.Title != "" && len(s.Tables) > 0 {
			fmt.Fprintf(out, "\n%s\n", s.Title)
		}
		for _, line := range s.Lines {
			fmt.Fprintln(out, line)
		}
		for _, t := range s.Tables {
			if fmt.Fprintln(out); t.Title != "" {
				fmt.Fprintf(out, "%s:\n", t.Title)
			}
			t.write(out)
		}
	}
	for _, t := range r.Troubles {
		fmt.Fprintf(out, "\n%s\n", t)
	}
	for _, n := range r.Notes {
		n.write(out)
	}
	aims := Note{Title: "aims"}
	for _, v := range r.Verdicts {
		aims.Lines = append(aims.Lines, v.String())
	}
	aims.write(out)
	return out.err
}

// write writes the table with its columns aligned to the right.
func (t Table) write(w io.Writer) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range t.Rows {
		fmt.Fprintln(out, strings.Join(row, "\t")+"\t")
	}
	_ = out.Flush() // w keeps the error
}

// write writes the sentences, and nothing if there are none.
func (n Note) write(w io.Writer) {
	if len(n.Lines) > 0 {
		fmt.Fprintf(w, "\n%s:\n  %s\n", n.Title, strings.Join(n.Lines, "\n  "))
	}
}

// errWriter keeps the first error, so that the caller checks it once. One goroutine.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err == nil {
		_, e.err = e.w.Write(p)
	}
	return len(p), nil
}
