// Package conformance holds the answers of the original engine, to replay them: on every engine and every available
// Redis, in its own tests, and through the program. README.md describes the format of a case.
package conformance

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
)

//go:embed cases/*.json seed.json
var files embed.FS

// Case is a plan, and the requests to run on it. Immutable; any goroutine.
type Case struct {
	Name     string
	Kind     string
	Tags     []string
	Plan     json.RawMessage
	Requests []Request
}

// Request is one request of a case, and its answer. Immutable; any goroutine.
type Request struct {
	Request json.RawMessage
	Expect  json.RawMessage
}

// Expectation says whether a request fails, and where. Immutable; any goroutine.
type Expectation struct {
	Error bool
	Stage string // "plan", "request" or "run"
}

// Quirk reports whether rankd refuses the plan, of which the original cuts ids to 32 bits, or the like.
func (c *Case) Quirk() bool { return slices.Contains(c.Tags, "quirk") }

// Expected returns what a request should give.
func (r *Request) Expected(t testing.TB) (e Expectation) {
	require.NoError(t, json.Unmarshal(r.Expect, &e))
	return e
}

// Load returns all cases.
func Load(t testing.TB) []Case {
	names, err := fs.Glob(files, "cases/*.json")
	require.NoError(t, err)
	require.Greater(t, len(names), 300)
	var cases []Case
	for _, f := range names {
		text, err := files.ReadFile(f)
		require.NoError(t, err)
		var c Case
		require.NoError(t, json.Unmarshal(text, &c), f)
		cases = append(cases, c)
	}
	return cases
}

// Verbatim returns the text that a case means. A JSON string means its content, anything else
// means itself.
func Verbatim(t testing.TB, raw json.RawMessage) []byte {
	if raw[0] != '"' {
		return raw
	}
	var s string
	require.NoError(t, json.Unmarshal(raw, &s))
	return []byte(s)
}

// Check compares the answer to a request of the case with the expected one, by the rules of the README.
func (c *Case) Check(t testing.TB, request int, got []byte) {
	where := fmt.Sprint("request ", request)
	want := c.Requests[request].Expect
	w, err := jsondoc.Parse(want)
	require.NoError(t, err)
	g, err := jsondoc.Parse(got)
	require.NoError(t, err, "%s", got)
	assert.Equal(t, canonical(w.Get("candidates")), canonical(g.Get("candidates")), "%s: candidates", where)
	wantDeltas, gotDeltas := deltasByNode(w.Get("schema_deltas")), deltasByNode(g.Get("schema_deltas"))
	assert.Equal(t, wantDeltas, gotDeltas, "%s: schema_deltas", where)
	if slices.Contains(c.Tags, "request_id") {
		if id := w.Get("request_id"); id != nil {
			assert.Equal(t, id.Str, g.Get("request_id").Str)
		}
	}
}

// canonical writes a value in a form in which equal values have equal texts. Members are
// sorted, ids stay as they are, and doubles have their exact value.
func canonical(v *jsondoc.Value) string {
	switch {
	case v == nil:
		return "absent"
	case v.Kind == jsondoc.Array:
		var parts []string
		for i := range v.Items {
			parts = append(parts, canonical(&v.Items[i]))
		}
		return "[" + strings.Join(parts, "\n") + "]"
	case v.Kind == jsondoc.Object:
		var parts []string
		for i := range v.Members {
			parts = append(parts, strconv.Quote(v.Members[i].Name)+":"+canonical(&v.Members[i].Value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case v.Kind == jsondoc.String:
		return strconv.Quote(v.Str)
	case v.Kind == jsondoc.Uint:
		return strconv.FormatUint(v.Uint, 10)
	case v.Kind == jsondoc.Int:
		return strconv.FormatInt(v.Int, 10)
	case v.Kind == jsondoc.Float && v.Float == 0:
		return "float 0" // -0.0 equals 0.0
	case v.Kind == jsondoc.Float:
		return "float " + strconv.FormatFloat(v.Float, 'g', -1, 64)
	default:
		return fmt.Sprint(v.Kind, v.Bool)
	}
}

func deltasByNode(v *jsondoc.Value) map[string]string {
	m := map[string]string{}
	for i := range v.Items {
		m[v.Items[i].Get("node_id").Str] = canonical(&v.Items[i])
	}
	return m
}

// SeedCommands returns the commands that write seed.json into an empty Redis.
func SeedCommands(t testing.TB) (commands [][]string) {
	text, err := files.ReadFile("seed.json")
	require.NoError(t, err)
	var data struct {
		Hashes map[string]map[string]string
		Lists  map[string][]string
	}
	require.NoError(t, json.Unmarshal(text, &data))
	for key, fields := range data.Hashes {
		args := []string{"HSET", key}
		for name, value := range fields {
			args = append(args, name, value)
		}
		commands = append(commands, args)
	}
	for key, entries := range data.Lists {
		commands = append(commands, append([]string{"RPUSH", key}, entries...))
	}
	return commands
}

// Seed writes seed.json into an empty Redis.
func Seed(t testing.TB, addr string) {
	var b resp.Batch
	for _, command := range SeedCommands(t) {
		b.Cmd(command...)
	}
	client := respblocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer client.Close()
	require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error {
		for _, r := range replies.All() {
			require.NoError(t, r.Err())
		}
		return nil
	}))
}
