package editor

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/registry"
)

//go:embed tsconfig.json
var tsconfig []byte

//go:embed example.plan.ts
var example []byte

//go:embed example.plan.test.ts
var exampleTests []byte

// mark is how declarations begin that Init wrote.
const mark = "// rankd init wrote this file"

// Init makes the folder dir ready for an editor. It writes the declarations of the language, a
// tsconfig.json, and an example with tests if the folder has no plan and the registry has what the example uses. It
// keeps a tsconfig.json that is there, and replaces declarations of an earlier Init only. It calls report
// with one line per file. The error names the file.
func Init(dir string, l *compiler.Language, report func(line string)) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	declarations := filepath.Join(dir, DeclarationsFile)
	before, err := os.ReadFile(declarations)
	switch now := Declarations(l); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && !bytes.HasPrefix(before, []byte(mark)):
		return fmt.Errorf("%s exists, and rankd init did not write it; move it away", declarations)
	case bytes.Equal(before, now):
		report("kept " + declarations + ", which is up to date")
	default:
		if err := fileio.Replace(declarations, now); err != nil {
			return err
		}
		if before == nil {
			report("wrote " + declarations)
		} else {
			report("updated " + declarations)
		}
	}
	if err := fileio.WriteNew(filepath.Join(dir, "tsconfig.json"), tsconfig, report); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	isPlan := func(f fs.DirEntry) bool { return strings.HasSuffix(f.Name(), compiler.Extension) }
	if err != nil || slices.ContainsFunc(files, isPlan) || !exampleFits(l) {
		return err
	}
	if err := fileio.WriteNew(filepath.Join(dir, "example"+compiler.Extension), example, report); err != nil {
		return err
	}
	return fileio.WriteNew(filepath.Join(dir, "example"+compiler.TestExtension), exampleTests, report)
}

// exampleFits reports whether the language has the names that the example uses.
func exampleFits(l *compiler.Language) bool {
	key := func(name string) bool {
		return slices.ContainsFunc(l.Keys, func(k registry.Key) bool { return k.Name == name })
	}
	return key("country") && key("score") &&
		slices.ContainsFunc(l.Params, func(p registry.Param) bool { return p.Name == "weight" }) &&
		slices.ContainsFunc(l.Endpoints, func(e compiler.EndpointName) bool { return e.Name == "redis_default" })
}
