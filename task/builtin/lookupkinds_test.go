package builtin_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Kinds that do not go with the other parameters are refused when the plan is loaded.
func TestLookupRefusesKinds(t *testing.T) {
	for _, tt := range []struct {
		params map[string]any
		text   string
	}{
		{map[string]any{"kind": "stream", "value": "likes"}, "params.kind: must be"},
		{map[string]any{"kind": "json", "value": "likes"}, `params.kind: is "json", which takes fields alone`},
		{map[string]any{"kind": "hash", "fields": []any{"likes"}, "value": "price"}, `params.kind: is "hash", which takes fields alone`},
		{map[string]any{"kind": "counter"}, `params.kind: is "counter", which takes value alone`},
		{map[string]any{"kind": "counter", "value": "title"}, `params.value: is title of type string, and kind "counter" is for int or float`},
		{map[string]any{"kind": "list_length", "value": "price"}, `params.value: is price of type float, and kind "list_length" is for int`},
		{map[string]any{"kind": "score", "value": "price"}, `params.key: differs by row, and kind "score" asks one key for all rows`},
		{map[string]any{"kind": "score", "key": "z", "value": "likes"}, `params.value: is likes of type int, and kind "score" is for float`},
		{map[string]any{"kind": "bit", "key": "z", "value": "premium", "max_age": 5}, "params.max_age: needs fields"},
		{map[string]any{"kind": "member", "key": "z:{title}", "value": "premium"}, `params.key: differs by row, and kind "member" asks one key for all rows`},
		{map[string]any{"kind": "bit", "key": "z", "value": "premium", "by": "s1"}, `params.by: is s1 of type string, and kind "bit" is for int`},
	} {
		_, err := runLookup(t, lookupCase(tt.params, 7))
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, tt.text)
		assert.ErrorContains(t, err, tt.text)
	}
}

// A string id cannot be the offset of a bit.
func TestABitNeedsIntegers(t *testing.T) {
	const nodes = `{"schema_version": 1, "plan_name": "p", "outputs": ["out"], "nodes": [
		{"node_id": "in", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "k", "entity": "sku"}},
		{"node_id": "out", "op": "lookup", "inputs": ["in"], "params": {"endpoint": "ep_0001", "key": "k", "kind": "bit", "value": "premium"}}]}`
	tables := lookupTables()
	folder := tables.FS()
	folder["entities.toml"] = entityTable
	reg, err := registry.Load(folder, "test")
	require.NoError(t, err)
	_, err = plan.Load("p.plan.json", []byte(nodes), builtin.Catalog(), reg)
	assert.ErrorContains(t, err, `reads the id, which is a string of entity "sku"`)
	_, err = plan.Load("p.plan.json", []byte(strings.Replace(nodes, `"bit"`, `"member"`, 1)), builtin.Catalog(), reg)
	assert.NoError(t, err)
}

// One command asks a collection for 1,024 ids, each once.
func TestLookupAsksForManyMembers(t *testing.T) {
	ids := make([]int64, 2500)
	for i := range ids {
		ids[i] = int64(i % 2100)
	}
	for _, kind := range []string{"score", "member", "bit"} {
		commands, asked := 0, 0
		value := map[string]string{"score": "price", "member": "premium", "bit": "premium"}[kind]
		c := lookupCase(map[string]any{"kind": kind, "key": "z:{user}", "value": value}, ids...)
		c.UserID, c.Redis = 42, func(command []string) any {
			commands++
			require.Equal(t, "z:42", command[1])
			if kind == "bit" {
				require.Len(t, command, 3)
				asked++
				return len(command[2]) % 2
			}
			var answers []any
			for _, id := range command[2:] {
				asked++
				if kind == "score" {
					answers = append(answers, id+".5")
				} else {
					answers = append(answers, len(id)%2)
				}
			}
			return answers
		}
		out, err := runLookup(t, c)
		require.NoError(t, err)
		assert.Equal(t, 2100, asked)
		assert.Equal(t, map[string]int{"score": 3, "member": 3, "bit": 2100}[kind], commands)
		for i := range ids {
			want := any(float64(ids[i]) + 0.5)
			if kind != "score" {
				want = len(strconv.FormatInt(ids[i], 10))%2 == 1
			}
			require.Equal(t, want, rankdtest.Values(out, map[string]registry.KeyID{"price": 6002, "premium": 6004}[value])[i])
		}
	}
}

// The error of each kind names its command, its key, and what is missing.
func TestLookupKindsFail(t *testing.T) {
	for _, tt := range []struct {
		params map[string]any
		reply  any
		class  error
		text   string
	}{
		{map[string]any{"kind": "json", "fields": []any{"likes"}}, "{", task.ErrInvalid, `field "likes" of "item:7" is "{", which is not a JSON document`},
		{map[string]any{"kind": "json", "fields": []any{"likes"}}, `{"likes": "1"}`, task.ErrInvalid, `field "likes" of "item:7" is "\"1\"", which is not of type int`},
		{map[string]any{"kind": "json", "fields": []any{"likes"}}, `{"likes": null}`, task.ErrInvalid, `field "likes" of "item:7" is missing`},
		{map[string]any{"kind": "json", "fields": []any{"likes"}}, []any{}, task.ErrRedis, `GET item:7: reply is array, want bulk string`},
		{map[string]any{"kind": "counter", "value": "likes"}, "many", task.ErrInvalid, `"item:7" is "many", which is not of type int`},
		{map[string]any{"kind": "set_length", "value": "likes"}, errors.New("WRONGTYPE a list"), task.ErrRedis, `SCARD item:7: WRONGTYPE a list`},
		{map[string]any{"kind": "set_length", "value": "likes"}, nil, task.ErrRedis, `SCARD item:7: reply is null`},
		{map[string]any{"kind": "score", "key": "z", "value": "price"}, []any{nil}, task.ErrInvalid, `"7" of "z" is missing`},
		{map[string]any{"kind": "score", "key": "z", "value": "price"}, []any{"inf"}, task.ErrInvalid, `"7" of "z" is "inf", which is not of type float`},
		{map[string]any{"kind": "score", "key": "z", "value": "price"}, []any{"1", "2"}, task.ErrRedis, "ZMSCORE z: reply is array of 2, want array of 1"},
		{map[string]any{"kind": "member", "key": "z", "value": "premium"}, errors.New("ERR unknown command"), task.ErrRedis, "SMISMEMBER z: ERR unknown command"},
		{map[string]any{"kind": "bit", "key": "z", "value": "premium"}, "1", task.ErrRedis, "GETBIT z: reply is bulk string, want integer"},
	} {
		tt.params["missing"] = "fail"
		c := lookupCase(tt.params, 7)
		c.Redis = func([]string) any { return tt.reply }
		_, err := runLookup(t, c)
		assert.ErrorIs(t, err, tt.class, tt.text)
		assert.ErrorContains(t, err, tt.text)
	}
}

// A partial node leaves out all rows that it looked up in a collection of another type.
func TestLookupOfMembersPartial(t *testing.T) {
	for reply, want := range map[any]int{errors.New("WRONGTYPE a list"): 3, nil: 0} {
		c := lookupCase(map[string]any{"kind": "member", "key": "z", "value": "premium"}, 7, 8, 7)
		var shortfall task.Shortfall
		c.Partial, c.Shortfall = true, &shortfall
		c.Redis = func([]string) any {
			if reply != nil {
				return reply
			}
			return []any{1, 0}
		}
		out, err := runLookup(t, c)
		require.NoError(t, err)
		assert.Equal(t, 3-want, out.Len())
		assert.Equal(t, want, shortfall.Dropped)
	}
}

// Documents can be too old, as hashes can.
func TestLookupOfOldDocuments(t *testing.T) {
	c := lookupCase(map[string]any{"kind": "json", "fields": []any{"likes", "at"}, "max_age": 0.5, "timestamp": "at", "missing": "drop"}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	c.Arrival = time.Unix(100, 500_000_000)
	c.Redis = rankdtest.Replies(map[string]any{
		"GET item:1": `{"likes": 1, "c_ts": 100}`, "GET item:2": `{"likes": 1, "c_ts": 99}`, "GET item:3": `{"c_ts": 2e2, "likes": 1}`,
		"GET item:4": `{"likes": 1}`, "GET item:5": `{"likes": 1, "c_ts": "soon"}`, "GET item:6": `{"likes": 1, "c_ts": 100`,
		"GET item:7": `{"likes": 1, "c_ts": 100.5}`, "GET item:8": `{"likes": 1, "c_ts": 100000}`, "GET item:9": `{"likes": 1, "c_ts": null}`,
	})
	c.Outside = new(task.Outside)
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 3}, rankdtest.IDs(out))
	assert.Equal(t, int64(4), c.Outside.Malformed())
}

// What is wrong with one member of a document costs no other one, and is counted for that one alone. Of a name that
// stands twice the last value counts, as in requests.
func TestDocumentsKeepWhatIsSound(t *testing.T) {
	for document, want := range map[string]struct {
		likes, title any
		malformed    map[string]uint64
	}{
		`{"likes": 5, "ti": "Sale \ud83c"}`:                          {int64(5), nil, map[string]uint64{"title": 1}},
		`{"likes": 5, "more": "\ud83c", "ti": "ok"}`:                 {int64(5), "ok", nil},
		"{\"likes\": 5, \"ti\": \"\xff\"}":                           {int64(5), nil, map[string]uint64{"title": 1}},
		"{\"likes\": 5, \"\xff\": {\"a\": 1}, \"ti\": \"ok\"}":       {int64(5), "ok", nil},
		`{"likes": 5, "ti": "a", "likes": 6}`:                        {int64(6), "a", nil},
		`{"likes": 5, "ti": "a", "likes": "x"}`:                      {nil, "a", map[string]uint64{"likes": 1}},
		`{"likes": 5, "ti": "a", "ti": null}`:                        {int64(5), nil, nil},
		`{"likes": 9, "zz": {"a": 1, "a": 2}, "ti": "\ud83c\udf89"}`: {int64(9), "🎉", nil},
		"\ufeff" + `{"likes": 5, "ti": "a"}`:                         {int64(5), "a", nil},
		`{"likes": 5, "ti": "a"`:                                     {nil, nil, map[string]uint64{"likes": 1, "title": 1}},
		`{"likes": 5, "ti": "a"} x`:                                  {nil, nil, map[string]uint64{"likes": 1, "title": 1}},
	} {
		c := lookupCase(map[string]any{"kind": "json", "fields": []any{"likes", "title"}}, 7)
		c.Redis = func([]string) any { return document }
		c.Outside = new(task.Outside)
		out, err := runLookup(t, c)
		require.NoError(t, err, document)
		assert.Equal(t, []any{want.likes}, rankdtest.Values(out, 6001), document)
		assert.Equal(t, []any{want.title}, rankdtest.Values(out, 6003), document)
		for key, values := range c.Outside.ByKey() {
			assert.Equal(t, want.malformed[key], values.Malformed, "%s of %s", key, document)
		}
	}
}

// A column's values can be looked up in a collection.
func TestLookupOfMembersByAColumn(t *testing.T) {
	c := lookupCase(map[string]any{"kind": "member", "key": "brands:{user}", "by": "s1", "value": "premium"}, 1, 2, 3, 4)
	c.Inputs = rankdtest.Inputs(rankdtest.WithStrings(rankdtest.Rows(1, 2, 3, 4), 3001, "a", nil, "b", "a"))
	c.UserID, c.Redis = 42, rankdtest.Replies(map[string]any{"SMISMEMBER brands:42 a b": []any{1, 0}})
	out, err := runLookup(t, c)
	require.NoError(t, err)
	assert.Equal(t, []any{true, nil, false, true}, rankdtest.Values(out, 6004))
}

// entityTable declares an entity whose ids are strings.
var entityTable = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"sku\"\nid = \"string\"\n")}
