package reference

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// TestExamplesAreCurrent compiles and runs the example of each task, on all engines. It
// compares artifact and answer with examples.json. With -update it writes them.
func TestExamplesAreCurrent(t *testing.T) {
	reg, err := registry.Load(tables, "test")
	require.NoError(t, err)
	models, err := gbdt.ReadFolder(models, "models")
	require.NoError(t, err)
	catalog := builtin.CatalogWith(models)
	c, err := compiler.New(compiler.Config{Tasks: catalog, Registry: reg})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	demo, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer demo.Close()

	kept := Examples()
	current := make(map[string]Example)
	for _, spec := range catalog.Specs() {
		t.Run(spec.Op, func(t *testing.T) {
			given := &spec.Reference.Example
			e := Example{
				TypeScript: exampleSource(spec), Items: itemsSource(spec), Redis: given.Redis, Service: given.Service, Request: json.RawMessage(cmp.Or(given.Request, `{"user_id": 1}`)),
			}
			e.Artifact = compileExample(t, c, spec, e.TypeScript)
			plans := fstest.MapFS{}
			if e.Items != "" {
				plans[itemsPlan+plan.ArtifactSuffix] = &fstest.MapFile{Data: compiled(t, c, itemsPlan, e.Items)}
			}
			addr := demo.Addr()
			if e.Redis != nil {
				addr = filledRedis(t, e.Redis)
			}
			for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
				answer := rank(t, model, addr, plans, &e)
				if e.Answer != nil {
					assert.Equal(t, string(e.Answer), string(answer), model)
				}
				e.Answer = answer
			}
			current[spec.Op] = e
			if !*update {
				had, ok := kept[spec.Op]
				require.True(t, ok, "examples.json lacks it: go test ./internal/reference -update")
				assert.Equal(t, e.TypeScript, had.TypeScript, "stale: go test ./internal/reference -update")
				assert.Equal(t, e.Items, had.Items, "stale: go test ./internal/reference -update")
				assert.Equal(t, e.Redis, had.Redis, "stale: go test ./internal/reference -update")
				assert.Equal(t, e.Service, had.Service, "stale: go test ./internal/reference -update")
				assert.JSONEq(t, string(e.Request), string(had.Request), "stale: go test ./internal/reference -update")
				assert.JSONEq(t, string(e.Artifact), string(had.Artifact), "stale: go test ./internal/reference -update")
				assert.JSONEq(t, string(e.Answer), string(had.Answer), "stale: go test ./internal/reference -update")
			}
		})
	}
	switch {
	case t.Failed():
	case *update:
		text, err := json.MarshalIndent(current, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("examples.json", append(text, '\n'), 0o644))
		examplesJSON = text
	default:
		assert.Len(t, kept, len(current), "examples.json has a task that is gone: go test ./internal/reference -update")
	}
}

// compileExample returns the artifact of an example without references to its source.
func compileExample(t *testing.T, c *compiler.Compiler, spec *task.Spec, source string) json.RawMessage {
	t.Helper()
	var artifact map[string]any
	numbers := json.NewDecoder(bytes.NewReader(compiled(t, c, planName(spec.Op), source)))
	numbers.UseNumber()
	require.NoError(t, numbers.Decode(&artifact))
	delete(artifact, "built_by")
	for name, value := range artifact {
		switch v := value.(type) {
		case map[string]any:
			if len(v) == 0 {
				delete(artifact, name)
			}
		case []any:
			if len(v) == 0 && name != "outputs" {
				delete(artifact, name)
			}
		}
	}
	uses := false
	for _, n := range artifact["nodes"].([]any) {
		node := n.(map[string]any)
		delete(node, "source_span")
		delete(node, "expr_span")
		uses = uses || node["op"] == spec.Op
	}
	assert.True(t, uses, "the example does not use the task")
	text, err := json.Marshal(artifact)
	require.NoError(t, err)
	return text
}

// compiled returns the artifact of a plan, which compiles without a warning.
func compiled(t *testing.T, c *compiler.Compiler, name, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	file := name + compiler.Extension
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(source), 0o644))
	results, err := c.Compile(t.Context(), compiler.Source{Folder: dir, File: file})
	require.NoError(t, err)
	if failed := results[0].Errors; len(failed) > 0 {
		t.Fatal((&compiler.Failure{Diagnostics: failed}).Text())
	}
	assert.Empty(t, results[0].Warnings)
	return results[0].Artifact
}

// rank runs an example and returns its candidates.
func rank(t *testing.T, model rankd.Model, redis string, plans fs.FS, e *Example) json.RawMessage {
	t.Helper()
	engine, err := rankd.Open(rankd.Options{
		Redis: redis, Env: "test", Registry: tablesWith(t, e.Service), Models: models, Plans: plans, PlanFile: "example.plan.json", PlanText: e.Artifact, Model: model,
	})
	require.NoError(t, err)
	defer engine.Close()
	request, err := engine.ParseRequest(e.Request)
	require.NoError(t, err)
	answer, err := engine.Rank(t.Context(), request)
	require.NoError(t, err)
	var a struct{ Candidates json.RawMessage }
	require.NoError(t, json.Unmarshal(answer.AppendJSON(nil, rankd.FormatFlat), &a))
	return a.Candidates
}

// tablesWith returns the registry of the examples. The service at its http endpoint answers
// with the given text.
func tablesWith(t *testing.T, answer string) fs.FS {
	if answer == "" {
		return tables
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, tables))
	file := filepath.Join(dir, "endpoints.test.toml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(service.Listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("8080"), []byte(port), 1), 0o644))
	return os.DirFS(dir)
}

// filledRedis starts a Redis, sends it these commands, and returns its address.
func filledRedis(t *testing.T, commands []string) string {
	t.Helper()
	server := miniredis.RunT(t)
	require.NoError(t, devredis.WithClient(context.Background(), server.Addr(), func(client *blocking.Client) error {
		var b resp.Batch
		for _, command := range commands {
			b.Cmd(words(command)...)
		}
		return client.Do(&b, 0, func(replies resp.Replies) error {
			for i, reply := range replies.All() {
				assert.NoError(t, reply.Err(), commands[i])
			}
			return nil
		})
	}))
	return server.Addr()
}

// words splits a command at blanks outside single quotes.
func words(command string) (all []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// TestTablesAreTheBuiltInOnes: the registry of the examples has all that the built-in one has.
func TestTablesAreTheBuiltInOnes(t *testing.T) {
	ours, err := registry.Load(tables, "test")
	require.NoError(t, err)
	builtIn, err := registry.Default("test")
	require.NoError(t, err)
	for _, key := range builtIn.Keys() {
		got, ok := ours.Key(key.ID)
		require.True(t, ok, key.Name)
		assert.Equal(t, key, got)
	}
	for _, param := range builtIn.Params() {
		got, ok := ours.Param(param.ID)
		require.True(t, ok, param.Name)
		assert.Equal(t, param, got)
	}
	names, err := fs.Glob(tables, "*.toml")
	require.NoError(t, err)
	assert.NotEmpty(t, names)
}
