package data_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/registrytest"
)

// kindTables have a column for each kind of lookup, and an entity whose ids are strings.
func kindTables(policy string) fstest.MapFS {
	keys := registrytest.ID
	for i, k := range [][3]string{
		{"title", "string", "default = \"none\""}, {"price", "float", "field = \"/offer/price\"\ndefault = -1.5"}, {"stock", "int", "field = \"/offer/stock/1\"\ndefault = 9"},
		{"premium", "bool", "default = true"}, {"tags", "string_set", "default = [\"t\"]"}, {"text", "string", "default = \"-\""}, {"list", "string_set", "default = []"},
		{"count", "int", "default = 5"}, {"total", "float", "default = 5.5"}, {"size", "int", "default = 6"}, {"points", "float", "default = 7.5"},
		{"flag", "bool", "default = true"},
	} {
		keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable, k[2])
	}
	tables := registrytest.Tables{Keys: keys, Params: registrytest.Param(1, "seen", "int_list", registrytest.Nullable, "context = true"), Endpoints: registrytest.Redis + policy}.FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"sku\"\nid = \"string\"\n")}
	return tables
}

// kindWorld is what a Redis has for the kinds of lookup, and what each lookup must find.
type kindWorld struct {
	commands [][]string
	rows     []string // ids; texts of the entity are "sku" and the id
	values   map[string]map[string]any
}

// put notes the value of a column for an id.
func (w *kindWorld) put(column, id string, value any) {
	if w.values[column] == nil {
		w.values[column] = make(map[string]any)
	}
	w.values[column][id] = value
}

func (w *kindWorld) do(command ...string) { w.commands = append(w.commands, command) }

// newKindWorld fills a world at random: with values, missing values, and malformed texts.
func newKindWorld(rng *rand.Rand) *kindWorld {
	w := &kindWorld{values: make(map[string]map[string]any)}
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	for n := range 40 {
		id := strconv.Itoa(n)
		w.rows = append(w.rows, id)
		if rng.IntN(6) > 0 {
			members := []string{}
			add := func(column, name string, values map[string]any) {
				if rng.IntN(5) == 0 {
					return
				}
				text := one(slices.Sorted(maps.Keys(values))...)
				members = append(members, fmt.Sprintf("%q: %s", name, text))
				if values[text] != nil {
					w.put(column, id, values[text])
				}
			}
			add("title", "title", map[string]any{`"Rain"`: "Rain", `"\u00e9\n"`: "é\n", "7": nil, "null": nil})
			add("premium", "premium", map[string]any{"true": true, "false": false, `"true"`: nil, "1": nil})
			add("tags", "tags", map[string]any{`["b","a"]`: []any{"a", "b"}, `"a,b"`: nil, "[]": []any{}, "[1]": nil})
			switch rng.IntN(3) {
			case 0:
				members = append(members, `"offer": {"price": 2.5, "stock": [1, 12, {"x": null}]}`)
				w.put("price", id, 2.5)
				w.put("stock", id, 12.0)
			case 1:
				members = append(members, `"offer": {"stock": {"1": 3.0}, "more": [[[]]], "price": 1e999}`)
				w.put("stock", id, 3.0)
			}
			document := "{" + strings.Join(members, ", ") + "}"
			if rng.IntN(8) == 0 {
				document += one("]", "{}", `"`)
				for _, column := range []string{"title", "premium", "tags", "price", "stock"} {
					delete(w.values[column], id)
				}
			}
			w.do("SET", "doc:"+id, document)
			w.put("text", id, document)
		}
		if rng.IntN(3) > 0 {
			text := one("a,b,,a", `["b"]`, "", "x")
			w.do("SET", "csv:"+id, text)
			w.put("list", id, map[string]any{"a,b,,a": []any{"a", "b"}, `["b"]`: []any{"b"}, "": []any{}, "x": []any{"x"}}[text])
		}
		w.put("count", id, 0.0)
		w.put("total", id, 0.0)
		if rng.IntN(3) > 0 {
			text := one("12", "-3", "2.5", "many", "9223372036854775808")
			w.do("SET", "n:"+id, text)
			w.put("count", id, map[string]any{"12": 12.0, "-3": -3.0}[text])
			w.put("total", id, map[string]any{"12": 12.0, "-3": -3.0, "2.5": 2.5, "9223372036854775808": 9223372036854775808.0}[text])
		}
		for _, kind := range [][]string{{"string", "APPEND", "x"}, {"list", "RPUSH", "x"}, {"set", "SADD", ""}, {"sorted_set", "ZADD", "1", ""}, {"hash", "HSET", "", "x"}} {
			size := max(0, rng.IntN(6)-2)
			for i := range size {
				command := []string{kind[1], kind[0] + ":" + id}
				for _, arg := range kind[2:] {
					if arg == "" {
						arg = "m" + strconv.Itoa(i)
					}
					command = append(command, arg)
				}
				w.do(command...)
			}
			w.put(kind[0]+" size", id, float64(size))
		}
		for _, prefix := range []string{"", "sku"} {
			if rng.IntN(2) == 0 {
				score := one("2.5", "-1", "0", "inf")
				w.do("ZADD", "scores", score, prefix+id)
				if value, err := strconv.ParseFloat(score, 64); err == nil && score != "inf" {
					w.put(prefix+"points", id, value)
				}
			}
			member := rng.IntN(2) == 0
			if member {
				w.do("SADD", "members", prefix+id)
			}
			w.put(prefix+"member", id, member)
		}
		w.put("bit", id, false)
		if rng.IntN(2) == 0 {
			w.do("SETBIT", "bits", id, "1")
			w.put("bit", id, true)
		}
	}
	for _, far := range []string{"-1", "4294967295", "4294967296"} { // no key has these
		w.rows = append(w.rows, far)
		for _, column := range []string{"count", "total", "string size", "list size", "set size", "sorted_set size", "hash size"} {
			w.put(column, far, 0.0)
		}
		w.put("member", far, false)
		w.put("skumember", far, false)
	}
	w.put("bit", "4294967295", false)
	w.rows = append(w.rows, w.rows[:7]...)
	w.do(append([]string{"RPUSH", "rows"}, w.rows...)...)
	texts := []string{"RPUSH", "skus"}
	for _, id := range w.rows {
		texts = append(texts, "sku"+id)
	}
	w.do(texts...)
	return w
}

// A kindCase is a lookup of one kind. from names the columns of the world, if they are not the
// lookup's own.
type kindCase struct {
	kind, key string
	columns   []string
	from      string
	texts     bool // whether the rows are of the entity
}

var kindCases = []kindCase{
	{"json", "doc:{id}", []string{"title", "price", "stock", "premium", "tags"}, "", false},
	{"json", "doc:{id}", []string{"stock"}, "", false},
	{"json", "doc:{id}", []string{"title", "tags"}, "", false},
	{"string", "doc:{id}", []string{"text"}, "", false},
	{"", "csv:{id}", []string{"list"}, "", false},
	{"counter", "n:{id}", []string{"count"}, "", false},
	{"counter", "n:{id}", []string{"total"}, "", false},
	{"string_length", "string:{id}", []string{"size"}, "string size", false},
	{"list_length", "list:{id}", []string{"size"}, "list size", false},
	{"set_length", "set:{id}", []string{"size"}, "set size", false},
	{"sorted_set_length", "sorted_set:{id}", []string{"size"}, "sorted_set size", false},
	{"hash_length", "hash:{id}", []string{"size"}, "hash size", false},
	{"score", "scores", []string{"points"}, "", false},
	{"score", "scores", []string{"points"}, "skupoints", true},
	{"member", "members", []string{"flag"}, "member", false},
	{"member", "members", []string{"flag"}, "skumember", true},
	{"bit", "bits", []string{"flag"}, "bit", false},
}

// params returns the parameters of the lookup.
func (c *kindCase) params(missing string) string {
	columns, _ := json.Marshal(c.columns)
	param := fmt.Sprintf(`"value": %q`, c.columns[0])
	if c.kind == "json" {
		param = fmt.Sprintf(`"fields": %s`, columns)
	}
	if c.kind != "" {
		param += fmt.Sprintf(`, "kind": %q`, c.kind)
	}
	if missing != "null" {
		param += fmt.Sprintf(`, "missing": %q`, missing)
	}
	return fmt.Sprintf(`"endpoint": "ep_0001", "key": %q, %s`, c.key, param)
}

// rows returns the rows that the lookup must make of all rows of the world.
func (c *kindCase) rows(w *kindWorld, missing string) []map[string]any {
	rows := []map[string]any{}
	presets := map[string]any{"title": "none", "price": -1.5, "stock": 9.0, "premium": true, "tags": []any{"t"}, "text": "-", "list": []any{},
		"count": 5.0, "total": 5.5, "size": 6.0, "points": 7.5, "flag": true}
	for _, id := range w.rows {
		row, lacks := make(map[string]any), false
		for _, column := range c.columns {
			from := column
			if c.from != "" {
				from = c.from
			}
			value, ok := w.values[from][id], w.values[from][id] != nil
			if !ok {
				lacks = true
				value, ok = presets[column], missing == "default"
			}
			if ok {
				row[column] = value
			}
		}
		if n, err := strconv.ParseFloat(id, 64); err == nil && !c.texts {
			row["id"] = n
		} else {
			row["id"] = "sku" + id
		}
		if !lacks || missing != "drop" {
			rows = append(rows, row)
		}
	}
	return rows
}

// rowsIn returns the rows of an answer.
func rowsIn(t *testing.T, a *rankd.Answer) (rows []map[string]any) {
	require.NoError(t, json.Unmarshal(enginetest.AnswerJSON(t, a)["candidates"], &rows))
	return rows
}

// Each kind of lookup finds what is in Redis, with each treatment of missing values, on each
// model.
func TestKindsOfLookup(t *testing.T) {
	enginetest.OnServers(t, func(t *testing.T, addr string) {
		rng := rand.New(rand.NewPCG(25, 2))
		w := newKindWorld(rng)
		enginetest.Store(t, addr, w.commands...)
		folder := make(map[string]string)
		source := func(texts bool) string {
			key := `"rows"`
			if texts {
				key = `"skus", "entity": "sku"`
			}
			return `{"node_id": "rows", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": ` + key + `}}, `
		}
		chain, last, whole := source(false), "rows", kindCase{}
		for i, c := range kindCases {
			for _, missing := range []string{"null", "default", "drop"} {
				folder[fmt.Sprintf("k%d%s", i, missing)] = source(c.texts) + `{"node_id": "out", "op": "lookup", "inputs": ["rows"], "params": {` + c.params(missing) + `}}`
			}
			if c.from == "" && !slices.ContainsFunc(c.columns, func(column string) bool { return slices.Contains(whole.columns, column) }) {
				id := "n" + strconv.Itoa(i)
				chain += fmt.Sprintf(`{"node_id": %q, "op": "lookup", "inputs": [%q], "params": {%s}}, `, id, last, c.params("null"))
				last, whole.columns = id, append(whole.columns, c.columns...)
			}
		}
		folder["chain"] = chain + fmt.Sprintf(`{"node_id": "out", "op": "take", "inputs": [%q], "params": {"count": 1000}}`, last)
		for _, policy := range []string{"", "[endpoint.policy]\n" + enginetest.CacheForAnHour} {
			for _, model := range enginetest.Models {
				e := enginetest.Open(t, rankd.Options{Redis: addr, Model: model, Registry: kindTables(policy), Plans: enginetest.Plans(folder)})
				for range 2 { // the second time from memory, if there is one
					for i, c := range kindCases {
						for _, missing := range []string{"null", "default", "drop"} {
							a, err := e.Rank(t.Context(), rankd.Request{Plan: fmt.Sprintf("k%d%s", i, missing), UserID: 1})
							require.NoError(t, err, c)
							require.Equal(t, c.rows(w, missing), rowsIn(t, a), "%+v %s %s", c, missing, model)
						}
					}
					a, err := e.Rank(t.Context(), rankd.Request{Plan: "chain", UserID: 1})
					require.NoError(t, err)
					require.Equal(t, whole.rows(w, "null"), rowsIn(t, a), model)
				}
			}
		}
	})
}

// The value of an id in a collection is read each time.
func TestMembersAreNotKept(t *testing.T) {
	enginetest.OnServers(t, func(t *testing.T, addr string) {
		enginetest.Store(t, addr, []string{"RPUSH", "rows", "1", "2"}, []string{"SADD", "members", "2"})
		e := enginetest.Open(t, rankd.Options{Redis: addr, Registry: kindTables("[endpoint.policy]\n" + enginetest.CacheForAnHour), Plans: enginetest.Plans(map[string]string{"p": `
			{"node_id": "rows", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}},
			{"node_id": "out", "op": "lookup", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "members", "kind": "member", "value": "flag"}}`})})
		flags := func() (flags []any) {
			a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
			require.NoError(t, err)
			for _, row := range rowsIn(t, a) {
				flags = append(flags, row["flag"])
			}
			return flags
		}
		assert.Equal(t, []any{false, true}, flags())
		enginetest.Store(t, addr, []string{"SADD", "members", "1"})
		assert.Equal(t, []any{true, true}, flags())
	})
}
