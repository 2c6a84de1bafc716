// Package examples, which is not covered by the compatibility promise, has the registries and the compiled
// plans of the larger examples, for programs and benchmarks. Each example is a program in a folder of its
// own, whose README.md explains it:
//
//	articles   one source, a lookup, and a score that decays by age
//	feed       several sources without duplicates, rules, diversity, a blend
//	shop       products and users whose ids are strings, features of user and item, a model, shelves
package examples

import (
	"embed"
	"io/fs"
	"path"

	"github.com/rankd/rankd"
)

//go:embed articles/registry articles/artifacts feed/registry feed/artifacts shop/registry shop/artifacts shop/models
var files embed.FS

// Options returns the tables, the plans and the models, if there are any, of an example, by the name of its folder, and the plan of that name.
func Options(example string) (o rankd.Options, err error) {
	o.Plan = example
	if o.Registry, err = fs.Sub(files, path.Join(example, "registry")); err != nil {
		return o, err
	}
	if o.Plans, err = fs.Sub(files, path.Join(example, "artifacts")); err != nil {
		return o, err
	}
	models := path.Join(example, "models")
	if _, missing := fs.Stat(files, models); missing == nil {
		o.Models, err = fs.Sub(files, models)
	}
	return o, err
}
