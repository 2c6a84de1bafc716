package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each Go and JSON block of the page is in a file of this program.
func TestPageShowsThisProgram(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"*.go", "plans/*.json"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			sources = append(sources, string(text))
		}
	}
	page, err := os.ReadFile("../writing-a-task.md")
	require.NoError(t, err)
	blocks := 0
	for i, part := range strings.Split(string(page), "```") {
		language, block, _ := strings.Cut(part, "\n")
		if i%2 == 0 || language != "go" && language != "json" {
			continue
		}
		blocks++
		found := false
		for _, source := range sources {
			found = found || strings.Contains(source, block)
		}
		assert.True(t, found, "no file of docs/shop has this block of the page:\n%s", block)
	}
	assert.GreaterOrEqual(t, blocks, 5)
}

// The program could be in a module outside of rankd.
func TestImportsNothingInternal(t *testing.T) {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range file.Imports {
			assert.NotContains(t, imported.Path.Value, "/internal/", name)
		}
	}
}
