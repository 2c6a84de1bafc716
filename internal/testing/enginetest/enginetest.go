package enginetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Nobody returns a callback that must not be called.
func Nobody(t *testing.T) func(*rankd.Answer, error) {
	return func(*rankd.Answer, error) { t.Error("answered") }
}

// CacheTables are ownTables with users. Their endpoint has the given policy.
func CacheTables(policy string) fstest.MapFS {
	tables := OwnTables()
	tables["endpoints.dev.toml"].Data = append(tables["endpoints.dev.toml"].Data, "[endpoint.policy]\n"+policy...)
	return tables
}

// CacheForAnHour is the policy of an endpoint whose values stay in memory.
const CacheForAnHour = "cache = \"ttl\"\ncache_max_age_ms = 3600000\n"

// CachedMember is what an answer says of a node's values from memory.
var CachedMember = regexp.MustCompile(`,"cached":\{[^}]*\}`)

// RowsOf returns the rows of an answer with their columns. It leaves out the engine's id, which
// differs between answers.
func RowsOf(answer *rankd.Answer) string {
	line := string(answer.AppendJSON(nil, rankd.FormatFields))
	return regexp.MustCompile(`"engine_request_id":"[^"]*"|,"cached":\{[^}]*\}`).ReplaceAllString(line, "")
}

// ViewerPlan reads the row of the user.
var ViewerPlan = fstest.MapFS{"me.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "me", "outputs": ["me"], "nodes": [
	{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}]}`)}}

// TrackedModes are the caches that hear of changes from the server.
var TrackedModes = []string{"broadcast", "track"}

// JSONMember returns the text of a member of a JSON object. A further name selects a member of
// that member, and so on.
func JSONMember(t *testing.T, text string, path ...string) string {
	for _, name := range path {
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &object), text)
		text = string(object[name])
	}
	return text
}

// IDs yields the ids of an output.
func IDs(o rankd.Output) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range o.Len() {
			if !yield(o.ID(i)) {
				return
			}
		}
	}
}

// LenientPlans returns a plan folder with one plan per node list. Its nodes may have on_error.
func LenientPlans(nodes map[string]string) fstest.MapFS {
	folder := Plans(nodes)
	for _, file := range folder {
		file.Data = []byte(strings.Replace(string(file.Data), `"schema_version"`, `"capabilities_required": ["cap.rankd.on_error.v1"], "schema_version"`, 1))
	}
	return folder
}

// AnswerJSON returns the members of an answer's JSON form.
func AnswerJSON(t *testing.T, a *rankd.Answer) (members map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.AppendJSON(nil, rankd.FormatFlat), &members))
	return members
}

// Command sends a command to a Redis.
func Command(t *testing.T, addr string, words ...string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	_, err = c.Write([]byte(text))
	require.NoError(t, err)
	reply, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.NotEqual(t, byte('-'), reply[0], reply)
}

// Fails returns the error of a request for plan "p".
func Fails(t *testing.T, e *rankd.Engine) *rankd.Error {
	t.Helper()
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, ID: "r"})
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	return failed
}

// Sink takes the traces of an engine. Immutable.
type Sink func(*trace.Recording)

func (s Sink) Take(r *trace.Recording) { s(r) }

// Models are the models of execution.
var Models = []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential}

// ForModels runs a test on an engine of each model, with demo data.
func ForModels(t *testing.T, o rankd.Options, test func(t *testing.T, e *rankd.Engine)) {
	for _, model := range Models {
		t.Run(string(model), func(t *testing.T) {
			o := o
			o.Model = model
			test(t, Open(t, o))
		})
	}
}

// OnReactor runs a test of what all models share on the reactor.
func OnReactor(t *testing.T, o rankd.Options, test func(t *testing.T, e *rankd.Engine)) {
	test(t, Open(t, o))
}

// Open opens an engine on a Redis with demo data, unless o names another Redis. If the environment has RANKD_TEST_RECORD, all its requests are
// recorded, and run again at the end.
func Open(t testing.TB, o rankd.Options) *rankd.Engine {
	t.Helper()
	if o.Redis == "" {
		redis, err := rankdtest.StartRedis()
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		o.Redis = redis.Addr()
	}
	records := new(Records)
	if os.Getenv("RANKD_TEST_RECORD") != "" && o.Record == nil {
		o.Record, o.RecordUsers = records, 100
	}
	e, err := rankd.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, e.Close())
		records.ReplayAll(t, o.Tasks)
	})
	return e
}

// Plans returns a plan folder with one plan per node list.
func Plans(nodes map[string]string) fstest.MapFS {
	folder := fstest.MapFS{}
	for name, list := range nodes {
		text := fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "nodes": [%s], "outputs": ["out"],
			"expr_table": {"e": {"op": "param_ref", "param_id": 4}}}`, name, list)
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(text)}
	}
	return folder
}

// ThreeRows is the node list of a plan with three rows.
const ThreeRows = `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}`

// Gated is the node list of a plan that waits at a Gate.
const Gated = `{"node_id": "rows", "op": "test::fixed_source", "inputs": []},
		{"node_id": "held", "op": "test::gate", "inputs": ["rows"]},
		{"node_id": "out", "op": "test::mark", "inputs": ["held"]}`

// Gate is a task that waits until it is opened. A second task after it notes that it ran. Any
// goroutine.
type Gate struct {
	Entered chan struct{} // a value for each body that has begun
	Opened  chan struct{}
	Mu      sync.Mutex
	Marked  int
}

// NewGate returns a gate that is closed.
func NewGate() *Gate { return &Gate{Entered: make(chan struct{}, 8), Opened: make(chan struct{})} }

// Tasks returns both tasks.
func (g *Gate) Tasks() []task.Spec {
	return []task.Spec{
		{Op: "test::gate", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			g.Entered <- struct{}{}
			select {
			case <-g.Opened:
			case <-c.Context().Done():
				return rowset.RowSet{}, task.ErrCancelled
			}
			return c.Inputs[0], nil
		}},
		{Op: "test::mark", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			g.Mu.Lock()
			defer g.Mu.Unlock()
			g.Marked++
			return c.Inputs[0], nil
		}},
	}
}

// WithoutEngineID returns an answer's members without the engine's id, which differs between answers.
func WithoutEngineID(t *testing.T, line []byte) map[string]any {
	var m map[string]any
	require.NoError(t, json.Unmarshal(line, &m))
	require.NotEmpty(t, m["engine_request_id"])
	delete(m, "engine_request_id")
	return m
}

// SyncBuffer keeps what a log writes. Any goroutine.
type SyncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *SyncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *SyncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// WriteTables writes the built-in tables into a folder.
func WriteTables(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, os.CopyFS(dir, registry.DefaultTables()))
}

// WriteFile replaces a file by rename, so that nobody reads a half-written one.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, errors.Join(os.WriteFile(path+"~", []byte(text), 0o644), os.Rename(path+"~", path)))
}

// VersionPlan is a plan whose answers name its version. Two nodes write the version into two
// columns of each row.
func VersionPlan(name string, version int) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["out"], "expr_table": {"v": {"op": "const_number", "value": %d}}, "nodes": [
		{"node_id": "me", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "rows", "op": "core::follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 5}},
		{"node_id": "score", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2001, "expr_id": "v"}},
		{"node_id": "out", "op": "core::vm", "inputs": ["score"], "params": {"out_key": 2002, "expr_id": "v"}}]}`, name, version)
}

// Project is an engine whose tables, models and plans are in folders that a test changes. Its
// plan "versioned" starts as version 1. One goroutine.
type Project struct {
	*rankd.Engine
	T   testing.TB
	Dir string
}

// OpenProject opens an engine on such folders, in the place of what o has for them.
func OpenProject(t testing.TB, o rankd.Options) *Project {
	t.Helper()
	p := &Project{T: t, Dir: t.TempDir()}
	for _, sub := range []string{"plans", "models"} {
		require.NoError(t, os.Mkdir(filepath.Join(p.Dir, sub), 0o755))
	}
	WriteTables(t, filepath.Join(p.Dir, "tables"))
	p.Write("plans/versioned.plan.json", VersionPlan("versioned", 1))
	if o.Plans == nil {
		o.Plans = os.DirFS(filepath.Join(p.Dir, "plans"))
	}
	o.PlansName = "folder plans"
	o.Registry, o.RegistryName = os.DirFS(filepath.Join(p.Dir, "tables")), "folder tables"
	o.Models, o.ModelsName = os.DirFS(filepath.Join(p.Dir, "models")), "folder models"
	p.Engine = Open(t, o)
	return p
}

// Write replaces a file of the folders.
func (p *Project) Write(file, text string) { WriteFile(p.T, filepath.Join(p.Dir, file), text) }

// AnsweredVersion returns the version in an answer of the plan "versioned", and checks that both
// columns of all rows agree.
func AnsweredVersion(a *rankd.Answer) (int, error) {
	firsts, _, _ := a.Output(0).Floats("final_score")
	seconds, _, _ := a.Output(0).Floats("score")
	if len(firsts) == 0 || len(seconds) != len(firsts) {
		return 0, fmt.Errorf("an answer with %d and %d versions", len(firsts), len(seconds))
	}
	for i := range firsts {
		if firsts[i] != firsts[0] || seconds[i] != firsts[0] {
			return 0, fmt.Errorf("row %d is of another version: %v, %v", i, firsts, seconds)
		}
	}
	return int(firsts[0]), nil
}

// Says returns the version in an answer of that plan.
func (p *Project) Says(plan string) int {
	p.T.Helper()
	a, err := p.Rank(p.T.Context(), rankd.Request{Plan: plan, UserID: 1})
	require.NoError(p.T, err)
	v, err := AnsweredVersion(a)
	require.NoError(p.T, err)
	return v
}

// ResidentTables have items with a vector, a title and a price, and the columns that plans
// write.
func ResidentTables(policy string) registrytest.Tables {
	tables := registrytest.Tables{Endpoints: registrytest.Redis + "[endpoint.policy]\n" + policy, Keys: registrytest.ID}
	for i, k := range [][2]string{{"embedding", "vector(4)"}, {"title", "string"}, {"price", "float"}, {"tags", "string_set"}, {"near", "float"}} {
		tables.Keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable)
	}
	return tables
}

// Store runs commands on a server.
func Store(t testing.TB, addr string, commands ...[]string) {
	require.NoError(t, devredis.WithClient(t.Context(), addr, func(c *blocking.Client) error {
		var b resp.Batch
		for _, command := range commands {
			b.Cmd(command...)
		}
		return c.Do(&b, 0, func(replies resp.Replies) error {
			for _, reply := range replies.All() {
				if err := reply.Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}))
}

// IDsOf returns the ids of an output.
func IDsOf(o rankd.Output) []int64 {
	ids := make([]int64, o.Len())
	for i := range ids {
		ids[i] = o.ID(i)
	}
	return ids
}

// OnServers runs a test on the embedded Redis and on a real one.
func OnServers(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("embedded", func(t *testing.T) {
		redis, err := rankdtest.StartRedisWith(nil)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		test(t, redis.Addr())
	})
	t.Run("redis-server", func(t *testing.T) { test(t, testworld.StartRedis(t).Addr) })
}

// OwnTables are the tables of a team with its own data.
func OwnTables() fstest.MapFS {
	keys := registrytest.ID
	for i, k := range [][3]string{
		{"inbox_score", "float"}, {"title", "string", "field = \"ti\""}, {"likes", "int", "default = 2"}, {"quality", "float"}, {"premium", "bool"},
		{"tags", "string_set"}, {"author_id", "int"}, {"followers", "int", "default = 0"}, {"final", "float"}, {"country", "string"},
	} {
		keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable, k[2])
	}
	params := registrytest.Param(1, "country", "string", registrytest.Nullable, "context = true")
	return registrytest.Tables{Keys: keys, Params: params, Endpoints: registrytest.Redis}.FS()
}
