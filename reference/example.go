package reference

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rankd/rankd/task"
)

// An Example is a plan that uses a task, as it runs. Immutable once built; any goroutine.
type Example struct {
	TypeScript string          `json:"typescript"`        // the whole source
	Items      string          `json:"items,omitempty"`   // the source of the plan items, whose rows the plan reads; none: it reads no such
	Redis      []string        `json:"redis,omitempty"`   // commands that fill an empty Redis; none: the demo data
	Service    string          `json:"service,omitempty"` // what the service answers; none: nobody asks one
	Request    json.RawMessage `json:"request"`
	Artifact   json.RawMessage `json:"artifact"` // without the places in the source
	Answer     json.RawMessage `json:"answer"`   // the candidates
}

//go:embed examples.json
var examplesJSON []byte

//go:embed tables models
var folders embed.FS

// Tables returns the registry of the examples: the built-in tables, and keys of articles besides.
func Tables() fs.FS { return folder("tables") }

// Models returns the folder of the models that the examples use.
func Models() fs.FS { return folder("models") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(folders, name)
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// Examples returns the examples by op.
func Examples() map[string]Example {
	all := make(map[string]Example)
	if err := json.Unmarshal(examplesJSON, &all); err != nil {
		panic(err) // a test writes the file, and reads it
	}
	return all
}

// planName returns the name of the plan of a task's example.
func planName(op string) string { return strings.ReplaceAll(op, "::", "_") + "_example" }

// Source returns the whole source of a task's example.
func Source(spec *task.Spec) string { return source(planName(spec.Op), spec.Reference.Example.Plan) }

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
