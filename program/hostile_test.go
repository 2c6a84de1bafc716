package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shopTables is a small registry of a user.
var shopTables = map[string]string{
	"keys.toml": `[[key]]
id = 1
name = "id"
type = "int"

[[key]]
id = 2
name = "score"
type = "float"
nullable = true
writable = true

[[key]]
id = 10
name = "price"
type = "float"
field = "p"
nullable = true
writable = true

[[key]]
id = 11
name = "sold"
type = "int"
default = 0
writable = true

[[key]]
id = 12
name = "colours"
type = "string_set"
nullable = true
writable = true

[[key]] # no task may write it
id = 13
name = "fixed"
type = "string"
nullable = true
`,
	"params.toml": `[[param]]
id = 1
name = "season"
type = "string"
context = true

[[param]]
id = 2
name = "hour"
type = "int"
context = true

[[param]]
id = 3
name = "seen"
type = "int_list"
context = true

[[param]]
id = 4
name = "budget"
type = "float"
context = true

[[param]]
id = 5
name = "member"
type = "bool"
context = true
`,
	"endpoints.dev.toml": `[[endpoint]]
id = "ep_shop"
name = "shop"
kind = "redis"
host = "127.0.0.1"
port = 6379
`,
}

// shopPlan reads and scores the products of a season.
const shopPlan = `{"schema_version": 1, "plan_name": "shelf", "capabilities_required": ["cap.rankd.expressions.v1"], "outputs": ["best"], "nodes": [
	{"node_id": "shelf", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_shop", "key": "shelf:{season}", "limit": 50}},
	{"node_id": "look", "op": "core::lookup", "inputs": ["shelf"], "params": {"endpoint": "ep_shop", "key": "product:{id}", "fields": ["price", "sold"], "missing": "drop"}},
	{"node_id": "best", "op": "core::vm", "inputs": ["look"], "params": {"out_key": 2, "expr_id": "e"}}],
	"expr_table": {"e": {"op": "mul", "a": {"op": "key_ref", "key_id": 10}, "b": {"op": "key_ref", "key_id": 11}}}}`

// writeShop writes a registry, with old replaced by new in one file, and returns its folder.
func writeShop(t *testing.T, file, old, new string) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "registry")
	require.NoError(t, os.Mkdir(folder, 0o755))
	for name, text := range shopTables {
		if name == file {
			require.Contains(t, text, old)
			text = strings.Replace(text, old, new, 1)
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	return folder
}

// programs returns the programs for case i. They share the code that refuses, so case 0 has all
// of them, and each other case has one, by turns.
func programs(i int, all [][]string) [][]string {
	if i == 0 {
		return all
	}
	return all[i%len(all):][:1]
}

// assertOneLine checks that a program says in one line with these words what is wrong. It also
// checks the exit status.
func assertOneLine(t *testing.T, o outcome, status int, line string, words ...string) {
	t.Helper()
	assert.Equal(t, status, o.status)
	assert.Equal(t, 1, strings.Count(line, "\n"), line)
	assert.Less(t, len(line), 2500)
	for _, word := range words {
		assert.Contains(t, line, word)
	}
}

// Every program that reads a registry refuses a hostile one, in one line with file, entry and
// field, and exits with 2.
func TestHostileRegistries(t *testing.T) {
	plans := t.TempDir()
	artifact := writePlan(t, t.TempDir(), "shelf", shopPlan)
	require.NoError(t, os.WriteFile(filepath.Join(plans, "rows.plan.ts"), []byte(`import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "rows", build: (ctx) => ctx.fixedSource({ rowCount: 1 }) });`), 0o644))
	for i, c := range []struct {
		file, old, new string
		words          []string
	}{
		{"keys.toml", `type = "string_set"`, `type = "set"`, []string{"key 12", `unknown type "set"`}},
		{"keys.toml", `type = "string_set"`, `type = 7`, []string{"line", "type"}},
		{"keys.toml", `default = 0`, `default = "none"`, []string{"key 11", "default"}},
		{"keys.toml", `default = 0`, `default = 0.5`, []string{"key 11", "default"}},
		{"keys.toml", `default = 0`, `default = 9223372036854775808`, []string{"line"}},
		{"keys.toml", `default = 0`, `defualt = 0`, []string{"line", "defualt"}},
		{"keys.toml", `field = "p"`, `field = ""`, []string{"key 10", "field"}},
		{"keys.toml", `field = "p"`, `field = 5`, []string{"line", "field"}},
		{"keys.toml", `field = "p"`, `field = "` + strings.Repeat("x", 100_000) + `"`, []string{"key 10", "field"}},
		{"keys.toml", `id = 12`, `id = 11`, []string{"key 11"}},
		{"keys.toml", `id = 12`, `id = -12`, []string{"-12"}},
		{"keys.toml", `id = 12`, `id = 4294967296`, []string{"4294967296"}},
		{"keys.toml", `name = "colours"`, `name = "sold"`, []string{"key 12", "sold"}},
		{"keys.toml", `name = "colours"`, `name = "no\nline"`, []string{"key 12", `no\nline`}},
		{"keys.toml", `[[key]]`, `[[key`, []string{"line 1"}},
		{"keys.toml", `[[key]]`, "# " + strings.Repeat("x", 2<<20) + "\n[[key]]", []string{"1048576"}},
		{"params.toml", `type = "int_list"`, `type = "list"`, []string{"param 3", `"list"`}},
		{"params.toml", `context = true`, `context = "yes"`, []string{"line", "context"}},
		{"params.toml", `name = "hour"`, `name = "season"`, []string{"param 2", "season"}},
		{"endpoints.dev.toml", `port = 6379`, `port = 0`, []string{"ep_shop", "port"}},
		{"endpoints.dev.toml", `kind = "redis"`, `kind = "file"`, []string{"ep_shop", "kind"}},
		{"endpoints.dev.toml", `host = "127.0.0.1"`, `host = "a b"`, []string{"ep_shop", "host"}},
	} {
		name := fmt.Sprintf("%s: %.40q", c.file, c.new)
		t.Run(name, func(t *testing.T) {
			folder := writeShop(t, c.file, c.old, c.new)
			for _, args := range programs(i, [][]string{
				{"--plan", artifact},
				{"run", artifact},
				{"--print-registry"},
				{"trace", "--plan", artifact},
				{"bench", "compare", "--plan", artifact},
				{"compile", plans},
				{"check", plans},
				{"init", filepath.Join(plans, "types")},
			}) {
				o := run(t, strings.NewReader(`{"user_id": 1}`), append(args, "--registry_dir", folder)...)
				assert.Empty(t, o.stdout, args)
				assertOneLine(t, o, exitUsage, o.stderr, append(c.words, "--registry_dir", c.file)...)
				if t.Failed() {
					t.Fatal(args)
				}
			}
		})
	}
}

// Every program that loads a plan refuses hostile parameters, in one line with file, node and
// field, and exits with 2.
func TestHostileParameters(t *testing.T) {
	folder := writeShop(t, "", "", "")
	many := `"price"` + strings.Repeat(`, "price"`, 256)
	for i, c := range []struct{ old, new, node, field string }{
		{`"shelf:{season}"`, `"shelf:{saison}"`, "shelf", "key"},
		{`"shelf:{season}"`, `"shelf:{season"`, "shelf", "key"},
		{`"shelf:{season}"`, `"shelf:{budget}"`, "shelf", "key"},
		{`"shelf:{season}"`, `"shelf:{seen}"`, "shelf", "key"},
		{`"shelf:{season}"`, `"shelf:{id}"`, "shelf", "key"},
		{`"shelf:{season}"`, `"` + strings.Repeat("x", 513) + `"`, "shelf", "key"},
		{`"shelf:{season}"`, `"` + strings.Repeat("x", 1<<20) + `"`, "shelf", "key"},
		{`"shelf:{season}"`, `""`, "shelf", "key"},
		{`"shelf:{season}"`, `["shelf"]`, "shelf", "key"},
		{`"limit": 50`, `"limit": 0`, "shelf", "limit"},
		{`"limit": 50`, `"limit": -9223372036854775808`, "shelf", "limit"},
		{`"limit": 50`, `"limit": 1e300`, "shelf", "limit"},
		{`"limit": 50`, `"limit": 1.5`, "shelf", "limit"},
		{`"limit": 50`, `"limit": "50"`, "shelf", "limit"},
		{`"limit": 50`, `"kind": "heap"`, "shelf", "kind"},
		{`"limit": 50`, `"kind": "no\nline"`, "shelf", "kind"},
		{`"limit": 50`, `"limti": 50`, "shelf", "limti"},
		{`"limit": 50`, `"score": "sold"`, "shelf", "score"},
		{`"limit": 50`, `"endpoint": "ep_none"`, "shelf", "endpoint"},
		{`"product:{id}"`, `"product:{price}"`, "look", "key"}, // a float
		{`"product:{id}"`, `"product", "by": "sold"`, "look", "by"},
		{`["price", "sold"]`, `[]`, "look", "fields"},
		{`["price", "sold"]`, `"price"`, "look", "fields"},
		{`["price", "sold"]`, `["price", "price"]`, "look", "fields"},
		{`["price", "sold"]`, `["price", null]`, "look", "fields[1]"},
		{`["price", "sold"]`, `["price", "sould"]`, "look", "fields[1]"},
		{`["price", "sold"]`, `["price", 77]`, "look", "fields[1]"},
		{`["price", "sold"]`, `["price", "fixed"]`, "look", "fields[1]"},
		{`["price", "sold"]`, `["price", "id"]`, "look", "fields[1]"},
		{`["price", "sold"]`, `[` + many + `]`, "look", "fields"},
		{`"missing": "drop"`, `"missing": "ignore"`, "look", "missing"},
		{`"missing": "drop"`, `"missing": "default"`, "look", "fields[0]"},
		{`"missing": "drop"`, `"missing": "null"`, "look", "fields[1]"},
		{`"missing": "drop"`, `"value": "price"`, "look", "fields"},
		{`"missing": "drop"`, `"max_age": -1`, "look", "max_age"},
		{`"missing": "drop"`, `"max_age": 1e400`, "", "line 3"},
		{`"missing": "drop"`, `"max_age": 60`, "look", "max_age"},
		{`"missing": "drop"`, `"by": "price"`, "look", "by"},
		{`"key_id": 11`, `"key_id": 12`, "", "expr_table.e"},
		{`"key_id": 11`, `"key_id": 77`, "", "expr_table.e"},
		{`"fields": ["price", "sold"]`, `"fields": ["price"]`, "best", "expr_id"},
	} {
		t.Run(fmt.Sprintf("%.60q", c.new), func(t *testing.T) {
			require.Contains(t, shopPlan, c.old)
			text := shopPlan
			if strings.Contains(c.new, `"endpoint"`) { // it would duplicate the member
				text = strings.Replace(text, `"endpoint": "ep_shop", "key": "shelf`, `"key": "shelf`, 1)
			}
			plans := t.TempDir()
			artifact := writePlan(t, plans, "shelf", strings.Replace(text, c.old, c.new, 1))
			words := []string{"shelf.plan.json", c.field}
			if c.node != "" {
				words = append(words, fmt.Sprintf("node %q", c.node), "params."+c.field)
			}
			for _, args := range programs(i, [][]string{
				{"--plan", artifact},
				{"--plan_dir", plans},
				{"run", artifact},
				{"--print-plan-info", "--plan", artifact},
				{"--list-plans", "--plan_dir", plans},
				{"trace", "--plan", artifact},
				{"bench", "compare", "--plan", artifact},
			}) {
				o := run(t, strings.NewReader(`{"user_id": 1}`), append(args, "--registry_dir", folder)...)
				assertOneLine(t, o, exitUsage, o.stderr, words...)
				if t.Failed() {
					t.Fatal(args)
				}
			}
		})
	}
}

// A hostile context costs one request its answer, with one line that names the member, and with
// status 1.
func TestHostileContexts(t *testing.T) {
	redis := miniredis.RunT(t)
	_, err := redis.Push("shelf:spring", "1")
	require.NoError(t, err)
	redis.HSet("product:1", "p", "2.5", "sold", "4")
	folder := writeShop(t, "", "", "")
	artifact := writePlan(t, t.TempDir(), "shelf", shopPlan)
	flags := []string{"--plan", artifact, "--registry_dir", folder, "--redis", redis.Addr()}

	const good = `{"user_id": 1, "request_id": "good", "context": {"season": "spring", "hour": 7, "seen": [1, 2], "budget": 2, "member": true}}`
	o := run(t, strings.NewReader(good), flags...)
	require.Equal(t, exitOK, o.status, o.stderr+o.stdout)
	require.Contains(t, o.stdout, `"score":10.0`)

	for _, c := range []struct {
		context string
		words   []string
	}{
		{`[]`, []string{"context"}},
		{`"spring"`, []string{"context"}},
		{`{"saison": "spring"}`, []string{"context", "saison"}},
		{`{"season": 5}`, []string{"context", "season"}},
		{`{"season": ["spring"]}`, []string{"context", "season"}},
		{`{"season": {}}`, []string{"context", "season"}},
		{`{"season": null}`, []string{"context", "season"}},
		{`{"hour": 1.5}`, []string{"context", "hour"}},
		{`{"hour": "7"}`, []string{"context", "hour"}},
		{`{"hour": true}`, []string{"context", "hour"}},
		{`{"hour": 9223372036854775808}`, []string{"context", "hour"}},
		{`{"hour": 1e300}`, []string{"context", "hour"}},
		{`{"seen": 1}`, []string{"context", "seen"}},
		{`{"seen": [1, "2"]}`, []string{"context", "seen"}},
		{`{"seen": [1, null]}`, []string{"context", "seen"}},
		{`{"seen": [[1]]}`, []string{"context", "seen"}},
		{`{"seen": [` + strings.Repeat("1, ", 1<<17) + `1]}`, []string{"context", "seen"}},
		{`{"budget": 1e999}`, nil},
		{`{"budget": "NaN"}`, []string{"context", "budget"}},
		{`{"budget": NaN}`, nil},
		{`{"member": 1}`, []string{"context", "member"}},
		{`{"member": "true"}`, []string{"context", "member"}},
		{`{"season": "` + strings.Repeat("x", 513) + `"}`, []string{`"node":"shelf"`, "season"}},
		{`{"` + strings.Repeat("x", 1<<20) + `": 1}`, []string{"context"}},
	} {
		t.Run(fmt.Sprintf("%.60s", c.context), func(t *testing.T) {
			o := run(t, strings.NewReader(`{"user_id": 1, "context": `+c.context+"}\n"+good), flags...)
			bad, rest, _ := strings.Cut(o.stdout, "\n")
			assertOneLine(t, o, exitFailed, bad+"\n", append(c.words, `"error":"`)...)
			assert.Contains(t, rest, `"request_id":"good"`, "the next request gets its answer")
			assert.Contains(t, rest, `"score":10.0`)
			assert.Empty(t, o.stderr)
		})
	}
}
