package builtin

import (
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// Specs returns the built-in tasks, for an engine without models.
func Specs() []task.Spec { return SpecsWith(nil) }

// SpecsWith returns the built-in tasks. The task model finds its models in models; nil has none. A new built-in task is one file
// and one line here.
func SpecsWith(models *gbdt.Set) []task.Spec {
	return []task.Spec{
		viewer(),
		follow(),
		recommendation(),
		media(),
		vm(),
		filter(),
		sortRows(),
		take(),
		concat(),
		candidates(),
		given(),
		resident(),
		lookup(),
		union(),
		dedupe(),
		exclude(),
		join(),
		blend(),
		sleep(),
		fixedSource(),
		busyCPU(),
		diversify(),
		top(),
		boost(),
		normalize(),
		capRows(),
		frequencyCap(),
		sample(),
		nearest(),
		aggregate(),
		model(models),
		remoteColumns(),
		remoteCandidates(),
	}
}

// Catalog returns a catalog of the built-in tasks, for an engine without models.
func Catalog() *task.Catalog { return CatalogWith(nil) }

// CatalogWith returns a catalog of the built-in tasks with these models.
func CatalogWith(models *gbdt.Set) *task.Catalog {
	c, err := task.NewCatalog(SpecsWith(models)...)
	if err != nil {
		panic(err) // a fault of this package, which its tests catch
	}
	return c
}

// between returns the rule of an option with these bounds.
func between(least, most int64) plan.SourceRule {
	return plan.SourceRule{Min: &least, Max: &most}
}

// atLeast returns the rule of an option without an upper bound.
func atLeast(least int64) plan.SourceRule { return plan.SourceRule{Min: &least} }
