package docs_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateLicences = flag.Bool("update-licences", false, "write licences.md anew")

// licences are those that a dependency may have, each with a sentence of its text, the more special ones first.
var licences = []struct{ name, sentence string }{
	{"Apache-2.0", "Apache License"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"BSD-3-Clause", "Neither the name"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
}

// TestLicences: licences.md names each module that the packages of this one need, with its licence, which is one of
// the known ones.
func TestLicences(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./...")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(modules)
	page := "# Licences\n\nrankd has the [MIT licence](../LICENSE). The modules that its packages need have these. " +
		"`go test ./docs -run TestLicences\n-update-licences` writes this page, and refuses a module with another licence.\n\n| module | licence |\n|---|---|\n"
	for _, module := range slices.Compact(modules) {
		path, dir, _ := strings.Cut(module, " ")
		if path == "" {
			continue
		}
		page += fmt.Sprintf("| `%s` | %s |\n", path, licenceIn(t, path, dir))
	}
	if *updateLicences {
		require.NoError(t, os.WriteFile("licences.md", []byte(page), 0o644))
	}
	assert.Equal(t, readPage(t, "licences.md"), page, "a dependency has changed: go test ./docs -run TestLicences -update-licences")
}

// licenceIn returns the licence of the module in a folder.
func licenceIn(t *testing.T, path, dir string) string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		name, _, _ := strings.Cut(strings.ToUpper(entry.Name()), ".")
		if name != "LICENSE" && name != "LICENCE" && name != "COPYING" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		for _, licence := range licences {
			if strings.Contains(unwrapped(string(text)), licence.sentence) {
				return licence.name
			}
		}
	}
	assert.Fail(t, "no known licence", path)
	return "unknown"
}
