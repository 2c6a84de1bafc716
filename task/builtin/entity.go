package builtin

import "github.com/rankd/rankd/plan"

// entityParam says what the rows of a source stand for.
var entityParam = plan.ParamSchema{
	Name: "entity", Type: plan.String, IsEntity: true, Added: true,
	Doc: "What the rows stand for: an entity of the registry. Without it their ids are integers.",
}
