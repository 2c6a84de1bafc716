package compiler

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const corpus = "testdata/corpus"

// corpusAnswers returns what Node 24 answers to the programs of the corpus, by name.
func corpusAnswers(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(corpus + "/node.json")
	require.NoError(t, err)
	answers := make(map[string]string)
	require.NoError(t, json.Unmarshal(text, &answers))
	return answers
}

// TestCorpusInNode: Node 24 still answers what the file says. RANKD_NODE24 names it; .ci/test installs it.
func TestCorpusInNode(t *testing.T) {
	node := os.Getenv("RANKD_NODE24")
	if node == "" && os.Getenv("RANKD_REQUIRE_NODE24") == "" {
		t.Skip("needs Node 24: RANKD_NODE24 names it; .ci/test installs it")
	}
	got, err := exec.CommandContext(t.Context(), node, corpus+"/node.mjs").Output()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(corpus+"/node.json", got, 0o644))
	}
	answers := make(map[string]string)
	require.NoError(t, json.Unmarshal(got, &answers))
	assert.Equal(t, corpusAnswers(t), answers)
}

var (
	importsModule = regexp.MustCompile(`((?:from|import)\s*["'][^"']*)\.mjs(["'])`)
	firstWord     = regexp.MustCompile(`^plan code failed: (\w*Error)\b`)
)

// corpusPlan writes a program of the corpus and a plan around it into a folder.
func corpusPlan(t *testing.T, name, folder string) {
	t.Helper()
	put := func(from, to string) {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		to = filepath.Join(folder, strings.TrimSuffix(to, ".mjs")+".ts")
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
		require.NoError(t, os.WriteFile(to, []byte(importsModule.ReplaceAllString(string(text), "$1$2")), 0o600))
	}
	put(corpus+"/show.mjs", "show.mjs")
	main := "./program/" + strings.TrimSuffix(name, ".mjs")
	if strings.HasSuffix(name, ".mjs") {
		put(filepath.Join(corpus, name), "program/"+name)
	} else {
		main = "./program/main"
		root := filepath.Join(corpus, name)
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				to, _ := filepath.Rel(root, path)
				put(path, "program/"+to)
			}
			return err
		}))
	}
	text := `import { definePlan } from "@ranking-dsl/runtime";
import { outcome } from "./show";
import run from "` + main + `";
const trace = outcome(run);
export default definePlan({ name: "a", build: (ctx) => ctx.fixedSource({ trace }) });
`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.plan.ts"), []byte(text), 0o600))
}

// corpusOutcome returns what a program of the corpus does as plan code, in the words of Node's answer.
func corpusOutcome(t *testing.T, name string) (outcome string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			outcome = fmt.Sprint("panics: ", r)
		}
	}()
	folder := t.TempDir()
	corpusPlan(t, name, folder)
	u := newUnit(testLanguage(t), "plans", Source{Folder: folder, File: "a.plan.ts"})
	u.compile()
	if len(u.answer.Errors) == 0 {
		return shown(t, u.answer)
	}
	switch d := u.answer.Errors[0]; {
	case strings.HasPrefix(d.Message, "cannot assign to "): // before the program runs
		return "throws TypeError"
	case d.Code == "recursion":
		return "throws RangeError"
	case strings.HasSuffix(d.Message, " is not defined"):
		return "throws ReferenceError"
	case firstWord.MatchString(d.Message):
		return "throws " + firstWord.FindStringSubmatch(d.Message)[1]
	default:
		return "refused: " + d.String()
	}
}

// TestCorpus: JavaScript without tokens means in a plan what it means in Node.
func TestCorpus(t *testing.T) {
	answers := corpusAnswers(t)
	entries, err := os.ReadDir(corpus)
	require.NoError(t, err)
	text, err := os.ReadFile(corpus + "/differs.json")
	require.NoError(t, err)
	differs := make(map[string]string)
	require.NoError(t, json.Unmarshal(text, &differs))
	programs, found := 0, make(map[string]string)
	for _, entry := range entries {
		if name := entry.Name(); name[0] >= '0' && name[0] <= '9' {
			programs++
			got := corpusOutcome(t, name)
			if got != answers[name] {
				found[name] = got
			}
			if known := differs[name]; got != answers[name] && got != known && !*update {
				t.Errorf("%s\nnode: %s\nhere: %s", name, answers[name], got)
			}
		}
	}
	if *update {
		encoded, err := json.MarshalIndent(found, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(corpus+"/differs.json", append(encoded, '\n'), 0o644))
	} else {
		assert.Equal(t, differs, found, "differs.json has what differs, and README.md why")
	}
	assert.Len(t, answers, programs)
	assert.GreaterOrEqual(t, programs, 300)
}
