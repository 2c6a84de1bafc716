package rankd_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// TestExplanation: the answer is the same but for the explanation, on each model, in JSON and in Go.
func TestExplanation(t *testing.T) {
	forModels(t, rankd.Options{AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
		plain, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1, ID: "a"})
		require.NoError(t, err)
		assert.Nil(t, plain.Explanation())
		want := withoutEngineID(t, plain.AppendJSON(nil, rankd.FormatFlat))
		for _, asked := range []string{`true`, `[139959, 42]`} {
			r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "complex_dag", "request_id": "a", "explain": ` + asked + `}`))
			require.NoError(t, err)
			a, err := e.Rank(t.Context(), r)
			require.NoError(t, err)
			got := withoutEngineID(t, a.AppendJSON(nil, rankd.FormatFlat))
			why := got["explain"].(map[string]any)
			delete(got, "explain")
			assert.Equal(t, want, got)
			rows := why["rows"].([]any)
			if asked == "true" {
				assert.Len(t, rows, 50)
				continue
			}
			require.Len(t, rows, 1)
			assert.Equal(t, float64(139959), rows[0].(map[string]any)["id"])
			assert.Equal(t, "never_a_candidate", why["missing"].([]any)[0].(map[string]any)["kind"])
			doc, err := json.Marshal(a.Explanation())
			require.NoError(t, err)
			shown, err := json.Marshal(why)
			require.NoError(t, err)
			assert.JSONEq(t, string(shown), string(doc))
		}
		// An answer does not keep what its explanation needs beyond its own life, and asks for no more than it may.
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1, Explain: rankd.Explain{IDs: make([]int64, 101)}})
		require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	})
}

// TestExplanationMustBePermitted: an engine that permits none refuses the request.
func TestExplanationMustBePermitted(t *testing.T) {
	e := open(t, rankd.Options{})
	_, err := e.ParseRequest([]byte(`{"user_id": 1, "explain": true}`))
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	assert.ErrorContains(t, err, `this engine does not allow "explain" in requests`)
	_, err = e.Rank(t.Context(), rankd.Request{Plan: "diamond", UserID: 1, Explain: rankd.Explain{All: true}})
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	_, err = e.ParseRequest([]byte(`{"user_id": 1, "explain": false}`))
	require.NoError(t, err)
}
