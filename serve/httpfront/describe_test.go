package httpfront

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/request"
)

// object is a JSON object of the description. Its members are sorted by name.
type object map[string]any

// member is one member of a JSON object that clients send or get.
type member struct {
	name     string
	required bool
	schema   object
	text     string
}

// requestMembers are the members of a request that the engine reads. It ignores others.
func requestMembers() []member {
	var all []member
	for _, m := range request.Members() {
		all = append(all, member{m.Name, m.Required(), m.Schema, m.Text})
	}
	return all
}

// rowsSchema is the schema of a list of ranked rows.
var rowsSchema = object{"type": "array", "items": object{
	"type": "object", "required": []string{"id"}, "properties": object{"id": object{"type": []string{"integer", "string"}}},
}}

// answerMembers are the members of an answer.
var answerMembers = []member{
	{"request_id", true, object{"type": "string"}, "The id of the request."},
	{"engine_request_id", true, object{"type": "string"}, "An id that is new with each answer."},
	{"candidates", false, rowsSchema, "The ranked rows: id, and the columns of the plan that are not null, by name. Absent if the plan names its outputs."},
	{"outputs", false, object{"type": "object", "additionalProperties": rowsSchema}, "The ranked rows of each output, by its name, if the plan names its outputs."},
	{"completeness", false, object{"type": "object"}, "Which nodes lack something, if the plan goes on without them."},
	{"below_minimum", false, object{"type": "object"}, "Which outputs have fewer rows than the plan wants: of each its rows and min_rows."},
	{"fallback", false, object{"type": "object"}, "Which plan has answered in place of the one that was asked for: plan, instead_of, and why: reason, detail."},
	{"fallback_failed", false, object{"type": "object"}, "Which plan should have answered in place of this one, which has too few rows, and why it failed: plan, instead_of, reason, detail."},
	{"explain", false, object{"type": "object"}, "What the request's explain asked for."},
	{"trace", false, object{"type": "object"}, "What the request's trace asked for."},
	{"plan_version", false, object{"type": "object"}, "Which plan has made the answer, if the request asked for it or for an alias."},
}

// errorMembers are the members of an error.
var errorMembers = []member{
	{"request_id", true, object{"type": "string"}, "The id of the request."},
	{"error", true, object{"type": "string"}, "One of a few known sentences."},
	{"detail", true, object{"type": "string"}, "The exact cause, one line."},
	{"node", false, object{"type": "string"}, "The node that failed, if one did."},
	{"op", false, object{"type": "string"}, "Its op."},
	{"source_span", false, object{"type": "string"}, "The place in the source of the plan."},
	{"trace", false, object{"type": "object"}, "What the request's trace asked for."},
}

// schemaOf returns the JSON Schema of an object with these members.
func schemaOf(text string, members []member) object {
	properties, required := object{}, []string{}
	for _, m := range members {
		property := object{"description": m.text}
		for name, value := range m.schema {
			property[name] = value
		}
		properties[m.name] = property
		if m.required {
			required = append(required, m.name)
		}
	}
	return object{"type": "object", "description": text, "properties": properties, "required": required}
}

// headerParameters are the headers of a request in the description. Authorization is there as a security scheme.
var headerParameters = []struct {
	field  field
	asks   bool // only routes that ask read it
	schema object
	text   string
}{
	{requestTimeout, true, object{"type": "integer", "minimum": 1}, "How long the answer may take, in milliseconds. In a batch: the answer to each line."},
	{requestID, false, object{"type": "string", "maxLength": idBytesMax}, "The id of the request, unless its body has one: printable ASCII without spaces. Another value is ignored. The answer repeats it."},
	{traceParent, false, object{"type": "string"}, "W3C Trace Context. Another value is ignored. The answer repeats it, and the log of failed requests shows its trace id."},
}

// failing is a status with the reasons for it.
type failing struct {
	status  int
	reasons []string
	retry   bool
}

// failures returns the statuses of failures of a route, ascending.
func (r *route) failures() []failing {
	var all []failing
	add := func(status int, reason string, retry bool) {
		i := slices.IndexFunc(all, func(o failing) bool { return o.status == status })
		if i < 0 {
			all = append(all, failing{status: status})
			i = len(all) - 1
		}
		all[i].reasons = append(all[i].reasons, reason)
		all[i].retry = all[i].retry || retry
	}
	if r.asks && !r.lines {
		for _, c := range outcome.Classes() {
			if c != outcome.OK && c != outcome.Abandoned { // Nobody reads the answer to an abandoned request.
				add(c.Status(), c.Text(), c.RetryAfter() > 0)
			}
		}
	}
	problems := []*problem{malformed, cutShort, tooSlow, longHead, faultVersion.problem()}
	if !r.open {
		problems = append(problems, noToken, badToken)
	}
	if r.asks {
		problems = append(problems, encoded, badTimeout)
	}
	if r.reads {
		problems = append(problems, manyBytes, brokenBody)
	}
	if r.lines {
		problems = append(problems, noBody, oldVersion)
	}
	for _, p := range problems {
		add(p.statusCode(), p.detail, p.class.RetryAfter() > 0)
	}
	slices.SortFunc(all, func(a, b failing) int { return a.status - b.status })
	return all
}

// describe returns the OpenAPI operation of the route.
func (r *route) describe() object {
	ref := func(name string) object { return object{"$ref": "#/components/" + name} }
	parameters := []object{}
	if strings.HasSuffix(r.path, planParameter) {
		parameters = append(parameters, object{"name": "plan", "in": "path", "required": true, "schema": object{"type": "string", "pattern": "^[A-Za-z0-9_]+$"}})
	}
	for _, h := range headerParameters {
		if r.asks || !h.asks {
			parameters = append(parameters, ref("parameters/"+fieldNames[h.field]))
		}
	}
	contentType, answer := typeJSON, object{"type": "object"}
	switch {
	case r.lines:
		contentType, answer = typeJSONLines, object{"description": "One line a request, in order.", "anyOf": []object{ref("schemas/Answer"), ref("schemas/Error")}}
	case r.asks:
		answer = ref("schemas/Answer")
	case r.id == "plans":
		answer = ref("schemas/Plans")
	}
	echoed := object{fieldNames[requestID]: ref("headers/" + fieldNames[requestID]), fieldNames[traceParent]: ref("headers/" + fieldNames[traceParent])}
	responses := object{strconv.Itoa(http.StatusOK): object{
		"description": "OK", "headers": echoed, "content": object{contentType: object{"schema": answer}},
	}}
	for _, o := range r.failures() {
		headers := echoed
		if o.retry {
			headers = object{"Retry-After": ref("headers/Retry-After")}
			for name, value := range echoed {
				headers[name] = value
			}
		}
		responses[strconv.Itoa(o.status)] = object{
			"description": strings.Join(o.reasons, "; "), "headers": headers,
			"content": object{typeJSON: object{"schema": ref("schemas/Error")}},
		}
	}
	operation := object{"operationId": r.id, "summary": r.summary, "parameters": parameters, "responses": responses}
	if r.asks {
		operation["requestBody"] = object{"required": true, "content": object{contentType: object{"schema": ref("schemas/Request")}}}
	}
	if r.open {
		operation["security"] = []object{}
	}
	return operation
}

// openAPI returns the description of the routes.
func openAPI() []byte {
	paths := object{}
	for i := range routes {
		r := &routes[i]
		paths[r.path] = object{strings.ToLower(r.method): r.describe()}
	}
	parameters := object{}
	for _, h := range headerParameters {
		parameters[fieldNames[h.field]] = object{"name": fieldNames[h.field], "in": "header", "description": h.text, "schema": h.schema}
	}
	document, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": "rankd", "version": versionMark, "description": "A request is the document that `rankd` reads on stdin, and an answer is what it prints."},
		"paths":   paths,
		// The second alternative is for a server without tokens.
		"security": []object{{"token": []string{}}, {}},
		"components": object{
			"parameters": parameters,
			"headers": object{
				fieldNames[requestID]:   object{"description": "The id of the request, if it may stand in a header.", "schema": object{"type": "string", "maxLength": idBytesMax}},
				fieldNames[traceParent]: object{"description": "The header of the request.", "schema": object{"type": "string"}},
				"Retry-After":           object{"description": "Seconds until a retry may help.", "schema": object{"type": "integer"}},
			},
			"schemas": object{
				"Request": schemaOf("A request. Other members are ignored, unless they look mistyped.", requestMembers()),
				"Answer":  schemaOf("The answer to a request that succeeded.", answerMembers),
				"Error":   schemaOf("Why a request failed.", errorMembers),
				"Plans": object{"type": "object", "required": []string{"generation", "plans"}, "properties": object{
					"generation": object{"type": "string", "description": "The digest of all plans, models and tables."},
					"plans": object{"type": "array", "items": object{
						"type": "object", "required": []string{"name", "digest"}, "properties": object{
							"name": object{"type": "string"}, "digest": object{"type": "string", "description": "The SHA-256 of the artifact."},
						},
					}},
					"aliases": object{"type": "array", "items": object{
						"type": "object", "required": []string{"name", "a", "b_share"}, "properties": object{
							"name": object{"type": "string"}, "a": object{"type": "string", "description": "The plan of side a."},
							"b":       object{"type": "string", "description": "The plan of side b, if there is one."},
							"b_share": object{"type": "number", "description": "The percentage of the users on side b."},
						},
					}},
				}},
			},
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("httpfront: OpenAPI: %v", err)) // The tables are at fault.
	}
	return append(document, '\n')
}

var update = flag.Bool("update", false, "write openapi.json")

// TestOpenAPI: the file that the front serves is what the routes, the members of requests and the classes of outcomes say.
func TestOpenAPI(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", openAPI(), 0o644))
	}
	file, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.Equal(t, string(openAPI()), string(file), "go test ./serve/httpfront -run TestOpenAPI -update writes it")
}
