package explain

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
)

// Explanation says why the rows of one answer are where they are. Immutable; any goroutine.
type Explanation struct {
	Rows    []Row     `json:"rows"`
	Missing []Missing `json:"missing,omitempty"` // ids that were asked for and not returned, in the order of the request
	// LeftOut is how many returned rows are not explained, because there are more than RowsMax.
	LeftOut int `json:"left_out,omitempty"`
	// PlanVersion says which plan has ranked the rows; zero: unknown.
	PlanVersion plan.Version `json:"plan_version,omitzero"`
}

// MarshalJSON implements json.Marshaler: one line, without escapes that only HTML needs.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return marshal((*plain)(e))
}

// MarshalJSON implements json.Marshaler.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	if r.Text == "" {
		return marshal(plain(r))
	}
	return marshal(struct {
		ID string `json:"id"`
		plain
	}{r.Text, plain(r)})
}

// MarshalJSON implements json.Marshaler.
func (m Missing) MarshalJSON() ([]byte, error) {
	type plain Missing
	if m.Text == "" {
		return marshal(plain(m))
	}
	return marshal(struct {
		ID string `json:"id"`
		plain
	}{m.Text, plain(m)})
}

// marshal is json.Marshal without escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Row explains one returned row. Immutable; any goroutine.
type Row struct {
	ID      int64    `json:"id"`
	Text    string   `json:"-"`                     // the id of a row whose ids are strings. It is then the "id" in JSON, and ID means nothing
	Output  string   `json:"output"`                // the node that is the output of the plan
	Name    string   `json:"output_name,omitempty"` // that the plan gives the output
	Label   string   `json:"label,omitempty"`       // of that node, the common parameter "trace"
	Rank    int      `json:"rank"`                  // in the output, from 1
	Of      int      `json:"of"`
	Sources []Source `json:"sources"`
	Columns []Column `json:"columns,omitempty"`
	// Steps are the nodes on the way of the row, from the source that made it to the output.
	Steps []Step `json:"steps"`
}

// Source is a node that made the row, and its rank there. Immutable; any goroutine.
type Source struct {
	Node  string `json:"node"`
	Op    string `json:"op"`
	Label string `json:"label,omitempty"` // of the node
	Rank  int    `json:"rank"`            // from 1
	Of    int    `json:"of"`
	// Cached says what the node took from the engine's memory; nil: nothing.
	Cached *Cached `json:"cached,omitempty"`
}

// Cached says that a node took values from the engine's memory instead of reading them. Immutable; any goroutine.
type Cached struct {
	Values int   `json:"values"`
	Age    int64 `json:"age_ms"` // of the oldest
}

// Column is a column of a returned row, with the node that wrote it. Immutable; any goroutine.
type Column struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
	Node  string `json:"node"`
	Op    string `json:"op"`
	Label string `json:"label,omitempty"` // of the node
	// Cached says what the node took from the engine's memory; nil: nothing.
	Cached *Cached `json:"cached,omitempty"`
}

// Step is what one node did to a row. Zero fields are absent. Immutable; any goroutine.
type Step struct {
	Node    string  `json:"node"`
	Op      string  `json:"op"`
	Label   string  `json:"label,omitempty"` // of the node
	Kind    string  `json:"kind"`            // a word of package task, such as "sorted" or "cut"
	Text    string  `json:"text,omitempty"`
	Before  int     `json:"rank_before,omitempty"` // in the input, from 1
	After   int     `json:"rank_after,omitempty"`  // in the result, from 1
	Of      int     `json:"of,omitempty"`          // rows of the result; for a row that was dropped, of the input
	Kept    int     `json:"kept,omitempty"`        // rows of the input that were kept
	Column  string  `json:"column,omitempty"`      // that was written, or sorted by
	Value   *Value  `json:"value,omitempty"`       // of Column
	Tree    *Term   `json:"tree,omitempty"`        // of the expression or predicate that decided
	Because *Term   `json:"because,omitempty"`     // the part of Tree that decided
	Instead []int64 `json:"instead,omitempty"`     // ids of the rows that are kept in its place
	// InsteadTexts are the ids in place of Instead, of rows whose ids are strings.
	InsteadTexts []string `json:"instead_texts,omitempty"`
	Score        *Value   `json:"score,omitempty"`
	Lacks        *Value   `json:"lacks,omitempty"` // by how much the score missed the last row that was kept
	Fired        []Fired  `json:"fired,omitempty"`
	Values       []Named  `json:"values,omitempty"`
	// Joined are the nodes on the way of another row that gave this row columns, except those on its own way.
	Joined []Step `json:"joined,omitempty"`
}

// Fired is a rule that applied to a row. Immutable; any goroutine.
type Fired struct {
	Rule string `json:"rule"`
	Tree *Term  `json:"tree,omitempty"`
}

// Named is a value with a name. Immutable; any goroutine.
type Named struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
	Adds  *Value `json:"adds,omitempty"` // what it adds to the result, if that is a sum
}

// Missing explains an id that was asked for and not returned. Immutable; any goroutine.
type Missing struct {
	ID   int64  `json:"id"`
	Text string `json:"-"` // as it was asked for, unless by an integer. It is then the "id" in JSON, and ID means nothing
	// Kind is NeverACandidate, DidNotRun, or the kind of the Step at which the id was dropped.
	Kind string `json:"kind"`
	// At is what the node did that dropped the id. Nil if no node had it.
	At *Step `json:"at,omitempty"`
	// Steps are the nodes on the way of the row, from its source to the node before At.
	Steps []Step `json:"steps,omitempty"`
	// Also are the other nodes that dropped the id, on other ways through the plan, the nearest to an output first.
	Also []Step `json:"also,omitempty"`
}

// The kinds of a Missing that no task reports.
const (
	// NeverACandidate: no node that leads to an output had the id.
	NeverACandidate = "never_a_candidate"
	// DidNotRun: a node with the id in its input has no result.
	DidNotRun = "did_not_run"
)

// Value is a value of a column or of an expression: nil, bool, int64, float64, string or []string. Immutable; any goroutine.
type Value struct{ Is any }

// MarshalJSON implements json.Marshaler. A float has a fraction or an exponent; an infinity and NaN are strings.
func (v Value) MarshalJSON() ([]byte, error) {
	f, ok := v.Is.(float64)
	if !ok {
		return marshal(v.Is)
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return marshal(strconv.FormatFloat(f, 'g', -1, 64))
	}
	text, err := marshal(f)
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1e21 { // from there on it has an exponent
		text = append(text, ".0"...)
	}
	return text, err
}

// Term is a value and the values that it was computed from. Immutable; any goroutine.
type Term struct {
	Op    string `json:"op"`
	Name  string `json:"name,omitempty"` // of the key, the parameter or the comparison
	Value Value  `json:"value"`
	Terms []Term `json:"terms,omitempty"`
	Fault string `json:"fault,omitempty"`
	// LeftOut is how many terms below this one are omitted, because the tree is too large.
	LeftOut int `json:"left_out,omitempty"`
}

// treeMax bounds the terms that are shown of one tree.
const treeMax = 200

// shown returns a term with at most *room terms of its tree, nil for nil.
func shown(t *expr.Term, room *int) *Term {
	if t == nil {
		return nil
	}
	*room--
	s := &Term{Op: t.Op, Name: t.Name, Value: Value{t.Value}, Fault: t.Fault}
	for i := range t.Terms {
		if *room <= 0 {
			s.LeftOut += len(t.Terms) - i
			break
		}
		s.Terms = append(s.Terms, *shown(&t.Terms[i], room))
	}
	return s
}

// tree returns a tree as it is shown.
func tree(t *expr.Term) *Term {
	room := treeMax
	return shown(t, &room)
}
