package registry_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

const shortKeys = `
	[product]
	price = "float"
	tags = {type = "string_set", default = ["new"], nullable = false}
	in_stock = {type = "int", field = "stock", writable = false}

	[brand]
	brand_name = {type = "string", field = "name"}
	pinned = {type = "int", id = 40}`

const shortParams = `
	[context]
	season = "string"
	budget = {type = "float", nullable = true, override = true}

	[overrides]
	weight = "float"`

// locked returns the folder with the lock file that Lock writes for it.
func locked(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	text, _, err := registry.Lock(folder)
	require.NoError(t, err)
	folder[registry.LockFile] = &fstest.MapFile{Data: text}
	return folder
}

func TestShortForm(t *testing.T) {
	folder := locked(t, tables(map[string]string{"keys.toml": shortKeys, "params.toml": shortParams}))
	r, err := registry.Load(folder, "test")
	require.NoError(t, err)
	var keys []registry.Key
	for _, k := range r.Keys() {
		keys = append(keys, *k)
	}
	assert.Equal(t, []registry.Key{
		{ID: 1, Name: "id", Type: registry.Int},
		{ID: 40, Name: "pinned", Type: registry.Int, Nullable: true, Writable: true, Field: "pinned"},
		{ID: 41, Name: "brand_name", Type: registry.String, Nullable: true, Writable: true, Field: "name"},
		{ID: 42, Name: "in_stock", Type: registry.Int, Nullable: true, Field: "stock"},
		{ID: 43, Name: "price", Type: registry.Float, Nullable: true, Writable: true, Field: "price"},
		{ID: 44, Name: "tags", Type: registry.StringSet, Writable: true, Field: "tags", Default: []string{"new"}},
	}, keys)
	var params []registry.Param
	for _, p := range r.Params() {
		params = append(params, *p)
	}
	assert.Equal(t, []registry.Param{
		{ID: 1, Name: "budget", Type: registry.Float, Nullable: true, Context: true, Override: true},
		{ID: 2, Name: "season", Type: registry.String, Context: true},
		{ID: 3, Name: "weight", Type: registry.Float, Override: true},
	}, params)
	checkInvariants(t, r)
}

// A column that is removed, comes back or moves between the forms keeps its id. No other column
// gets that id.
func TestLockGivesNoIDTwice(t *testing.T) {
	folder := tables(map[string]string{"params.toml": "[context]\na = \"int\""})
	idOf := func(keys, name string) registry.KeyID {
		folder["keys.toml"] = &fstest.MapFile{Data: []byte(keys)}
		r, err := registry.Load(locked(t, folder), "test")
		require.NoError(t, err)
		k, ok := r.KeyByName(name)
		require.True(t, ok, name)
		return k.ID
	}
	long := "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n[[key]]\nid = 9\nname = \"old\"\ntype = \"float\"\n"
	assert.EqualValues(t, 9, idOf(long, "old"))
	assert.EqualValues(t, 10, idOf(long+"[p]\na = \"int\"", "a"))
	assert.EqualValues(t, 9, idOf("[p]\nold = \"float\"", "old"), "moved to the short form, and a has gone")
	assert.EqualValues(t, 11, idOf("[p]\nb = \"float\"", "b"), "not the id of old or a")
	assert.EqualValues(t, 10, idOf("[q]\na = \"float\"\nb = \"float\"", "a"), "back again")

	text, added, err := registry.Lock(folder)
	require.NoError(t, err)
	assert.Empty(t, added)
	assert.Equal(t, string(folder[registry.LockFile].Data), string(text))
	assert.Contains(t, string(text), "\n[keys]\nold = 9\na = 10\nb = 11\n\n[params]\na = 1\n")
}

func TestLockErrors(t *testing.T) {
	const id = "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	for name, c := range map[string]struct{ keys, params, lock, want string }{
		"no lock":        {"[p]\na = \"int\"", "", "", "keys.toml: p.a: has no id in registry.lock: run rankd registry lock"},
		"several":        {"[p]\na = \"int\"\nb = \"int\"\n[o]\nc = \"int\"", "", "", "keys.toml: o.c: and 2 more have no id in registry.lock: run rankd registry lock"},
		"a param":        {id, "[context]\na = \"int\"", "[keys]\na = 7", "params.toml: context.a: has no id in registry.lock: run rankd registry lock"},
		"not a table":    {id, "", "keys = 1", "registry.lock: line 1: unknown field keys"},
		"unknown":        {id, "", "[key]\na = 1", "registry.lock: line 1: unknown field key"},
		"not an id":      {id, "", "[keys]\na = \"x\"", "registry.lock: line 2: keys.a must be an integer, not a string"},
		"the row's id":   {id, "", "[keys]\na = 1", "registry.lock: keys.a: id must be 2 to 4294967295"},
		"too large":      {id, "", "[params]\na = 4294967296", "registry.lock: params.a: id must be 1 to 4294967295"},
		"bad name":       {id, "", "[keys]\n\"a b\" = 2", "registry.lock: keys.a b: a name consists of letters, digits and _"},
		"merged":         {id, "", "[keys]\na = 2\nb = 2", "registry.lock: keys.b: has id 2, as a has; drop the newer line and run rankd registry lock"},
		"another's":      {id + "[[key]]\nid = 2\nname = \"b\"\ntype = \"int\"", "", "[keys]\na = 2", "keys.toml: key 2: id 2 belongs to a in registry.lock, and no id is given twice"},
		"another id":     {id + "[[key]]\nid = 3\nname = \"a\"\ntype = \"int\"", "", "[keys]\na = 2", "keys.toml: key 3: has id 3, but registry.lock of a is 2 there"},
		"type":           {"[p]\na = \"text\"", "", "[keys]\na = 2", "keys.toml: p.a: unknown type \"text\", expected one of int, float, string, bool, string_set, vector(n), feature_bundle"},
		"default":        {"[p]\na = {type = \"int\", default = 0.5}", "", "[keys]\na = 2", "keys.toml: p.a: default must be an integer, not 0.5"},
		"field":          {"[p]\na = {typ = \"int\"}", "", "[keys]\na = 2", "keys.toml: line 2: unknown field p.a.typ"},
		"value":          {"[p]\na = 1", "", "[keys]\na = 2", "keys.toml: line 2: p.a must be the name of a type or a table, not an integer"},
		"name twice":     {"[p]\na = \"int\"\n[q]\na = \"int\"", "", "[keys]\na = 2", "keys.toml: q.a: name \"a\" is taken already\nkeys.toml: q.a: id is taken already"},
		"row id":         {"[p]\nid = \"int\"", "", "[keys]\nid = 2", "keys.toml: p.id: name \"id\" is taken already"},
		"column name":    {"[p]\n\"a b\" = {type = \"int\", id = 3}", "", "", "keys.toml: p.a b: name \"a b\" must consist of letters, digits and _"},
		"table name":     {"[\"p q\"]\na = \"int\"", "", "[keys]\na = 2", "keys.toml: p q.a: the name of the table must consist of letters, digits and _"},
		"param's table":  {id, "[contxt]\na = \"int\"", "[params]\na = 2", "params.toml: contxt.a: a parameter belongs in [context] or [overrides]"},
		"never set":      {id, "[overrides]\na = {type = \"int\", override = false}", "[params]\na = 2", "params.toml: overrides.a: nothing can set it: it is neither for the context nor for param_overrides"},
		"array of those": {"[[keys]]\na = 1", "", "", "keys.toml: line 1: unknown field keys"},
	} {
		t.Run(name, func(t *testing.T) {
			replace := map[string]string{"keys.toml": c.keys, "params.toml": c.params + "\n", registry.LockFile: c.lock}
			_, err := registry.Load(tables(replace), "test")
			assert.EqualError(t, err, c.want)
		})
	}
	_, _, err := registry.Lock(tables(map[string]string{"keys.toml": id + "[[key]]\nid = 4294967295\nname = \"a\"\ntype = \"int\"\n[p]\nb = \"int\""}))
	assert.EqualError(t, err, "keys.toml: p.b: id must be 1 to 4294967295")
	_, _, err = registry.Lock(tables(map[string]string{"keys.toml": ""}))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = registry.Lock(tables(map[string]string{"params.toml": ""}))
	assert.NoError(t, err, "a team has no parameters yet")
	_, _, err = registry.Lock(tables(map[string]string{"params.toml": "", registry.LockFile: "[params]\nweight = 1\n"}))
	assert.ErrorIs(t, err, fs.ErrNotExist, "the file has been there")
}

// FuzzLock locks tables. The result is sound, keeps each id of the old lock, and is stable.
func FuzzLock(f *testing.F) {
	f.Add(shortKeys, shortParams, "")
	f.Add(shortKeys, shortParams, "[keys]\nprice = 7\ngone = 99\n[params]\nweight = 2")
	f.Add("[p]\na = \"int\"\n[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"", "[[param]]\nid = 3\nname = \"a\"\ntype = \"int\"", "[keys]\na = 2")
	f.Add("p.a = \"int\"\np.b.type = \"bool\"", "context = {a = \"int_list\"}", "keys = {a = 5}")
	f.Add("[\"*\"]\na = {type = \"int\"}", "['*'.x]\ntype = 'int'", "[params]")
	f.Fuzz(func(t *testing.T, keys, params, lock string) {
		folder := tables(map[string]string{"keys.toml": keys, "params.toml": params, registry.LockFile: lock})
		text, added, err := registry.Lock(folder)
		if err != nil {
			return
		}
		var before, after struct{ Keys, Params map[string]int64 }
		require.NoError(t, toml.Unmarshal([]byte(lock), &before))
		require.NoError(t, toml.Unmarshal(text, &after))
		for _, part := range [][2]map[string]int64{{before.Keys, after.Keys}, {before.Params, after.Params}} {
			for name, id := range part[0] {
				require.Equal(t, id, part[1][name], name)
			}
		}
		folder[registry.LockFile] = &fstest.MapFile{Data: text}
		again, more, err := registry.Lock(folder)
		require.NoError(t, err)
		require.Empty(t, more)
		require.Equal(t, string(text), string(again))
		r, err := registry.Load(folder, "test")
		require.NoError(t, err)
		checkInvariants(t, r)
		for _, name := range added {
			_, isKey := r.KeyByName(name)
			_, isParam := r.ParamByName(name)
			require.True(t, isKey || isParam, name)
		}
	})
}
