package rankd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
)

// TestMalformedIDsAreTold: entries that are not ids show in completeness, in the metrics by key and once in the log, with and without a cache.
func TestMalformedIDsAreTold(t *testing.T) {
	const source = `{"node_id": "n", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", %s}}`
	for name, c := range map[string]struct {
		nodes, want string
		ids         int // rows that are left
	}{
		"list":       {fmt.Sprintf(source, `"key": "new"`), `{"n": {"op": "core::candidates", "status": "ok", "malformed": {"count": 2, "of": 4, "first": "sku-1", "key": "new"}}}`, 2},
		"set":        {fmt.Sprintf(source, `"key": "all", "kind": "set"`), `{"n": {"op": "core::candidates", "status": "ok", "malformed": {"count": 1, "of": 2, "first": "sku-9", "key": "all"}}}`, 1},
		"sorted set": {fmt.Sprintf(source, `"key": "top", "kind": "sorted_set", "score": 2001`), `{"n": {"op": "core::candidates", "status": "ok", "malformed": {"count": 1, "of": 2, "first": "b\"", "key": "top"}}}`, 1},
		"one of two lists": {`{"node_id": "u", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
			{"node_id": "n", "op": "core::media", "inputs": ["u"], "params": {"endpoint": "ep_0001", "fanout": 10}}`,
			`{"n": {"op": "core::media", "status": "ok", "malformed": {"count": 1, "of": 3, "first": "x", "key": "media:2"}}}`, 2},
		"none": {fmt.Sprintf(source, `"key": "fine"`), `null`, 1},
	} {
		redis, err := rankdtest.StartRedisWith(map[string]any{
			"new": []string{"7", "sku-1", "9", "sku-2"}, "all": rankdtest.Set{"1", "sku-9"}, "top": rankdtest.SortedSet{"5": 1, `b"`: 2},
			"media:1": []string{"5"}, "media:2": []string{"x", "6"}, "fine": []string{"3"},
		})
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprint(name, cached), func(t *testing.T) {
				var log bytes.Buffer
				o := rankd.Options{
					Redis: redis.Addr(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Plans: fstest.MapFS{"p.plan.json": {Data: []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": ["n"]}`, c.nodes))}},
				}
				if cached {
					o.Cache = "ttl"
				}
				forModels(t, o, func(t *testing.T, e *rankd.Engine) {
					log.Reset()
					for range 3 {
						a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
						require.NoError(t, err)
						assert.Equal(t, c.ids, a.Len())
						assert.False(t, a.Degraded())
						told := answerJSON(t, a)["completeness"]
						if told == nil {
							told = []byte("null")
						}
						assert.JSONEq(t, c.want, cachedMember.ReplaceAllString(string(told), ""))
					}
					if c.want == "null" {
						assert.Empty(t, log.String())
						return
					}
					assert.Equal(t, 1, strings.Count(log.String(), "entries are not ids"), log.String())
					assert.Positive(t, e.Metrics().Values["id"].Malformed)
				})
			})
		}
	}
}
