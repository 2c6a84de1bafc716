package registry_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/registry"
)

func TestEntities(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"none":         {"", ""},
		"both kinds":   {"[[entity]]\nname = \"product\"\nid = \"string\"\n[[entity]]\nname = \"aisle\"\n", ""},
		"unknown type": {"[[entity]]\nname = \"a\"\nid = \"float\"\n", `unknown type "float", expected one of int, string`},
		"name twice":   {"[[entity]]\nname = \"a\"\n[[entity]]\nname = \"a\"\n", `name "a" is taken already`},
		"no name":      {"[[entity]]\nid = \"int\"\n", "name is missing"},
		"users":        {"[[entity]]\nname = \"product\"\nid = \"string\"\n[[entity]]\nname = \"aisle\"\n[[entity]]\nname = \"user\"\nid = \"string\"\n", ""},
		"slip":         {"[[entity]]\nname = \"a\"\nids = \"int\"\n", "ids"},
	} {
		t.Run(name, func(t *testing.T) {
			tables := registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis}.FS()
			if c.text != "" {
				tables["entities.toml"] = &fstest.MapFile{Data: []byte(c.text)}
			}
			r, err := registry.Load(tables, "dev")
			if c.want != "" {
				require.ErrorContains(t, err, "entities.toml")
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			product, ok := r.Entity("product")
			assert.Equal(t, c.text != "", ok)
			assert.Equal(t, ok, product.TextIDs())
			if ok {
				aisle, found := r.Entity("aisle")
				require.True(t, found)
				assert.False(t, aisle.TextIDs())
				users := strings.Contains(c.text, "user")
				assert.Equal(t, users, r.User().TextIDs())
				assert.Equal(t, users, slices.Equal([]*registry.Entity{aisle, product, r.User()}, r.Entities()))
				assert.Equal(t, !users, slices.Equal([]*registry.Entity{aisle, product}, r.Entities()))
			}
		})
	}
}
