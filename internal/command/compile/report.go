package compile

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
)

// report is what a command found, and the form of --json. One goroutine.
type report struct {
	Plans       []compiled            `json:"plans"`       // without errors
	Diagnostics []compiler.Diagnostic `json:"diagnostics"` // errors, warnings and advice, by source

	failed map[string]bool // files with errors
	advice int             // pieces of it
}

// compiled is a plan that compiled. Immutable.
type compiled struct {
	Source   string `json:"source"`
	Plan     string `json:"plan"`
	Artifact string `json:"artifact"`
}

// add adds the outcome for one source. artifact is the path of its artifact.
func (r *report) add(result *compiler.Result, artifact string) {
	r.Diagnostics = append(append(r.Diagnostics, result.Errors...), result.Warnings...)
	for i := range result.Errors {
		r.fails(result.Errors[i].File)
	}
	if len(result.Errors) > 0 {
		return
	}
	r.Plans = append(r.Plans, compiled{Source: result.Path(), Plan: result.Plan, Artifact: artifact})
}

// fail adds an error that is not in a result.
func (r *report) fail(d compiler.Diagnostic) {
	d.Severity = compiler.Error
	r.Diagnostics = append(r.Diagnostics, d)
	r.fails(d.File)
}

// fails notes a file with errors.
func (r *report) fails(file string) {
	if r.failed == nil {
		r.failed = make(map[string]bool)
	}
	r.failed[file] = true
}

// writeJSON writes the report as one line of JSON.
func (r *report) writeJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false) // sources are full of < and &
	if err := out.Encode(r); err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing to stdout: %w", err)}
	}
	return r.verdict()
}

// writeText writes the diagnostics for people, and a summary. The summary has one %s, for the plans without errors.
func (r *report) writeText(w io.Writer, summary string) error {
	for i := range r.Diagnostics {
		fmt.Fprintf(w, "%s\n", r.Diagnostics[i].String())
	}
	text := fmt.Sprintf(summary, errtext.Count(len(r.Plans), "plan"))
	if len(r.failed) > 0 {
		text += fmt.Sprintf("; %s with errors", errtext.Count(len(r.failed), "file"))
	}
	fmt.Fprintf(w, "rankd: %s\n", text)
	return r.verdict()
}

// verdict returns cmdline.ErrReported if there were errors.
func (r *report) verdict() error {
	if len(r.failed) > 0 {
		return cmdline.ErrReported
	}
	return nil
}
