package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// Specs returns the built-in tasks. A new built-in task is one file and one line here.
func Specs() []task.Spec {
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
		union(),
		dedupe(),
		join(),
		blend(),
		sleep(),
		fixedSource(),
		busyCPU(),
		remoteColumns(),
		remoteCandidates(),
	}
}

// Catalog returns a catalog of the built-in tasks.
func Catalog() *task.Catalog {
	c, err := task.NewCatalog(Specs()...)
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
