package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// reranker is the dialect of models that score a document for a query. Immutable; any goroutine.
type reranker struct {
	*registry.Rerank
	node            *remoteNode
	query, document []plan.TemplatePart
}

// newReranker reads the templates of an endpoint.
func newReranker(r *remoteNode, reg *registry.Registry) (dialect, error) {
	ep := r.node.Endpoint
	d := &reranker{Rerank: &ep.Service.Rerank, node: r}
	for _, t := range [...]struct {
		name, text string
		columns    bool
		into       *[]plan.TemplatePart
	}{{"query", d.Query, false, &d.query}, {"document", d.Document, true, &d.document}} {
		parsed, err := plan.ParseKeyTemplate(t.text, reg, t.columns)
		if err != nil {
			return nil, plan.ParamErrorf("endpoint", "%s, rerank.%s: %v", ep.Name, t.name, err)
		}
		if !t.columns && parsed.PerRow() {
			return nil, plan.ParamErrorf("endpoint", "%s, rerank.query names a row with {id}; there is one query for all rows", ep.Name)
		}
		*t.into = append(append(append(*t.into, parsed.Before...), parsed.Row...), parsed.After...)
		if t.columns && !parsed.PerRow() {
			return nil, plan.ParamErrorf("endpoint", "%s, rerank.document has no column, so that all documents are equal", ep.Name)
		}
	}
	if len(r.columns) != 1 || r.columns[0].Type != registry.Float {
		return nil, plan.ParamErrorf("columns", "a reranker gives one score: list one column of type float")
	}
	return d, nil
}

func (d *reranker) reads() (keys []registry.KeyID) {
	for _, part := range d.document {
		if part.Column != nil && part.Column.ID != registry.IDKey {
			keys = append(keys, part.Column.ID)
		}
	}
	return keys
}

// most implements dialect. Scores of a model that compares the documents of a call do not compare between calls.
func (d *reranker) most() (int64, string) {
	if d.Pointwise {
		return 0, ""
	}
	return int64(d.Most()), fmt.Sprintf("endpoint %s takes that many in one call (rerank.max_batch), and the scores of several calls do not compare unless rerank.pointwise says so", d.node.node.Endpoint.Name)
}

// A rowScore is the score of a row, as JSON has it.
type rowScore struct {
	value string
	sound bool // it is a number
	null  bool // the row has no document, so that it has no score
	score float64
}

// ask implements dialect. Rows without a document are left out.
func (d *reranker) ask(c *task.Ctx) (answer answerColumns, err error) {
	r := &rerankRun{reranker: d, c: c, ranks: make([]rowScore, c.Inputs[0].Len())}
	for from, to := 0, 0; from == 0 || from < len(r.rows); from = to {
		request := func(dst []byte) ([]byte, error) {
			if from == 0 {
				if err := r.read(); err != nil {
					return nil, err
				}
			}
			to = min(from+d.Most(), len(r.rows))
			return r.appendRequest(dst, r.rows[from:to])
		}
		err := c.Remote(c.Node.Endpoint).Exchange(request, func(body []byte) error {
			err := readRanks(body, r.rows[from:to], r.ranks)
			if err == nil && to == len(r.rows) {
				answer, err = d.columns(r.ranks)
			}
			return err
		})
		if errors.Is(err, errNoDocuments) {
			return d.columns(r.ranks)
		}
		if err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// rerankRun is what one run of a node asks. The exchange uses it, and then the body.
type rerankRun struct {
	*reranker
	c     *task.Ctx
	query []byte
	rows  []int      // that have a document, by their place among the active ones
	text  []byte     // the document of one row, until the next one
	ranks []rowScore // of each active row
}

// Why a reranker is not asked.
var (
	errNoQuery     = errors.New("the query is empty")
	errNoDocuments = errors.New("no row has a document")
)

// read makes the query and the documents. The error is errNoDocuments if there are none.
func (r *rerankRun) read() error {
	query, filled := appendTemplate(nil, r.c, r.reranker.query, -1)
	marks := slices.ContainsFunc(r.reranker.query, func(p plan.TemplatePart) bool { return p.User || p.Param != nil })
	if r.query = query; marks && !filled || len(bytes.TrimSpace(query)) == 0 {
		return task.Invalidf("rerank.query of endpoint %s: %w", r.node.node.Endpoint.Name, errNoQuery)
	}
	for i := range r.ranks {
		if i%remoteBlock == 0 && r.c.Cancelled() {
			return task.ErrCancelled
		}
		r.text, filled = appendTemplate(r.text[:0], r.c, r.document, i)
		switch {
		case !filled:
			r.ranks[i].null = true
		case r.MaxDocumentBytes > 0 && len(r.text) > r.MaxDocumentBytes:
			r.ranks[i].value = fmt.Sprintf("none: its document has %d bytes", len(r.text))
		default:
			r.ranks[i].value = "none: the answer has no result for it"
			r.rows = append(r.rows, i)
		}
	}
	switch most, why := r.most(); {
	case len(r.rows) == 0:
		return errNoDocuments
	case most > 0 && int64(len(r.rows)) > most:
		return task.Invalidf("%d documents are too many: %s", len(r.rows), why)
	}
	return nil
}

// columns makes the column of the scores.
func (d *reranker) columns(ranks []rowScore) (answerColumns, error) {
	answer := d.node.builders(len(ranks))
	b := &answer[0]
	b.read, b.values = true, len(ranks)
	for _, r := range ranks {
		var err error
		switch {
		case r.null:
			err = b.appended(false, true, func() string { return "null" })
		case r.sound:
			err = b.appendValue(r.score, r.value)
		default:
			err = b.appendValue(nil, r.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return answer, answer.check(len(ranks))
}

// appendRequest appends what the service gets about these rows.
func (r *rerankRun) appendRequest(dst []byte, rows []int) ([]byte, error) {
	dst = append(dst, '{')
	if r.Model != "" {
		dst = append(jsondoc.AppendString(append(dst, `"model":`...), r.Model), ',')
	}
	dst = jsondoc.AppendString(append(dst, `"query":`...), r.query)
	list := `,"documents":[`
	if r.Texts {
		list = `,"truncate":true,"texts":[`
	}
	dst = append(dst, list...)
	for i, row := range rows {
		r.text, _ = appendTemplate(r.text[:0], r.c, r.document, row)
		dst = jsondoc.AppendString(jsondoc.AppendComma(dst, i), r.text)
		if most := r.node.node.Endpoint.Service.MaxRequestBytes; len(dst) > most {
			return nil, remote.TooLarge(most)
		}
	}
	return append(dst, "]}"...), nil
}

// appendTemplate appends what a template says of row i; -1 stands for all rows. filled reports whether a column of the row has a value that
// is not blank or, for all rows, whether the user or a parameter has one. What the parts hold is never read as a template.
func appendTemplate(dst []byte, c *task.Ctx, parts []plan.TemplatePart, i int) (_ []byte, filled bool) {
	for _, part := range parts {
		from := len(dst)
		switch {
		case part.User:
			dst = append(dst, c.UserIDText()...)
		case part.Param != nil:
			switch part.Param.Type {
			case registry.Int:
				if v, ok := c.Params.Int(part.Param.ID); ok {
					dst = strconv.AppendInt(dst, v, 10)
				}
			case registry.Bool:
				if v, ok := c.Params.Bool(part.Param.ID); ok {
					dst = strconv.AppendBool(dst, v)
				}
			default:
				v, _ := c.Params.String(part.Param.ID)
				dst = append(dst, v...)
			}
		case part.Column != nil && part.Column.ID == registry.IDKey:
			dst = append(dst, c.IDText(c.Inputs[0].ID(i))...)
		case part.Column != nil:
			row := int(c.Inputs[0].Row(i))
			switch column := c.Inputs[0].Batch.Column(part.Column.ID).(type) {
			case *rowset.StringColumn:
				v, _ := column.Value(row)
				dst = append(dst, v...)
			case *rowset.IntColumn:
				if v, ok := column.Value(row); ok {
					dst = strconv.AppendInt(dst, v, 10)
				}
			}
		default:
			dst = append(dst, part.Text...)
		}
		if counts := part.Column != nil || i < 0 && (part.User || part.Param != nil); counts && !filled {
			filled = len(bytes.TrimSpace(dst[from:])) > 0
		}
	}
	return dst, filled
}

// readRanks reads an answer about these rows: results with relevance_score, or a bare array with score.
func readRanks(body []byte, rows []int, ranks []rowScore) error {
	r := &answerReader{}
	r.Reader = jsondoc.NewLenientReader(body, r)
	seen := make([]bool, len(rows))
	list := func(path, member string) error {
		return r.Array(path, func(i int) error {
			index, value := jsontext.Value(nil), jsontext.Value(nil)
			at := fmt.Sprintf("%s[%d]", path, i)
			err := r.Object(at, func(name string) error {
				if name != "index" && name != member {
					return r.Skip()
				}
				v, err := r.ReadValue()
				if name == "index" {
					index = v.Clone()
				} else {
					value = v.Clone()
				}
				return r.Syntax(err)
			})
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(index))
			switch {
			case err != nil || n < 0 || n >= len(rows):
				return task.Malformedf("%s.index is %s, must be an integer from 0 to %d", at, task.Quote(string(index)), len(rows)-1)
			case seen[n]:
				return task.Malformedf("%s.index is %d, which has come before", at, n)
			case value == nil:
				return task.Malformedf("%s has no %s", at, member)
			}
			seen[n] = true
			score, err := strconv.ParseFloat(string(value), 64)
			ranks[rows[n]] = rowScore{value: string(value), sound: err == nil && value.Kind() == '0', score: score}
			return nil
		})
	}
	var err error
	if r.PeekKind() == '[' {
		err = list("", "score")
	} else {
		found := false
		err = r.Object("", func(name string) error {
			if name != "results" {
				return r.Skip()
			}
			if found {
				return task.Malformedf("results is there twice")
			}
			found = true
			return list("results", "relevance_score")
		})
		if err == nil && !found {
			err = task.Malformedf("results is missing")
		}
	}
	if err == nil && !r.AtEnd() {
		err = task.Malformedf("something follows the JSON document")
	}
	return err
}
