package plantest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/task"
)

// fileRun is the host of one file with tests. One goroutine, except for functions of services.
type fileRun struct {
	config    *Config
	world     *world
	file      *File
	snapshots *snapshots
	data      []*dataset
	begun     time.Time // of the test
	runs      bool      // a test does
}

// answer answers a call of the tests: it is a compiler.TestHost.
func (f *fileRun) answer(ctx context.Context, call *compiler.TestCall) (any, error) {
	switch call.Name {
	case compiler.TestBegins:
		return f.begin(call.Arg)
	case compiler.TestEnds:
		test := f.test()
		f.runs = false
		test.Elapsed = time.Since(f.begun)
		if err := json.Unmarshal(call.Arg, &test.Failure); err != nil || test.Failure == nil {
			return nil, err
		}
		test.Failure.File = filepath.Join(f.config.Folder, filepath.FromSlash(test.Failure.File))
		return nil, nil
	case compiler.TestData:
		d := new(dataset)
		if err := json.Unmarshal(call.Arg, d); err != nil {
			return nil, err
		}
		f.data = append(f.data, d)
		return len(f.data) - 1, nil
	case compiler.TestRank, compiler.TestExplain, compiler.TestNodes:
		var a asked
		if err := json.Unmarshal(call.Arg, &a); err != nil {
			return nil, err
		}
		switch call.Name {
		case compiler.TestExplain:
			return f.explain(ctx, &a, call)
		case compiler.TestNodes:
			return f.nodes(ctx, &a, call)
		}
		return f.rank(ctx, &a, call)
	case compiler.TestSnapshot:
		var s struct {
			Number int             `json:"number"`
			Value  json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(call.Arg, &s); err != nil {
			return nil, err
		}
		return f.snapshots.compare(f.test().Name, s.Number, s.Value, f.config.Update)
	case compiler.TestEndpoints:
		return f.world.endpoints(), nil
	case compiler.TestLog:
		var line string
		err := json.Unmarshal(call.Arg, &line)
		if len(f.file.Tests) > 0 {
			f.test().Log = append(f.test().Log, line)
		}
		return nil, err
	default:
		return nil, fmt.Errorf("unknown call %s", call.Name)
	}
}

// test returns the test that runs.
func (f *fileRun) test() *Result { return &f.file.Tests[len(f.file.Tests)-1] }

// begin notes a test, and reports whether it runs.
func (f *fileRun) begin(arg []byte) (wanted bool, err error) {
	var r Result
	if err := json.Unmarshal(arg, &r); err != nil {
		return false, err
	}
	if f.config.Run != nil && !f.config.Run.MatchString(r.Name) {
		return false, nil
	}
	f.file.Tests = append(f.file.Tests, r)
	f.begun, f.runs = time.Now(), true
	return true, nil
}

// rank returns the answer to a request as a client gets it, even if the request fails.
func (f *fileRun) rank(ctx context.Context, a *asked, call *compiler.TestCall) (any, error) {
	answer, err := f.world.rank(ctx, a, f.data[a.Data], call.Serve)
	var failed *rankd.Error
	switch {
	case errors.As(err, &failed):
		return json.RawMessage(failed.AppendJSON(nil)), nil
	case err != nil:
		return nil, err
	}
	return json.RawMessage(answer.AppendJSON(nil, rankd.FormatFlat)), nil
}

// nodeRows says how many rows a node gave. Immutable.
type nodeRows struct {
	Name string `json:"name"` // its label, or else its id
	Op   string `json:"op"`
	Rows int    `json:"rows"`
}

// nodes returns how many rows each node gave, in the order of the plan. To find that out, it
// runs the request once more.
func (f *fileRun) nodes(ctx context.Context, a *asked, call *compiler.TestCall) (any, error) {
	a.Request["trace"] = json.RawMessage("true")
	answer, err := f.world.rank(ctx, a, f.data[a.Data], call.Serve)
	all := []nodeRows{}
	if err == nil {
		for _, n := range answer.Trace().Nodes {
			all = append(all, nodeRows{cmp.Or(n.Label, n.ID), n.Op, n.RowsOut})
		}
	}
	return all, err
}

// explain returns why rows of an answer are where they are. To find that out, it runs the
// request once more. It names the node at which the second row got ahead of the first, if a
// pair is in the wrong order.
func (f *fileRun) explain(ctx context.Context, a *asked, call *compiler.TestCall) (any, error) {
	a.Request["explain"], _ = json.Marshal(a.IDs) // It was JSON before.
	answer, err := f.world.rank(ctx, a, f.data[a.Data], call.Serve)
	if err != nil {
		return "  not explained: " + err.Error(), nil
	}
	why := answer.Explanation()
	if a.Shelf != "" { // Rows of other shelves matter only for ids that are missing on this one.
		elsewhere := func(r explain.Row) bool {
			return r.Name != a.Shelf && slices.ContainsFunc(why.Rows, func(here explain.Row) bool { return here.Name == a.Shelf && here.ID == r.ID && here.Text == r.Text })
		}
		why.Rows = slices.DeleteFunc(slices.Clone(why.Rows), elsewhere)
	}
	var b strings.Builder
	if len(a.Pair) == 2 {
		b.WriteString(apart(rowOf(why, a.Pair[0]), rowOf(why, a.Pair[1])))
	}
	for i := range why.Rows { // The steps are valid only in this run. They have the values that decided.
		row := &why.Rows[i]
		row.Columns = slices.DeleteFunc(row.Columns, func(c explain.Column) bool { return c.Name != a.Column })
	}
	_ = explain.Text(&b, why) // A builder accepts everything.
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n"), nil
}

// rowOf returns the first row with that id, a JSON value; nil: there is none.
func rowOf(why *explain.Explanation, id json.RawMessage) *explain.Row {
	for i := range why.Rows {
		row := &why.Rows[i]
		text, _ := json.Marshal(row.Text) // of valid UTF-8
		if row.Text != "" && bytes.Equal(text, id) || row.Text == "" && strconv.FormatInt(row.ID, 10) == string(id) {
			return row
		}
	}
	return nil
}

// apart says at which node the row late got ahead of the row early, which should come first. It
// names the last sort that left late ahead, if late was ahead from the start. It returns
// nothing if the rows have no node in common.
func apart(early, late *explain.Row) string {
	if early == nil || late == nil {
		return ""
	}
	said, wrong, turned := "", false, false
	for i := range early.Steps {
		a := &early.Steps[i]
		k := slices.IndexFunc(late.Steps, func(s explain.Step) bool { return s.Node == a.Node })
		if k < 0 {
			continue
		}
		b := &late.Steps[k]
		if was := wrong; b.After >= a.After {
			wrong, turned = false, true
		} else if wrong = true; !was || !turned && a.Kind == task.Sorted {
			said = fmt.Sprintf("first apart at %s (%s): there %s has rank %d and %s rank %d of %d\n", cmp.Or(a.Label, a.Node), a.Op,
				idText(late), b.After, idText(early), a.After, a.Of)
		}
	}
	return said
}

func idText(r *explain.Row) string { return cmp.Or(r.Text, strconv.FormatInt(r.ID, 10)) }
