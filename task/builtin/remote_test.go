package builtin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// remoteTables are keys of all types, an http endpoint, and parameters.
var remoteTables = registrytest.Tables{
	Keys: `
key = [
 {id = 1, name = "id", type = "int"},
 {id = 1001, name = "f1", type = "float", nullable = true, writable = true}, {id = 1002, name = "f2", type = "float", nullable = true, writable = true},
 {id = 2001, name = "solid", type = "float", writable = true, default = 0.5},
 {id = 3001, name = "s1", type = "string", nullable = true, writable = true}, {id = 3002, name = "s2", type = "string", nullable = true, writable = true, default = "none"},
 {id = 5001, name = "i1", type = "int", nullable = true, writable = true}, {id = 5002, name = "i2", type = "int", nullable = true, writable = true, default = 7},
 {id = 5101, name = "b1", type = "bool", nullable = true, writable = true, default = true},
 {id = 5201, name = "t1", type = "string_set", nullable = true, writable = true, default = ["x", "a"]}, {id = 5202, name = "t2", type = "string_set", nullable = true, writable = true},
 {id = 6001, name = "fixed", type = "float"},
]`,
	Params: `
param = [{id = 1, name = "hour", type = "int"}, {id = 2, name = "lang", type = "string", nullable = true}, {id = 3, name = "weight", type = "float"},
 {id = 4, name = "fast", type = "bool"}, {id = 5, name = "seen", type = "int_list", context = true}, {id = 6, name = "bm25", type = "float_list"}]`,
	Endpoints: `
[[endpoint]]
id = "ep_0001"
name = "redis"
kind = "redis"
host = "h"
port = 1
[[endpoint]]
id = "ep_0002"
name = "model"
kind = "http"
url = "http://h/score"`,
}

func specNamed(t testing.TB, op string) task.Spec {
	schema, ok := builtin.Catalog().OpSchema(op)
	require.True(t, ok)
	return *schema.Impl.(*task.Spec)
}

var remoteRegistry = sync.OnceValue(func() *registry.Registry { return remoteTables.Load() })

// remoteCase is a case of a node that asks a service. The service answers with the given text.
func remoteCase(params map[string]any, answer string, in rowset.RowSet) rankdtest.Case {
	params["endpoint"] = "ep_0002"
	return rankdtest.Case{Params: params, Registry: remoteRegistry(), UserID: 9, Inputs: rankdtest.Inputs(in),
		Service: func([]byte) ([]byte, error) { return []byte(answer), nil }}
}

// The table has the exact requests that a service gets.
func TestRemoteRequest(t *testing.T) {
	rows := rankdtest.Rows(math.MaxInt64, 2, math.MinInt64)
	rows = rankdtest.WithFloats(rows, 1001, 0.1, nil, 1e300)
	rows = rankdtest.WithInts(rows, 5001, int64(math.MaxInt64), nil, int64(1<<53+1))
	rows = rankdtest.WithStrings(rows, 3001, "a\"\n", nil, "é\xff")
	rows = rankdtest.WithBools(rows, 5101, true, false, nil)
	rows = rankdtest.WithSets(rows, 5201, []string{"b", "a"}, nil, []string{})
	rows = rankdtest.WithFloats(rows, 1002, nil, nil, nil)
	rows = rankdtest.Select(rows, 2, 0)
	c := remoteCase(map[string]any{"send": []any{"f1", "i1", "s1", "b1", "t1", "f2"}, "columns": []any{"f2"},
		"params": []string{"hour", "lang", "weight", "fast", "seen", "bm25"}}, `{"columns":{"f2":[1,2]}}`, rows)
	c.RequestParams = map[string]any{"hour": int64(1<<53 + 1), "weight": 0.5, "fast": true, "bm25": []any{1, nil, 0.5}}
	c.Service = func(request []byte) ([]byte, error) {
		assert.Equal(t, `{"node":"task","user_id":9,"params":{"hour":9007199254740993,"lang":null,"weight":0.5,"fast":true,"seen":null,"bm25":[1,null,0.5]},`+
			`"ids":[-9223372036854775808,9223372036854775807],"columns":{"f1":[1e+300,0.1],"i1":[9007199254740993,9223372036854775807],`+
			`"s1":["é�","a\"\n"],"b1":[null,true],"t1":[[],["a","b"]],"f2":[null,null]}}`, string(request))
		return []byte(`{"columns":{"f2":[1,2]}}`), nil
	}
	out, err := rankdtest.Run(specNamed(t, "remote"), c)
	require.NoError(t, err)
	assert.Equal(t, []any{1.0, 2.0}, rankdtest.Values(out, 1002))
}

// A service learns the label of the node that asks, or its id if it has none.
func TestRemoteRequestNamesTheUser(t *testing.T) {
	c := remoteCase(map[string]any{"columns": []any{"f2"}}, "", rankdtest.Rows(1))
	c.Registry, c.UserID, c.UserIDText = textRegistry(), 0, "u\"é"
	c.Service = func(request []byte) ([]byte, error) {
		assert.Equal(t, `{"node":"task","user_id":"u\"é","params":{},"ids":[1],"columns":{}}`, string(request))
		return []byte(`{"columns":{"f2":[1]}}`), nil
	}
	_, err := rankdtest.Run(specNamed(t, "core::remote"), c)
	require.NoError(t, err)
}

// textRegistry is remoteRegistry with users and products whose ids are strings.
var textRegistry = sync.OnceValue(func() *registry.Registry {
	tables := remoteTables.FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n[[entity]]\nname = \"product\"\nid = \"string\"\n")}
	params := strings.TrimSuffix(string(tables["params.toml"].Data), "]") + `, {id = 7, name = "muted", type = "string_list", context = true}]`
	tables["params.toml"] = &fstest.MapFile{Data: []byte(params)}
	reg, err := registry.Load(tables, "test")
	if err != nil {
		panic(err)
	}
	return reg
})

// Services get and choose rows by strings if the ids of their entity are strings.
func TestRemoteOfIDsThatAreStrings(t *testing.T) {
	for name, c := range map[string]struct {
		op, answer string
		params     map[string]any
		want       []string // ids
		err        string
	}{
		"columns":           {"core::remote", `{"columns":{"f1":[1,2,3]}}`, map[string]any{}, []string{"b", "\"é", "b"}, ""},
		"candidates":        {"core::remote_candidates", `{"ids":["x","b","x","\u00e9","z"],"columns":{"f1":[1,2,3,4,5]}}`, map[string]any{"entity": "product", "limit": 4}, []string{"x", "b", "x", "é"}, ""},
		"of another entity": {"core::remote_candidates", `{"ids":[9007199254740993],"columns":{"f1":[1]}}`, map[string]any{}, []string{"9007199254740993"}, ""},
		"an integer":        {"core::remote_candidates", `{"ids":["x",7],"columns":{"f1":[1,2]}}`, map[string]any{"entity": "product"}, nil, `ids[1] is "7", must be a string of 1 to 256 bytes`},
		"beyond the limit":  {"core::remote_candidates", `{"ids":["x",""],"columns":{"f1":[1,2]}}`, map[string]any{"entity": "product", "limit": 1}, nil, `ids[1] is "\"\"", must be a string of 1 to 256 bytes`},
		"too long":          {"core::remote_candidates", `{"ids":["` + strings.Repeat("x", 257) + `"],"columns":{"f1":[1]}}`, map[string]any{"entity": "product"}, nil, `must be a string of 1 to 256 bytes`},
		"a string":          {"core::remote_candidates", `{"ids":["x"],"columns":{"f1":[1]}}`, map[string]any{}, nil, "must be an integer of 64 bits"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := rowset.NewIDDict()
			rows, err := ids.Number(nil, []byte("a"), []byte("b"), []byte("\"é"), []byte("b"))
			require.NoError(t, err)
			c.params["columns"] = []any{"f1"}
			k := remoteCase(c.params, "", rankdtest.Rows(rows[1:]...))
			k.Registry, k.UserID, k.UserIDText, k.Entity, k.IDs = textRegistry(), 0, "u", "product", ids
			k.Service = func(request []byte) ([]byte, error) {
				assert.Contains(t, string(request), `"ids":["b","\"é","b"]`)
				return []byte(c.answer), nil
			}
			out, err := rankdtest.Run(specNamed(t, c.op), k)
			if c.err != "" {
				assert.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, id := range rankdtest.IDs(out) {
				if c.params["entity"] == nil && c.op == "core::remote_candidates" {
					got = append(got, fmt.Sprint(id))
				} else {
					got = append(got, ids.Texts().At(id))
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestRemoteRequestNamesTheNode(t *testing.T) {
	for label, want := range map[any]string{nil: "task", "": "task", "brand \"x\"": `brand \"x\"`} {
		c := remoteCase(map[string]any{"send": []any{}, "columns": []any{"f2"}, "trace": label}, "", rankdtest.Rows(1))
		c.Service = func(request []byte) ([]byte, error) {
			assert.Contains(t, string(request), `{"node":"`+want+`","user_id":9`)
			return []byte(`{"columns":{"f2":[1]}}`), nil
		}
		_, err := rankdtest.Run(specNamed(t, "remote"), c)
		require.NoError(t, err)
	}
}

// Each value of an answer has the key's type, or is missing.
func TestRemoteValues(t *testing.T) {
	values := `[1, 2.0, 1.5, -0, 1e3, 9223372036854775807, 9223372036854775808, 1e999, true, "x", "1", null, ["b","a","b"], [1], {}, ""]`
	long := 16
	ids := make([]int64, long)
	for i := range ids {
		ids[i] = int64(i)
	}
	null := []any{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
	with := func(base []any, set map[int]any) []any {
		all := slices.Clone(base)
		for i, v := range set {
			all[i] = v
		}
		return all
	}
	fill := func(v any) []any { return slices.Repeat([]any{v}, long) }
	for key, want := range map[string]struct {
		id      registry.KeyID
		values  map[int]any
		ifUnset any
	}{
		"f1": {1001, map[int]any{0: 1.0, 1: 2.0, 2: 1.5, 3: math.Copysign(0, -1), 4: 1000.0, 5: 9223372036854775807.0, 6: 9223372036854775808.0}, nil},
		"i2": {5002, map[int]any{0: int64(1), 1: int64(2), 3: int64(0), 4: int64(1000), 5: int64(math.MaxInt64)}, int64(7)},
		"b1": {5101, map[int]any{8: true}, true},
		"s2": {3002, map[int]any{9: "x", 10: "1", 15: ""}, "none"},
		"t1": {5201, map[int]any{12: []string{"a", "b"}}, []string{"a", "x"}},
	} {
		doc := fmt.Sprintf(`{"columns":{%q:%s},"more":[{"x":1}]}`, key, values)
		out, err := rankdtest.Run(specNamed(t, "remote"), remoteCase(map[string]any{"columns": []any{key}}, doc, rankdtest.Rows(ids...)))
		require.NoError(t, err)
		assert.Equal(t, with(null, want.values), rankdtest.Values(out, want.id), key)
		if want.ifUnset != nil {
			out, err = rankdtest.Run(specNamed(t, "remote"), remoteCase(map[string]any{"columns": []any{key}, "missing": "default"}, doc, rankdtest.Rows(ids...)))
			require.NoError(t, err)
			assert.Equal(t, with(fill(want.ifUnset), want.values), rankdtest.Values(out, want.id), key)
		}
		_, err = rankdtest.Run(specNamed(t, "remote"), remoteCase(map[string]any{"columns": []any{key}, "missing": "fail"}, doc, rankdtest.Rows(ids...)))
		assert.ErrorContains(t, err, "columns."+key+"[", key)
	}
}

// Answers that are refused, each with a text that says why.
func TestRemoteAnswersThatAreRefused(t *testing.T) {
	for answer, want := range map[string]string{
		``:                                      "not JSON: the body is empty",
		` `:                                     "not JSON: the body is empty",
		`{`:                                     "not JSON: the body ends in the middle of a document",
		`<html>`:                                "not JSON",
		`null`:                                  "the answer is \"null\", must be an object",
		`{"columns":[1]}`:                       "columns is \"[1]\", must be an object",
		`{"columns":{"f1":3}}`:                  "columns.f1 is \"3\", must be an array",
		`{"columns":{"f1":[1]}}`:                "columns.f1 has 1 values, must have 2",
		`{"columns":{"f1":[1,2,3]}}`:            "columns.f1 has more than 2 values",
		`{"columns":{}}`:                        "columns.f1 is missing",
		`{}`:                                    "columns.f1 is missing",
		`{"columns":{"f1":[[0.5],[0.25]]}}`:     "columns.f1 has no value of type float: [0.5] is none",
		`{"columns":{"f1":[null,"0.25"]}}`:      `columns.f1 has no value of type float: "0.25" is none`,
		`{"columns":{"f1":[1,2],"f1":[1]}}`:     "columns.f1 has 1 values, must have 2",
		`{"columns":{"f1":[1,2]},"columns":{}}`: "columns.f1 is missing",
		`{"columns":{"f1":[1,2]}} x`:            "something follows the JSON document",
		`{"columns":{"f1":[1,NaN]}}`:            "not JSON",
		`{"columns":{"f1":[1,` + strings.Repeat("[", 20000): "not JSON",
	} {
		_, err := rankdtest.Run(specNamed(t, "remote"), remoteCase(map[string]any{"columns": []any{"f1"}}, answer, rankdtest.Rows(1, 2)))
		require.ErrorContains(t, err, want, answer)
		assert.Less(t, len(err.Error()), 500)
	}
}

// TestRemoteAnswersOfAnotherType: values of another type are told of, as long as some are of the column's. Nulls are
// not, even if all are. Of a name that stands twice the last value counts.
func TestRemoteAnswersOfAnotherType(t *testing.T) {
	for answer, want := range map[string]struct {
		values []any
		told   *task.MalformedIDs
	}{
		`{"columns":{"f1":[1,"x"],"b1":[true,false]}}`:                                                     {[]any{1.0, nil}, &task.MalformedIDs{Count: 1, Of: 4, First: `"x"`, Key: "f1", Values: true}},
		`{"columns":{"f1":[1,[2]],"b1":[1,true]}}`:                                                         {[]any{1.0, nil}, &task.MalformedIDs{Count: 2, Of: 4, First: `[2]`, Key: "f1", Values: true}},
		`{"columns":{"f1":[null,null],"b1":[null,null]}}`:                                                  {[]any{nil, nil}, nil},
		`{"columns":{"f1":["x","y"],"b1":[null,null],"f1":[1,2]},"more":"\ud83c"}`:                         {[]any{1.0, 2.0}, nil},
		"\ufeff" + `{"columns":{"f1":["x","y"],"b1":[true,true]},"columns":{"f1":[3,4],"b1":[true,true]}}`: {[]any{3.0, 4.0}, nil},
	} {
		c := remoteCase(map[string]any{"columns": []any{"f1", "b1"}}, answer, rankdtest.Rows(1, 2))
		var shortfall task.Shortfall
		c.Shortfall = &shortfall
		out, err := rankdtest.Run(specNamed(t, "remote"), c)
		require.NoError(t, err, answer)
		assert.Equal(t, want.values, rankdtest.Values(out, 1001), answer)
		assert.Equal(t, want.told, shortfall.Malformed, answer)
	}
	out, err := rankdtest.Run(specNamed(t, "remote_candidates"), remoteCase(map[string]any{}, `{"ids":[1,2],"ids":[3]}`, rankdtest.Rows(9)))
	require.NoError(t, err)
	assert.Equal(t, []int64{3}, rankdtest.IDs(out))
}

func TestRemoteCandidates(t *testing.T) {
	spec := specNamed(t, "remote_candidates")
	for _, c := range []struct {
		answer string
		params map[string]any
		ids    []int64
		values []any
		err    string
	}{
		{answer: `{"ids":[]}`, ids: []int64{}},
		{answer: `{"ids":[5,-3,5,9223372036854775807]}`, ids: []int64{5, -3, 5, math.MaxInt64}},
		{answer: `{"columns":{"f1":[0.5,"x",2]},"ids":[1,2,3]}`, params: map[string]any{"columns": []any{"f1"}}, ids: []int64{1, 2, 3}, values: []any{0.5, nil, 2.0}},
		{answer: `{"ids":[1,2,3],"columns":{"f1":[0.5,null,2]}}`, params: map[string]any{"columns": []any{"f1"}, "limit": 2}, ids: []int64{1, 2}, values: []any{0.5, nil}},
		{answer: `{"ids":[1,2,3],"columns":{"f1":[0.5,null]}}`, params: map[string]any{"columns": []any{"f1"}, "limit": 2}, err: "columns.f1 has 2 values, must have 3"},
		{answer: `{"columns":{}}`, err: "ids is missing"},
		{answer: `{"ids":7}`, err: "ids is \"7\", must be an array"},
		{answer: `{"ids":[1,"2"]}`, err: `ids[1] is "\"2\"", must be an integer of 64 bits`},
		{answer: `{"ids":[1.5]}`, err: `ids[0] is "1.5", must be an integer of 64 bits`},
		{answer: `{"ids":[9223372036854775808]}`, err: "must be an integer of 64 bits"},
	} {
		if c.params == nil {
			c.params = map[string]any{}
		}
		out, err := rankdtest.Run(spec, remoteCase(c.params, c.answer, rankdtest.Rows(9)))
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, c.answer)
			continue
		}
		require.NoError(t, err, c.answer)
		assert.Equal(t, c.ids, rankdtest.IDs(out), c.answer)
		assert.Equal(t, c.values, rankdtest.Values(out, 1001), c.answer)
	}
	limited := remoteCase(map[string]any{}, `{"ids":[1,2,3]}`, rankdtest.Rows(9))
	limited.MaxRows = 2
	_, err := rankdtest.Run(spec, limited)
	assert.ErrorIs(t, err, task.ErrTooManyRows)
}

// A body without rows does not ask the service. A body that nobody waits for does not ask,
// either.
func TestRemoteAsksOnlyIfItMust(t *testing.T) {
	for _, op := range []string{"remote", "remote_candidates"} {
		c := remoteCase(map[string]any{"columns": []any{"f1"}}, "", rankdtest.Select(rankdtest.Rows(1, 2)))
		c.Service = func([]byte) ([]byte, error) { return nil, errors.New("asked") }
		out, err := rankdtest.Run(specNamed(t, op), c)
		require.NoError(t, err, op)
		assert.Empty(t, rankdtest.IDs(out))
		assert.NotNil(t, out.Batch.Float(1001))
		c.Inputs = rankdtest.Inputs(rankdtest.Rows(1))
		_, err = rankdtest.Run(specNamed(t, op), c)
		require.EqualError(t, err, "asked")
		c.Cancelled = true
		_, err = rankdtest.Run(specNamed(t, op), c)
		require.ErrorIs(t, err, task.ErrCancelled)
	}
}

// A failure of the service has class ErrRemote and names the endpoint. A panic in a document is
// contained.
func TestRemoteErrors(t *testing.T) {
	c := remoteCase(map[string]any{"columns": []any{"f1"}, "send": []any{"f2"}}, "", rankdtest.WithFloats(rankdtest.Rows(1), 1002, 0.5))
	c.Service = nil
	_, err := rankdtest.Run(specNamed(t, "remote"), c)
	require.ErrorIs(t, err, task.ErrRemote)
	require.ErrorIs(t, err, remote.ErrConnect)
	assert.EqualError(t, err, "endpoint ep_0002 (model): http h:80: cannot connect: the case has no Service")
	c.Inputs = rankdtest.Inputs(rowset.Dense(rowset.NewBatch([]int64{7}, &rowset.FloatColumn{Key: 1002, Values: []float64{math.Inf(1)}})))
	_, err = rankdtest.Run(specNamed(t, "remote"), c)
	require.ErrorIs(t, err, task.ErrInvalid)
	assert.ErrorContains(t, err, "cannot send column 1002 (f2): row 0 has id 7 and is not finite")
}

// Plans with hostile parameters are refused when they load, with the place of the fault.
func TestRemoteParameters(t *testing.T) {
	for _, c := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{}, "nodes[0].params.columns"},
		{map[string]any{"columns": []any{}}, "nodes[0].params.columns"},
		{map[string]any{"columns": []any{"f1", "f1"}}, "nodes[0].params.columns[1]: f1 is there twice"},
		{map[string]any{"columns": []any{"nothing"}}, "nodes[0].params.columns[0]"},
		{map[string]any{"columns": []any{"fixed"}}, "nodes[0].params.columns[0]"},
		{map[string]any{"columns": []any{"solid"}}, "nodes[0].params.columns[0]: solid is not nullable, so missing must be default or fail"},
		{map[string]any{"columns": []any{"f1"}, "missing": "default"}, "nodes[0].params.columns[0]: f1 has no default"},
		{map[string]any{"columns": []any{"f1"}, "missing": "drop"}, "nodes[0].params.missing"},
		{map[string]any{"columns": []any{"f1"}, "send": []any{"id"}}, "nodes[0].params.send[0]"},
		{map[string]any{"columns": []any{"f1"}, "params": []any{"minute"}}, `nodes[0].params.params[0]: there is no parameter "minute" in the registry`},
		{map[string]any{"columns": []any{"f1"}, "endpoint": "ep_0001"}, "nodes[0].params.endpoint"},
	} {
		endpoint := c.params["endpoint"]
		k := remoteCase(c.params, `{}`, rankdtest.Rows(1))
		if endpoint != nil {
			k.Params["endpoint"] = endpoint
		}
		_, err := rankdtest.Run(specNamed(t, "remote"), k)
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, "%v", c.params)
		assert.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "\n")
	}
}

// A service sends each column back. The task gives each row the value that a reference reads
// with the standard library, whatever the rows are.
func TestRemoteAgainstAReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	keys := map[string]registry.KeyID{"f1": 1001, "f2": 1002, "i1": 5001, "b1": 5101, "s1": 3001, "t1": 5201}
	names := []any{"f1", "f2", "i1", "b1", "s1", "t1"}
	compared := 0
	defer func() { assert.Greater(t, compared, 50) }()
	for range 200 {
		in := rowsettest.RowSet(rng, 1100)
		send := []any{}
		for _, name := range names {
			if in.Batch.Has(keys[name.(string)]) {
				send = append(send, name)
			}
		}
		if len(send) == 0 {
			continue
		}
		c := remoteCase(map[string]any{"send": send, "columns": send}, "", in)
		asked := false
		c.Service = func(request []byte) ([]byte, error) {
			asked = true
			var doc struct {
				IDs     []json.Number              `json:"ids"`
				Columns map[string]json.RawMessage `json:"columns"`
			}
			require.NoError(t, json.Unmarshal(request, &doc))
			for i, id := range doc.IDs {
				require.Equal(t, fmt.Sprint(in.ID(i)), id.String())
			}
			return json.Marshal(map[string]any{"columns": doc.Columns})
		}
		out, err := rankdtest.Run(specNamed(t, "remote"), c)
		if err != nil {
			require.ErrorContains(t, err, "is not finite")
			continue
		}
		compared++
		require.Equal(t, in.Len() > 0, asked)
		require.Equal(t, rankdtest.IDs(in), rankdtest.IDs(out))
		for name, key := range keys {
			want := rankdtest.Values(in, key)
			got := rankdtest.Values(out, key)
			for i := range want {
				require.Equal(t, normal(want[i]), normal(got[i]), "%s of row %d", name, i)
			}
		}
	}
}

// normal returns a value with 0 for -0, and with replacements for what UTF-8 forbids.
func normal(v any) any {
	switch v := v.(type) {
	case float64:
		return v + 0
	case string:
		return string([]rune(v))
	case []string:
		all := []string{}
		for _, s := range v {
			all = append(all, string([]rune(s)))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	return v
}

// The result is an error of one line or one value per row, whatever a service answers.
func FuzzRemoteAnswer(f *testing.F) {
	for _, answer := range []string{`{"columns":{"f1":[1,null],"t1":[["a"],[]]}}`, `{"ids":[1,2],"columns":{"f1":[1,2],"t1":[3,[]]}}`, `{"columns":{"f1":[1e999,-0],"t1":[["\ud800"],null]}}`, `[`, `{"ids":[1`, `{"ids":["a","\u0000"],"columns":{"f1":[1,2],"t1":[null,null]}}`} {
		f.Add([]byte(answer))
	}
	specs := map[string]task.Spec{"remote": specNamed(f, "remote"), "remote_candidates": specNamed(f, "remote_candidates")}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for op, spec := range specs {
			c := remoteCase(map[string]any{"columns": []any{"f1", "t1"}}, string(answer), rankdtest.Rows(1, 2))
			out, err := rankdtest.Run(spec, c)
			if err != nil {
				require.NotErrorIs(t, err, task.ErrPanic, op)
				require.NotErrorIs(t, err, task.ErrContract, op)
				continue
			}
			require.NoError(t, out.Validate())
			if op == "remote" {
				require.Equal(t, 2, out.Len())
			}
		}
		c := remoteCase(map[string]any{"columns": []any{"f1", "t1"}, "entity": "product"}, string(answer), rankdtest.Rows(1, 2))
		c.Registry, c.UserID, c.UserIDText, c.IDs = textRegistry(), 0, "u", rowset.NewIDDict()
		if out, err := rankdtest.Run(specs["remote_candidates"], c); err == nil {
			require.NoError(t, out.Validate())
			for _, id := range rankdtest.IDs(out) {
				require.True(t, rowset.ValidID(c.IDs.Texts().At(id)))
			}
		} else {
			require.NotErrorIs(t, err, task.ErrPanic)
		}
	})
}
