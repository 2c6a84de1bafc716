package request

import (
	"errors"
	"fmt"
	"strings"
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
		want  Request
		err   string
	}{
		"nothing given":                    {`{"user_id": 7, "request_id": "r"}`, Given{}, Request{ID: "r", UserID: 7}, ""},
		"no document":                      {``, Given{UserID: 7, Plan: "p", RequestID: "g"}, Request{ID: "g", UserID: 7, Plan: "p"}, ""},
		"no document and no user":          {``, Given{Plan: "p", RequestID: "g"}, Request{}, "Invalid JSON input: empty document"},
		"the user and the plan":            {`{"request_id": "r"}`, Given{UserID: 7, Plan: "p", RequestID: "g"}, Request{ID: "r", UserID: 7, Plan: "p"}, ""},
		"said twice":                       {`{"request_id": "r", "user_id": "7", "plan": "p"}`, Given{UserID: 7, Plan: "p"}, Request{ID: "r", UserID: 7, Plan: "p"}, ""},
		"an id that is not a string":       {`{"request_id": 5, "user_id": 7}`, Given{RequestID: "g"}, Request{ID: "g", UserID: 7}, ""},
		"an id that is empty":              {`{"request_id": "", "user_id": 7}`, Given{RequestID: "g"}, Request{UserID: 7}, ""},
		"a plan that is null":              {`{"request_id": "r", "user_id": 7, "plan": null}`, Given{Plan: "p"}, Request{ID: "r", UserID: 7, Plan: "p"}, ""},
		"another user":                     {`{"user_id": 8}`, Given{UserID: 7, RequestID: "g"}, Request{}, "Invalid request: user_id is 8, and the request came for user 7"},
		"a bad user":                       {`{"user_id": 0}`, Given{UserID: 7, RequestID: "g"}, Request{}, "Invalid request: user_id must be an integer from 1 to 4294967295, got 0"},
		"another plan":                     {`{"user_id": 7, "plan": "q"}`, Given{Plan: "p", RequestID: "g"}, Request{}, `Invalid request: plan is "q", and the request came for plan "p"`},
		"a document that is not an object": {`[]`, Given{UserID: 7, RequestID: "g"}, Request{}, "Invalid request: missing required field: user_id"},
		"a fault of the grammar":           {`{`, Given{UserID: 7, RequestID: "g"}, Request{}, "Invalid JSON input"},
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

// The table has what becomes of members that no request has.
func TestUnknownMembers(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	all := strings.Join(memberNames, ", ")
	for _, c := range []struct {
		member    string
		near, all string // the error of RefuseNear, and of RefuseUnknown; empty: none
	}{
		{`"context": null`, "", ""},
		{`"contxt": {}`, `unknown field "contxt"; did you mean context?`, `unknown field "contxt"; did you mean context?`},
		{`"deadlin_ms": 1`, `unknown field "deadlin_ms"; did you mean deadline_ms?`, `unknown field "deadlin_ms"; did you mean deadline_ms?`},
		{`"traces": "any"`, `unknown field "traces"; did you mean trace?`, `unknown field "traces"; did you mean trace?`},
		{`"Plan": 1, "plna": 2`, `unknown field "Plan"; did you mean plan?`, `unknown field "Plan"; did you mean plan?`},
		{`"session": 1`, "", `unknown field "session"; a request has ` + all},
		{`"": 1`, "", `unknown field ""; a request has ` + all},
		{`"` + strings.Repeat("plan", 1000) + `": 1`, "", "; a request has " + all},
	} {
		doc := []byte(`{"user_id": 7, "request_id": "r", ` + c.member + `}`)
		for how, want := range map[Unknown]string{IgnoreUnknown: "", RefuseNear: c.near, RefuseUnknown: c.all} {
			_, err := NewParser(reg).Parse(doc, Given{Unknown: how})
			if want == "" {
				assert.NoError(t, err, c.member)
				continue
			}
			require.ErrorContains(t, err, want)
			assert.Less(t, len(err.Error()), 500)
		}
	}
}

// allowed are the parameters that a caller may override.
type allowed map[string]bool

func (a allowed) MayOverride(param string) bool { return a[param] }

// Errors about parameters that a caller may not set do not reveal which parameters exist.
func TestHiddenParameters(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	parse := func(body string) *Error {
		_, err := NewParser(reg).Parse([]byte(`{"user_id": 1, `+body+`}`), Given{Overrides: allowed{"weight": true, "nobody": true}})
		if err == nil {
			return nil
		}
		return err.(*Error)
	}
	for _, body := range []string{`"param_overrides": {"%s": "x"}`, `"param_overrides": {"%s": null}`, `"param_overrides": {"weight": 1, "%s": 1}`, `"context": {"%s": 1}`} {
		existing, missing := parse(fmt.Sprintf(body, "blocklist_regex")), parse(fmt.Sprintf(body, "blocklist_regexp"))
		require.NotNil(t, existing, body)
		require.NotNil(t, missing, body)
		assert.Equal(t, existing.Code, missing.Code, body)
		assert.Equal(t, strings.ReplaceAll(existing.Detail, "blocklist_regex", "blocklist_regexp"), missing.Detail)
	}
	assert.Equal(t, CodeForbidden, parse(`"param_overrides": {"blocklist_regex": 1}`).Code)
	assert.Nil(t, parse(`"param_overrides": {"weight": 1}`))
	assert.Equal(t, `unknown parameter "nobody"`, parse(`"param_overrides": {"nobody": 1}`).Detail, "a caller that may set all parameters of a pattern learns which exist")
}
