package compiler

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// Update reports whether the tests write the compiler's present output into testdata.
func Update() bool { return *update }

// BadPlansFile is an archive of plans that do not compile.
const BadPlansFile = "testdata/bad.txtar"

// frame is the code around the calls of a bad plan that is not a whole file.
const frame = `import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      CALLS,
});
`

// BadPlans returns the archive of bad plans, and their sources by the names of their files.
func BadPlans(t testing.TB) (*txtar.Archive, map[string]string) {
	t.Helper()
	archive, err := txtar.ParseFile(BadPlansFile)
	require.NoError(t, err)
	sources := make(map[string]string)
	for _, f := range archive.Files {
		text := string(f.Data)
		switch {
		case strings.HasSuffix(f.Name, ".ts"):
			sources[f.Name] = text
		case !strings.HasSuffix(f.Name, ".txt"):
			calls := strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n      ")
			sources[f.Name+Extension] = strings.Replace(frame, "CALLS", calls, 1)
		}
	}
	return archive, sources
}
