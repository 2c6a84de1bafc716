package serve_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// Callers pay for what their own requests read and compute, and all that a plan read is paid for.
func TestCallersPay(t *testing.T) {
	w := openServer(t, rankd.Options{})
	ask := func(name, plan string) {
		c := caller(t, access.Rules{Name: name, Plans: []string{"*"}})
		w.ask(func(q *serve.Query) { q.Caller, q.Plan, q.User = c, []byte(plan), []byte("1") })
	}
	paid := func(what, name, plan string) float64 {
		return w.value(fmt.Sprintf(`rankd_caller_%s_total{caller=%q,plan=%q}`, what, name, plan))
	}
	ask("app", "viewer")
	bytes := paid("reply_bytes", "app", "viewer")
	assert.Positive(t, bytes)
	ask("app", "viewer")
	ask("mail", "viewer")
	assert.Equal(t, []float64{2, 1}, []float64{paid("commands", "app", "viewer"), paid("commands", "mail", "viewer")})
	assert.Equal(t, []float64{2 * bytes, bytes}, []float64{paid("reply_bytes", "app", "viewer"), paid("reply_bytes", "mail", "viewer")})
	assert.EqualValues(t, 3, w.Engine().Metrics().Redis[0].Asked)
	assert.Zero(t, paid("compute_seconds", "app", "viewer"), "it only reads")
	ask("app", "weighted")
	assert.Positive(t, paid("compute_seconds", "app", "weighted"))
	assert.Zero(t, paid("commands", "app", "weighted"))
	assert.EqualValues(t, 3, w.value(`rankd_answer_rows{front="http",plan="viewer"}`))
	for i := range 300 {
		ask(fmt.Sprint("c", i), "viewer")
	}
	assert.EqualValues(t, 300-254, paid("commands", "(others)", "viewer"), "names of callers are bounded")
}
