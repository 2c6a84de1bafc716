package builtin

import "github.com/rankd/rankd/plan"

// entityParam names the entity of a source's rows.
var entityParam = plan.ParamSchema{
	Name: "entity", Type: plan.String, IsEntity: true, Added: true,
	Doc: "What the rows stand for: an entity of the registry. Without it their ids are integers.",
}
