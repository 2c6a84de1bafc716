package demo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// drawings are the example plans in short: each node with its op and the nodes that it waits
// for.
var drawings = map[string]string{
	"simple_viewer":   "n0=viewer -> n0",
	"viewer_filter":   "n0=viewer n1=filter(n0) -> n1",
	"parallel_fanout": "n0=viewer n1=follow(n0) n2=recommendation(n0) -> n1,n2",
	"mixed_pipeline":  "n0=viewer n1=follow(n0) n2=vm(n1) n3=filter(n2) n4=sort(n3) n5=take(n4) -> n5",
	"diamond":         "n0=viewer n1=follow(n0) n2=recommendation(n0) n3=concat(n1,n2) -> n3",
	"complex_dag": "n0=viewer n1=follow(n0) n2=recommendation(n0) n3=media(n1) n4=media(n2) n5=vm(n3) n6=vm(n4)" +
		" n7=concat(n5,n6) n8=sort(n7) n9=take(n8) -> n9",
	"concat_plan":         "n0=viewer n1=follow(n0) n2=recommendation(n0) n3=concat(n1,n2) n4=take(n3) -> n4",
	"reels_plan_a":        "n0=viewer n1=follow(n0) n2=vm(n1) n3=filter(n2) n4=vm(n3) n5=take(n4) -> n5",
	"regex_plan":          "n0=viewer n1=follow(n0) n2=filter(n1) n3=take(n2) -> n3",
	"parallel_sleep_plan": "n0=viewer n1=sleep(n0) n2=sleep(n0) n3=concat(n1,n2) -> n3",
}

// TestPlans loads the example plans with the real tasks, in every environment.
func TestPlans(t *testing.T) {
	for _, env := range []string{"dev", "test", "prod"} {
		reg, err := registry.Default(env)
		require.NoError(t, err)
		list, err := plan.NewLibrary(demo.Plans(), "the built-in examples", builtin.Catalog(), reg, nil).List()
		require.NoError(t, err)

		got := make(map[string]string)
		for _, entry := range list {
			require.NoError(t, entry.Err)
			got[entry.Name] = draw(entry.Graph.Info())
		}
		assert.Equal(t, drawings, got)
	}
}

func draw(info plan.Info) string {
	var b strings.Builder
	for _, n := range info.Nodes {
		_, op, _ := strings.Cut(n.Op, "::")
		fmt.Fprintf(&b, "%s=%s", n.ID, op)
		if deps := append(n.Inputs, n.Refs...); len(deps) > 0 {
			b.WriteString("(" + strings.Join(deps, ",") + ")")
		}
		b.WriteByte(' ')
	}
	return b.String() + "-> " + strings.Join(info.Outputs, ",")
}
