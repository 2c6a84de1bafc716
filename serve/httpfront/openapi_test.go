package httpfront

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/access"
)

// description is the part of an OpenAPI document that the tests check.
type description struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas    map[string]schema         `json:"schemas"`
		Parameters map[string]map[string]any `json:"parameters"`
	} `json:"components"`
}

type operation struct {
	OperationID string                            `json:"operationId"`
	Parameters  []map[string]any                  `json:"parameters"`
	Responses   map[string]map[string]any         `json:"responses"`
	RequestBody *struct{ Content map[string]any } `json:"requestBody"`
	Security    *[]map[string][]string            `json:"security"`
}

type schema struct {
	Properties map[string]map[string]any `json:"properties"`
	Required   []string                  `json:"required"`
}

func described(t *testing.T, s *server) description {
	var d description
	got := s.do(t, get("/openapi.json"))
	require.Equal(t, 200, got.StatusCode)
	require.NoError(t, json.Unmarshal([]byte(got.body), &d))
	return d
}

// The document lists for each path exactly the statuses that the running front gives there.
func TestEachStatusIsServed(t *testing.T) {
	guarded, err := access.Open(tokenFile(t, servetest.Token("first", "first-token", servetest.Plans("[onwdh]*"))))
	require.NoError(t, err)
	open := startFront(t, func(o *setup) { o.engine.MaxInflight = 1 })
	busy := dial(t, open.addr)
	tokens := startFront(t, func(o *setup) { o.store = guarded })
	few, err := access.NewCaller(access.Rules{Name: "few", Plans: []string{"*"}, MaxInflight: 1})
	require.NoError(t, err)
	require.True(t, few.Begin())
	limited := startFront(t, func(o *setup) { o.store = access.Anyone(few) })
	small := startFront(t, func(o *setup) {
		o.front.MaxRequestBytes, o.front.MaxHeaderBytes, o.front.MaxBodyBytes, o.front.ReadTimeout = 30_000, 500, 1, arrival
	})
	down := startFront(t, withData(t), func(o *setup) { o.engine.Redis = noRedis(t) })
	d := described(t, open)

	body, long := `{"user_id": 1}`, `{"user_id": 1, "x": "`+strings.Repeat("x", 40_000)+`"}`
	for path, methods := range d.Paths {
		for method, operation := range methods {
			t.Run(operation.OperationID, func(t *testing.T) {
				seen := map[string]bool{}
				try := func(s *server, request string) {
					status := strconv.Itoa(s.do(t, request).StatusCode)
					assert.Contains(t, operation.Responses, status, "%.100s", request)
					seen[status] = true
				}
				method = strings.ToUpper(method)
				at := func(plan string) string { return strings.Replace(path, planParameter, plan, 1) }
				content := ""
				if operation.RequestBody != nil {
					content = body
				}
				try(open, message(method, at("one"), content))
				try(open, message(method, at("one"), content, "X-A : b"))
				try(small, message(method, at("one"), content, "X-A: "+strings.Repeat("x", 1000)))
				try(small, strings.TrimSuffix(message(method, at("one"), "", "X-A: b"), "\r\n"))
				try(open, strings.Replace(message(method, at("one"), content), "HTTP/1.1", "HTTP/3.0", 1))
				if operation.Security == nil {
					try(tokens, message(method, at("one"), content))
				}
				if operation.RequestBody != nil {
					try(small, message(method, at("one"), body))
					try(open, message(method, at("one"), body, "Content-Encoding: br"))
				}
				if operation.RequestBody != nil && !strings.HasSuffix(path, "/batch") {
					ask := func(s *server, plan string, headers ...string) {
						try(s, message(method, at(plan), `{"user_id": 1, "plan": "`+plan+`"}`, headers...))
					}
					ask(open, "one")
					ask(open, "nowhere")
					ask(open, "wrong")
					ask(tokens, "chain", "Authorization: Bearer first-token")
					ask(open, "slow", "X-Request-Timeout-Ms: 1")
					ask(down, "simple_viewer")
					ask(limited, "one")
					try(small, message(method, at("one"), long))
					try(small, message(method, at("one"), long[:20_000]))
					busy.send(post("/v1/rank/held", body))
					h := <-open.held
					ask(open, "one")
					h.answer()
					busy.receive("POST")
				}
				assert.ElementsMatch(t, slices.Sorted(maps.Keys(operation.Responses)), slices.Sorted(maps.Keys(seen)))
			})
		}
	}
	assert.Len(t, d.Paths, len(routes))
}

// The running front reads each member of a request that the document lists: it refuses a wrong
// type, and names the member.
func TestEachMemberIsRead(t *testing.T) {
	s := startFront(t)
	d := described(t, s)
	request := d.Components.Schemas["Request"]
	for name := range request.Properties {
		members := map[string]any{"user_id": 1, "plan": "one"}
		members[name] = map[string]any{"nested": []int{1}}
		if name == "context" || name == "param_overrides" {
			members[name] = 7
		}
		document, err := json.Marshal(members)
		require.NoError(t, err)
		got := s.do(t, post("/v1/rank", string(document)))
		if name == "request_id" { // Any other type counts as none.
			assert.Equal(t, 200, got.StatusCode)
			continue
		}
		assert.Equal(t, 400, got.StatusCode, name)
		assert.Contains(t, got.body, name)
	}
	for _, name := range request.Required {
		got := s.do(t, post("/v1/rank", `{"plan": "one"}`))
		assert.Contains(t, got.body, name)
	}
	for name, parameter := range d.Components.Parameters {
		assert.Equal(t, "header", parameter["in"], name)
	}
}

// An answer and an error have the members that the document lists, and no others.
func TestEachMemberOfAnAnswerIsDescribed(t *testing.T) {
	s := startFront(t, withData(t))
	d := described(t, s)
	check := func(name, body string) {
		members := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal([]byte(body), &members), body)
		for member := range members {
			assert.Contains(t, d.Components.Schemas[name].Properties, member)
		}
		for _, member := range d.Components.Schemas[name].Required {
			assert.Contains(t, members, member)
		}
	}
	answer := s.do(t, post("/v1/rank/diamond", `{"user_id": 1, "explain": true, "trace": true}`))
	require.Equal(t, 200, answer.StatusCode, answer.body)
	for _, member := range []string{"explain", "trace"} {
		assert.Contains(t, answer.body, `"`+member+`":`)
	}
	check("Answer", answer.body)
	for _, request := range []string{post("/v1/rank", "oops"), get("/nowhere"), post("/v1/rank/parallel_sleep_plan", `{"user_id": 1, "deadline_ms": 1, "trace": true}`)} {
		got := s.do(t, request)
		require.GreaterOrEqual(t, got.StatusCode, 400)
		check("Error", got.body)
	}
	check("Plans", s.do(t, get("/v1/plans")).body)
}

// The table of classes and the tables of the front decide about statuses. The document follows
// both.
func TestTheDescriptionFollowsTheTables(t *testing.T) {
	for i := range routes {
		r := &routes[i]
		for _, c := range outcome.Classes() {
			listed := slices.ContainsFunc(r.failures(), func(o failing) bool {
				return o.status == c.Status() && strings.Contains(strings.Join(o.reasons, "; "), c.Text())
			})
			assert.Equal(t, r.asks && !r.lines && c != outcome.OK && c != outcome.Abandoned, listed, "%s %s", r.path, c.Label())
		}
	}
	assert.True(t, json.Valid(openAPI()))
}
