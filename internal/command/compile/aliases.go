package compile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/plan"
)

// aliasesFile is the file of aliases in a folder of sources. Immutable.
type aliasesFile struct {
	path string // of the file
	text []byte // nil: the folder has no such file
}

// findAliases returns the file of aliases of the folders that the arguments name. Two of them must not differ, since
// the artifacts have one.
func findAliases(args []string) (found aliasesFile, err error) {
	for _, arg := range args {
		path := filepath.Join(arg, plan.AliasesFile)
		switch text, err := fileio.ReadRegular(path, plan.AliasesBytesMax); {
		case errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(arg, compiler.Extension):
		case err != nil:
			return found, fmt.Errorf("%s: %w", errtext.Name(path), err)
		case found.text != nil && !bytes.Equal(text, found.text):
			return found, fmt.Errorf("%s and %s differ, and the artifacts have one %s: put all aliases into one of them",
				errtext.Name(found.path), errtext.Name(path), plan.AliasesFile)
		default:
			found = aliasesFile{path, append([]byte{}, text...)}
		}
	}
	return found, nil
}

// writeAliases copies the file of aliases beside the artifacts, which are there by then, and reports what is wrong with it.
// A file that is wrong is not copied.
func (r *report) writeAliases(from aliasesFile, output string) error {
	path := filepath.Join(output, plan.AliasesFile)
	if from.text == nil {
		return nil
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(output, name+plan.ArtifactSuffix))
		return err == nil
	}
	if !r.checkAliases(filepath.Dir(from.path), has) {
		return nil
	}
	if before, err := fileio.ReadRegular(path, plan.AliasesBytesMax); err == nil && bytes.Equal(before, from.text) {
		return nil
	}
	return fileio.Replace(path, from.text)
}

// checkAliases reports what is wrong with the aliases of a folder, for plans that has knows. A folder that does not exist
// has none.
func (r *report) checkAliases(folder string, has func(name string) bool) bool {
	aliases, err := plan.ReadAliases(os.DirFS(folder))
	if err == nil {
		err = plan.Aliased(aliases, has)
	}
	if err == nil {
		return true
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		r.fail(compiler.Diagnostic{Code: "bad-alias", File: filepath.Join(folder, plan.AliasesFile), Line: 1, Column: 1,
			Message: strings.TrimPrefix(line, plan.AliasesFile+": ")})
	}
	return false
}

// compareAliases reports a file of aliases beside the artifacts that is not that of the sources.
func (k *checker) compareAliases() error {
	from, err := findAliases([]string{k.dir})
	if err != nil {
		return err
	}
	path := filepath.Join(k.output, plan.AliasesFile)
	switch text, err := fileio.ReadRegular(path, plan.AliasesBytesMax); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", errtext.Name(path), err)
	case from.text == nil && err == nil:
		k.report.fail(compiler.Diagnostic{Code: "stale-artifact", File: path, Line: 1, Column: 1,
			Message: "the source of these aliases is gone", Hint: "remove the file, or move it to " + k.dir})
	case from.text != nil && err != nil:
		k.report.fail(k.stale(from.path, "its copy is missing: "+err.Error()))
	case !bytes.Equal(text, from.text):
		k.report.fail(k.stale(from.path, path+" is stale: the aliases of the sources are others"))
	}
	return nil
}
