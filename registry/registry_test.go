package registry_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

var environments = []string{"dev", "test", "prod"}

func TestDefaultTables(t *testing.T) {
	for _, env := range environments {
		t.Run(env, func(t *testing.T) {
			r, err := registry.Default(env)
			require.NoError(t, err)
			checkInvariants(t, r)
			assert.Equal(t, env, r.Env())

			assert.Equal(t, []*registry.Key{
				{ID: 1, Name: "id", Type: registry.Int},
				{ID: 1001, Name: "model_score_1", Type: registry.Float, Writable: true, Field: "model_score_1", Default: 0.0},
				{ID: 1002, Name: "model_score_2", Type: registry.Float, Writable: true, Field: "model_score_2", Default: 0.0},
				{ID: 2001, Name: "final_score", Type: registry.Float, Writable: true, Field: "final_score", Default: 0.0},
				{ID: 2002, Name: "score", Type: registry.Float, Writable: true, Field: "score", Default: 0.0},
				{ID: 3001, Name: "country", Type: registry.String, Nullable: true, Writable: true, Field: "country"},
				{ID: 3002, Name: "title", Type: registry.String, Nullable: true, Writable: true, Field: "title"},
				{ID: 4001, Name: "features_esr", Type: registry.FeatureBundle, Nullable: true, Writable: true, Field: "features_esr"},
				{ID: 4002, Name: "features_lsr", Type: registry.FeatureBundle, Nullable: true, Writable: true, Field: "features_lsr"},
			}, r.Keys())
			assert.Equal(t, []*registry.Param{
				{ID: 1, Name: "media_age_penalty_weight", Type: registry.Float, Override: true},
				{ID: 2, Name: "blocklist_regex", Type: registry.String, Nullable: true, Override: true},
				{ID: 3, Name: "esr_cutoff", Type: registry.Float, Override: true},
				{ID: 4, Name: "weight", Type: registry.Float, Override: true},
			}, r.Params())
			policy := registry.Policy{
				MaxInflight: 1024, Connections: 1, ConnectTimeout: time.Second, RequestTimeout: time.Second,
			}
			httpPolicy := policy
			httpPolicy.Connections = 16
			service := registry.Service{MaxRequestBytes: 16 << 20, MaxAnswerBytes: 16 << 20}
			assert.Equal(t, []*registry.Endpoint{
				{Index: 0, ID: "ep_0001", Name: "redis_default", Kind: registry.Redis, Host: "127.0.0.1", Port: 6379,
					Embedded: env == "dev", Policy: policy},
				{Index: 1, ID: "ep_0002", Name: "http_api", Kind: registry.HTTP, Host: "127.0.0.1", Port: 8080,
					Service: service, Policy: httpPolicy},
			}, r.Endpoints())
			assert.Equal(t, env == "dev", r.HasEmbedded())
		})
	}
}

// checkInvariants checks that lists and lookups show the same entries, in order.
func checkInvariants(t *testing.T, r *registry.Registry) {
	t.Helper()
	last := registry.KeyID(0)
	for _, k := range r.Keys() {
		require.Greater(t, k.ID, last)
		last = k.ID
		byID, _ := r.Key(k.ID)
		require.Same(t, k, byID)
		byName, _ := r.KeyByName(k.Name)
		require.Same(t, k, byName)
	}
	lastParam := registry.ParamID(0)
	for _, p := range r.Params() {
		require.Greater(t, p.ID, lastParam)
		lastParam = p.ID
		byID, _ := r.Param(p.ID)
		require.Same(t, p, byID)
		byName, _ := r.ParamByName(p.Name)
		require.Same(t, p, byName)
	}
	lastEndpoint := ""
	for i, e := range r.Endpoints() {
		require.Equal(t, i, e.Index)
		require.Greater(t, e.ID, lastEndpoint)
		lastEndpoint = e.ID
		byID, _ := r.Endpoint(e.ID)
		require.Same(t, e, byID)
	}
}

func TestLookupsMiss(t *testing.T) {
	r, err := registry.Default("test")
	require.NoError(t, err)
	_, ok := r.Key(0)
	assert.False(t, ok)
	_, ok = r.KeyByName("Country")
	assert.False(t, ok, "names are case-sensitive")
	_, ok = r.Param(99)
	assert.False(t, ok)
	_, ok = r.ParamByName("")
	assert.False(t, ok)
	_, ok = r.Endpoint("redis_default")
	assert.False(t, ok, "endpoints are found by id")
}

// tables returns a valid set of tables with some files replaced ("" removes one).
func tables(replace map[string]string) fstest.MapFS {
	endpoints := `
		[[endpoint]]
		id = "ep_b"
		name = "b"
		kind = "http"
		host = "b.example"
		port = 80
		[[endpoint]]
		id = "ep_a"
		name = "a"
		kind = "redis"
		host = "::1"
		port = 7000
		[endpoint.policy]
		max_inflight = 5
		connections = 2
		connect_timeout_ms = 20
		request_timeout_ms = 30
		username = "u"
		password = "secret"
		database = 3`
	texts := map[string]string{
		"keys.toml": `
			[[key]]
			id = 7
			name = "seven"
			type = "float"
			default = 0.5
			writable = true
			[[key]]
			id = 1
			name = "id"
			type = "int"`,
		"params.toml": `
			[[param]]
			id = 4294967295
			name = "last"
			type = "bool"
			nullable = true`,
		"endpoints.dev.toml": endpoints, "endpoints.test.toml": endpoints, "endpoints.prod.toml": endpoints,
	}
	for name, text := range replace {
		texts[name] = text
	}
	folder := make(fstest.MapFS)
	for name, text := range texts {
		if text != "" {
			folder[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return folder
}

func TestLoad(t *testing.T) {
	// Only the environment's own endpoints must be there.
	r, err := registry.Load(tables(map[string]string{"endpoints.dev.toml": "", "endpoints.prod.toml": ""}), "test")
	require.NoError(t, err)
	checkInvariants(t, r)

	seven, ok := r.KeyByName("seven")
	require.True(t, ok)
	assert.Equal(t, registry.Key{ID: 7, Name: "seven", Type: registry.Float, Writable: true, Field: "seven", Default: 0.5}, *seven)
	last, ok := r.Param(4294967295)
	require.True(t, ok)
	assert.Equal(t, registry.Param{ID: 4294967295, Name: "last", Type: registry.Bool, Nullable: true, Override: true}, *last)
	a, ok := r.Endpoint("ep_a")
	require.True(t, ok)
	assert.Equal(t, registry.Policy{
		MaxInflight: 5, Connections: 2, ConnectTimeout: 20 * time.Millisecond, RequestTimeout: 30 * time.Millisecond,
		Username: "u", Password: registry.NewSecret("secret"), Database: 3,
	}, a.Policy)
	assert.Equal(t, "[::1]:7000", a.Addr())
	b, ok := r.Endpoint("ep_b")
	require.True(t, ok)
	assert.Equal(t, registry.Policy{
		MaxInflight: registry.DefaultMaxInflight, Connections: registry.DefaultHTTPConnections,
		ConnectTimeout: registry.DefaultConnectTimeout, RequestTimeout: registry.DefaultRequestTimeout,
	}, b.Policy)
}

// The tables have a default and a field for each type of key, and each way to set a parameter.
func TestLoadTypedKeysAndParams(t *testing.T) {
	r, err := registry.Load(tables(map[string]string{
		"keys.toml": `
			[[key]]
			id = 1
			name = "id"
			type = "int"
			[[key]]
			id = 2
			name = "created_at"
			type = "int"
			field = "c_ts"
			default = 9007199254740993
			[[key]]
			id = 3
			name = "rate"
			type = "float"
			nullable = true
			default = 1
			[[key]]
			id = 4
			name = "hot"
			type = "bool"
			default = true
			[[key]]
			id = 5
			name = "author"
			type = "string"
			field = "größe: 1"
			default = ""
			[[key]]
			id = 6
			name = "tags"
			type = "string_set"
			default = ["b", "a", "b"]
			[[key]]
			id = 7
			name = "likes"
			type = "int"
			[[key]]
			id = 8
			name = "price"
			type = "float"`,
		"params.toml": `
			[[param]]
			id = 1
			name = "hour"
			type = "int"
			context = true
			[[param]]
			id = 2
			name = "seen"
			type = "int_list"
			context = true
			override = true
			[[param]]
			id = 3
			name = "langs"
			type = "string_list"
			nullable = true`,
	}), "test")
	require.NoError(t, err)
	checkInvariants(t, r)
	assert.Equal(t, []*registry.Key{
		{ID: 1, Name: "id", Type: registry.Int},
		{ID: 2, Name: "created_at", Type: registry.Int, Field: "c_ts", Default: int64(9007199254740993)},
		{ID: 3, Name: "rate", Type: registry.Float, Nullable: true, Field: "rate", Default: 1.0},
		{ID: 4, Name: "hot", Type: registry.Bool, Field: "hot", Default: true},
		{ID: 5, Name: "author", Type: registry.String, Field: "größe: 1", Default: ""},
		{ID: 6, Name: "tags", Type: registry.StringSet, Field: "tags", Default: []string{"a", "b"}},
		{ID: 7, Name: "likes", Type: registry.Int, Field: "likes"},
		{ID: 8, Name: "price", Type: registry.Float, Field: "price", Default: 0.0}, // as in the original engine
	}, r.Keys())
	assert.Equal(t, []*registry.Param{
		{ID: 1, Name: "hour", Type: registry.Int, Context: true},
		{ID: 2, Name: "seen", Type: registry.IntList, Context: true, Override: true},
		{ID: 3, Name: "langs", Type: registry.StringList, Nullable: true, Override: true},
	}, r.Params())

	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	for _, line := range []string{
		`2    created_at  int         no        no        c_ts      9007199254740993`,
		`5    author      string      no        no        größe: 1  ""`,
		`6    tags        string_set  no        no        tags      ["a","b"]`,
		`7    likes       int         no        no        likes     -`,
		`1      hour   int          no        yes      no`,
		`2      seen   int_list     no        yes      yes`,
	} {
		assert.Contains(t, text.String(), line)
	}
	doc, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(doc), `"default":9007199254740993`)
	assert.Contains(t, string(doc), `"default":["a","b"]`)
}

func TestLoadFromDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, tables(nil)))
	r, err := registry.Load(os.DirFS(dir), "prod")
	require.NoError(t, err)
	assert.Len(t, r.Endpoints(), 2)

	_, err = registry.Load(os.DirFS(filepath.Join(dir, "none")), "prod")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLoadErrors(t *testing.T) {
	const id = "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	key := func(fields string) map[string]string {
		return map[string]string{"keys.toml": id + "[[key]]\n" + fields}
	}
	param := func(fields string) map[string]string { return map[string]string{"params.toml": "[[param]]\n" + fields} }
	endpoint := func(fields string) map[string]string {
		text := "[[endpoint]]\n" + fields
		return map[string]string{"endpoints.dev.toml": text, "endpoints.test.toml": text, "endpoints.prod.toml": text}
	}
	const good = "id = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\nhost = \"h\"\nport = 1\n"
	swap := func(old, new string) map[string]string { return endpoint(strings.Replace(good, old, new, 1)) }

	tests := []struct {
		name    string
		replace map[string]string
		want    []string // of the error's lines: each must contain one of these, in order
	}{
		{"file missing", map[string]string{"keys.toml": "", "endpoints.test.toml": ""},
			[]string{"keys.toml: ", "endpoints.test.toml: no such file"}},
		{"not TOML", map[string]string{"params.toml": "[[param]\nid"}, []string{"params.toml: line 1: "}},
		{"not an integer", key("id = \"x\""), []string{"keys.toml: line 6: key.id must be an integer, not a string"}},
		{"not a string", key("name = 5"), []string{"keys.toml: line 6: key.name must be a string, not an integer"}},
		{"not a bool", key("nullable = 1.5"), []string{"keys.toml: line 6: key.nullable must be true or false, not a float"}},
		{"not a number", map[string]string{"keys.toml": id + "[[key]]\nid = 2\nname = \"n\"\ntype = \"float\"\ndefault = [1]"},
			[]string{"keys.toml: key 2: default must be a finite number, not [1]"}},
		{"not a table", endpoint("policy = true"), each("line 2: endpoint.policy must be a table, not a boolean")},
		{"not tables", map[string]string{"params.toml": "param = 1"},
			[]string{"params.toml: line 1: param must be an array of tables, not an integer"}},
		{"number in tables", map[string]string{"params.toml": "param = [1]"},
			[]string{"params.toml: line 1: param must be an array of tables, not an integer"}},
		{"table for a number", key("[key.id]\nx = 1"), []string{"keys.toml: line 6: key.id must be an integer, not a table"}},
		{"tables for a table", endpoint("[[endpoint.policy]]\nconnections = 1"),
			each("line 2: endpoint.policy must be a table, not an array table")},
		{"dotted key", endpoint("policy.connections = \"2\""),
			each("line 2: endpoint.policy.connections must be an integer, not a string")},
		{"inline table", endpoint("policy = {username = \"u\", connections = \"2\"}"),
			each("line 2: endpoint.policy.connections must be an integer, not a string")},
		{"beyond 64 bits", key("id = 99999999999999999999"),
			[]string{"keys.toml: line 6: decimal number is too large to fit in a 64-bit signed integer"}},
		{"unknown field", key("id = 2\nname = \"n\"\ntype = \"int\"\ncolour = 1"),
			[]string{"keys.toml: line 9: unknown field key.colour"}},
		{"unknown table", map[string]string{"params.toml": "[[parameter]]\nid = 1"},
			[]string{"params.toml: line 1: unknown field parameter"}},
		{"two problems in one entry", key("name = \"a b\"\ntype = \"double\""), []string{
			`keys.toml: key at position 2: unknown type "double", expected one of int, float, string, bool, string_set, vector(n), feature_bundle`,
			`keys.toml: key at position 2: name "a b" must consist of letters, digits and _`,
			`keys.toml: key at position 2: id is missing`}},
		{"key id twice", key("id = 1\nname = \"n\"\ntype = \"int\""), []string{"keys.toml: key 1: id is taken already"}},
		{"key name twice", key("id = 2\nname = \"id\"\ntype = \"int\""),
			[]string{`keys.toml: key 2: name "id" is taken already`}},
		{"key id zero", key("id = 0\nname = \"n\"\ntype = \"int\""), []string{"keys.toml: key 0: id must be 1 to 4294967295"}},
		{"key id negative", key("id = -1\nname = \"n\"\ntype = \"int\""), []string{"keys.toml: key -1: id must be"}},
		{"key id beyond 32 bits", key("id = 4294967296\nname = \"n\"\ntype = \"int\""),
			[]string{"keys.toml: key 4294967296: id must be"}},
		{"default of another type", key("id = 2\nname = \"n\"\ntype = \"string\"\ndefault = 1.0"),
			[]string{"keys.toml: key 2: default must be a string, not 1"}},
		{"default of an int", key("id = 2\nname = \"n\"\ntype = \"int\"\ndefault = 1.0"),
			[]string{"keys.toml: key 2: default must be an integer, not 1"}},
		{"default of a bool", key("id = 2\nname = \"n\"\ntype = \"bool\"\ndefault = \"yes\""),
			[]string{`keys.toml: key 2: default must be true or false, not "yes"`}},
		{"default of a set", key("id = 2\nname = \"n\"\ntype = \"string_set\"\ndefault = [\"a\", 1]"),
			[]string{"keys.toml: key 2: default must be an array of strings, not [a 1]"}},
		{"default is a table", key("id = 2\nname = \"n\"\ntype = \"string_set\"\n[key.default]\nx = 1"),
			[]string{"keys.toml: key 2: default must be an array of strings, not map[x:1]"}},
		{"default is a date", key("id = 2\nname = \"n\"\ntype = \"int\"\ndefault = 1979-05-27"),
			[]string{"keys.toml: key 2: default must be an integer, not 1979-05-27"}},
		{"default of a bundle", key("id = 2\nname = \"n\"\ntype = \"feature_bundle\"\ndefault = 1"),
			[]string{"keys.toml: key 2: default is not for a feature_bundle"}},
		{"default of a parameter of another type", param("id = 1\nname = \"n\"\ntype = \"string\"\ndefault = 1"),
			[]string{"params.toml: param 1: default must be a string, not 1"}},
		{"default of a list", param("id = 1\nname = \"n\"\ntype = \"int_list\"\ndefault = [1]"),
			[]string{"params.toml: param 1: default is not for a list"}},
		{"default of the row id", map[string]string{"keys.toml": id + "default = 1"},
			[]string{"keys.toml: key 1: the row id has neither field nor default: it comes with the row"}},
		{"field of the row id", map[string]string{"keys.toml": id + "field = \"key\""},
			[]string{"keys.toml: key 1: the row id has neither field nor default"}},
		{"default not finite", key("id = 2\nname = \"n\"\ntype = \"float\"\ndefault = nan"),
			[]string{"keys.toml: key 2: default must be a finite number, not NaN"}},
		{"field empty", key("id = 2\nname = \"n\"\ntype = \"int\"\nfield = \"\""),
			[]string{`keys.toml: key 2: field "" must be a name of 1 to 256 bytes without control characters`}},
		{"field too long", key("id = 2\nname = \"n\"\ntype = \"int\"\nfield = \"" + strings.Repeat("x", 257) + "\""),
			[]string{`xxx…" (257 bytes) must be a name of 1 to 256 bytes`}},
		{"field with a line end", key("id = 2\nname = \"n\"\ntype = \"int\"\nfield = \"a\\nb\""),
			[]string{`keys.toml: key 2: field "a\nb" must be a name`}},
		{"param that nothing sets", param("id = 1\nname = \"n\"\ntype = \"int\"\noverride = false"),
			[]string{"params.toml: param 1: nothing can set it: it is neither for the context nor for param_overrides"}},
		{"context is not a bool", param("id = 1\nname = \"n\"\ntype = \"int\"\ncontext = 1"),
			[]string{"params.toml: line 5: param.context must be true or false, not an integer"}},
		{"set as a param", param("id = 1\nname = \"n\"\ntype = \"string_set\""),
			[]string{`params.toml: param 1: unknown type "string_set", expected one of int, float, string, bool, int_list, float_list, string_list`}},
		{"list as a key", key("id = 2\nname = \"n\"\ntype = \"int_list\""), []string{`keys.toml: key 2: unknown type "int_list"`}},
		{"no row id", map[string]string{"keys.toml": "[[key]]\nid = 2\nname = \"n\"\ntype = \"int\""},
			[]string{"keys.toml: key 1, the row id, is missing"}},
		{"writable row id", map[string]string{"keys.toml": id + "writable = true"},
			[]string{"keys.toml: key 1: the row id must be"}},
		{"param type", param("id = 1\nname = \"n\"\ntype = \"feature_bundle\""),
			[]string{`params.toml: param 1: unknown type "feature_bundle"`}},
		{"param name missing", param("id = 1\ntype = \"int\""), []string{"params.toml: param 1: name is missing"}},
		{"endpoint id", swap("ep_1", "one"), each(`endpoint one: id must start with "ep_"`)},
		{"endpoint id missing", swap("id = \"ep_1\"\n", ""), each("endpoint at position 1: id is missing")},
		{"endpoint kind", swap("redis", "Redis"), each(`endpoint ep_1: unknown kind "Redis", expected one of redis, http`)},
		{"port zero", swap("port = 1", "port = 0"), each("endpoint ep_1: port must be 1 to 65535, not 0")},
		{"port too high", swap("port = 1", "port = 65536"), each("endpoint ep_1: port must be")},
		{"port missing", swap("port = 1", ""), each("endpoint ep_1: port must be 1 to 65535, not 0")},
		{"host missing", swap("host = \"h\"", ""), each(`endpoint ep_1: host "" must be`)},
		{"host with port", swap("\"h\"", "\"http://h\""), each("endpoint ep_1: host must be a host name or an IP address; a URL belongs in url")},
		{"endpoint twice", endpoint(good + "[[endpoint]]\n" + good), []string{
			`endpoints.dev.toml: endpoint ep_1: name "one" is taken already`,
			"endpoints.dev.toml: endpoint ep_1: id is taken already",
			`endpoints.prod.toml: endpoint ep_1: name "one" is taken already`,
			"endpoints.prod.toml: endpoint ep_1: id is taken already",
			`endpoints.test.toml: endpoint ep_1: name "one" is taken already`,
			"endpoints.test.toml: endpoint ep_1: id is taken already"}},
		{"a cache of another kind", endpoint(good + "policy.cache = \"lru\""), each(`endpoint ep_1: policy.cache must be off, ttl, broadcast or track, not "lru"`)},
		{"a bound without a cache", endpoint(good + "policy.cache = \"off\"\npolicy.cache_max_bytes = 1048576"),
			each("endpoint ep_1: policy.cache_max_bytes needs a policy.cache")},
		{"a small cache", endpoint(good + "policy.cache = \"ttl\"\npolicy.cache_max_bytes = 1000"), each("endpoint ep_1: policy.cache_max_bytes must be 1048576 to 274877906944, not 1000")},
		{"a silence without broadcast", endpoint(good + "policy.cache = \"ttl\"\npolicy.tracking_max_silence_ms = 5"),
			each("endpoint ep_1: policy.tracking_max_silence_ms is only for policy.cache broadcast and track")},
		{"no room in flight", endpoint(good + "policy.max_inflight = 0"),
			each("endpoint ep_1: policy.max_inflight must be 1 to 1048576, not 0")},
		{"no connections", endpoint(good + "policy.connections = -1"), each("endpoint ep_1: policy.connections must be")},
		{"no time", endpoint(good + "policy.connect_timeout_ms = 0"), each("endpoint ep_1: policy.connect_timeout_ms must be")},
		{"endless time", endpoint(good + "policy.request_timeout_ms = 3600001"),
			each("endpoint ep_1: policy.request_timeout_ms must be 1 to 3600000")},
		{"database", endpoint(good + "policy.database = -1"), each("endpoint ep_1: policy.database must be")},
		{"user without password", endpoint(good + "policy.username = \"u\""), each("endpoint ep_1: a username needs a password")},
		{"password for http", endpoint(strings.Replace(good, "redis", "http", 1) + "policy.password = \"p\""),
			each("endpoint ep_1: policy.password is only for kind redis")},
		{"cluster with database", endpoint(good + "cluster = true\npolicy.database = 1"), each("endpoint ep_1: a Redis Cluster has only database 0")},
		{"master of a cluster", endpoint(good + "cluster = true\nmaster = \"m\""), each("endpoint ep_1: a master that sentinels know")},
		{"master without a name", endpoint(good + "master = \"a b\""), each("endpoint ep_1: a master that sentinels know")},
		{"replicas without a cluster", endpoint(good + "policy.read_from = \"replica\""), each("endpoint ep_1: policy.read_from needs a Redis Cluster")},
		{"replicas of a master that sentinels know", endpoint(good + "master = \"m\"\npolicy.read_from = \"nearest\""),
			each("endpoint ep_1: policy.read_from needs a Redis Cluster; replicas of a single master, or of one that sentinels know, are not read")},
		{"replicas of somebody", endpoint(good + "cluster = true\npolicy.read_from = \"slave\""), each("endpoint ep_1: policy.read_from must be master, replica or nearest")},
		{"a lag without replicas", endpoint(good + "cluster = true\npolicy.replica_max_lag_bytes = 5"), each("endpoint ep_1: replica_max_lag_bytes needs read_from replica or nearest")},
		{"no lag", endpoint(good + "cluster = true\npolicy.read_from = \"replica\"\npolicy.replica_max_lag_bytes = 0"),
			each("endpoint ep_1: policy.replica_max_lag_bytes must be 1 to 1099511627776")},
		{"replicas of both", endpoint("id = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\nurl = \"redis+cluster://h?read_from=replica\"\npolicy.read_from = \"nearest\""),
			each("endpoint ep_1: policy.read_from: the url has it, too")},
		{"a lag of both", endpoint("id = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\nurl = \"redis+cluster://h?read_from=replica&replica_max_lag_bytes=5\"\npolicy.replica_max_lag_bytes = 6"),
			each("endpoint ep_1: policy.replica_max_lag_bytes: the url has it, too")},
		{"replicas and a tracked cache", endpoint(good + "cluster = true\npolicy.read_from = \"replica\"\npolicy.cache = \"broadcast\""),
			each("endpoint ep_1: read_from replica and nearest exclude the caches broadcast and track")},
		{"password of no sentinels", endpoint(good + "policy.sentinel_password = \"s\""), each("endpoint ep_1: policy.sentinel_password needs a master")},
		{"user of sentinels without a password", endpoint(good + "master = \"m\"\npolicy.sentinel_username = \"s\""), each("endpoint ep_1: sentinel_username needs")},
		{"sentinels without TLS", endpoint(good + "master = \"m\"\nsentinel_tls = false"), each("endpoint ep_1: sentinel_tls needs TLS to the master")},
		{"sentinels that would be asked in clear text", endpoint(good + "master = \"m\"\nsentinel_tls = true"), each("endpoint ep_1: sentinel_tls needs TLS to the master")},
		{"TLS of no sentinels", endpoint(good + "tls = true\nsentinel_tls = true"), each("endpoint ep_1: sentinel_tls needs a master")},
		{"cluster of http", endpoint(strings.Replace(good, "redis", "http", 1) + "cluster = true"), each("endpoint ep_1: a Redis Cluster is of kind redis")},
		{"embedded beside dev", map[string]string{
			"endpoints.dev.toml":  "[[endpoint]]\n" + good + "embedded = true",
			"endpoints.test.toml": "[[endpoint]]\n" + good + "embedded = true",
			"endpoints.prod.toml": "[[endpoint]]\n" + good,
		}, []string{"endpoints.test.toml: endpoint ep_1: only dev has an embedded Redis"}},
		{"embedded http", map[string]string{
			"endpoints.dev.toml":  "[[endpoint]]\n" + strings.Replace(good, "redis", "http", 1) + "embedded = true",
			"endpoints.test.toml": "[[endpoint]]\n" + strings.Replace(good, "redis", "http", 1), "endpoints.prod.toml": "",
		}, []string{"endpoints.dev.toml: endpoint ep_1: only kind redis can be embedded"}},
		{"embedded with password", map[string]string{
			"endpoints.dev.toml":  "[[endpoint]]\n" + good + "embedded = true\npolicy.password = \"p\"",
			"endpoints.test.toml": "[[endpoint]]\n" + good, "endpoints.prod.toml": "",
		}, []string{"endpoints.dev.toml: endpoint ep_1: the embedded Redis has neither"}},
		{"environments differ", map[string]string{
			"endpoints.test.toml": "[[endpoint]]\n" + good,
			"endpoints.dev.toml":  "[[endpoint]]\n" + strings.Replace(good, "one", "two", 1),
			"endpoints.prod.toml": "[[endpoint]]\n" + strings.Replace(good, "redis", "http", 1) +
				"[[endpoint]]\n" + strings.NewReplacer("ep_1", "ep_2", "one", "two").Replace(good),
		}, []string{
			`endpoints.dev.toml: endpoint ep_1: is named "two", but "one" in endpoints.test.toml`,
			`endpoints.prod.toml: endpoint ep_1: has kind "http", but "redis" in endpoints.test.toml`,
			"endpoints.test.toml: endpoint ep_2: is missing, but endpoints.prod.toml has it"}},
		{"endpoint missing elsewhere", map[string]string{"endpoints.dev.toml": "", "endpoints.prod.toml": "# none"}, []string{
			"endpoints.prod.toml: endpoint ep_a: is missing, but endpoints.test.toml has it",
			"endpoints.prod.toml: endpoint ep_b: is missing, but endpoints.test.toml has it"}},
		{"host with NUL", swap("\"h\"", `"h\u0000x"`), each(`endpoint ep_1: host "h\x00x" must be`)},
		{"host with DEL", swap("\"h\"", `"h\u007f"`), each(`endpoint ep_1: host "h\x7f" must be`)},
		{"host too long", swap("\"h\"", `"`+strings.Repeat("h", 254)+`"`), []string{`hhh…" (254 bytes) must`, `hhh…" (254 bytes) must`, `hhh…" (254 bytes) must`}},
		{"another name for the row id", map[string]string{"keys.toml": strings.Replace(id, `"id"`, `"row"`, 1) + "[[key]]\nid = 2\nname = \"id\"\ntype = \"float\""},
			[]string{`keys.toml: key 1: the row id must be named "id", as in responses, not "row"`}},
		{"file name with control characters", map[string]string{"endpoints.a\x1bb.toml": "# none"},
			[]string{`"endpoints.a\x1bb.toml": unknown environment "a\x1bb", expected one of dev, test, prod`}},
		{"table too large", map[string]string{"params.toml": strings.Repeat("#\n", 4<<20)},
			[]string{"params.toml: larger than 1048576 bytes"}},
		{"unknown environment's file", map[string]string{"endpoints.staging.toml": "# none"},
			[]string{`endpoints.staging.toml: unknown environment "staging", expected one of dev, test, prod`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := registry.Load(tables(test.replace), "test")
			require.Error(t, err)
			assert.Nil(t, r)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(test.want), "%v", err)
			for i, line := range lines {
				assert.Contains(t, line, test.want[i])
			}
		})
	}

	for _, env := range []string{"", "staging", "DEV", "../dev"} {
		_, err := registry.Default(env)
		assert.ErrorContains(t, err, "unknown environment", env)
	}
}

func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<18)
	entry := func(table, fields string) string { return "[[" + table + "]]\n" + fields + "\n" }
	for name, replace := range map[string]map[string]string{
		"name":          {"params.toml": entry("param", `id = 1`+"\n"+`name = "`+long+`!"`+"\n"+`type = "int"`)},
		"name twice":    {"params.toml": strings.Repeat(entry("param", `name = "`+long+`"`+"\n"+`type = "int"`), 2)},
		"type":          {"keys.toml": entry("key", `type = "`+long+`"`)},
		"unknown field": {"keys.toml": entry("key", long+` = 1`)},
		"unknown table": {"keys.toml": entry(long, `id = 1`)},
		"not TOML":      {"keys.toml": long},
		"not a value":   {"keys.toml": entry("key", `id = `+long)},
		"endpoint": {"endpoints.test.toml": entry("endpoint", `id = "`+long+`"`+"\n"+`name = "`+long+`"`+"\n"+
			`kind = "`+long+`"`+"\n"+`host = "`+long+`"`)},
		"endpoints differ":    {"endpoints.test.toml": entry("endpoint", `id = "ep_a"`+"\n"+`name = "`+long+`"`+"\n"+`kind = "redis"`)},
		"thousands":           {"params.toml": strings.Repeat(entry("param", `name = "-"`), 10_000)},
		"thousands of fields": {"params.toml": "[[param]]\n" + manyFields(1000)},
		"thousands of files":  manyFiles(1000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registry.Load(tables(replace), "test")
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			assert.LessOrEqual(t, len(lines), 21)
			for _, line := range lines {
				assert.Less(t, len(line), 1000, "%.1000s", line)
			}
			if strings.HasPrefix(name, "thousands") {
				assert.Regexp(t, `^and \d+ more problems$`, lines[20])
			}
		})
	}
	_, err := registry.Default(long)
	assert.Less(t, len(err.Error()), 300)
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d = 1\n", i)
	}
	return b.String()
}

func manyFiles(n int) map[string]string {
	files := make(map[string]string, n)
	for i := range n {
		files[fmt.Sprintf("endpoints.e%d.toml", i)] = "# none"
	}
	return files
}

func TestTablesAreRegularFiles(t *testing.T) {
	for _, name := range []string{"keys.toml", "params.toml", "endpoints.test.toml", "endpoints.prod.toml"} {
		dir := t.TempDir()
		for file, entry := range tables(nil) {
			if file != name {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), entry.Data, 0o600))
			}
		}
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
		_, err := registry.Load(os.DirFS(dir), "test") // would wait forever if it opened the pipe
		assert.EqualError(t, err, name+": is a named pipe, must be a regular file")
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, name)))
		_, err = registry.Load(os.DirFS(dir), "test")
		assert.EqualError(t, err, name+": is a device, must be a regular file")
	}
}

// each expects the same problem in the file of every environment.
func each(problem string) []string {
	return []string{
		"endpoints.dev.toml: " + problem, "endpoints.prod.toml: " + problem, "endpoints.test.toml: " + problem,
	}
}

func TestWithRedis(t *testing.T) {
	dev, err := registry.Default("dev")
	require.NoError(t, err)
	there := registry.Server{Host: "10.0.0.1", Port: 7001}
	for name, moved := range map[string]*registry.Registry{
		"redis": dev.WithRedis(there), "embedded": dev.WithEmbedded(there),
	} {
		t.Run(name, func(t *testing.T) {
			checkInvariants(t, moved)
			redis, _ := moved.Endpoint("ep_0001")
			assert.Equal(t, "10.0.0.1:7001", redis.Addr())
			assert.False(t, redis.Embedded)
			assert.False(t, moved.HasEmbedded())
			assert.Equal(t, 1024, redis.Policy.MaxInflight)
			http, _ := moved.Endpoint("ep_0002")
			assert.Equal(t, "127.0.0.1:8080", http.Addr())
		})
	}
	before, _ := dev.Endpoint("ep_0001")
	assert.Equal(t, "127.0.0.1:6379", before.Addr(), "the original stays as it is")
	assert.True(t, dev.HasEmbedded())

	test, err := registry.Default("test")
	require.NoError(t, err)
	same, _ := test.WithEmbedded(there).Endpoint("ep_0001")
	assert.Equal(t, "127.0.0.1:6379", same.Addr(), "not embedded")
}

// A server's user or database replaces that of the endpoint, which otherwise stays.
func TestWithRedisKeepsWhatTheServerDoesNotName(t *testing.T) {
	own, err := registry.Load(tables(nil), "test")
	require.NoError(t, err)
	for text, want := range map[string]struct {
		addr, user, password string
		database             int
	}{
		"h:1":                           {"h:1", "u", "secret", 3},
		"redis://h:1/0":                 {"h:1", "u", "secret", 0},
		"redis://v:pw@h:1":              {"h:1", "v", "pw", 3},
		"redis://:pw@h:1/9":             {"h:1", "", "pw", 9},
		"unix:///run/r.sock":            {"unix:/run/r.sock", "u", "secret", 3},
		"unix:///run/r.sock?password=p": {"unix:/run/r.sock", "", "p", 3},
	} {
		s, err := registry.ParseServer(text)
		require.NoError(t, err)
		e, _ := own.WithRedis(s).Endpoint("ep_a")
		assert.Equal(t, want.addr, e.Addr(), text)
		assert.Equal(t, []any{want.user, want.password, want.database},
			[]any{e.Policy.Username, e.Policy.Password.Reveal(), e.Policy.Database}, text)
	}
}

// Settings for sentinels and for replicas go with the server that they were for.
func TestWithRedisDropsWhatTheServerHasNot(t *testing.T) {
	for _, from := range []string{"redis+sentinel://h/m?sentinel_username=s&sentinel_password=p", "redis+cluster://h?read_from=replica&replica_max_lag_bytes=5"} {
		old := oneEndpoint(t, fmt.Sprintf("url = %q\n", from))
		before, _ := old.Endpoint("ep_a")
		require.True(t, before.Policy.Sentinel != registry.Sentinel{} || before.Policy.Replicas != registry.Replicas{}, from)
		for to, keeps := range map[string]bool{"redis://h:1": false, from: true} {
			s, err := registry.ParseServer(to)
			require.NoError(t, err)
			e, _ := old.WithRedis(s).Endpoint("ep_a")
			assert.Equal(t, keeps, assert.ObjectsAreEqual(before.Policy.Sentinel, e.Policy.Sentinel) && e.Policy.Replicas == before.Policy.Replicas, "%s to %s", from, to)
			if !keeps {
				assert.Zero(t, e.Policy.Sentinel)
				assert.Zero(t, e.Policy.Replicas)
			}
		}
	}
}

// oneEndpoint returns a registry whose only endpoint is a Redis with these lines.
func oneEndpoint(t *testing.T, lines string) *registry.Registry {
	t.Helper()
	endpoint := "[[endpoint]]\nid = \"ep_a\"\nname = \"a\"\nkind = \"redis\"\n" + lines
	r, err := registry.Load(tables(map[string]string{"endpoints.dev.toml": endpoint, "endpoints.test.toml": endpoint, "endpoints.prod.toml": endpoint}), "test")
	require.NoError(t, err)
	return r
}

// An endpoint stays the same through a reload only if all of it does, wherever it stands. A new one needs its password.
func TestEndpointsThatChange(t *testing.T) {
	const plain = "url = \"redis://h:1\"\n"
	old := oneEndpoint(t, plain)
	for lines, same := range map[string]bool{
		plain: true, "url = \"redis://h:1\"\npolicy.request_timeout_ms = 77\n": false, "url = \"redis://h:1\"\npolicy.connections = 7\n": false,
		"url = \"redis://h:1\"\npolicy.connect_timeout_ms = 77\n": false, "url = \"redis://h:1\"\npolicy.max_inflight = 7\n": false,
		"url = \"redis://h:2\"\n": false, "url = \"redis://h:1/2\"\n": false, "url = \"rediss://h:1\"\n": false,
		"url = \"redis://h:1\"\npolicy.cache = \"ttl\"\n": false, "url = \"redis://h:1\"\npolicy.password_env = \"RANKD_TEST_NONE\"\n": false,
	} {
		now := oneEndpoint(t, lines)
		assert.Equal(t, same, now.Succeeds(old, "ep_a"), lines)
		assert.False(t, now.Succeeds(old, "ep_b"))
		place := func() int { return 5 }
		adopted, err := now.Adopt(old, func(id string) bool { return now.Succeeds(old, id) }, place, true)
		if strings.Contains(lines, "password_env") {
			assert.EqualError(t, err, "endpoint ep_a: password_env RANKD_TEST_NONE: the environment has no such variable")
			adopted, err = now.Adopt(old, func(string) bool { return false }, place, false)
		}
		require.NoError(t, err, lines)
		e, _ := adopted.Endpoint("ep_a")
		was, _ := old.Endpoint("ep_a")
		assert.Equal(t, same, e == was, lines)
		assert.Equal(t, !same, e.Index == 5, lines)
	}
}

// A password that a table sends through TLS is not for an address without TLS, unless the address has one of its own.
func TestRedisProblem(t *testing.T) {
	const master, sentinels = "its password", "the password of its sentinels"
	for name, c := range map[string]struct {
		table, redis string
		want         string // the password that would be seen; empty: none
	}{
		"plain":                       {`url = "rediss://u:c4n4ry@h"`, "h:1", master},
		"a URL":                       {`url = "rediss://u:c4n4ry@h"`, "redis://h:1/2", master},
		"a file":                      {`url = "rediss://h?password_file=/c4n4ry"`, "h:1", master},
		"a cluster":                   {`url = "rediss+cluster://:c4n4ry@h"`, "redis+cluster://h:1", master},
		"a sentinel":                  {`url = "rediss+sentinel://:c4n4ry@h/m"`, "redis+sentinel://h/m", master},
		"a sentinel's":                {`url = "rediss+sentinel://h/m?sentinel_password=c4n4ry"`, "redis+sentinel://h/m", sentinels},
		"a sentinel's, beside":        {`url = "rediss+sentinel://h/m?sentinel_password=c4n4ry"`, "redis+sentinel://:p@h/m", sentinels},
		"fields":                      {"host = \"h\"\nport = 1\ntls = true\n[endpoint.policy]\npassword = \"c4n4ry\"", "h:1", master},
		"TLS":                         {`url = "rediss://u:c4n4ry@h"`, "rediss://h:1", ""},
		"a login":                     {`url = "rediss://u:c4n4ry@h"`, "redis://:p@h:1", ""},
		"a socket":                    {`url = "rediss://u:c4n4ry@h"`, "unix:///run/redis.sock", ""},
		"no password":                 {`url = "rediss://h"`, "h:1", ""},
		"never TLS":                   {`url = "redis://u:c4n4ry@h"`, "h:1", ""},
		"a sentinel's, never TLS":     {`url = "rediss+sentinel://h/m?sentinel_password=c4n4ry&sentinel_tls=false"`, "redis+sentinel://h/m", ""},
		"a sentinel's of the address": {`url = "rediss+sentinel://h/m?sentinel_password=c4n4ry"`, "redis+sentinel://h/m?sentinel_password=p", ""},
		"a sentinel's, no sentinel":   {`url = "rediss+sentinel://h/m?sentinel_password=c4n4ry"`, "h:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := "[[endpoint]]\nid = \"ep_a\"\nname = \"a\"\nkind = \"redis\"\n" + c.table
			r, err := registry.Load(tables(map[string]string{
				"endpoints.dev.toml": endpoint, "endpoints.test.toml": endpoint, "endpoints.prod.toml": endpoint,
			}), "test")
			require.NoError(t, err)
			s, err := registry.ParseServer(c.redis)
			require.NoError(t, err)
			if err = r.RedisProblem(s); c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "endpoint ep_a: the table sends "+c.want+" through TLS, and the address of --redis has no TLS: "+
				"it must begin with rediss, or name a password itself")
		})
	}
}

func TestReadSecrets(t *testing.T) {
	own, err := registry.Load(tables(nil), "test")
	require.NoError(t, err)
	t.Setenv("RANKD_TEST_SECRET", "pw")
	read, err := own.WithRedis(registry.Server{Host: "h", Port: 1, Password: registry.Secret{Env: "RANKD_TEST_SECRET"}}).ReadSecrets()
	require.NoError(t, err)
	a, _ := read.Endpoint("ep_a")
	assert.Equal(t, "pw", a.Policy.Password.Reveal())

	_, err = own.WithRedis(registry.Server{Host: "h", Port: 1, Password: registry.Secret{File: "/nowhere/pw"}}).ReadSecrets()
	assert.EqualError(t, err, "endpoint ep_a: password_file /nowhere/pw: no such file or directory")
}

func TestPrint(t *testing.T) {
	r, err := registry.Load(tables(nil), "test")
	require.NoError(t, err)

	got, err := json.Marshal(r)
	require.NoError(t, err)
	assert.JSONEq(t, `{"env": "test",
		"keys": [
			{"key_id": 1, "name": "id", "type": "int", "nullable": false, "writable": false, "default": null},
			{"key_id": 7, "name": "seven", "type": "float", "nullable": false, "writable": true, "field": "seven", "default": 0.5}],
		"params": [{"param_id": 4294967295, "name": "last", "type": "bool", "nullable": true, "context": false, "override": true}],
		"endpoints": [
			{"endpoint_id": "ep_a", "name": "a", "kind": "redis", "host": "::1", "port": 7000, "embedded": false,
				"max_inflight": 5, "connections": 2, "connect_timeout_ms": 20, "request_timeout_ms": 30,
				"username": "u", "has_password": true, "database": 3},
			{"endpoint_id": "ep_b", "name": "b", "kind": "http", "host": "b.example", "port": 80, "embedded": false,
				"max_inflight": 1024, "connections": 16, "connect_timeout_ms": 1000, "request_timeout_ms": 1000,
				"max_request_bytes": 16777216, "max_answer_bytes": 16777216}]}`, string(got))
	assert.NotContains(t, string(got), "secret")

	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	assert.Equal(t, strings.TrimPrefix(`
KEY  NAME   TYPE   NULLABLE  WRITABLE  FIELD  DEFAULT
1    id     int    no        no        -      -
7    seven  float  no        yes       seven  0.5

PARAM       NAME  TYPE  NULLABLE  CONTEXT  OVERRIDE  DEFAULT
4294967295  last  bool  yes       no       yes       -

ENDPOINT (test)  NAME  KIND   ADDRESS       DATABASE  USER  PASSWORD  MAX INFLIGHT  CONNECTIONS  CONNECT TIMEOUT  REQUEST TIMEOUT  SETTINGS
ep_a             a     redis  [::1]:7000    3         u     hidden    5             2            20ms             30ms             -
ep_b             b     http   b.example:80  0         -     none      1024          16           1s               1s               max_request_bytes=16777216 max_answer_bytes=16777216
`, "\n"), text.String())
	assert.NotContains(t, text.String(), "secret")
}

// TestPrintEndpoints: the text says how each kind of Redis is reached, and what its table sets.
func TestPrintEndpoints(t *testing.T) {
	for table, want := range map[string][2]string{
		`url = "unix:///run/redis.sock"`:                 {"unix:/run/redis.sock", "-"},
		`url = "rediss://h?tls_ca=/etc/ca"`:              {"rediss://h:6379", "tls_ca=/etc/ca"},
		`url = "redis+cluster://h,g:1"`:                  {"redis+cluster://h:6379,g:1", "-"},
		`url = "redis+sentinel://h,g/m/1"`:               {"redis+sentinel://h:26379,g:26379/m", "-"},
		`url = "redis://h"` + "\npolicy.cache = \"ttl\"": {"h:6379", "cache=ttl cache_max_bytes=67108864 cache_max_age_ms=1000"},
		`url = "rediss+cluster://h?read_from=nearest"` + "\npolicy.replica_max_lag_bytes = 9": {
			"rediss+cluster://h:6379", "read_from=nearest replica_max_lag_bytes=9"},
		`url = "rediss+sentinel://h/m?sentinel_tls=false&sentinel_username=asker&sentinel_password=secret"`: {
			"rediss+sentinel://h:26379/m", "sentinel_tls=false sentinel_username=asker sentinel_password=hidden"},
		`url = "redis://h"` + "\npolicy.cache = \"track\"\npolicy.cache_require = true": {
			"h:6379", "cache=track cache_max_bytes=67108864 cache_max_age_ms=60000 cache_require=true tracking_max_silence_ms=1000"},
	} {
		endpoint := "[[endpoint]]\nid = \"ep_a\"\nname = \"a\"\nkind = \"redis\"\n" + table
		r, err := registry.Load(tables(map[string]string{"endpoints.dev.toml": endpoint, "endpoints.test.toml": "", "endpoints.prod.toml": ""}), "dev")
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		row := text.String()[strings.Index(text.String(), "\nep_a"):]
		assert.Equal(t, want[0], strings.Fields(row)[3], table)
		assert.Equal(t, want[1]+"\n", row[strings.LastIndex(row, "1s  ")+len("1s               "):], table)
	}
}

// TestConstantsOfAnEnvironment: params.<env>.toml gives a parameter's value in that environment
// when no request does.
func TestConstantsOfAnEnvironment(t *testing.T) {
	const params = "[overrides]\nweight = {type = \"float\", default = 0.5}\nname = \"string\"\nlimits = \"int_list\""
	with := func(file, text string) fstest.MapFS {
		return tables(map[string]string{"params.toml": params, registry.LockFile: "[params]\nweight = 1\nname = 2\nlimits = 3", file: text})
	}
	for env, want := range map[string][]any{"prod": {2.0, "x"}, "test": {0.5, nil}} {
		r, err := registry.Load(with("params.prod.toml", "weight = 2\nname = \"x\""), env)
		require.NoError(t, err)
		for i, name := range []string{"weight", "name"} {
			p, ok := r.ParamByName(name)
			require.True(t, ok)
			assert.Equal(t, want[i], p.Default, "%s in %s", name, env)
		}
	}
	for text, want := range map[string]string{
		"weigth = 1":      "params.dev.toml: weigth: params.toml has no such parameter",
		"weight = \"x\"":  "params.dev.toml: weight: default must be a finite number, not \"x\"",
		"limits = [1, 2]": "params.dev.toml: limits: default is not for a list",
		"weight = ":       "params.dev.toml: line 1: ",
	} {
		_, err := registry.Load(with("params.dev.toml", text), "test")
		assert.ErrorContains(t, err, want, "the files of all environments are checked")
	}
}
