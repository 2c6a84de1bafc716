package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func adviceRegistry(t *testing.T) *registry.Registry {
	keys := "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	for i, name := range []string{"title", "likes", "author", "score"} {
		kind := map[bool]string{true: "string", false: "float"}[i == 0]
		keys += fmt.Sprintf("[[key]]\nid = %d\nname = %q\ntype = %q\nnullable = true\nwritable = true\n", 10+i, name, kind)
	}
	reg, err := registry.Load(fstest.MapFS{
		"keys.toml": {Data: []byte(keys)}, "params.toml": {Data: []byte("")},
		"endpoints.test.toml": {Data: []byte("[[endpoint]]\nid = \"ep_0001\"\nname = \"redis\"\nkind = \"redis\"\nhost = \"127.0.0.1\"\nport = 1\n")},
	}, "test")
	require.NoError(t, err)
	return reg
}

// TestLateLookups has a plan for each reason to look up a column later, and for each reason not
// to. Its nodes are a, b, c, …. Node a has 100 rows.
func TestLateLookups(t *testing.T) {
	endless := task.Spec{Op: "test::endless", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil }}
	ops, err := task.NewCatalog(append(builtin.Specs(), endless)...)
	require.NoError(t, err)
	reg := adviceRegistry(t)
	const source = `"core::candidates", "params": {"endpoint": "ep_0001", "key": "inbox:{user}"}`
	lookup := func(input, more string) string {
		return fmt.Sprintf(`"core::lookup", "inputs": [%q], "params": {"endpoint": "ep_0001", "key": "item:{id}", %s}`, input, more)
	}
	on := func(op, input, params string) string {
		return fmt.Sprintf(`"core::%s", "inputs": [%q], "params": {%s}`, op, input, params)
	}
	take := func(input string, rows int) string { return on("take", input, fmt.Sprintf(`"count": %d`, rows)) }
	score := func(input string) string { return on("vm", input, `"out_key": 13, "expr_id": "likes"`) }
	both, title := `"fields": ["title", "likes"]`, `"fields": ["title"]`
	for name, c := range map[string]struct {
		nodes   []string
		outputs string
		want    []string
	}{
		"some columns": {nodes: []string{source, lookup("a", both), score("b"), take("c", 20)}, want: []string{"b behind d: [title] of 100, 20 kept, -20 fewer"}},
		"all columns":  {nodes: []string{source, lookup("a", title), take("b", 20)}, want: []string{"b behind c: [title] of 100, 20 kept, 80 fewer"}},
		"commands": {nodes: []string{`"core::candidates", "params": {"endpoint": "ep_0001", "command": ["SRANDMEMBER", "all", 50]}`,
			`"core::lookup", "inputs": ["a"], "params": {"endpoint": "ep_0001", "command": ["ZSCORE", "z:{id}", "x"], "value": "title"}`, take("b", 20)}, want: []string{"b behind c: [title] of 50, 20 kept, 30 fewer"}},
		"a command of one key": {nodes: []string{source, `"core::lookup", "inputs": ["a"], "params": {"endpoint": "ep_0001", "command": ["ZSCORE", "z", "x"], "value": "title"}`, take("b", 20)}},
		"rows may go":          {nodes: []string{source, lookup("a", title+`, "missing": "drop"`), take("b", 20)}, want: []string{"b behind c: [title] of 100, 20 kept, 80 fewer, drops"}},
		"behind the fewest":    {nodes: []string{source, lookup("a", title), take("b", 20), take("c", 5)}, want: []string{"b behind d: [title] of 100, 5 kept, 95 fewer"}},
		"behind the first":     {nodes: []string{source, lookup("a", title), take("b", 20), take("c", 50)}, want: []string{"b behind c: [title] of 100, 20 kept, 80 fewer"}},
		"read in between":      {nodes: []string{source, lookup("a", `"fields": ["likes"]`), score("b"), take("c", 20)}},
		"nothing is dropped":   {nodes: []string{source, lookup("a", title), take("b", 100)}},
		"an output":            {nodes: []string{source, lookup("a", title), take("b", 20)}, outputs: `"b", "c"`},
		"another reader":       {nodes: []string{source, lookup("a", title), take("b", 20), on("sort", "b", `"by": 10, "order": "asc"`)}, outputs: `"c", "d"`},
		"rows of others":       {nodes: []string{source, lookup("a", title), source, on("concat", "b", `"rhs": "c"`), take("d", 20)}},
		"its own rows again": {nodes: []string{source, lookup("a", title), on("sort", "b", `"by": 1, "order": "asc"`), on("concat", "c", `"rhs": "b"`), take("d", 20)},
			want: []string{"b behind e: [title] of 100, 20 kept, 80 fewer"}},
		"joined on the way": {nodes: []string{source, lookup("a", title), source, lookup("c", `"fields": ["author"]`),
			on("join", "b", `"right": "d", "columns": ["author"]`), take("e", 20)}, want: []string{"b behind f: [title] of 100, 20 kept, 80 fewer"}},
		"another command reads the key": {nodes: []string{source, lookup("a", title), lookup("b", `"fields": ["likes"]`), score("c"), take("d", 20)},
			want: []string{"b behind e: [title] of 100, 20 kept, -20 fewer"}},
		"one key for all rows": {nodes: []string{source, strings.Replace(lookup("a", title), "{id}", "{user}", 1), take("b", 20)}},
		"a key of a column": {nodes: []string{source, lookup("a", title), strings.Replace(lookup("b", `"fields": ["likes"]`), "{id}", "{title}", 1), take("c", 20)},
			want: []string{"c behind d: [likes] of 100, 20 kept, 80 fewer"}},
		"a key of a column that changes": {nodes: []string{source, lookup("a", title), strings.Replace(lookup("b", `"fields": ["likes"]`), "{id}", "{title}", 1),
			strings.Replace(lookup("c", title), "item", "other", 1), take("d", 20)}, want: []string{"d behind e: [title] of 100, 20 kept, 80 fewer"}},
		"passes on if it fails": {nodes: []string{source, lookup("a", title), take("b", 20) + `, "on_error": "skip"`}},
		"nobody knows the rows": {nodes: []string{`"test::endless", "params": {}`, lookup("a", title), take("b", 20)},
			want: []string{"b behind c: [title] of 9223372036854775807, 20 kept, 9223372036854775807 fewer"}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []string
			for i, n := range c.nodes {
				inputs := ""
				if !strings.Contains(n, `"inputs"`) {
					inputs = `"inputs": [], `
				}
				nodes = append(nodes, fmt.Sprintf(`{"node_id": %q, %s"op": %s}`, string(rune('a'+i)), inputs, n))
			}
			outputs := c.outputs
			if outputs == "" {
				outputs = fmt.Sprintf("%q", string(rune('a'+len(nodes)-1)))
			}
			g, err := plan.Load("p", []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "capabilities_required": ["cap.rankd.on_error.v1"],
				"nodes": [%s], "outputs": [%s], "expr_table": {"likes": {"op": "key_ref", "key_id": 11}}}`, strings.Join(nodes, ","), outputs)), ops, reg)
			require.NoError(t, err)
			var got []string
			for _, late := range g.LateLookups() {
				var columns []string
				for _, key := range late.Columns {
					columns = append(columns, key.Name)
				}
				text := fmt.Sprintf("%s behind %s: %v of %d, %d kept, %d fewer", late.Node.ID, late.After.ID, columns, late.Rows, late.Kept, late.Fewer)
				if late.Drops {
					text += ", drops"
				}
				got = append(got, text)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestShownInputs: an answer has the columns that a lookup has read and that a node has
// computed with, unless the plan chooses its columns.
func TestShownInputs(t *testing.T) {
	ops, reg := builtin.Catalog(), adviceRegistry(t)
	const (
		source = `{"node_id": "a", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}"}}`
		look   = `{"node_id": "b", "op": "core::lookup", "inputs": ["a"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["title", "likes"]}}`
		score  = `{"node_id": "c", "op": "core::vm", "inputs": ["b"], "params": {"out_key": 13, "expr_id": "likes"}}`
		sorted = `{"node_id": "d", "op": "core::sort", "inputs": ["c"], "params": {"by": 13}}`
		again  = `{"node_id": "e", "op": "core::candidates", "inputs": ["c"], "params": {"endpoint": "ep_0001", "key": "similar:{id}"}}`
	)
	for name, c := range map[string]struct {
		nodes   []string
		outputs string
		more    string
		want    []string
	}{
		"computed with":       {[]string{source, look, score, sorted}, `"d"`, ``, []string{"likes"}},
		"nobody computes":     {[]string{source, look}, `"b"`, ``, nil},
		"the plan says":       {[]string{source, look, score}, `"c"`, `"returns": [10, 11], `, nil},
		"they do not go out":  {[]string{source, look, score, again}, `"e"`, ``, nil},
		"one of several ways": {[]string{source, look, score, again}, `"e", "c"`, ``, []string{"likes"}},
		"before it is used":   {[]string{source, look, score}, `"b", "c"`, ``, []string{"likes"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := plan.Load("p", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "p", "capabilities_required": ["cap.rankd.returns.v1"], %s
				"nodes": [%s], "outputs": [%s], "expr_table": {"likes": {"op": "key_ref", "key_id": 11}}}`, c.more, strings.Join(c.nodes, ","), c.outputs), ops, reg)
			require.NoError(t, err)
			var got []string
			for _, key := range g.ShownInputs() {
				got = append(got, key.Name)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestUnread: a column is unread if no node reads it and the plan does not return it.
func TestUnread(t *testing.T) {
	ops, reg := builtin.Catalog(), adviceRegistry(t)
	look := func(more string) string {
		return `{"node_id": "b", "op": "core::lookup", "inputs": ["a"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["title", "likes", "author"]` + more + `}},
			{"node_id": "c", "op": "core::vm", "inputs": ["b"], "params": {"out_key": 13, "expr_id": "likes"}}`
	}
	for name, c := range map[string]struct {
		look, returns string
		want          []string
	}{
		"one":              {look(""), `"returns": [10], `, []string{"author"}},
		"two":              {look(""), `"returns": [13], `, []string{"title", "author"}},
		"all go out":       {look(""), ``, nil},
		"the time of rows": {look(`, "timestamp": "author", "max_age": 5`), `"returns": [10], `, nil},
		"rows may go":      {look(`, "missing": "drop"`), `"returns": [10], `, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := plan.Load("p", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "p", "capabilities_required": ["cap.rankd.returns.v1"], %s
				"nodes": [{"node_id": "a", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}"}}, %s],
				"outputs": ["c"], "expr_table": {"likes": {"op": "key_ref", "key_id": 11}}}`, c.returns, c.look), ops, reg)
			require.NoError(t, err)
			var got []string
			for _, key := range g.Unread(g.Nodes[1]) {
				got = append(got, key.Name)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
