// Package examples, which follows the engine's needs, has the registries and the compiled plans of the larger examples, for programs and benchmarks. Each example is a program in
// a folder of its own, whose README.md explains it:
//
//	articles   one source, a lookup, and a score that decays by age
//	feed       several sources without duplicates, rules, diversity, a blend
//	shop       products and users whose ids are strings, features of user and item, a model, shelves
package examples

import (
	"embed"
	"errors"
	"io/fs"
	"path"
)

//go:embed articles/registry articles/artifacts feed/registry feed/artifacts shop/registry shop/artifacts shop/models
var files embed.FS

// Registry returns the tables of an example, by the name of its folder.
func Registry(example string) (fs.FS, error) { return fs.Sub(files, path.Join(example, "registry")) }

// Plans returns the compiled plans of an example, by the name of its folder: a plan folder with one plan, of that name.
func Plans(example string) (fs.FS, error) { return fs.Sub(files, path.Join(example, "artifacts")) }

// Models returns the folder of the models of an example, by the name of its folder; nil if it has none.
func Models(example string) (fs.FS, error) {
	folder := path.Join(example, "models")
	if _, err := fs.Stat(files, folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return fs.Sub(files, folder)
}
