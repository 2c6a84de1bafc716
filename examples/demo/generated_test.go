package demo_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// emulator runs this program where the machine is of another processor, and its children, too.
var emulator = flag.String("emulator", "", "a program, such as qemu-aarch64-static, that starts the compiler's child processes")

func TestMain(m *testing.M) {
	compiler.Main()
	os.Exit(m.Run())
}

// drawn has the example plans as people wrote them, with the node ids of the drawings.
var drawn = os.DirFS("testdata/drawn")

// TestPlansAreUpToDate compiles each source in the folder plans and compares it with its
// artifact. After a change of a source or of the compiler, run go run ../../cmd/rankd compile plans -o artifacts.
// The artifacts have the same bytes on every processor.
func TestPlansAreUpToDate(t *testing.T) {
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	config := compiler.Config{Tasks: builtin.Catalog(), Registry: reg}
	if *emulator != "" {
		self, err := os.Executable()
		require.NoError(t, err)
		config.Command, config.Timeout = []string{*emulator, self}, time.Minute
	}
	c, err := compiler.New(config)
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	sources, err := compiler.Folder("plans")
	require.NoError(t, err)
	results, err := c.Compile(t.Context(), sources...)
	require.NoError(t, err)
	var compiled []string
	for _, r := range results {
		require.Empty(t, r.Errors)
		assert.Empty(t, r.Warnings)
		file := r.Plan + ".plan.json"
		compiled = append(compiled, file)
		artifact, err := fs.ReadFile(demo.Plans(), file)
		require.NoError(t, err)
		assert.Equal(t, string(r.Artifact), string(artifact), "%s is stale: (cd examples/demo; go run ../../cmd/rankd compile plans -o artifacts)", file)
	}
	files, err := fs.Glob(demo.Plans(), "*")
	require.NoError(t, err)
	assert.ElementsMatch(t, compiled, files, "each artifact has a source")
}

// TestPlansAsDrawn: the compiled plans equal those that people wrote, except for ids and the
// order of keys and nodes.
func TestPlansAsDrawn(t *testing.T) {
	files, err := fs.Glob(drawn, "*")
	require.NoError(t, err)
	require.Len(t, files, 10)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			want, got := outline(t, drawn, file), outline(t, demo.Plans(), file)
			assert.Equal(t, want.outputs, got.outputs)
			assert.ElementsMatch(t, want.nodes, got.nodes)
		})
	}
}

// plain is a plan without ids. Each node is written as its op and parameters. Its expression,
// its inputs and the nodes that it refers to stand in place of their ids.
type plain struct {
	outputs []string // in order
	nodes   []string // in any order
}

func outline(t *testing.T, folder fs.FS, file string) plain {
	text, err := fs.ReadFile(folder, file)
	require.NoError(t, err)
	type node struct {
		ID     string   `json:"node_id"`
		Op     string   `json:"op"`
		Inputs []string `json:"inputs"`
		Params object   `json:"params"`
	}
	var p struct {
		Name    string            `json:"plan_name"`
		Nodes   []node            `json:"nodes"`
		Outputs []string          `json:"outputs"`
		Exprs   map[string]object `json:"expr_table"`
		Preds   map[string]object `json:"pred_table"`
	}
	require.NoError(t, json.Unmarshal(text, &p))
	require.Equal(t, p.Name+".plan.json", file)
	tree := func(table map[string]object, id any) any {
		entry := table[id.(string)]
		require.NotNil(t, entry)
		delete(entry, "source_span")
		return entry
	}
	var write func(id string) string
	write = func(id string) string {
		i := slices.IndexFunc(p.Nodes, func(n node) bool { return n.ID == id })
		require.GreaterOrEqual(t, i, 0)
		n, params := p.Nodes[i], object{}
		for name, value := range n.Params {
			switch name {
			case "expr_id":
				value = tree(p.Exprs, value)
			case "pred_id":
				value = tree(p.Preds, value)
			case "rhs":
				value = write(value.(string))
			}
			if value != nil { // null is the same as absent
				params[name] = value
			}
		}
		inputs := []string{}
		for _, input := range n.Inputs {
			inputs = append(inputs, write(input))
		}
		written, err := json.Marshal([]any{n.Op, params, inputs}) // keys sorted
		require.NoError(t, err)
		return string(written)
	}
	var out plain
	for _, n := range p.Nodes {
		out.nodes = append(out.nodes, write(n.ID))
	}
	for _, id := range p.Outputs {
		out.outputs = append(out.outputs, write(id))
	}
	return out
}
