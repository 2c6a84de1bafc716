package editor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// unseen is a task as a program would register it, with a parameter of each type. No line of
// TypeScript knows it.
func unseen() task.Spec {
	from, to := int64(1), int64(9)
	return task.Spec{
		Op: "shop::rank_by_taste", Doc: "Ranks */ by taste.", Inputs: 1, Output: task.PassThrough,
		Params: []plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Required: true},
			{Name: "how_many", Type: plan.Int, Required: true, Source: plan.SourceRule{Min: &from, Max: &to, Default: &from}},
			{Name: "column", Type: plan.Int, IsKey: true},
			{Name: "strict", Type: plan.Bool},
			{Name: "mode", Type: plan.String, Source: plan.SourceRule{OneOf: []string{"soft", "hard"}}},
			{Name: "note", Type: plan.String, Required: true},
			{Name: "boost_id", Type: plan.ExprID, Required: true},
			{Name: "unless_id", Type: plan.PredID},
			{Name: "other", Type: plan.NodeRef},
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil },
	}
}

// unseenMerge is another such task. It has several inputs, lists and objects.
func unseenMerge() task.Spec {
	least, most := 0.0, 1.0
	return task.Spec{
		Op: "shop::mix", Doc: "Mixes.", Inputs: 1, InputsMax: 4, Output: task.Merge,
		Params: []plan.ParamSchema{
			{Name: "share", Type: plan.Float, List: true, Source: plan.SourceRule{FloatMin: &least, FloatMax: &most}},
			{Name: "to", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true}},
			{Name: "columns", Type: plan.Key, List: true},
			{Name: "how", Type: plan.Enum, StrValue: "fair", Source: plan.SourceRule{OneOf: []string{"fair", "first"}}},
			{Name: "seen", Type: plan.Template},
			{Name: "service", Type: plan.Endpoint, EndpointKind: registry.HTTP},
			{Name: "rules", Type: plan.Object, List: true, Fields: []plan.ParamSchema{
				{Name: "pred_id", Type: plan.PredID, Required: true},
				{Name: "expr_id", Type: plan.ExprID, Required: true, Source: plan.SourceRule{Alias: "then"}},
				{Name: "only", Type: plan.Key, List: true},
			}},
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil },
	}
}

// everything is a source of rows with a column of each key.
func everything() task.Spec {
	return task.Spec{
		Op: "shop::everything", Doc: "Rows with all columns.", Output: task.Source,
		Writes: func(_ *plan.Node, reg *registry.Registry) []registry.KeyID {
			var keys []registry.KeyID
			for _, key := range reg.Keys() {
				keys = append(keys, key.ID)
			}
			return keys
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil },
	}
}

// catalogAndRegistry returns the tasks and the keys of the tests: the built-in ones and some of
// each further type.
func catalogAndRegistry(t *testing.T) (*task.Catalog, *registry.Registry) {
	t.Helper()
	reg, err := registry.Load(os.DirFS("../testdata/tables"), "dev")
	require.NoError(t, err)
	tasks, err := task.NewCatalog(append(builtin.Specs(), unseen(), unseenMerge(), everything())...)
	require.NoError(t, err)
	return tasks, reg
}

func language(t *testing.T) *compiler.Language {
	t.Helper()
	return compiler.NewLanguage(catalogAndRegistry(t))
}

// compilers returns the TypeScript compilers to test with. RANKD_TSC lists their paths, in the
// form of PATH.
func compilers(t *testing.T) []string {
	t.Helper()
	list := filepath.SplitList(os.Getenv("RANKD_TSC"))
	required := os.Getenv("RANKD_REQUIRE_TSC") != ""
	if len(list) == 0 && !required {
		t.Skip("needs tsc: RANKD_TSC lists its paths; .ci/test installs it")
	}
	var versions strings.Builder
	for _, tsc := range list {
		version, err := exec.CommandContext(t.Context(), tsc, "--version").Output()
		require.NoError(t, err, tsc)
		versions.Write(version)
	}
	if required {
		assert.Contains(t, versions.String(), "Version 5.9.", "RANKD_TSC lists tsc 5.9")
		assert.Contains(t, versions.String(), "Version 7.", "RANKD_TSC lists tsc 7")
	}
	return list
}

// folder returns a new folder as Init makes it, with the files of some other folders added.
func folder(t *testing.T, from ...string) string {
	t.Helper()
	dir := t.TempDir()
	_, err := initialize(t, dir)
	require.NoError(t, err)
	for _, f := range from {
		require.NoError(t, os.CopyFS(dir, os.DirFS(f)))
	}
	return dir
}

var complaint = regexp.MustCompile(`(?m)^([^(\s]+)\((\d+),\d+\): error`)

// complaints runs tsc in a folder and returns the lines with errors, "file:line".
func complaints(t *testing.T, tsc, dir string) (places map[string]bool, output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tsc, "--noEmit", "--strict", "--pretty", "false", "-p", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.True(t, errors.As(err, new(*exec.ExitError)), "%v", err)
	}
	places = make(map[string]bool)
	for _, match := range complaint.FindAllSubmatch(out, -1) {
		places[string(match[1])+":"+string(match[2])] = true
	}
	assert.Equal(t, err == nil, len(places) == 0, "%s", out)
	return places, string(out)
}

func TestTscAcceptsGoodPlans(t *testing.T) {
	for _, tsc := range compilers(t) {
		places, output := complaints(t, tsc, folder(t, "testdata/good", "../../examples/demo/plans"))
		assert.Empty(t, places, "%s: %s", tsc, output)
	}
}

// The examples have tables of their own. A folder as Init makes it, with such tables, takes their plans, helpers and tests as they are.
func TestTscAcceptsTheExamples(t *testing.T) {
	for _, tsc := range compilers(t) {
		for _, example := range []string{"articles", "feed", "shop"} {
			from := filepath.Join("../../examples", example)
			reg, err := registry.Load(os.DirFS(filepath.Join(from, "registry")), "dev")
			require.NoError(t, err)
			tasks, err := task.NewCatalog(builtin.Specs()...)
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(from, "plans"))))
			require.NoError(t, Init(dir, compiler.NewLanguage(tasks, reg), func(string) {}))
			places, output := complaints(t, tsc, dir)
			assert.Empty(t, places, "%s of %s: %s", tsc, example, output)
		}
	}
}

// Each line with the comment "wrong" gets an error, and no other line does.
func TestTscRefusesBadPlans(t *testing.T) {
	want := make(map[string]bool)
	files, err := filepath.Glob("testdata/bad/*.ts")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := bufio.NewScanner(bytes.NewReader(text))
		for number := 1; lines.Scan(); number++ {
			if strings.Contains(lines.Text(), "// wrong: ") {
				want[filepath.Base(file)+":"+strconv.Itoa(number)] = true
			}
		}
	}
	require.Greater(t, len(want), 50)
	for _, tsc := range compilers(t) {
		got, output := complaints(t, tsc, folder(t, "testdata/bad"))
		assert.Equal(t, want, got, "%s: %s", tsc, output)
	}
}

// The declarations of tasks that only Go knows accept their good use, and refuse each bad one.
func TestTscKnowsTasksOfGo(t *testing.T) {
	const good = `endpoint: EP.redis.redis_default, note: "n", boost: Key.id * 2`
	uses := []struct {
		options string
		wrong   bool
	}{
		{good, false},
		{good + `, howMany: 9, column: Key.title, strict: true, mode: "hard", unless: Key.id > 5, other: v`, false},
		{good + `, trace: "t", timeoutMs: 5, scheduling: { inline: false }`, false},
		{good + `, onError: "partial", optional: true`, false},
		{good + `, timeout: "40%"`, false},
		{good + `, timeout: 40`, true},
		{good + `, onError: v`, false},
		{good + `, onError: "ignore"`, true},
		{good + `, optional: 1`, true},
		{`note: "n", boost: 1`, true},
		{`endpoint: EP.redis.redis_default, note: 5, boost: 1`, true},
		{`endpoint: EP.redis.redis_default, note: "n", boost: "x"`, true},
		{good + `, howMany: "9"`, true},
		{good + `, how_many: 9`, true},
		{good + `, column: 5`, true},
		{good + `, strict: 1`, true},
		{good + `, mode: "medium"`, true},
		{good + `, unless: Key.id`, true},
		{good + `, other: [v]`, true},
	}
	const mix = `to: Key.score`
	mixes := []struct {
		options string
		wrong   bool
	}{
		{mix, false},
		{mix + `, with: [v, v], share: [0.5, 1], columns: [Key.id, Key.title], how: "first", seen: "seen:{user}", service: EP.http.http_api`, false},
		{mix + `, rules: [{ pred: Key.id > 5, expr: Key.score * 2 }, { pred: true, then: 1, only: [Key.country] }]`, false},
		{`to: Key.country`, true},
		{mix + `, with: v`, true},
		{mix + `, share: 0.5`, true},
		{mix + `, share: ["0.5"]`, true},
		{mix + `, columns: ["title"]`, true},
		{mix + `, how: "last"`, true},
		{mix + `, seen: 5`, true},
		{mix + `, service: EP.redis.redis_default`, true},
		{mix + `, rules: [{ pred: Key.id > 5 }]`, true},
		{mix + `, rules: [{ pred: Key.id > 5, expr: 1, then: 2 }]`, true},
		{mix + `, rules: [{ pred: Key.id, expr: 1 }]`, true},
		{mix + `, rules: [{ pred: true, expr: 1, weight: 1 }]`, true},
		{mix + `, rules: { pred: true, expr: 1 }`, true},
	}
	var source strings.Builder
	source.WriteString("import type { CandidateSet } from \"@ranking-dsl/runtime\";\ndeclare const v: CandidateSet;\n")
	want := make(map[string]bool)
	for i, use := range uses {
		fmt.Fprintf(&source, "v.%s({ %s });\n", []string{"rank_by_taste", "rankByTaste"}[i%2], use.options)
		if use.wrong {
			want[fmt.Sprintf("uses.ts:%d", i+3)] = true
		}
	}
	for i, use := range mixes {
		fmt.Fprintf(&source, "v.mix({ %s });\n", use.options)
		if use.wrong {
			want[fmt.Sprintf("uses.ts:%d", len(uses)+i+3)] = true
		}
	}
	for _, tsc := range compilers(t) {
		dir := folder(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "uses.ts"), []byte(source.String()), 0o644))
		got, output := complaints(t, tsc, dir)
		assert.Equal(t, want, got, "%s: %s", tsc, output)
	}
}

func TestDeclarationsAreTheSameEachTime(t *testing.T) {
	first := Declarations(language(t))
	for range 20 {
		require.Equal(t, string(first), string(Declarations(language(t))))
	}
}
