package compiler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

func newCompiler(t testing.TB) *compiler.Compiler { return newCompilerOf(t, compiler.Config{}) }

// newCompilerOf returns a compiler with the built-in tasks and keys.
func newCompilerOf(t testing.TB, config compiler.Config) *compiler.Compiler {
	t.Helper()
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	config.Tasks, config.Registry = builtin.Catalog(), reg
	c, err := compiler.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
