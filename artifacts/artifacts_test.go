package artifacts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// drawings are the example plans in short: each node with its op and what it waits for.
var drawings = map[string]string{
	"simple_viewer":   "v=viewer -> v",
	"viewer_filter":   "v=viewer f=filter(v) -> f",
	"parallel_fanout": "v=viewer follow=follow(v) recs=recommendation(v) -> follow,recs",
	"mixed_pipeline":  "v=viewer f=follow(v) vm1=vm(f) filter=filter(vm1) sort=sort(filter) take=take(sort) -> take",
	"diamond":         "v=viewer left=follow(v) right=recommendation(v) join=concat(left,right) -> join",
	"complex_dag": "n0=viewer n1=follow(n0) n2=recommendation(n0) n3=media(n1) n4=media(n2) n5=vm(n3) n6=vm(n4)" +
		" n7=concat(n5,n6) n8=sort(n7) n9=take(n8) -> n9",
	"concat_plan": "n0=viewer n1=follow(n0) n2=recommendation(n0) n3=concat(n1,n2) n4=take(n3) -> n4",
	"reels_plan_a": "viewer=viewer follow=follow(viewer) score=vm(follow) keep=filter(score) rescore=vm(keep)" +
		" take=take(rescore) -> take",
	"regex_plan":          "viewer=viewer follow=follow(viewer) keep=filter(follow) take=take(keep) -> take",
	"parallel_sleep_plan": "viewer=viewer sleep_a=sleep(viewer) sleep_b=sleep(viewer) join=concat(sleep_a,sleep_b) -> join",
}

// TestPlans loads the example plans with the real tasks, in every environment.
func TestPlans(t *testing.T) {
	for _, env := range []string{"dev", "test", "prod"} {
		reg, err := registry.Default(env)
		require.NoError(t, err)
		list, err := plan.NewLibrary(artifacts.Plans(), "the built-in examples", builtin.Catalog(), reg, nil).List()
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
