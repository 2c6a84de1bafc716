package editor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/rankdtest/plantest"
)

// initialize calls Init on a folder and returns its report, with the folder's path left out.
func initialize(t *testing.T, dir string) ([]string, error) {
	var report []string
	err := Init(dir, language(t), func(line string) {
		report = append(report, strings.ReplaceAll(line, dir+string(filepath.Separator), ""))
	})
	return report, err
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "plans")
	report, err := initialize(t, dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"wrote rankd.d.ts", "wrote tsconfig.json", "wrote example.plan.ts", "wrote example.plan.test.ts"}, report)
	declarations := filepath.Join(dir, DeclarationsFile)
	text, err := os.ReadFile(declarations)
	require.NoError(t, err)
	assert.Equal(t, string(Declarations(language(t))), string(text))

	report, err = initialize(t, dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"kept rankd.d.ts, which is up to date", "kept tsconfig.json, which exists"}, report)

	require.NoError(t, os.WriteFile(declarations, []byte(mark+" long ago"), 0o644))
	report, err = initialize(t, dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"updated rankd.d.ts", "kept tsconfig.json, which exists"}, report)
}

// A user's registry may lack what the example uses.
func TestInitWritesNoExampleThatDoesNotCompile(t *testing.T) {
	for _, lack := range []func(l *compiler.Language){
		func(l *compiler.Language) { l.Keys = l.Keys[:1] },
		func(l *compiler.Language) { l.Params = nil },
		func(l *compiler.Language) { l.Endpoints = nil },
	} {
		dir, l := t.TempDir(), *language(t)
		lack(&l)
		require.NoError(t, Init(dir, &l, func(string) {}))
		assert.NoFileExists(t, filepath.Join(dir, "example.plan.ts"))
		assert.FileExists(t, filepath.Join(dir, DeclarationsFile))
	}
}

// The tests that newcomers get pass, and tsc accepts them.
func TestTheExamplesTestsPass(t *testing.T) {
	dir := t.TempDir()
	_, err := initialize(t, dir)
	require.NoError(t, err)
	plantest.Test(t, plantest.Config{Folder: dir})
	for _, tsc := range compilers(t) {
		places, output := complaints(t, tsc, dir)
		assert.Empty(t, places, "%s: %s", tsc, output)
	}
}

// The page for newcomers shows the example that they get.
func TestThePageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/writing-a-plan.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), "```typescript\n"+string(example)+"```")
}

func TestInitKeepsTheFilesOfTheUser(t *testing.T) {
	dir := t.TempDir()
	mine := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o644))
		return path
	}
	config, other := mine("tsconfig.json"), mine("other.plan.ts")
	report, err := initialize(t, dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"wrote rankd.d.ts", "kept tsconfig.json, which exists"}, report, "a folder with a plan needs no example")
	declarations := mine(DeclarationsFile)
	_, err = initialize(t, dir)
	assert.EqualError(t, err, declarations+" exists, and rankd init did not write it; move it away")
	for _, path := range []string{config, other, declarations} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "mine", string(text))
	}
}

func TestInitFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, dir := range []string{file, filepath.Join(file, "x")} {
		_, err := initialize(t, dir)
		assert.ErrorContains(t, err, file)
	}
}
