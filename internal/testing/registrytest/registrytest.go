// Package registrytest makes registries for tests: the built-in one, and others of a few lines of TOML. Its
// functions panic where tables are not sound, since that is a fault of the test. Any goroutine.
package registrytest

import (
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/rankd/rankd/registry"
)

// Texts of tables that most registries have: the key of every registry, and an endpoint.
const (
	ID    = "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	Redis = "[[endpoint]]\nid = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\nhost = \"127.0.0.1\"\nport = 6379\n"
)

// Lines of Key and Param that many have.
const (
	Nullable = "nullable = true"
	Writable = "writable = true"
)

// Key returns the text of a key. more are its further lines.
func Key[I ~int | ~uint32](id I, name, typ string, more ...string) string {
	return row("key", int(id), name, typ, more)
}

// Param returns the text of a parameter. more are its further lines.
func Param[I ~int | ~uint32](id I, name, typ string, more ...string) string {
	return row("param", int(id), name, typ, more)
}

func row(table string, id int, name, typ string, more []string) string {
	return fmt.Sprintf("\n[[%s]]\nid = %d\nname = %q\ntype = %q\n%s\n", table, id, name, typ, strings.Join(more, "\n"))
}

// Tables are the texts of a registry's tables in TOML. Immutable.
type Tables struct{ Keys, Params, Endpoints string }

// BuiltIn returns the built-in tables, with the endpoints of the environment "test".
func BuiltIn() Tables {
	read := func(file string) string {
		text, err := fs.ReadFile(registry.DefaultTables(), file)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	return Tables{read("keys.toml"), read("params.toml"), read("endpoints.test.toml")}
}

// FS returns the folder of the tables. Every environment has their endpoints.
func (t Tables) FS() fstest.MapFS {
	folder := fstest.MapFS{"keys.toml": {Data: []byte(t.Keys)}, "params.toml": {Data: []byte(t.Params)}}
	for _, env := range []string{"dev", "test", "prod"} {
		folder["endpoints."+env+".toml"] = &fstest.MapFile{Data: []byte(t.Endpoints)}
	}
	return folder
}

// Load returns the registry of the tables.
func (t Tables) Load() *registry.Registry {
	reg, err := registry.Load(t.FS(), "test")
	if err != nil {
		panic(err)
	}
	return reg
}
