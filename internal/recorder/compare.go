package recorder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/trace/record"
)

// A Difference is the first one between a record and a second run of the request. Immutable.
type Difference struct {
	Plan, Node, Op string // empty: of no node
	What           string // is different, in words
	Column         string // empty: of no column
	Row            int    // from 0; -1: of no row, or unknown
	Was, Is        string // the recorded value, and that of the second run; empty: unknown
	// Foreign: no code of rankd need have changed, because the node's task is not rankd's, or has asked somebody that
	// no record knows.
	Foreign bool
}

// String says it in a line.
func (d *Difference) String() string {
	var b strings.Builder
	if d.Node != "" {
		fmt.Fprintf(&b, "node %s (%s) of plan %s: ", errtext.Text(d.Node), d.Op, errtext.Text(d.Plan))
	}
	b.WriteString(d.What)
	if d.Column != "" {
		fmt.Fprintf(&b, ": column %s", errtext.Text(d.Column))
	}
	if d.Row >= 0 {
		fmt.Fprintf(&b, ", row %d", d.Row+1)
	}
	if d.Was != "" || d.Is != "" {
		fmt.Fprintf(&b, ": %s was recorded, and now it is %s", known(d.Was), known(d.Is))
	}
	return b.String()
}

func known(value string) string {
	if value == "" {
		return "another value, of which the record has the digest alone,"
	}
	return value
}

// Compare returns the first difference between two runs of one request; nil: they are equal. before returns the nodes that a
// node of a run reads, and own reports whether a task is rankd's.
func Compare(was, is *record.Request, before func(run, node int) []int, own func(op string) bool) *Difference {
	for i := range max(len(was.Runs), len(is.Runs)) {
		if i == len(was.Runs) || i == len(is.Runs) {
			return &Difference{What: fmt.Sprintf("%d plans have run, and %d had", len(is.Runs), len(was.Runs)), Row: -1}
		}
		a, b := &was.Runs[i], &is.Runs[i]
		if d := compareRuns(a, b, func(node int) []int { return before(i, node) }, own); d != nil {
			return d
		}
		if d := compareFailures(a.Failure, b.Failure); d != nil {
			d.Plan = a.Plan
			return d
		}
	}
	if d := compareFailures(was.Failure, is.Failure); d != nil {
		return d
	}
	if was.Answer == nil || is.Answer == nil {
		return nil
	}
	if was.Answer.Plan != is.Answer.Plan || was.Degraded != is.Degraded || len(was.Answer.Outputs) != len(is.Answer.Outputs) {
		return &Difference{What: "the answer", Was: summary(was), Is: summary(is), Row: -1}
	}
	for i := range was.Answer.Outputs {
		if d := compareRows(&was.Answer.Outputs[i], &is.Answer.Outputs[i]); d != nil {
			d.What = fmt.Sprintf("output %d of the answer: %s", i+1, d.What)
			return d
		}
	}
	return nil
}

func summary(r *record.Request) string {
	return fmt.Sprintf("of plan %s, degraded %v, with %s", r.Answer.Plan, r.Degraded, errtext.Count(len(r.Answer.Outputs), "output"))
}

// compareFailures compares the errors of requests. Their nodes may differ: which of several that fail is first, chance says.
func compareFailures(was, is *record.Failure) *Difference {
	if was == nil && is == nil || was != nil && is != nil && was.Class == is.Class {
		return nil
	}
	return &Difference{What: "the error of the request", Was: textOf(was), Is: textOf(is), Row: -1}
}

func textOf(f *record.Failure) string {
	if f == nil {
		return "none"
	}
	return errtext.Cut(f.Text)
}

func compareRuns(was, is *record.Run, before func(node int) []int, own func(op string) bool) *Difference {
	if len(was.Nodes) != len(is.Nodes) {
		return &Difference{Plan: was.Plan, What: "the plan has other nodes", Row: -1}
	}
	differ := make([]*Difference, len(was.Nodes))
	failed := was.Failure != nil || is.Failure != nil
	for i := range was.Nodes {
		a, b := &was.Nodes[i], &is.Nodes[i]
		if differ[i] = compareNodes(a, b, failed); differ[i] == nil && a.Outside {
			differ[i] = &Difference{What: "the task waits for functions of its own", Row: -1}
		}
		if d := differ[i]; d != nil {
			d.Plan, d.Node, d.Op, d.Foreign = was.Plan, a.ID, a.Op, a.Outside || b.Outside || !own(a.Op)
		}
	}
	for i, d := range differ {
		if d != nil && !slices.ContainsFunc(before(i), func(n int) bool { return differ[n] != nil }) {
			return d
		}
	}
	return nil
}

// compareNodes compares what became of a node. Of runs that failed, only nodes that ended in both count.
func compareNodes(was, is *record.Node, failed bool) *Difference {
	switch {
	case failed && (was.End == record.NotRun || is.End == record.NotRun || is.End == record.Stopped):
		return nil
	case was.End != is.End:
		return &Difference{What: "how it ended", Was: endOf(was), Is: endOf(is), Row: -1}
	case was.End == record.Failed && was.Failure.Class != is.Failure.Class:
		return &Difference{What: "its error", Was: textOf(was.Failure), Is: textOf(is.Failure), Row: -1}
	case was.End == record.Ended && was.Asked != is.Asked:
		return &Difference{What: "it asks Redis or a service for something else", Row: -1}
	}
	return compareRows(&was.Rows, &is.Rows)
}

func endOf(n *record.Node) string {
	switch n.End {
	case record.Ended:
		return "with rows"
	case record.Failed, record.Stopped:
		return "with the error " + textOf(n.Failure)
	}
	return "it did not run"
}

// compareRows compares digests, and finds the first value that differs where both have values.
func compareRows(was, is *record.Rows) *Difference {
	if was.N != is.N {
		return &Difference{What: "how many rows there are", Was: fmt.Sprint(was.N), Is: fmt.Sprint(is.N), Row: -1}
	}
	if was.IDs.Digest != is.IDs.Digest {
		return compareColumns(&was.IDs, &is.IDs, was.N, "the ids of its rows, or their order")
	}
	names := func(r *record.Rows) (names []string) {
		for _, c := range r.Columns {
			names = append(names, c.Name)
		}
		return names
	}
	if a, b := names(was), names(is); !slices.Equal(a, b) {
		return &Difference{What: "which columns there are", Was: strings.Join(a, ", "), Is: strings.Join(b, ", "), Row: -1}
	}
	for i := range was.Columns {
		if was.Columns[i].Digest != is.Columns[i].Digest {
			return compareColumns(&was.Columns[i], &is.Columns[i], was.N, "its values")
		}
	}
	return nil
}

// compareColumns says where two columns differ, whose digests do.
func compareColumns(was, is *record.Column, n int, what string) *Difference {
	d := &Difference{What: what, Column: was.Name, Row: -1}
	a, errA := Values(was, n)
	b, errB := Values(is, n)
	if errA != nil || errB != nil {
		return d
	}
	for row := range n {
		if a[row] != b[row] {
			d.Row, d.Was, d.Is = row, a[row], b[row]
			return d
		}
	}
	d.What = "the type of its values"
	return d
}

// Values returns the values of a column as JSON, a null as null. The error says that the record has only the digest.
func Values(c *record.Column, n int) ([]string, error) {
	if c.Values == nil {
		return nil, fmt.Errorf("the record has the digest of column %s alone", c.Name)
	}
	column, err := decode(c.Values, n, 0)
	if err != nil {
		return nil, err
	}
	all := make([]string, n)
	for row := range all {
		text, ok := column.AppendJSON(nil, row)
		if all[row] = string(text); !ok {
			all[row] = "null"
		}
	}
	return all, nil
}
