package reference

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// undocumented returns what the documentation of a rankd task lacks.
func undocumented(spec *task.Spec) (missing []string) {
	r := &spec.Reference
	need := func(name, text string, due bool) {
		switch text := strings.TrimSpace(text); {
		case due && text == "":
			missing = append(missing, name+" is missing")
		case !due && text != "":
			missing = append(missing, name+" describes nothing")
		case text != "" && !strings.HasSuffix(text, ".") && name != "Reads" && name != "Writes":
			missing = append(missing, name+" ends without a full stop")
		}
	}
	endpoint := false
	for i := range spec.Params {
		p := &spec.Params[i]
		need("the Doc of parameter "+p.Name, p.Doc, true)
		endpoint = endpoint || p.Type == plan.Endpoint
		if typeOf(p) == "" {
			missing = append(missing, "the type of parameter "+p.Name+" has no name")
		}
	}
	need("Doc", spec.Doc, true)
	need("Text", r.Text, true)
	need("Reads", r.Reads, spec.Reads != nil)
	need("Writes", r.Writes, spec.Writes != nil)
	need("Redis", r.Redis, endpoint)
	need("Order", r.Order, true)
	need("Nulls", r.Nulls, true)
	need("Empty", r.Empty, true)
	need("Duplicates", r.Duplicates, true)
	need("Failures", r.Failures, true)
	if r.Example.Plan == "" {
		missing = append(missing, "Example is missing")
	}
	if shapes[spec.Output] == "" {
		missing = append(missing, "the shape of the result has no words")
	}
	return missing
}

func TestEveryTaskIsDocumented(t *testing.T) {
	for _, spec := range builtin.Catalog().Specs() {
		assert.Empty(t, undocumented(spec), spec.Op)
	}
}

func TestUndocumented(t *testing.T) {
	silent := &task.Spec{
		Op: "shop::silent", Params: []plan.ParamSchema{{Name: "endpoint", Type: plan.Endpoint}, {Name: "odd", Type: 200}},
		Output: task.Source, Writes: task.Columns(2002),
		Run:       func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil },
		Reference: task.Reference{Reads: "Nothing.", Order: "Without an end"},
	}
	assert.Equal(t, []string{
		"the Doc of parameter endpoint is missing", "the Doc of parameter odd is missing", "the type of parameter odd has no name",
		"Doc is missing", "Text is missing", "Reads describes nothing", "Writes is missing", "Redis is missing",
		"Order ends without a full stop", "Nulls is missing", "Empty is missing", "Duplicates is missing", "Failures is missing",
		"Example is missing",
	}, undocumented(silent))
}

// pagesFolder is docs/reference.
const pagesFolder = "../../docs/reference"

// TestPagesAreCurrent compares docs/reference with the specs. With -update it writes the pages.
func TestPagesAreCurrent(t *testing.T) {
	if *update {
		t.Run("examples", TestExamplesAreCurrent) // the pages show them
	}
	pages := Pages(Tasks(builtin.Catalog()))
	for name, want := range pages {
		path := filepath.Join(pagesFolder, name)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
			continue
		}
		have, err := os.ReadFile(path)
		require.NoError(t, err, "go test ./internal/reference -update")
		assert.Equal(t, want, string(have), "%s is stale: go test ./internal/reference -update", name)
	}
	require.NoError(t, filepath.WalkDir(pagesFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(pagesFolder, path)
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if _, known := pages[filepath.ToSlash(name)]; !known && bytes.HasPrefix(text, []byte(generated)) {
			if *update {
				return os.Remove(path)
			}
			assert.Fail(t, "the page "+name+" describes a task that is gone: go test ./internal/reference -update")
		}
		return nil
	}))
}

func TestFind(t *testing.T) {
	tasks := Tasks(builtin.Catalog())
	for _, name := range []string{"fixed_source", "test::fixed_source", "fixedSource"} {
		found, ok := Find(tasks, name)
		require.True(t, ok, name)
		assert.Equal(t, "test::fixed_source", found.Op)
	}
	_, ok := Find(tasks, "fixedsource")
	assert.False(t, ok)
	near, ok := Nearest(tasks, "srot")
	assert.True(t, ok)
	assert.Equal(t, "sort", near)
}

func TestText(t *testing.T) {
	tasks := Tasks(builtin.Catalog())
	var list bytes.Buffer
	require.NoError(t, WriteList(&list, tasks))
	assert.Equal(t, len(tasks)+1, strings.Count(list.String(), "\n"))
	for i := range tasks {
		var text bytes.Buffer
		require.NoError(t, WriteText(&text, &tasks[i]))
		for line := range strings.Lines(text.String()) {
			if !strings.HasPrefix(line, "  ") { // examples keep their lines
				assert.LessOrEqual(t, len([]rune(line)), textWidth+1, line)
			}
		}
		for j := range tasks[i].Params {
			assert.Contains(t, text.String(), "\n  "+tasks[i].Params[j].Name+"\n")
		}
	}
}
