package request

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

func TestParseOfWhatIsGiven(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		doc   string
		given Given
		want  Parsed
		err   string
	}{
		"nothing given":                    {`{"user_id": 7, "request_id": "r"}`, Given{}, Parsed{RequestID: "r", UserID: 7}, ""},
		"no document":                      {``, Given{UserID: 7, Plan: "p", RequestID: "g"}, Parsed{RequestID: "g", UserID: 7, Plan: "p"}, ""},
		"no document and no user":          {``, Given{Plan: "p", RequestID: "g"}, Parsed{}, "Invalid JSON input: empty document"},
		"the user and the plan":            {`{"request_id": "r"}`, Given{UserID: 7, Plan: "p", RequestID: "g"}, Parsed{RequestID: "r", UserID: 7, Plan: "p"}, ""},
		"said twice":                       {`{"request_id": "r", "user_id": "7", "plan": "p"}`, Given{UserID: 7, Plan: "p"}, Parsed{RequestID: "r", UserID: 7, Plan: "p"}, ""},
		"an id that is not a string":       {`{"request_id": 5, "user_id": 7}`, Given{RequestID: "g"}, Parsed{RequestID: "g", UserID: 7}, ""},
		"an id that is empty":              {`{"request_id": "", "user_id": 7}`, Given{RequestID: "g"}, Parsed{UserID: 7}, ""},
		"a plan that is null":              {`{"request_id": "r", "user_id": 7, "plan": null}`, Given{Plan: "p"}, Parsed{RequestID: "r", UserID: 7, Plan: "p"}, ""},
		"another user":                     {`{"user_id": 8}`, Given{UserID: 7, RequestID: "g"}, Parsed{}, "Invalid request: user_id is 8, and the request came for user 7"},
		"a bad user":                       {`{"user_id": 0}`, Given{UserID: 7, RequestID: "g"}, Parsed{}, "Invalid request: user_id must be an integer from 1 to 4294967295, got 0"},
		"another plan":                     {`{"user_id": 7, "plan": "q"}`, Given{Plan: "p", RequestID: "g"}, Parsed{}, `Invalid request: plan is "q", and the request came for plan "p"`},
		"a document that is not an object": {`[]`, Given{UserID: 7, RequestID: "g"}, Parsed{}, "Invalid request: missing required field: user_id"},
		"a fault of the grammar":           {`{`, Given{UserID: 7, RequestID: "g"}, Parsed{}, "Invalid JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewParser(reg).Parse([]byte(c.doc), c.given)
			if c.want.UserID != 0 {
				require.NoError(t, err)
				assert.Equal(t, c.want, got)
				return
			}
			require.ErrorContains(t, err, c.err)
			var refused *Error
			require.True(t, errors.As(err, &refused))
			assert.Equal(t, "g", refused.RequestID)
		})
	}
}

func TestParseNamesWhatIsOverridden(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	for doc, want := range map[string][]string{
		`{"user_id": 1}`: nil,
		`{"user_id": 1, "param_overrides": null}`:                                               nil,
		`{"user_id": 1, "param_overrides": {}}`:                                                 nil,
		`{"user_id": 1, "param_overrides": {"weight": 1, "blocklist_regex": "a", "weight": 2}}`: {"weight", "blocklist_regex"},
	} {
		got, err := Parse([]byte(doc), reg)
		require.NoError(t, err, doc)
		assert.Equal(t, want, got.Overrides, doc)
	}
}

func TestUserID(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "0007": 7, "4294967295": UserIDMax} {
		got, err := UserID([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "0", "-1", "+1", "4294967296", "99999999999999999999", "1.0", "a", " 1"} {
		_, err := UserID([]byte(text))
		assert.ErrorContains(t, err, "user_id as a string must be decimal digits", text)
	}
}
