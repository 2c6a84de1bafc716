package starter

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/rankdtest/plantest"
	"github.com/rankd/rankd/registry"
)

const checkout = "../../../.."

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}

// begin writes a module of this name from the checkout.
func begin(t *testing.T, name string, l *compiler.Language) (dir string) {
	dir = filepath.Join(t.TempDir(), name)
	m, err := New(dir, checkout)
	require.NoError(t, err)
	require.NoError(t, m.Write(l, func(string) {}))
	return dir
}

func read(t *testing.T, path ...string) string {
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// .ci/embed-run builds the module. This test sees that its plan does what its tests say, with the first Redis that there is.
func TestThePlansTestsPass(t *testing.T) {
	dir := begin(t, "mine", &compiler.Language{Endpoints: []compiler.EndpointName{{Name: "service", Kind: registry.HTTP}, {Name: "redis_replica", Kind: registry.Redis}}})
	assert.Contains(t, read(t, dir, "plans/every.plan.ts"), "EP.redis.redis_replica")
	dir = begin(t, "mine", &compiler.Language{Endpoints: []compiler.EndpointName{{Name: "redis_default", Kind: registry.Redis}}})
	plantest.Test(t, plantest.Config{Folder: filepath.Join(dir, PlanDir), Engine: rankd.Options{Tasks: Tasks()}})
	assert.NoFileExists(t, filepath.Join(begin(t, "mine", &compiler.Language{}), "plans/every.plan.ts"), "there is no Redis")
}

func TestTheModuleNeedsWhatRankdNeeds(t *testing.T) {
	dir, rankds := begin(t, "mine", &compiler.Language{}), read(t, checkout, "go.mod")
	text := read(t, dir, "go.mod")
	full, err := filepath.Abs(checkout)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(text, "module example.com/mine\n\ngo "+goVersion+"\n\nrequire github.com/rankd/rankd v0.0.0\n\nreplace github.com/rankd/rankd => "+full+"\n"), text)
	assert.Contains(t, rankds, "\ngo "+goVersion+"\n")
	needed := regexp.MustCompile(`(?m)^\t\S+ \S+`)
	assert.Equal(t, needed.FindAllString(rankds, -1), needed.FindAllString(text, -1))
	assert.Equal(t, strings.Count(rankds, "\n\t"), strings.Count(text, " // indirect\n"))
	assert.Equal(t, read(t, checkout, "go.sum"), read(t, dir, "go.sum"))
	assert.Contains(t, read(t, dir, "main.go"), `Name: "mine"`)
	assert.True(t, strings.HasPrefix(read(t, dir, "every.go"), "package main\n"))
}

// The page for newcomers shows the program that they get.
func TestNextIsForAShell(t *testing.T) {
	parent := t.TempDir()
	for dir, want := range map[string]string{"mine": "mine", "a b/mine": "'a b/mine'", "it's/mine": `'it'\''s/mine'`, "$HOME/x-y.z": "'$HOME/x-y.z'"} {
		m, err := New(filepath.Join(parent, dir), checkout)
		require.NoError(t, err)
		m.dir = dir
		assert.Equal(t, "cd "+want+" && go run . test plans", m.Next())
	}
}

func TestThePageShowsTheProgram(t *testing.T) {
	program := strings.TrimPrefix(read(t, begin(t, "mine", &compiler.Language{}), "main.go"), "\n")
	assert.Contains(t, read(t, checkout, "docs/writing-a-task.md"), "```\n"+program+"```")
}

func TestNewRefuses(t *testing.T) {
	none, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "go.mod"), []byte("module example.com/github.com/rankd/rankd\n"), 0o644))
	for name, c := range map[string]struct{ dir, checkout, there, want string }{
		"no version":       {"mine", "", "", "this build has no version that a module can require; name a checkout of rankd: init mine --go --checkout PATH"},
		"no checkout":      {"mine", none, "", "is no checkout of rankd: open " + none},
		"another module":   {"mine", other, "", "is no checkout of rankd: its go.mod does not say module github.com/rankd/rankd"},
		"a module":         {"mine", checkout, "mine/go.mod", "mine/go.mod is there already, and init --go begins a module; for new types of its plans: go run . init plans"},
		"a program":        {"mine", checkout, "mine/b.go", "mine/b.go is there already"},
		"a space":          {"my own", checkout, "", `"my own" cannot name a module`},
		"a dot at the end": {"mine.", checkout, "", `"mine." cannot name a module`},
	} {
		t.Run(name, func(t *testing.T) {
			if !filepath.IsAbs(c.checkout) && c.checkout != "" {
				full, err := filepath.Abs(c.checkout)
				require.NoError(t, err)
				c.checkout = full
			}
			t.Chdir(t.TempDir())
			if c.there != "" {
				require.NoError(t, os.MkdirAll(filepath.Dir(c.there), 0o755))
				require.NoError(t, os.WriteFile(c.there, nil, 0o644))
			}
			_, err := New(c.dir, c.checkout)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestQuoted(t *testing.T) {
	for path, want := range map[string]string{"/a/b": "/a/b", "/a b": `"/a b"`, "/(a)": `"/(a)"`} {
		assert.Equal(t, want, quoted(path))
	}
}
