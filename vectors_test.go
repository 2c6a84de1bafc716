package rankd_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/registry/registrytest"
	"github.com/rankd/rankd/rowset"
)

// TestVectors ranks products by the taste of a user, both vectors of Redis, on all models, from memory, too: packed floats, lists, and what is neither.
func TestVectors(t *testing.T) {
	pack := func(v ...float32) string {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return string(b)
	}
	tables := registrytest.Tables{Endpoints: registrytest.Redis + "[endpoint.policy]\n" + cacheForAnHour, Keys: registrytest.ID}
	for i, k := range [][2]string{{"taste", "vector(3)"}, {"embedding", "vector(3)"}, {"score", "float"}, {"distance", "float"}} {
		tables.Keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable)
	}
	tables.Params = registrytest.Param(1, "wish", "vector(3)", registrytest.Nullable)
	const nodes = `
		{"node_id": "rows", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}},
		{"node_id": "user", "op": "lookup", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "user:{user}", "fields": [10]}},
		{"node_id": "items", "op": "lookup", "inputs": ["user"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": [11]}},
		{"node_id": "score", "op": "vm", "inputs": ["items"], "params": {"out_key": 12, "expr_id": "dot"}},
		{"node_id": "far", "op": "vm", "inputs": ["score"], "params": {"out_key": 13, "expr_id": "l2"}},
		{"node_id": "near", "op": "nearest", "inputs": ["items"], "params": {"to": "user", "vector": 11, "to_vector": 10, "by": "l2", "out_key": 13, "count": 3}},
		{"node_id": "angle", "op": "nearest", "inputs": ["items"], "params": {"to": "user", "vector": 11, "to_vector": 10, "by": "cosine", "out_key": 13, "count": 30}},
		{"node_id": "asked", "op": "nearest", "inputs": ["items"], "params": {"context": "wish", "vector": 11, "out_key": 13, "count": 2}},
		{"node_id": "none", "op": "filter", "inputs": ["user"], "params": {"pred_id": "none"}},
		{"node_id": "cold", "op": "nearest", "inputs": ["items"], "params": {"to": "none", "vector": 11, "to_vector": 10, "out_key": 13, "count": 3}},
		{"node_id": "out", "op": "sort", "inputs": ["far"], "params": {"by": 12, "order": "desc"}}`
	text := fmt.Sprintf(`{"schema_version": 1, "plan_name": "near", "nodes": [%s], "outputs": ["out", "near", "angle", "cold", "asked"], "pred_table": {"none": {"op": "const_bool", "value": false}}, "capabilities_required": ["cap.rankd.expressions.v1"],
		"expr_table": {"dot": {"op": "dot", "a": {"op": "key_ref", "key_id": 10}, "b": {"op": "key_ref", "key_id": 11}},
			"l2": {"op": "l2", "a": {"op": "key_ref", "key_id": 10}, "b": {"op": "key_ref", "key_id": 11}}}}`, nodes)
	items := map[int64][]float32{1: {0.5, 0.25, -1}, 2: {1, 0, 0}, 3: {-1, 2, 0.125}, 4: nil, 5: nil, 6: {0, 0, 0}}
	taste := []float32{1, 2, 3}
	onServers(t, func(t *testing.T, addr string) {
		store(t, addr, []string{"RPUSH", "rows", "1", "2", "3", "4", "5", "6"}, []string{"HSET", "user:1", "taste", pack(taste...)},
			[]string{"HSET", "item:1", "embedding", pack(items[1]...)}, []string{"HSET", "item:2", "embedding", "1, 0, 0"}, []string{"HSET", "item:3", "embedding", "[-1, 2, 0.125]"},
			[]string{"HSET", "item:4", "embedding", "1, 0"}, []string{"HSET", "item:5", "embedding", pack(1, 2, float32(math.Inf(1)))}, []string{"HSET", "item:6", "embedding", pack(0, 0, 0)})
		for _, model := range models {
			e := open(t, rankd.Options{Redis: addr, Model: model, Registry: tables.FS(), PlanText: []byte(text)})
			for range 2 { // the second time from memory
				a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Params: map[string]any{"wish": []float32{1, 2, 0}}})
				require.NoError(t, err)
				out, ids := a.Output(0), []int64(nil)
				for i := range out.Len() {
					ids = append(ids, out.ID(i))
				}
				require.Equal(t, []int64{3, 2, 6, 1, 4, 5}, ids, model)
				vectors, null, ok := out.Vectors("embedding")
				require.True(t, ok)
				assert.Equal(t, []bool{false, false, false, false, true, true}, null)
				scores, _, _ := out.Floats("score")
				distances, none, _ := out.Floats("distance")
				assert.Equal(t, null, none)
				for i, id := range ids[:4] {
					assert.Equal(t, items[id], vectors[i])
					assert.Equal(t, rowset.Dot(taste, items[id]), scores[i])
					assert.Equal(t, rowset.L2(taste, items[id]), distances[i])
				}
				for output, want := range [][]int64{1: {3, 2, 6}, 2: {3, 2, 1}, 3: nil, 4: {3, 1}} {
					if output == 0 {
						continue
					}
					var near []int64
					for i := range a.Output(output).Len() {
						near = append(near, a.Output(output).ID(i))
					}
					require.Equal(t, want, near, "%s, output %d", model, output)
				}
				nearest, _, _ := a.Output(1).Floats("distance")
				assert.Equal(t, rowset.L2(taste, items[3]), nearest[0])
				assert.Contains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), `"embedding":[-1,2,0.125]`)
			}
		}
	})
}
