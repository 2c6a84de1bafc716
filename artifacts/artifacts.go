// Package artifacts holds the example plans in the binary, so that --plan_name
// finds them from any folder.
//
// Six are the pictures that the engine is explained with: simple_viewer,
// viewer_filter, parallel_fanout, mixed_pipeline, diamond and complex_dag.
// concat_plan, reels_plan_a and regex_plan are small real ones. In
// parallel_sleep_plan two branches sleep side by side, which shows whether they
// really do.
package artifacts

import (
	"embed"
	"io/fs"
)

//go:embed plans/*.plan.json
var embedded embed.FS

// Plans returns the folder of the example plans, one file <name>.plan.json each. Any
// goroutine; read-only.
func Plans() fs.FS {
	plans, err := fs.Sub(embedded, "plans")
	if err != nil {
		panic(err) // the path is a constant and valid
	}
	return plans
}
