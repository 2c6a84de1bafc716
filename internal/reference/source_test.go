package reference

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/rankd/rankd/task"
)

// tables is the registry of the examples: the built-in tables, and keys of articles besides. models is the folder of
// the models that they use.
var tables, models fs.FS = os.DirFS("tables"), os.DirFS("models")

// planName returns the name of the plan of a task's example.
func planName(op string) string { return strings.ReplaceAll(op, "::", "_") + "_example" }

// exampleSource returns the whole source of a task's example.
func exampleSource(spec *task.Spec) string {
	return source(planName(spec.Op), spec.Reference.Example.Plan)
}

// itemsPlan is the name of the plan of Example.Items.
const itemsPlan = "items"

// itemsSource returns the whole source of the plan items of a task's example, "" if there is none.
func itemsSource(spec *task.Spec) string {
	if spec.Reference.Example.Items == "" {
		return ""
	}
	return source(itemsPlan, spec.Reference.Example.Items)
}

func source(name, body string) string {
	if strings.HasPrefix(body, "ctx") {
		body = "return " + body + ";"
	}
	if strings.Contains(body, "endpoint: redis") {
		body = "const redis = EP.redis.redis_default;\n" + body
	}
	body = strings.ReplaceAll(body, "\n", "\n    ")
	return fmt.Sprintf(`import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: %q,
  build: (ctx) => {
    %s
  },
});
`, name, body)
}
