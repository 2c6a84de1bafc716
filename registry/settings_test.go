package registry

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaves calls change for each field of v, with its path and a function that gives it another value. A field counts
// as one if its type has no exported fields.
func leaves(path string, v reflect.Value, change func(path string, other func())) {
	switch {
	case v.Type() == reflect.TypeFor[Secret]():
		for source, s := range map[string]Secret{"File": {File: "other"}, "Env": {Env: "OTHER"}, "text": NewSecret("other")} {
			change(path+"."+source, func() { v.Set(reflect.ValueOf(s)) })
		}
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		change(path, func() { v.Set(reflect.New(v.Type().Elem())) })
		filled := reflect.New(v.Type().Elem())
		leaves(path, filled.Elem(), func(path string, other func()) {
			change(path, func() { other(); v.Set(filled) })
		})
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), v.Field(i), change)
		}
	case v.Kind() == reflect.Slice:
		item := reflect.New(v.Type().Elem()).Elem()
		change(path, func() { v.Set(reflect.Append(reflect.Zero(v.Type()), item)) })
		leaves(path, item, func(path string, other func()) {
			change(path, func() { other(); v.Set(reflect.Append(reflect.Zero(v.Type()), item)) })
		})
	default:
		change(path, func() {
			switch v.Kind() {
			case reflect.String:
				v.SetString(v.String() + "x")
			case reflect.Bool:
				v.SetBool(!v.Bool())
			case reflect.Int, reflect.Int64:
				v.SetInt(v.Int() + 1_000_000) // at least a millisecond
			case reflect.Uint8, reflect.Uint32:
				v.SetUint(v.Uint() + 1)
			case reflect.Interface:
				v.Set(reflect.ValueOf("x"))
			default:
				panic("the test knows no other value of " + path)
			}
		})
	}
}

// TestEachFieldCountsInTheDigest changes each field of the tables, and finds another digest for each. The text of a
// password or a token is the one that does not count.
func TestEachFieldCountsInTheDigest(t *testing.T) {
	load := func() *Registry {
		r, err := Default("test")
		require.NoError(t, err)
		r.entities = []*Entity{{Name: "item"}}
		return r
	}
	before := load().Digest()
	require.Equal(t, before, load().Named("elsewhere").Digest(), "where the tables are does not count")
	hidden := []string{"endpoint.Policy.Password.text", "endpoint.Policy.Sentinel.Password.text", "endpoint.Service.BearerToken.text"}
	seen := map[string]string{before: "nothing"}
	tried := 0
	for _, row := range []struct {
		name string
		of   func(r *Registry) any
	}{
		{"env", func(r *Registry) any { return &r.env }},
		{"key", func(r *Registry) any { return r.keys[1] }},
		{"param", func(r *Registry) any { return r.params[1] }},
		{"entity", func(r *Registry) any { return r.entities[0] }},
		{"endpoint", func(r *Registry) any { return r.endpoints[0] }},
	} {
		paths := 0
		leaves(row.name, reflect.ValueOf(row.of(load())).Elem(), func(string, func()) { paths++ })
		for n := range paths {
			r, i := load(), -1
			leaves(row.name, reflect.ValueOf(row.of(r)).Elem(), func(path string, other func()) {
				if i++; i != n || path == "endpoint.Index" {
					return
				}
				other()
				digest := r.Digest()
				if same := seen[digest]; same == "nothing" {
					assert.Contains(t, hidden, path, "does not count")
					return
				} else if same != "" && !strings.HasPrefix(path, same) { // A header without a name is one, too.
					assert.Equal(t, []string{"endpoint.Service.TLS", "endpoint.TLS"}, []string{path, same}, "no endpoint has both")
				}
				seen[digest] = path
				tried++
				assert.False(t, r.Equal(load()), path)
			})
		}
	}
	assert.Greater(t, tried, 60)
}

// TestEachSettingHasALineInThePages: what a table and a URL may say stands in docs/redis.md or docs/remote.md.
func TestEachSettingHasALineInThePages(t *testing.T) {
	pages := ""
	for _, page := range []string{"redis.md", "remote.md"} {
		text, err := os.ReadFile("../docs/" + page)
		require.NoError(t, err)
		pages += string(text)
	}
	for _, s := range settings {
		if s.source != partOfURL {
			assert.Contains(t, pages, "`"+s.name+"`")
		}
		if s.url {
			found, end := urlSetting(s.short())
			assert.Same(t, s, found)
			assert.Empty(t, end)
			assert.Contains(t, pages, s.short())
		}
	}
}

// TestSettingsOfATableAreShown: JSON, text and the endpoint itself have what the table says, for each setting.
func TestSettingsOfATableAreShown(t *testing.T) {
	const head = "[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\nkind = %q\nhost = \"h\"\nport = 7\n"
	for _, s := range settings {
		if s.source != ownField {
			continue
		}
		kind, before, after := "redis", "", ""
		if s.need != nil && s.need(&Endpoint{Kind: HTTP}) == nil {
			kind = "http"
		}
		for _, more := range []struct {
			need          func(*Endpoint) error
			before, after string
		}{
			{hasTLS, "tls = true\n", ""}, {hasMaster, "master = \"m\"\n", ""}, {isCluster, "cluster = true\n", ""},
			{hasCache, "", "policy.cache = \"track\"\n"}, {isTracked, "", "policy.cache = \"track\"\n"},
		} {
			if s.need != nil && reflect.ValueOf(s.need).Pointer() == reflect.ValueOf(more.need).Pointer() {
				before, after = more.before, more.after
			}
		}
		if strings.HasPrefix(s.name, "rerank.") || s.name == "dialect" {
			kind = "http"
			for _, line := range []string{"dialect = \"rerank\"\n", "rerank.query = \"q\"\n", "rerank.document = \"d\"\n"} {
				if !strings.HasPrefix(line, s.name+" ") {
					before += line
				}
			}
		}
		value := any("\"x\"")
		switch s.value(&Endpoint{}).(type) {
		case bool:
			value = !s.not
		case int64:
			value = s.most
		}
		switch s.name {
		case "sentinel_tls":
			before = "tls = true\nmaster = \"m\"\n"
		case "policy.username":
			after = "policy.password = \"p\"\n"
		case "policy.replica_max_lag_bytes":
			after = "policy.read_from = \"replica\"\n"
		case "policy.sentinel_username":
			after = "policy.sentinel_password = \"p\"\n"
		case "tls_cert":
			before += "tls_key = \"k\"\n"
		case "tls_key":
			before += "tls_cert = \"c\"\n"
		}
		if s.one != nil {
			value = fmt.Sprintf("%q", s.one[1])
		}
		table := fmt.Sprintf(head, kind) + before + after + fmt.Sprintf("%s = %v\n", s.name, value)
		r, err := Load(fstest.MapFS{
			"keys.toml": {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")}, "params.toml": {},
			"endpoints.dev.toml": {Data: []byte(table)},
		}, "dev")
		require.NoError(t, err, table)
		doc, err := r.MarshalJSON()
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		if _, secret := s.value(r.endpoints[0]).(Secret); secret {
			assert.Contains(t, string(doc), fmt.Sprintf("\"has_%s\":true", s.short()), table)
			assert.Contains(t, text.String(), "hidden", table)
			continue
		}
		assert.Contains(t, string(doc), fmt.Sprintf("%q:%v", s.short(), value), table)
		if !s.column {
			assert.Contains(t, text.String(), fmt.Sprintf("%s=%s", s.short(), strings.Trim(fmt.Sprint(value), "\"")), table)
		}
	}
}
