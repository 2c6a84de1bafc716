package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// shopRegistry belongs to a shop, where key 3001 is a price. It has one more key.
func shopRegistry(key string) *registry.Registry {
	return registrytest.Tables{Keys: registrytest.ID + registrytest.Key(3001, "price", "float", registrytest.Nullable) + key, Endpoints: registrytest.Redis}.Load()
}

// usersCase runs a task that reads user 7, in the country PL. The user's list has only user 8.
func usersCase(t *testing.T, op, key string) (rowset.RowSet, error) {
	s := spec(t, op)
	c := rankdtest.Case{Registry: shopRegistry(key), UserID: 7, Params: map[string]any{"endpoint": "ep_0001"},
		Redis: func(command []string) any {
			if command[0] == "LRANGE" {
				return []string{"8"}
			}
			return []string{"name", "x", "land", "PL", "country", "DE"}
		}}
	if s.Inputs == 1 {
		c.Inputs, c.Params["fanout"] = rankdtest.Inputs(rankdtest.Rows(7)), 5
	}
	return rankdtest.Run(s, c)
}

var usersOps = []string{"core::viewer", "core::follow", "core::recommendation"}

// The column of users is the key with the name country, whatever its id. Its values are in the
// hash field of that key.
func TestTheCountryOfUsersHasItsKey(t *testing.T) {
	const land = "[[key]]\nid = 42\nname = \"country\"\ntype = \"string\"\nnullable = true\nfield = \"land\"\n"
	for _, op := range usersOps {
		out, err := usersCase(t, op, land)
		require.NoError(t, err, op)
		assert.Equal(t, []any{"PL"}, rankdtest.Values(out, 42), op)
		assert.Equal(t, []registry.KeyID{42}, out.Batch.AppendKeys(nil), op)

		products := rankdtest.WithFloats(rankdtest.Rows(100, 200), 3001, 9.5, nil)
		all, err := rankdtest.Run(spec(t, "core::union"), rankdtest.Case{Registry: shopRegistry(land), Inputs: rankdtest.Inputs(out, products)})
		require.NoError(t, err, op)
		assert.Equal(t, []any{nil, 9.5, nil}, rankdtest.Values(all, 3001), op)
		assert.Equal(t, []any{"PL", nil, nil}, rankdtest.Values(all, 42), op)
	}
}

// A registry without that key has no place for the column, so plans with these tasks do not
// load.
func TestUsersNeedTheKeyOfTheirCountry(t *testing.T) {
	const need = `rankdtest.plan.json: node "task": nodes[0]: the task writes the column "country", so the registry must have ` +
		`a nullable key "country" of type string; `
	for key, want := range map[string]string{
		"": "it has no key of that name",
		"[[key]]\nid = 42\nname = \"country\"\ntype = \"int\"\nnullable = true\n": "its key is of type int",
		"[[key]]\nid = 42\nname = \"country\"\ntype = \"string\"\n":               "its key is not nullable",
	} {
		for _, op := range usersOps {
			_, err := usersCase(t, op, key)
			var refused *plan.Error
			require.ErrorAs(t, err, &refused, op)
			assert.EqualError(t, err, need+want, op)
		}
	}
}

// A run of a built-in task is refused if a column of its input or result does not have the type
// of its key.
func TestColumnsHaveTheTypesOfTheirKeys(t *testing.T) {
	texts := rankdtest.WithStrings(rankdtest.Rows(1), 3001, "PL")
	for _, c := range []rankdtest.Case{
		{Inputs: rankdtest.Inputs(texts)},
		{Inputs: rankdtest.Inputs(rankdtest.Rows(2)), Refs: map[string]rowset.RowSet{"rhs": texts}},
	} {
		op := "core::union"
		if c.Refs != nil {
			op = "core::concat"
		}
		c.Registry = shopRegistry("")
		_, err := rankdtest.Run(spec(t, op), c)
		require.ErrorIs(t, err, task.ErrContract, op)
		assert.Contains(t, err.Error(), "input has string column 3001 (price), which is float in the registry", op)
	}
}
