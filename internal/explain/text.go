package explain

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/task"
)

// Text writes an explanation for people: first the missing ids, because they were asked for, then the rows. The error
// comes from w.
func Text(w io.Writer, e *Explanation) error {
	t := &text{}
	for i := range e.Missing {
		t.missing(&e.Missing[i])
	}
	for i := range e.Rows {
		t.row(&e.Rows[i])
	}
	if e.LeftOut > 0 {
		t.line(0, "%d more rows are not explained.", e.LeftOut)
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

// text is a text under construction. One goroutine at a time.
type text struct{ out strings.Builder }

// line writes one line, indented by so many steps.
func (t *text) line(indent int, format string, args ...any) {
	t.out.WriteString(strings.Repeat("   ", indent))
	fmt.Fprintf(&t.out, format, args...)
	t.out.WriteByte('\n')
}

func (t *text) row(r *Row) {
	t.line(0, "%d. id %s, of the %d rows of %s", r.Rank, idOf(r.ID, r.Text), r.Of, errtext.Text(cmp.Or(r.Name, r.Label, r.Output)))
	for i, s := range r.Sources {
		first := "source"
		if i > 0 {
			first = "and"
		}
		t.line(1, "%-8s%s, rank %d of %d%s", first, nodeName(s.Node, s.Label, s.Op), s.Rank, s.Of, s.Cached)
	}
	for _, c := range r.Columns {
		t.line(1, "column  %s = %s, written by %s%s", errtext.Text(c.Name), c.Value, nodeName(c.Node, c.Label, c.Op), c.Cached)
	}
	for i := range r.Steps {
		t.step(1, &r.Steps[i])
	}
	t.line(0, "")
}

func (t *text) missing(m *Missing) {
	switch {
	case m.At == nil:
		t.line(0, "id %s is not in the answer: it never was a candidate", idOf(m.ID, m.Text))
	case m.Kind == DidNotRun:
		t.line(0, "id %s is not in the answer: %s has no result", idOf(m.ID, m.Text), nodeName(m.At.Node, m.At.Label, m.At.Op))
	default:
		t.line(0, "id %s is not in the answer: %s", idOf(m.ID, m.Text), sentence(m.At))
		t.detail(2, m.At)
	}
	for i := range m.Steps {
		if i == 0 {
			t.line(1, "before that:")
		}
		t.step(1, &m.Steps[i])
	}
	for i := range m.Also {
		if i == 0 {
			t.line(1, "it also went elsewhere:")
		}
		t.line(2, "%s", sentence(&m.Also[i]))
	}
	t.line(0, "")
}

// sentence says which node dropped a row, and how.
func sentence(s *Step) string {
	verb := map[string]string{
		task.Filtered: "filtered out by", task.Excluded: "excluded by", task.Deduplicated: "deduplicated by", task.Capped: "capped by",
		task.Cut: "cut by", task.Unmatched: "without a match in", task.MissingData: "dropped for missing data by",
		task.FailedRow: "failed in", task.FailedNode: "gone with the failure of", task.Expanded: "expanded to other rows by", task.Dropped: "dropped by",
	}[s.Kind]
	if verb == "" {
		verb = s.Kind + " by"
	}
	said := verb + " " + nodeName(s.Node, s.Label, s.Op)
	if s.Before > 0 {
		said += fmt.Sprintf(", where it had rank %d of %d", s.Before, s.Of)
	}
	if s.Kept > 0 {
		said += fmt.Sprintf(", and %d were kept", s.Kept)
	}
	if len(s.InsteadTexts) > 0 {
		said += ", in favor of " + shorten(s.InsteadTexts)
	}
	if len(s.Instead) > 0 {
		said += ", in favor of " + ids(s.Instead)
	}
	return said
}

// step writes what a node did to a row that it kept.
func (t *text) step(indent int, s *Step) {
	said := s.Kind
	if s.Column != "" {
		said += " " + errtext.Text(s.Column)
		if s.Value != nil {
			said += " = " + s.Value.String()
		}
	}
	switch {
	case s.Before > 0 && s.Before != s.After:
		said += fmt.Sprintf(", rank %d → %d of %d", s.Before, s.After, s.Of)
	case s.After > 0:
		said += fmt.Sprintf(", rank %d of %d", s.After, s.Of)
	}
	t.line(indent, "· %s: %s", nodeName(s.Node, s.Label, s.Op), said)
	t.detail(indent+1, s)
	for i := range s.Joined {
		if i == 0 {
			t.line(indent+1, "the row that it met:")
		}
		t.step(indent+1, &s.Joined[i])
	}
}

// detail writes everything else that is known about a step.
func (t *text) detail(indent int, s *Step) {
	if s.Text != "" {
		t.line(indent, "%s", errtext.Text(s.Text))
	}
	switch {
	case s.Score != nil && s.Lacks != nil:
		t.line(indent, "%s is %s, and lacks %s", orScore(s.Column), s.Score, s.Lacks)
	case s.Score != nil:
		t.line(indent, "%s is %s", orScore(s.Column), s.Score)
	}
	for _, v := range s.Values {
		if v.Adds != nil {
			t.line(indent, "%s = %s adds %s", errtext.Text(v.Name), v.Value, v.Adds)
			continue
		}
		t.line(indent, "%s = %s", errtext.Text(v.Name), v.Value)
	}
	for _, f := range s.Fired {
		t.line(indent, "rule %s fired", errtext.Text(f.Rule))
		t.tree(indent+1, f.Tree)
	}
	if s.Because != nil {
		t.line(indent, "because:")
		t.tree(indent+1, s.Because)
		return
	}
	t.tree(indent, s.Tree)
}

func orScore(column string) string {
	if column == "" {
		return "its score"
	}
	return errtext.Text(column)
}

// tree writes a term and those below it, one a line.
func (t *text) tree(indent int, term *Term) {
	if term == nil {
		return
	}
	name := term.Op
	if term.Name != "" {
		name = term.Name
		if len(term.Terms) > 0 {
			name = term.Op + " " + term.Name
		}
	}
	switch {
	case term.Fault != "":
		t.line(indent, "%s fails: %s", errtext.Text(name), errtext.Text(term.Fault))
	case term.Op == "const_number" || term.Op == "const_string" || term.Op == "const_null" || term.Op == "const_bool":
		t.line(indent, "%s", term.Value)
	default:
		t.line(indent, "%s = %s", errtext.Text(name), term.Value)
	}
	for i := range term.Terms {
		t.tree(indent+1, &term.Terms[i])
	}
	if term.LeftOut > 0 {
		t.line(indent+1, "… %d more", term.LeftOut)
	}
}

// nodeName returns the node's label, if it has one, then its id and op. String returns the words after the name of a
// node: ", cached, 3.01 s old".
func (c *Cached) String() string {
	switch {
	case c == nil:
		return ""
	case c.Age < 1000:
		return fmt.Sprintf(", cached, %d ms old", c.Age)
	}
	return fmt.Sprintf(", cached, %.3g s old", float64(c.Age)/1000)
}

func nodeName(id, label, op string) string {
	if label != "" {
		return errtext.Text(label) + " (" + errtext.Text(id) + ", " + op + ")"
	}
	return errtext.Text(id) + " (" + op + ")"
}

// idsShown bounds the ids in a sentence.
const idsShown = 10

func ids(all []int64) string {
	var texts []string
	for _, id := range all {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	return shorten(texts)
}

// shorten joins the first idsShown ids.
func shorten(all []string) string {
	texts := make([]string, 0, idsShown+1)
	for _, id := range all[:min(len(all), idsShown)] {
		texts = append(texts, errtext.Text(id))
	}
	if more := len(all) - idsShown; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

// idOf returns an id in text.
func idOf(id int64, text string) string {
	if text != "" {
		return errtext.Text(text)
	}
	return strconv.FormatInt(id, 10)
}

// String returns a value in one short line.
func (v Value) String() string {
	switch is := v.Is.(type) {
	case nil:
		return "null"
	case string:
		return errtext.Quote(is)
	case float64:
		return strconv.FormatFloat(is, 'g', -1, 64)
	default:
		return errtext.Text(fmt.Sprint(is))
	}
}
