package httpfront

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// route is an endpoint. The front serves by this table, and GET /openapi.json describes it. Immutable.
type route struct {
	method  string
	path    string       // as OpenAPI writes it; it may end with {plan}
	open    bool         // it needs no token
	handle  func(*codec) // answers a request whose body is not needed; nil: the body is needed
	id      string       // its name in the description
	summary string
	asks    bool // it runs requests, so it has a body, a deadline and all classes of outcomes
	reads   bool // it runs one request, which is the body
	lines   bool // body and answer are JSON Lines, a request each
}

// planParameter is the placeholder in a path for the name of a plan.
const planParameter = "{plan}"

// routes are the endpoints, the most used first.
var routes = [...]route{
	{
		method: http.MethodPost, path: "/v1/rank/" + planParameter, asks: true, reads: true,
		id: "rankByPlan", summary: "Runs one request with the plan of the path.",
	},
	{
		method: http.MethodPost, path: "/v1/rank", asks: true, reads: true,
		id: "rank", summary: "Runs one request with the plan that the body names, or the server's own.",
	},
	{
		method: http.MethodPost, path: "/v1/batch", asks: true, lines: true,
		id: "batch", summary: "Runs one request a line, and answers one line each, in order.",
	},
	{
		method: http.MethodGet, path: "/v1/plans", handle: (*codec).plans,
		id: "plans", summary: "Lists the plans that the caller may ask for.",
	},
	{
		method: http.MethodGet, path: "/openapi.json", handle: (*codec).describe, open: true,
		id: "openapi", summary: "Describes this API.",
	},
}

// routeOf returns the route of a path, nil if there is none, and the plan in the path.
func routeOf(path []byte) (r *route, plan []byte) {
	for i := range routes {
		r := &routes[i]
		prefix, named := strings.CutSuffix(r.path, planParameter)
		if !named && string(path) == r.path {
			return r, nil
		}
		if named && len(path) > len(prefix) && string(path[:len(prefix)]) == prefix && bytes.IndexByte(path[len(prefix):], '/') < 0 {
			return r, path[len(prefix):]
		}
	}
	return nil, nil
}

// takes reports whether the route takes the method. HEAD is GET without the body of the answer.
func (r *route) takes(method []byte) bool {
	return string(method) == r.method || r.method == http.MethodGet && string(method) == http.MethodHead
}

// allow returns the methods that the route takes, as the header Allow lists them.
func (r *route) allow() string {
	if r.method == http.MethodGet {
		return http.MethodGet + ", " + http.MethodHead
	}
	return r.method
}

// plans is GET /v1/plans.
func (c *codec) plans() {
	type plan struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	}
	type alias struct {
		Name   string  `json:"name"`
		A      string  `json:"a"`
		B      string  `json:"b,omitempty"`
		BShare float64 `json:"b_share"`
	}
	list := struct {
		Generation string  `json:"generation"`
		Plans      []plan  `json:"plans"`
		Aliases    []alias `json:"aliases,omitempty"`
	}{Generation: c.front.service.Engine().Generation().Digest, Plans: []plan{}}
	for _, a := range c.front.service.Aliases(c.caller) {
		list.Aliases = append(list.Aliases, alias{a.Name, a.A, a.B, a.BShare})
	}
	for _, p := range c.front.service.Plans(c.caller) {
		if p.Err == nil {
			list.Plans = append(list.Plans, plan{p.Name, p.Info.Digest})
		}
	}
	body, _ := json.Marshal(list) // Strings and numbers have a JSON form.
	c.document(body)
}

// describe is GET /openapi.json.
func (c *codec) describe() { c.document(c.front.openapi) }
