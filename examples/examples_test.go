package examples

import (
	"flag"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/rankdtest/plantest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// emulator runs this program where the machine is of another processor, and its children, too.
var emulator = flag.String("emulator", "", "a program, such as qemu-aarch64-static, that starts the compiler's child processes")

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}

// TestPlansAreCurrent compares each artifact with what its plan compiles to, and the page of the example with the plan:
//
//	rankd compile examples/feed/plans -o examples/feed/artifacts --registry_dir examples/feed/registry
func TestPlansAreCurrent(t *testing.T) {
	for _, example := range []string{"articles", "feed", "shop"} {
		t.Run(example, func(t *testing.T) {
			o, err := Options(example)
			require.NoError(t, err)
			reg, err := registry.Load(o.Registry, "dev")
			require.NoError(t, err)
			var models *gbdt.Set
			if o.Models != nil {
				models, err = gbdt.ReadFolder(o.Models, "models")
				require.NoError(t, err)
			}
			config := compiler.Config{Tasks: builtin.CatalogWith(models), Registry: reg}
			if *emulator != "" {
				self, err := os.Executable()
				require.NoError(t, err)
				config.Command, config.Timeout = []string{*emulator, self}, time.Minute
			}
			c, err := compiler.New(config)
			require.NoError(t, err)
			defer c.Close()
			file := path.Join(example, "plans", example+compiler.Extension)
			results, err := c.Compile(t.Context(), compiler.SourceFile(file))
			require.NoError(t, err)
			require.Empty(t, results[0].Errors)
			artifact, err := files.ReadFile(path.Join(example, "artifacts", example+".plan.json"))
			require.NoError(t, err)
			// Spans name the source by its path from the root.
			assert.Equal(t, strings.ReplaceAll(string(artifact), "examples/"+file, file), string(results[0].Artifact))

			page, err := os.ReadFile(path.Join(example, "README.md"))
			require.NoError(t, err)
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Contains(t, string(page), "\n"+string(source)+"```")
		})
	}
}

// TestPlans runs the tests of each example's plans, as "rankd test" does.
func TestPlans(t *testing.T) {
	for _, example := range []string{"articles", "feed", "shop"} {
		t.Run(example, func(t *testing.T) {
			o, err := Options(example)
			require.NoError(t, err)
			o.Plan, o.Plans = "", nil // it compiles the sources
			plantest.Test(t, plantest.Config{Folder: path.Join(example, "plans"), Engine: o})
		})
	}
}

// TestTheShopsPageShowsItsTables compares the tables on the page of the shop with those of the
// example.
func TestTheShopsPageShowsItsTables(t *testing.T) {
	page, err := os.ReadFile("shop/README.md")
	require.NoError(t, err)
	for _, file := range []string{"registry/keys.toml", "registry/params.toml", "registry/entities.toml", "registry/endpoints.dev.toml", "rankd.toml"} {
		text, err := os.ReadFile(path.Join("shop", file))
		require.NoError(t, err)
		assert.Contains(t, string(page), "```toml\n# "+file+"\n"+string(text)+"```")
	}
}
