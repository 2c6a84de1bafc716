package compiler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

func newCompiler(t testing.TB) *compiler.Compiler {
	t.Helper()
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	c, err := compiler.New(compiler.Config{Tasks: builtin.Catalog(), Registry: reg})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestSmokeParent(t *testing.T) {
	c := newCompiler(t)
	sources, err := compiler.Folder("testdata/plans")
	require.NoError(t, err)
	results, err := c.Compile(context.Background(), sources...)
	require.NoError(t, err)
	for _, r := range results {
		fmt.Println(r.Plan, len(r.Artifact), r.Files)
		for _, d := range r.Errors {
			fmt.Println(d.String())
		}
	}
}
