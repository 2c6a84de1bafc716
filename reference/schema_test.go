package reference

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// schemaOf compiles the schema for a registry.
func schemaOf(t *testing.T, tables fs.FS) *jsonschema.Schema {
	t.Helper()
	reg, err := registry.Load(tables, "dev")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema(builtin.Catalog(), reg)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("plan.schema.json", doc))
	s, err := c.Compile("plan.schema.json")
	require.NoError(t, err)
	return s
}

// refused returns why the schema refuses an artifact, or nil if it does not.
func refused(t *testing.T, s *jsonschema.Schema, artifact []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(artifact))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// TestEveryArtifactMatchesTheSchema checks the artifacts of this repository and the examples of
// the reference.
func TestEveryArtifactMatchesTheSchema(t *testing.T) {
	builtIn, ours := schemaOf(t, registry.DefaultTables()), schemaOf(t, Tables())
	seen := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".."):
			return fs.SkipDir
		case !strings.HasSuffix(path, plan.ArtifactSuffix):
			return nil
		}
		seen++
		schema := builtIn
		if folder := filepath.Join(filepath.Dir(path), "../registry"); exists(filepath.Join(folder, "keys.toml")) && filepath.Dir(folder) != ".." {
			schema = schemaOf(t, os.DirFS(folder))
		}
		artifact, err := os.ReadFile(path)
		require.NoError(t, err)
		if strings.Contains(string(artifact), `"shop::`) {
			return nil // the tasks of a program, which the schema does not know
		}
		assert.NoError(t, refused(t, schema, artifact), path)
		return nil
	}))
	assert.GreaterOrEqual(t, seen, 10)
	for op, e := range Examples() {
		assert.NoError(t, refused(t, ours, e.Artifact), op)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// beyondTheSchema lists what a JSON Schema cannot say: references, uniqueness, order, cycles,
// and the forms of numbers. They are the cases with plan_error that the schema accepts.
var beyondTheSchema = []string{
	"cycle_rhs_self", "cycle_through_rhs", "ext_not_declared", "input_unknown_node",
	"json_number_overflow", "outputs_unknown_node", "param_int_out_of_range", "pred_regex_key_float", "ref_expr_table_absent",
	"ref_pred_table_absent", "ref_rhs_unknown", "schema_version_float",
}

// TestConformancePlansMatchTheSchema: the schema accepts each plan that the engine loads and
// runs, and refuses the others.
func TestConformancePlansMatchTheSchema(t *testing.T) {
	schema := schemaOf(t, registry.DefaultTables())
	reg, err := registry.Default("test")
	require.NoError(t, err)
	files, err := filepath.Glob("../internal/conformance/cases/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 300)
	var taken []string // plans that do not load
	for _, file := range files {
		var c struct {
			Kind string
			Plan json.RawMessage
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &c))
		artifact := []byte(c.Plan)
		var verbatim string
		if json.Unmarshal(c.Plan, &verbatim) == nil {
			artifact = []byte(verbatim)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		_, loads := plan.Load(name, artifact, builtin.Catalog(), reg)
		err = refused(t, schema, artifact)
		switch {
		case loads == nil && (c.Kind == "ok" || c.Kind == "request_error"):
			assert.NoError(t, err, name)
		case c.Kind == "plan_error" && err == nil:
			taken = append(taken, strings.TrimPrefix(name, "plan_error__"))
		case loads == nil && err != nil:
			t.Log("loads, but fails each request:", name)
		}
	}
	slices.Sort(taken)
	assert.Equal(t, beyondTheSchema, taken)
}

// The test has what a plan with the capability of on_error may say.
func TestSchemaOfNodesThatFail(t *testing.T) {
	schema := schemaOf(t, registry.DefaultTables())
	for _, c := range []struct {
		node  string
		takes bool
	}{
		{`"on_error": "empty"`, true},
		{`"on_error": {"fallback": "b"}, "optional": true`, true},
		{`"on_error": "partial"`, false}, // fixed_source does not leave rows out
		{`"on_error": "ignore"`, false},
		{`"on_error": {"fallback": 5}`, false},
		{`"optional": "yes"`, false},
	} {
		err := refused(t, schema, []byte(`{"schema_version": 1, "plan_name": "p", "capabilities_required": ["cap.rankd.on_error.v1"], "outputs": ["a"],
			"nodes": [{"node_id": "a", "op": "fixed_source", "inputs": [], `+c.node+`}]}`))
		assert.Equal(t, c.takes, err == nil, "%s: %v", c.node, err)
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema := schemaOf(t, registry.DefaultTables())
	const good = `{"schema_version": 1, "plan_name": "p", "nodes": [
		{"node_id": "a", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "b", "op": "core::sort", "inputs": ["a"], "params": {"by": 1, "order": "desc"}, "scheduling": {"inline": true}, "timeout_ms": 5}],
		"outputs": ["b"]}`
	require.NoError(t, refused(t, schema, []byte(good)))
	for _, c := range []struct{ name, old, new, at string }{
		{"another version", `"schema_version": 1`, `"schema_version": 2`, "/schema_version"},
		{"no outputs", `"outputs": ["b"]`, `"output": ["b"]`, "outputs"},
		{"an unknown op", `core::sort`, `core::srot`, "/nodes/1/op"},
		{"an unknown parameter", `"order"`, `"ordre"`, "/nodes/1/params"},
		{"a missing parameter", `"by": 1, `, ``, "/nodes/1/params"},
		{"a null for a required one", `"by": 1`, `"by": null`, "/nodes/1/params/by"},
		{"an unregistered key", `"by": 1`, `"by": 77`, "/nodes/1/params/by"},
		{"a word out of the list", `"desc"`, `"down"`, "/nodes/1/params/order"},
		{"a number below the range", `"row_count": 3`, `"row_count": -1`, "/nodes/0/params/row_count"},
		{"a fraction", `"row_count": 3`, `"row_count": 1.5`, "/nodes/0/params/row_count"},
		{"no input", `["a"]`, `[]`, "/nodes/1/inputs"},
		{"an input of a source", `"inputs": []`, `"inputs": ["b"]`, "/nodes/0/inputs"},
		{"an unknown hint", `"inline"`, `"online"`, "/nodes/1/scheduling"},
		{"a timeout of zero", `"timeout_ms": 5`, `"timeout_ms": 0`, "/nodes/1/timeout_ms"},
		{"params of a required one missing", `, "params": {"by": 1, "order": "desc"}`, ``, "/nodes/1"},
		{"an unknown capability", `"outputs"`, `"capabilities_required": ["cap.none"], "outputs"`, "/capabilities_required/0"},
		{"on_error without the capability", `"timeout_ms": 5`, `"on_error": "empty"`, "/nodes/1/on_error"},
		{"a typed operator without the capability", `"outputs"`, `"expr_table": {"e": {"op": "now"}}, "outputs"`, "/expr_table/e/op"},
		{"an operand missing", `"outputs"`, `"expr_table": {"e": {"op": "neg"}}, "outputs"`, "/expr_table/e"},
		{"a list of both kinds", `"outputs"`, `"pred_table": {"p": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1}, "list": [1, "a"]}}, "outputs"`, "/pred_table/p/list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, good, c.old)
			err := refused(t, schema, []byte(strings.Replace(good, c.old, c.new, 1)))
			assert.ErrorContains(t, err, c.at)
		})
	}
}
