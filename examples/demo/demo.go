// Package demo, which is not covered by the compatibility promise, embeds the example plans in the binary, so
// that an engine finds them from any folder.
//
// Six plans illustrate the engine: simple_viewer, viewer_filter, parallel_fanout,
// mixed_pipeline, diamond and complex_dag. concat_plan, reels_plan_a and regex_plan
// are small real plans. parallel_sleep_plan has two branches that sleep, and shows
// whether an engine runs them at the same time.
//
// The artifacts are compiled from the sources in the folder plans beside them: after a change
// there, run go run ../../cmd/rankd compile plans -o artifacts in this folder.
package demo

import (
	"embed"
	"io/fs"
)

//go:embed artifacts/*.plan.json
var embedded embed.FS

// Plans returns the read-only folder of the example plans, one file <name>.plan.json
// each. Any goroutine.
func Plans() fs.FS {
	plans, err := fs.Sub(embedded, "artifacts")
	if err != nil {
		panic(err) // the path is a constant and valid
	}
	return plans
}
