package builtin_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/taskrun"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// lookupKey is a key of lookupTables.
type lookupKey struct {
	id       registry.KeyID
	name     string
	kind     string
	field    string // "": the name
	preset   string // as TOML; "": none
	nullable bool
}

// lookupKeys have all types. The names of rowsettest's keys come first.
var lookupKeys = []lookupKey{
	{1001, "f1", "float", "", "", true}, {1002, "f2", "float", "", "", true}, {2001, "f3", "float", "", "", true},
	{3001, "s1", "string", "", "", true}, {3002, "s2", "string", "", "", true},
	{5001, "i1", "int", "", "", true}, {5002, "i2", "int", "", "", true}, {5101, "b1", "bool", "", "", true},
	{5201, "set1", "string_set", "", "", true}, {5202, "set2", "string_set", "", "", true},
	{5251, "v1", "vector(5)", "", "", true}, {5252, "v2", "vector(5)", "", "", true},
	{6001, "likes", "int", "", "3", true}, {6002, "price", "float", "p", "0.5", true}, {6003, "title", "string", "ti", "\"none\"", true},
	{6004, "premium", "bool", "", "true", true}, {6005, "tags", "string_set", "", "[\"b\", \"a\"]", true}, {6006, "at", "int", "c_ts", "7", true},
	{6007, "quality", "float", "", "", false}, {6008, "views", "int", "", "", false},
}

func lookupTables() registrytest.Tables {
	tables := sourceTables()
	tables.Keys = registrytest.ID
	for _, k := range lookupKeys {
		more := []string{fmt.Sprintf("nullable = %v", k.nullable), registrytest.Writable}
		if k.field != "" {
			more = append(more, fmt.Sprintf("field = %q", k.field))
		}
		if k.preset != "" {
			more = append(more, "default = "+k.preset)
		}
		tables.Keys += registrytest.Key(k.id, k.name, k.kind, more...)
	}
	return tables
}

var lookupRegistry = sync.OnceValue(func() *registry.Registry { return lookupTables().Load() })

// hashes answers HMGET and GET from plain maps.
type hashes struct {
	fields   map[string]map[string]string
	commands map[string]int
}

func (h *hashes) answer(command []string) any {
	h.commands[command[1]]++
	hash := h.fields[command[1]]
	text := func(field string) any {
		if text, ok := hash[field]; ok {
			return text
		}
		return nil
	}
	if command[0] == "GET" {
		return text("")
	}
	values := make([]any, len(command)-2)
	for i, field := range command[2:] {
		values[i] = text(field)
	}
	return values
}

func runLookup(t *testing.T, c rankdtest.Case) (rowset.RowSet, error) {
	return runLookupOf(t, specOf(t, "lookup"), c)
}

func runLookupOf(t *testing.T, spec task.Spec, c rankdtest.Case) (rowset.RowSet, error) {
	t.Helper()
	c.Registry = lookupRegistry()
	before := tableOf(c.Inputs[0])
	out, err := rankdtest.Run(spec, c)
	require.Equal(t, before, tableOf(c.Inputs[0]), "the input has changed")
	return out, err
}

var (
	wholeNumber   = regexp.MustCompile(`^-?[0-9]+$`)
	decimalNumber = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// refParse reads a value of a type, or returns nil.
func refParse(kind, text string) any {
	switch kind {
	case "int":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && wholeNumber.MatchString(text) {
			return n
		}
	case "float":
		if f, err := strconv.ParseFloat(text, 64); err == nil && decimalNumber.MatchString(text) {
			return f
		}
	case "vector(5)":
		var vector []float32
		for i := 0; len(text) == 20 && !strings.Contains(text, ",") && i < 20; i += 4 {
			vector = append(vector, math.Float32frombits(binary.LittleEndian.Uint32([]byte(text[i:]))))
		}
		if vector == nil {
			for _, item := range strings.Split(strings.Trim(text, "[]"), ",") {
				x, err := strconv.ParseFloat(strings.TrimSpace(item), 32)
				if err != nil {
					return nil
				}
				vector = append(vector, float32(x))
			}
		}
		if len(vector) != 5 || slices.ContainsFunc(vector, func(x float32) bool { return x != x }) {
			return nil
		}
		return vector
	case "bool":
		if b, ok := map[string]bool{"1": true, "true": true, "0": false, "false": false}[text]; ok {
			return b
		}
	case "string":
		return text
	default:
		var members []string
		if strings.HasPrefix(text, "[") {
			if json.Unmarshal([]byte(text), &members) != nil {
				return nil
			}
		} else {
			for _, member := range strings.Split(text, ",") {
				if member = strings.TrimSpace(member); member != "" {
					members = append(members, member)
				}
			}
		}
		slices.Sort(members)
		return append([]string{}, slices.Compact(members)...)
	}
	return nil
}

// refLookup looks up one row after another.
type refLookup struct {
	keys     []lookupKey
	hash     bool
	template string
	by       registry.KeyID
	missing  string
	maxAge   float64
	at       int // of the timestamp in keys
	now      float64
	counted  map[string]bool
	rejected int
}

// key returns the key of a row, or false if a mark has no value.
func (r *refLookup) key(row record) (key string, ok bool) {
	ok = true
	key = refMark.ReplaceAllStringFunc(r.template, func(mark string) string {
		name := strings.TrimPrefix(strings.Trim(mark, "{}"), "Key.")
		if name == "user" {
			return "42"
		}
		column := registry.IDKey
		if name != "id" {
			for key, of := range keyNames {
				if of == name {
					column = key
				}
			}
		} else if r.by != 0 {
			column = r.by
		}
		value := row.get(column)
		ok = ok && value != nil
		return fmt.Sprint(value)
	})
	return key, ok
}

var refMark = regexp.MustCompile(`{[^}]*}`)

var errRefMissing = errors.New("a value is missing")

func (r *refLookup) run(in table, h *hashes) (table, error) {
	out := table{columns: slices.Clone(in.columns)}
	for _, key := range r.keys {
		out.add(key.id)
	}
	r.counted = make(map[string]bool)
	for _, row := range in.rows {
		values := make([]any, len(r.keys))
		if key, ok := r.key(row); ok {
			values = r.values(h.fields[key], key)
		}
		keep := true
		for i, key := range r.keys {
			value := values[i]
			if value == nil {
				switch r.missing {
				case "default":
					value = refDefault(key)
				case "drop":
					keep = false
				case "fail":
					return table{}, errRefMissing
				}
			}
			row = row.with(key.id, value)
		}
		if keep {
			out.rows = append(out.rows, row)
		}
	}
	out.complete()
	return out, nil
}

// values returns the values of one hash. A nil value is missing.
func (r *refLookup) values(hash map[string]string, name string) []any {
	values := make([]any, len(r.keys))
	first := !r.counted[name]
	r.counted[name] = true
	reject := func() {
		if first {
			r.rejected++
		}
	}
	if r.maxAge > 0 {
		text, ok := hash[r.keys[r.at].field]
		at, parsed := refParse("int", text).(int64)
		sound := parsed && float64(at)-r.now <= 24*60*60
		if ok && !sound {
			reject()
		}
		if !sound || r.now-float64(at) > r.maxAge {
			return values
		}
	}
	for i, key := range r.keys {
		field := cmp.Or(key.field, key.name)
		if !r.hash {
			field = ""
		}
		if text, ok := hash[field]; ok {
			if values[i] = refParse(key.kind, text); values[i] == nil {
				reject()
			}
		}
	}
	return values
}

func refDefault(key lookupKey) any {
	return map[string]any{"likes": int64(3), "price": 0.5, "title": "none", "premium": true, "tags": []string{"a", "b"}, "at": int64(7), "quality": 0.0}[key.name]
}

// randomText returns a text of a value of the type, or a malformed one.
func randomText(rng *rand.Rand, kind string) string {
	texts := map[string][]string{
		"int":        {"0", "-0", "12", "-7", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.0", "", "+5", " 5", "5 ", "0x10", "1_000", "007", "é"},
		"float":      {"0", "1.5", "-2e3", ".5", "5.", "1e308", "1e309", "-1e309", "nan", "NaN", "inf", "-Inf", "infinity", "0x1p4", "1_0", "", "1e", "123456789.123456789", "4.9e-324", "0.1"},
		"bool":       {"0", "1", "true", "false", "TRUE", "yes", "", "01"},
		"string":     {"", "a", "b", "é\n", "long " + strings.Repeat("x", 300)},
		"string_set": {"", "a", "b, a ,b", ",,", `["x", "a"]`, `[]`, `["x", 1]`, `[`, " c "},
		"vector(5)":  {"1,2,3,4,5", "[0.5, -1, 1e3, 0, 7]", "1,2,3,4", "1,2,3,4,nan", "", strings.Repeat("\x00\x00\x80\x3f", 5), strings.Repeat("\xff", 20), "[]"},
	}[kind]
	if rng.IntN(3) == 0 {
		return texts[rng.IntN(len(texts))]
	}
	switch kind {
	case "int":
		return strconv.FormatInt(rng.Int64N(1<<40)-1<<39, 10)
	case "float":
		return strconv.FormatFloat((rng.Float64()-0.5)*math.Pow(10, float64(rng.IntN(20)-8)), 'g', -1, 64)
	case "string":
		return "t" + strconv.Itoa(rng.IntN(30))
	}
	return texts[rng.IntN(2)]
}

// TestLookupAsReference compares random lookups with a reference that looks up one row after
// another.
func TestLookupAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 3))
	failed, dropped, aged, remembered := 0, 0, 0, 0
	for range 2 * randomRuns {
		in := rowsettest.RowSet(rng, 330)
		r := refLookup{missing: []string{"null", "default", "drop", "fail"}[rng.IntN(4)], hash: rng.IntN(4) > 0}
		text, number := keyNames[keyOf(rng, in, 3001, 3002)], keyNames[keyOf(rng, in, 5001, 5002)]
		shape := rng.IntN(10)
		r.template = []string{"item:{id}", "item:{id}:{user}", "user:{user}", "one", "of:{Key." + text + "}", "{" + number + "}:x", "stat:{user}:{" + text + "}",
			"{" + text + "}{" + number + "}", "p{" + number + "}-{user}:{" + text + "}!", "{" + number + "}/{" + number + "}:{user}"}[shape]
		if strings.Count(r.template, "{id}") > 1 {
			continue
		}
		params := map[string]any{"endpoint": "ep_0001", "key": r.template, "missing": r.missing}
		if r.missing == "null" && rng.IntN(2) == 0 {
			delete(params, "missing")
		}
		for _, i := range rng.Perm(len(lookupKeys)) {
			key := lookupKeys[i]
			if r.missing == "null" && !key.nullable || r.missing == "default" && refDefault(key) == nil {
				continue
			}
			if r.keys = append(r.keys, key); !r.hash || len(r.keys) == 1+rng.IntN(9) {
				break
			}
		}
		if r.hash {
			var names []any
			for _, key := range r.keys {
				names = append(names, []any{key.name, key.id}[rng.IntN(2)])
			}
			params["fields"] = names
		} else {
			params["value"] = r.keys[0].name
		}
		if key := keyOf(rng, in, 5001, 5002); strings.Contains(r.template, "{id}") && rng.IntN(3) == 0 {
			params["by"], r.by = keyNames[key], key
		}
		arrival := time.Unix(1_000_000, 500_000_000)
		if r.at = slices.IndexFunc(r.keys, func(k lookupKey) bool { return k.name == "at" }); r.at >= 0 && r.hash {
			r.now, r.maxAge = 1_000_000.5, 100
			params["max_age"], params["timestamp"] = 100, "at"
			aged++
		}
		h := &hashes{fields: make(map[string]map[string]string), commands: make(map[string]int)}
		full := rng.IntN(2) == 0
		fill := func(key string) {
			if !full && rng.IntN(4) == 0 {
				return
			}
			hash := make(map[string]string)
			for _, key := range r.keys {
				field := cmp.Or(key.field, key.name)
				if !r.hash {
					field = ""
				}
				switch {
				case !full && rng.IntN(8) == 0:
				case key.name == "at":
					hash[field] = []string{"999900", "999901", "1000001", "999950", "999950"}[rng.IntN(5)]
				case full:
					hash[field] = map[string]string{"int": "5", "float": "5", "bool": "1", "string": "5", "string_set": "5", "vector(5)": "5,4,3,2,1"}[key.kind]
				default:
					hash[field] = randomText(rng, key.kind)
				}
			}
			h.fields[key] = hash
		}
		for _, row := range tableOf(in).rows {
			if key, ok := r.key(row); ok {
				fill(key)
			}
		}
		outside := new(task.Outside)
		out, err := runLookup(t, rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(in), UserID: 42, Redis: h.answer, Arrival: arrival, Outside: outside})
		want, wantErr := r.run(tableOf(in), h)
		for key, times := range h.commands {
			require.Equal(t, 1, times, "%s is read more than once", key)
		}

		// The same reads come from a memory that has some of the rows, and then all of them.
		var reads []int
		table := rowcache.NewTable(0, time.Hour)
		for _, rows := range []rowset.RowSet{rowset.Take(in, rng.IntN(in.N+1)), in, in} {
			again := new(task.Outside)
			clear(h.commands)
			kept, keptErr := runLookupOf(t, withTable(specOf(t, "lookup"), table), rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(rows), UserID: 42,
				Redis: h.answer, Arrival: arrival, Outside: again})
			maps.DeleteFunc(h.commands, func(key string, _ int) bool { return len(key) > rowcache.ValueMax })
			reads = append(reads, len(h.commands))
			switch {
			case rows.N < in.N: // it only fills the table
			case err != nil:
				require.EqualError(t, keptErr, err.Error())
			default:
				require.NoError(t, keptErr)
				requireTable(t, tableOf(out), kept)
				require.Equal(t, outside.ByKey(), again.ByKey())
			}
		}
		if err == nil && r.maxAge == 0 {
			require.Zero(t, reads[2], "all rows are in memory")
			remembered++
		}
		if wantErr != nil {
			require.ErrorIs(t, err, task.ErrInvalid, "%v", params)
			failed++
			continue
		}
		require.NoError(t, err, "%v", params)
		requireTable(t, want, out)
		require.Equal(t, int64(r.rejected), outside.Malformed())
		if out.Len() < in.Len() {
			dropped++
		}
	}
	assert.Greater(t, min(failed, dropped, aged, remembered), 4, "%d %d %d %d", failed, dropped, aged, remembered)
}

// withTable returns the task on an engine that keeps in a table what it reads.
func withTable(spec task.Spec, table *rowcache.Table) task.Spec {
	ask, now := spec.Ask, clock.NewManual()
	var tables []*rowcache.Table
	spec.Ask = func(c *task.Ctx, r *task.Reads, wave int) error {
		if tables == nil {
			tables = slices.Repeat([]*rowcache.Table{table}, len(c.Registry.Endpoints()))
		}
		env := tasks.Env(c)
		env.Engine = &taskrun.Engine{Clock: now, Tables: tables}
		return ask(c, r, wave)
	}
	return spec
}

func lookupCase(params map[string]any, ids ...int64) rankdtest.Case {
	params["endpoint"] = "ep_0001"
	if params["key"] == nil {
		params["key"] = "item:{id}"
	}
	return rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(rankdtest.Rows(ids...)), UserID: 42}
}

func TestLookup(t *testing.T) {
	c := lookupCase(map[string]any{"fields": []any{"likes", "price", "title", "premium", "tags", "at"}}, 7, 8, 7)
	c.Redis = rankdtest.Replies(map[string]any{
		"HMGET item:7 likes p ti premium tags c_ts": []any{"9007199254740993", "1.5", "Rain", "1", "b,a", "12"},
		"HMGET item:8 likes p ti premium tags c_ts": []any{nil, "nan", nil, "maybe", nil, "1e3"},
	})
	c.Outside = new(task.Outside)
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []int64{7, 8, 7}, rankdtest.IDs(out))
	for key, want := range map[registry.KeyID][]any{
		6001: {int64(1<<53 + 1), nil, int64(1<<53 + 1)}, 6002: {1.5, nil, 1.5}, 6003: {"Rain", nil, "Rain"}, 6004: {true, nil, true},
		6005: {[]string{"a", "b"}, nil, []string{"a", "b"}}, 6006: {int64(12), nil, int64(12)},
	} {
		assert.Equal(t, want, rankdtest.Values(out, key), key)
	}
	assert.Equal(t, int64(3), c.Outside.Malformed(), "nan, maybe and 1e3")
	assert.Equal(t, map[string]task.Values{ // item 7 is read once
		"likes": {Read: 2, Missing: 1}, "price": {Read: 2, Malformed: 1}, "title": {Read: 2, Missing: 1},
		"premium": {Read: 2, Malformed: 1}, "tags": {Read: 2, Missing: 1}, "at": {Read: 2, Malformed: 1},
	}, c.Outside.ByKey())
}

func TestLookupOfStrings(t *testing.T) {
	c := lookupCase(map[string]any{"key": "n:{user}:{id}:x", "value": "views", "missing": "drop"}, 7, 8, 9)
	c.Redis = rankdtest.Replies(map[string]any{"GET n:42:7:x": "5", "GET n:42:8:x": nil, "GET n:42:9:x": ""})
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []int64{7}, rankdtest.IDs(out))
	assert.Equal(t, []any{int64(5)}, rankdtest.Values(out, 6008))
}

// A looked-up column replaces a column of the input with the same key, whatever its type was.
func TestLookupReplacesColumns(t *testing.T) {
	c := lookupCase(map[string]any{"fields": []any{"likes"}})
	c.Inputs = rankdtest.Inputs(rankdtest.WithStrings(rankdtest.WithInts(rankdtest.Rows(7), 6001, 1), 6003, "kept"))
	c.Redis = rankdtest.Replies(map[string]any{"HMGET item:7 likes": []any{"5"}})
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []any{int64(5)}, rankdtest.Values(out, 6001))
	assert.Equal(t, []any{"kept"}, rankdtest.Values(out, 6003))
}

// A row whose key contains a null has no key.
func TestLookupWithoutAKey(t *testing.T) {
	run := func(key, missing string, rows rowset.RowSet) (rowset.RowSet, error) {
		c := lookupCase(map[string]any{"key": key, "fields": []any{"likes"}, "missing": missing})
		c.Inputs = rankdtest.Inputs(rows)
		return runLookup(t, c)
	}
	for _, key := range []string{"by:{s1}", "stat:{user}:{s1}-{id}", "{id}{s1}"} {
		rows := rankdtest.WithStrings(rankdtest.Rows(7, 8), 3001, nil, nil)
		for missing, want := range map[string][]any{"null": {nil, nil}, "default": {int64(3), int64(3)}, "drop": {}} {
			out, err := run(key, missing, rows)
			require.NoError(t, err, "Redis is not asked")
			assert.Equal(t, want, rankdtest.Values(out, 6001), missing)
		}
		_, err := run(key, "fail", rows)
		assert.ErrorIs(t, err, task.ErrInvalid)
		_, err = run(key, "fail", rankdtest.WithStrings(rankdtest.Rows(), 3001))
		assert.NoError(t, err, "no row, no missing value")
	}
}

// TestKeysNeedTheContext: a request without the values of a key is at fault, whether there are
// rows or not.
func TestKeysNeedTheContext(t *testing.T) {
	for op, more := range map[string]map[string]any{"lookup": {"fields": []any{"likes"}}, "exclude": {"fail_open": true}, "candidates": {}} {
		for _, key := range []string{"{tab}", "{user}:{tab}x", "a:{id}{tab}", "a:{user}:{s1}:{tab}:{s1}"} {
			if op != "lookup" && strings.Contains(key, "{s1}") || op == "exclude" && strings.Contains(key, "{id}") {
				continue // no such key of the op
			}
			c := lookupCase(maps.Clone(more))
			c.Params["key"] = key
			c.Inputs = rankdtest.Inputs(rankdtest.WithStrings(rankdtest.Rows(7, 8), 3001, "s", "t"))
			if op == "candidates" && !strings.Contains(key, "{id}") {
				c.Inputs = nil
			}
			c.Registry = lookupRegistry()
			asked := ""
			c.Redis = func(command []string) any {
				asked = command[1]
				return errors.New("asked")
			}
			_, err := rankdtest.Run(specOf(t, op), c)
			var missing *expr.ParamError
			require.ErrorAs(t, err, &missing, "%s %s", op, key)
			assert.EqualError(t, err, "there is no value, and a key template of the plan needs one")
			assert.Empty(t, asked)
			c.Context = map[string]any{"tab": strings.Repeat("x", 513)}
			_, err = rankdtest.Run(specOf(t, op), c)
			require.ErrorAs(t, err, &missing)
			assert.EqualError(t, err, "the value has 513 bytes, and a Redis key takes 512 at most")
			c.Context = map[string]any{"tab": "home"}
			_, _ = rankdtest.Run(specOf(t, op), c)
			assert.Contains(t, asked, "home")
		}
	}
}

// All rows get the columns of one key by one command.
func TestLookupOfOneKey(t *testing.T) {
	for key, name := range map[string]string{"user:{user}": "user:42", "defaults": "defaults", "of:{tab}": "of:home"} {
		c := lookupCase(map[string]any{"key": key, "fields": []any{"likes"}}, 7, 8, 7)
		commands := 0
		c.Context = map[string]any{"tab": "home"}
		c.Redis = func(command []string) any {
			commands++
			assert.Equal(t, []string{"HMGET", name, "likes"}, command)
			return []any{"5"}
		}
		out, err := runLookup(t, c)
		require.NoError(t, err)
		assert.Equal(t, []any{int64(5), int64(5), int64(5)}, rankdtest.Values(out, 6001))
		assert.Equal(t, 1, commands)
		c.Inputs = rankdtest.Inputs(rankdtest.Rows())
		_, err = runLookup(t, c)
		require.NoError(t, err)
		assert.Equal(t, 1, commands, "without rows Redis is not asked")
	}
}

// Rows with the same key read it once, however else they differ.
func TestLookupByColumns(t *testing.T) {
	c := lookupCase(map[string]any{"key": "stat:{user}:{s1}:{i1}", "fields": []any{"likes"}})
	c.Inputs = rankdtest.Inputs(rankdtest.WithInts(rankdtest.WithStrings(rankdtest.Rows(1, 2, 3, 4, 5), 3001, "a:1", "a", nil, "a:1", ""), 5001, 2, -3, 1, 2, 5))
	c.Redis = rankdtest.Replies(map[string]any{
		"HMGET stat:42:a:1:2 likes": []any{"7"}, "HMGET stat:42:a:-3 likes": []any{"8"}, "HMGET stat:42::5 likes": []any{"9"},
	})
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []any{int64(7), int64(8), nil, int64(7), int64(9)}, rankdtest.Values(out, 6001))
}

// Each failure names the key, and also the field if there is one.
func TestLookupFailures(t *testing.T) {
	fields, fail := []any{"likes", "price"}, "fail"
	for _, tt := range []struct {
		params map[string]any
		reply  any
		class  error
		text   string
	}{
		{map[string]any{"fields": fields, "missing": fail}, []any{"1", nil}, task.ErrInvalid, `field "p" of "item:7" is missing`},
		{map[string]any{"fields": fields, "missing": fail}, []any{"x", "1"}, task.ErrInvalid, `field "likes" of "item:7" is "x", which is not of type int`},
		{map[string]any{"value": "likes", "missing": fail}, nil, task.ErrInvalid, `"item:7" is missing`},
		{map[string]any{"fields": []any{"at"}, "missing": fail, "max_age": 5, "timestamp": "at"}, []any{"94"}, task.ErrInvalid, `field "c_ts" of "item:7" is too old`},
		{map[string]any{"fields": []any{"at"}, "missing": fail, "max_age": 5, "timestamp": "at"}, []any{"94.5"}, task.ErrInvalid, `field "c_ts" of "item:7" is too old: its timestamp "94.5" is none`},
		{map[string]any{"fields": fields}, errors.New("WRONGTYPE a list"), task.ErrRedis, `HMGET item:7: WRONGTYPE a list`},
		{map[string]any{"value": "likes"}, errors.New("WRONGTYPE a list"), task.ErrRedis, `GET item:7: WRONGTYPE a list`},
		{map[string]any{"fields": fields}, []any{"1"}, task.ErrRedis, `HMGET item:7: reply is array of 1, want array of 2`},
		{map[string]any{"fields": fields}, "1", task.ErrRedis, "reply is bulk string"},
		{map[string]any{"value": "likes"}, 1, task.ErrRedis, "reply is integer"},
		{map[string]any{"value": "likes"}, rankdtest.Failure{Err: errors.New("connection lost")}, task.ErrRedis, "connection lost"},
	} {
		c := lookupCase(tt.params, 7)
		c.Redis = func([]string) any { return tt.reply }
		c.Arrival = time.Unix(100, 0)
		_, err := runLookup(t, c)
		assert.ErrorIs(t, err, tt.class, tt.text)
		assert.ErrorContains(t, err, tt.text)
	}
	c := lookupCase(map[string]any{"fields": []any{"at"}, "max_age": 5, "timestamp": "at"}, 7)
	_, err := runLookup(t, c)
	assert.ErrorContains(t, err, "max_age needs the time of the request")
	c = lookupCase(map[string]any{"fields": fields}, 7, 8)
	c.MaxRows = 1
	_, err = runLookup(t, c)
	assert.ErrorIs(t, err, task.ErrTooManyRows)
	c.MaxRows, c.Cancelled = 0, true
	_, err = runLookup(t, c)
	assert.ErrorIs(t, err, task.ErrCancelled)
}

// A row exactly at the age limit is not too old. A timestamp that is no value of its key, or lies more than a day ahead,
// is counted and told of, and its row is too old.
func TestLookupAges(t *testing.T) {
	c := lookupCase(map[string]any{"fields": []any{"likes", "at"}, "max_age": 0.5, "timestamp": "at", "missing": "drop"}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	var shortfall task.Shortfall
	c.Shortfall, c.Outside = &shortfall, new(task.Outside)
	c.Arrival = time.Unix(100, 500_000_000)
	c.Redis = rankdtest.Replies(map[string]any{
		"HMGET item:1 likes c_ts": []any{"1", "100"}, "HMGET item:2 likes c_ts": []any{"1", "99"}, "HMGET item:3 likes c_ts": []any{"1", "200"},
		"HMGET item:4 likes c_ts": []any{"1", nil}, "HMGET item:5 likes c_ts": []any{"1", "soon"},
		"HMGET item:6 likes c_ts": []any{"1", "9223372036854775808"}, "HMGET item:7 likes c_ts": []any{"1", "100.5"},
		"HMGET item:8 likes c_ts": []any{"1", "86500"}, "HMGET item:9 likes c_ts": []any{"1", "100000"},
	})
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 3, 8}, rankdtest.IDs(out))
	assert.Equal(t, &task.MalformedIDs{Count: 4, Of: 9, First: "soon", Key: "at", Values: true}, shortfall.Malformed)
	assert.Equal(t, uint64(4), c.Outside.ByKey()["timestamp"].Malformed)
}

// Hostile parameters are refused when the plan is loaded.
func TestLookupRefusesParameters(t *testing.T) {
	fields := []any{"likes"}
	for _, tt := range []struct {
		params map[string]any
		text   string
	}{
		{map[string]any{}, "params.fields: must be there or value"},
		{map[string]any{"fields": fields, "value": "likes"}, "params.fields: must be there or value"},
		{map[string]any{"fields": []any{}}, "params.fields: must have 1 to 256 items"},
		{map[string]any{"fields": []any{"likes", 6001}}, "params.fields[1]: key likes is there twice"},
		{map[string]any{"fields": []any{"nothing"}}, "params.fields[0]: the registry has no key"},
		{map[string]any{"fields": []any{"id"}}, "params.fields[0]: must be a key that the task may write, and key 1 (id) is read-only"},
		{map[string]any{"key": "item:{user}", "fields": fields, "by": "id"}, "params.by: has no effect: the key has no {id}"},
		{map[string]any{"key": "item:{price}", "fields": fields}, "params.key: {price} is a column of type float; a key takes an int or a string"},
		{map[string]any{"key": "item:{s1}", "fields": fields}, `params.key: reads column "s1" (3001), which no node before it writes`},
		{map[string]any{"key": "item:{id}:{seen}", "fields": fields}, "params.key: {seen} has type int_list"},
		{map[string]any{"fields": fields, "missing": "skip"}, "params.missing: must be"},
		{map[string]any{"fields": []any{"likes", "quality"}}, "params.fields[1]: key quality is not nullable"},
		{map[string]any{"value": "views"}, "params.value: key views is not nullable"},
		{map[string]any{"fields": []any{"i1"}, "missing": "default"}, "params.fields[0]: key i1 has no default"},
		{map[string]any{"fields": fields, "max_age": 5}, "params.max_age: and timestamp need each other"},
		{map[string]any{"fields": fields, "timestamp": "likes"}, "params.max_age: and timestamp need each other"},
		{map[string]any{"fields": fields, "max_age": 5, "timestamp": "at"}, "params.timestamp: key at is not among fields"},
		{map[string]any{"fields": fields, "max_age": 0, "timestamp": "likes"}, "params.max_age: must be at least 0.001"},
		{map[string]any{"value": "likes", "max_age": 5}, "params.max_age: needs fields"},
		{map[string]any{"fields": fields, "by": "price"}, "params.by: must be a key of type int or string, not key 6002 (price) of type float"},
		{map[string]any{"fields": fields, "by": "i1"}, `params.by: reads column "i1" (5001), which no node before it writes`},
	} {
		_, err := runLookup(t, lookupCase(tt.params, 7))
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, tt.text)
		assert.ErrorContains(t, err, tt.text)
		assert.Equal(t, "task", bad.Node)
	}
}

// TestLookupAllocations: twice as many rows cost no more allocations, whether ids repeat or
// not.
func TestLookupAllocations(t *testing.T) {
	spec := specOf(t, "lookup")
	for _, spread := range []int{1 << 30, 50} {
		measure := func(rows int) float64 {
			ids := make([]int64, rows)
			for i := range ids {
				ids[i] = int64(i % spread)
			}
			run := preparedRun(t, spec, map[string]any{"endpoint": "ep_0001", "key": "item:{id}", "fields": []any{"likes", "price", "premium", "title", "at"}, "missing": "drop"},
				rankdtest.Rows(ids...), []byte("*5\r\n$2\r\n12\r\n$3\r\n1.5\r\n$1\r\n1\r\n$2\r\nok\r\n$-1\r\n"))
			return testing.AllocsPerRun(5, run)
		}
		few, many := measure(1000), measure(4000)
		assert.LessOrEqual(t, many, few+1, "allocations of 1,000 and 4,000 rows, %d ids", spread)
		t.Logf("%v and %v allocations", few, many)
	}
}

// A partial node leaves out the rows of keys that failed, and counts them. Rows that missing
// drops do not count.
func TestLookupPartial(t *testing.T) {
	for _, missing := range []string{"null", "default", "drop"} {
		c := lookupCase(map[string]any{"fields": []any{"likes"}, "missing": missing}, 7, 8, 7, 9, 10)
		var shortfall task.Shortfall
		c.Partial, c.Shortfall = true, &shortfall
		c.Redis = rankdtest.Replies(map[string]any{
			"HMGET item:7 likes": errors.New("WRONGTYPE a list"), "HMGET item:8 likes": []any{"5"}, "HMGET item:9 likes": []any{nil},
			"HMGET item:10 likes": "text",
		})
		out, err := runLookup(t, c)
		require.NoError(t, err)
		want := []int64{8, 9}
		if missing == "drop" {
			want = []int64{8}
		}
		assert.Equal(t, want, rankdtest.IDs(out), missing)
		assert.Equal(t, int64(5), rankdtest.Values(out, 6001)[0])
		assert.Equal(t, 3, shortfall.Dropped)
		assert.ErrorContains(t, shortfall.Err, `HMGET item:7: WRONGTYPE a list`)
	}
}
