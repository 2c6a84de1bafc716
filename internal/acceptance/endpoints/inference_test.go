package endpoints_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/internal/testing/modelserver"
)

// inferencePlan scores three rows, whose prices are 0.1, 0.2 and 0.3, by a served model.
const inferencePlan = `{"schema_version": 1, "plan_name": "inference", "nodes": [
{"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}},
{"node_id": "priced", "op": "vm", "inputs": ["rows"], "params": {"out_key": 3, "expr_id": "tenth"}},
{"node_id": "scored", "op": "remote", "inputs": ["priced"], "params": {"endpoint": "ep_model", "columns": ["score"]}},
{"node_id": "sorted", "op": "sort", "inputs": ["scored"], "params": {"by": 2, "order": "desc"}}], "outputs": ["sorted"],
"expr_table": {"tenth": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 0.1}}}, "pred_table": {}}`

// inferenceOptions have the model at an address, in the given version.
func inferenceOptions(addr, version, datatype string) rankd.Options {
	return rankd.Options{
		Plans: fstest.MapFS{"inference.plan.json": {Data: []byte(inferencePlan)}}, Plan: "inference",
		Registry: fstest.MapFS{
			"keys.toml": {Data: []byte(`key = [{id = 1, name = "id", type = "int"},
 {id = 2, name = "score", type = "float", nullable = true, writable = true}, {id = 3, name = "price", type = "float", nullable = true, writable = true}]`)},
			"params.toml": {},
			"endpoints.dev.toml": {Data: fmt.Appendf(nil, `
[[endpoint]]
id = "ep_model"
name = "model"
kind = "http"
url = "http://%s/v2/models/m%s/infer"
dialect = "open_inference"
policy.connect_timeout_ms = 30000
policy.request_timeout_ms = 30000
input = [{name = "x", datatype = "%s", shape = [-1, 1], columns = ["price"]}]
output = [{name = "y", datatype = "FP32", shape = [-1], columns = ["score"]}]
`, addr, version, datatype)},
		},
	}
}

// negated is a model that gives back what it gets, with the other sign.
func negated() *modelserver.Inference {
	return &modelserver.Inference{
		Model: "m", Version: "7", Extensions: []string{"binary_tensor_data", "schedule_policy"},
		Inputs:  []modelserver.Tensor{{Name: "x", Datatype: "FP32", Shape: []int64{-1, 1}}},
		Outputs: []modelserver.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{-1, 1}}},
		Infer: func(inputs map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
			y := modelserver.Tensor{Name: "y", Datatype: "FP32", Shape: inputs["x"].Shape}
			for _, v := range inputs["x"].Data {
				y.Data = append(y.Data, -v.(float64))
			}
			return []modelserver.Tensor{y}, nil
		},
	}
}

// On each engine the rows have the model's scores. The log has what the model got, and plan_version the version that has answered,
// unless the table pins one.
func TestServedModel(t *testing.T) {
	s := httptest.NewServer(negated())
	t.Cleanup(s.Close)
	f32 := func(f float64) float64 { return float64(float32(f)) }
	for _, model := range enginetest.Models {
		for version, services := range map[string]map[string]string{"": {"scored": "7"}, "/versions/7": nil} {
			t.Run(string(model)+version, func(t *testing.T) {
				var log enginetest.SyncBuffer
				o := inferenceOptions(s.Listener.Addr().String(), version, "FP32")
				records := new(enginetest.Records)
				o.Model, o.Served, o.Record, o.RecordUsers = model, &log, records, 100
				e, err := rankd.Open(o)
				require.NoError(t, err)
				require.NoError(t, e.Ready())
				a, err := e.Rank(t.Context(), rankd.Request{UserID: 7, PlanVersion: true})
				require.NoError(t, err)
				assert.Equal(t, []int64{1, 2, 3}, enginetest.IDsOf(a.Output(0)))
				assert.Equal(t, services, a.Version().Services)
				type version struct{ Services map[string]string }
				var answer struct {
					Candidates  []struct{ Score float64 }
					PlanVersion version `json:"plan_version"`
				}
				require.NoError(t, json.Unmarshal(a.AppendJSON(nil, rankd.FormatFlat), &answer))
				assert.Equal(t, services, answer.PlanVersion.Services)
				for i, want := range []float64{0.1, 0.2, 0.30000000000000004} {
					assert.Equal(t, -f32(want), answer.Candidates[i].Score)
				}
				require.NoError(t, e.Close())
				require.Len(t, records.Requests, 1)
				records.ReplayAll(t, nil)
				var line struct {
					PlanVersion version `json:"plan_version"`
					At          string
					Outputs     []struct{ Columns map[string][]float64 }
				}
				require.NoError(t, json.Unmarshal([]byte(log.String()), &line))
				assert.Equal(t, services, line.PlanVersion.Services)
				assert.Equal(t, "priced", line.At)
				assert.Equal(t, []float64{f32(0.1), f32(0.2), f32(0.30000000000000004)}, line.Outputs[0].Columns["price"])
			})
		}
	}
}

// A model that differs from the table is refused, and both sides are named.
func TestServedModelDiffers(t *testing.T) {
	s := httptest.NewServer(negated())
	t.Cleanup(s.Close)
	_, err := rankd.Open(inferenceOptions(s.Listener.Addr().String(), "", "FP64"))
	require.ErrorContains(t, err, `the table and the model differ: input "x" is FP64 [-1 1] in the table, and FP32 [-1 1] in the model`)
}

// A model server that is down refuses nothing: the engine opens, is not ready, and its requests fail. Once the server is there, the
// engine is ready without a request.
func TestServedModelIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	e, err := rankd.Open(inferenceOptions(addr, "", "FP32"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	err = e.Ready()
	require.ErrorContains(t, err, "endpoint model has not said which model it serves")
	require.ErrorContains(t, err, "cannot connect")
	_, err = e.Rank(t.Context(), rankd.Request{UserID: 7})
	require.ErrorIs(t, err, rankd.ErrRemote)

	server := httptest.NewUnstartedServer(negated())
	_ = server.Listener.Close()
	server.Listener, err = net.Listen("tcp", addr)
	require.NoError(t, err)
	server.Start()
	t.Cleanup(server.Close)
	require.Eventually(t, func() bool { return e.Ready() == nil }, 30*time.Second, 5*time.Millisecond)
	_, err = e.Rank(t.Context(), rankd.Request{UserID: 7})
	require.NoError(t, err)
}

// A service that asks for a pause gets no request, and the error says so on each engine.
func TestServiceAsksForAPause(t *testing.T) {
	model := negated()
	model.Fault = func(a *modelserver.Answer) {
		if a.Request.Method == "POST" {
			a.Status = 429
			a.Header.Set("Retry-After", "40")
		}
	}
	s := httptest.NewServer(model)
	t.Cleanup(s.Close)
	for _, m := range enginetest.Models {
		o := inferenceOptions(s.Listener.Addr().String(), "", "FP32")
		o.Model = m
		e, err := rankd.Open(o)
		require.NoError(t, err)
		before := len(model.Requests())
		for i, want := range []string{"Service error", "Service asks for a pause"} {
			_, err = e.Rank(t.Context(), rankd.Request{UserID: 7})
			var failed *rankd.Error
			require.ErrorAs(t, err, &failed, m)
			assert.ErrorIs(t, err, rankd.ErrRemote)
			assert.Contains(t, failed.Error(), want, "%s %d", m, i)
		}
		assert.Len(t, model.Requests(), before+1)
		require.NoError(t, e.Close())
	}
}
