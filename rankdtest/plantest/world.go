package plantest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing/fstest"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
)

// world is an engine with its own Redis and services. One file at a time.
type world struct {
	options  rankd.Options // of engine
	given    fs.FS         // the tables of the caller; nil: the built-in ones
	engine   *rankd.Engine
	redis    *rankdtest.Redis
	tables   *registry.Registry
	listener net.Listener
	server   *http.Server
	services atomic.Pointer[services]  // of the request that runs
	data     *dataset                  // that redis holds; nil: nothing
	now      atomic.Pointer[time.Time] // of the request that runs; nil or zero: the present
}

// services are the answers of the endpoints of kind http to one request. Immutable; any goroutine.
type services struct {
	canned map[string][]json.RawMessage // by endpoint; empty: a function of the test answers
	serve  func(service string, body []byte) ([]byte, error)
}

// openWorld opens a world. The caller closes it.
func openWorld(c *Config, tables *registry.Registry, plans *onceEach) (w *world, err error) {
	w = &world{tables: tables}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.redis, err = rankdtest.StartRedisWith(nil); err != nil {
		return w, err
	}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return w, err
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: c.Timeout}
	go func() { _ = w.server.Serve(w.listener) }()
	o := c.Engine
	c.dir(&o)
	o.Registry, err = w.moved(o.Registry, outage{})
	if err != nil {
		return w, err
	}
	o.Redis, o.EmbeddedRedis, o.Cache = "", nil, registry.CacheOff
	o.Plan, o.PlanFile, o.PlanText, o.Synthetic = "", "", nil, false
	o.AllowRequestNow, o.AllowRequestExplain, o.AllowRequestTrace, o.Compiler = true, true, true, plans
	if o.Timeout == 0 {
		o.Timeout = c.Timeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Now = func() time.Time {
		if now := w.now.Load(); now != nil && !now.IsZero() {
			return *now
		}
		return time.Now()
	}
	w.options, w.given = o, c.Engine.Registry
	w.engine, err = rankd.Open(o)
	return w, err
}

// renew opens the engine again if it keeps rows of former data, or of another date.
func (w *world) renew() (err error) {
	if len(w.engine.Residents()) == 0 {
		return nil
	}
	_ = w.engine.Close() // No request runs.
	w.engine, err = rankd.Open(w.options)
	return err
}

func (w *world) close() {
	if w.engine != nil {
		_ = w.engine.Close()
	}
	if w.server != nil {
		_ = w.server.Close()
	}
	if w.redis != nil {
		w.redis.Close()
	}
}

// endpointsPattern matches the tables of endpoints.
const endpointsPattern = "endpoints.*.toml"

// outage is what becomes of an endpoint. The zero value is nothing. Immutable.
type outage struct {
	Endpoint string `json:"endpoint"` // its name
	Addr     string `json:"-"`        // where it then is
	Slow     bool   `json:"slow"`     // it takes connections and says nothing; otherwise it refuses them
}

// nobody is an address at which nothing listens: connections are refused at once.
const nobody = "127.0.0.1:1"

// slowDeadline bounds a request at a slow endpoint that does not bound itself.
const slowDeadline = 500 * time.Millisecond

// moved returns the tables with all endpoints in this world, without any other address,
// password, certificate or cache. A faulty table stays as it is, so that the engine refuses it. The
// endpoint that is out is elsewhere.
func (w *world) moved(tables fs.FS, out outage) (fs.FS, error) {
	if tables == nil {
		tables = registry.DefaultTables()
	}
	changed := fstest.MapFS{}
	files, err := fs.ReadDir(tables, ".")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file.IsDir() || !strings.HasSuffix(file.Name(), ".toml") && !strings.HasSuffix(file.Name(), ".lock") {
			continue
		}
		text, err := fs.ReadFile(tables, file.Name())
		if err != nil {
			return nil, err
		}
		changed[file.Name()] = &fstest.MapFile{Data: text}
		if ok, _ := path.Match(endpointsPattern, file.Name()); !ok {
			continue
		}
		var table struct {
			Endpoint []map[string]any `toml:"endpoint"`
		}
		if toml.Unmarshal(text, &table) != nil {
			continue
		}
		for i, e := range table.Endpoint {
			here := map[string]any{"id": e["id"], "name": e["name"], "kind": e["kind"]}
			policy := map[string]any{}
			given, _ := e["policy"].(map[string]any)
			for _, field := range []string{"max_inflight", "connections", "connect_timeout_ms", "request_timeout_ms", "on_error", "timeout_percent", "max_request_bytes", "max_answer_bytes"} {
				if v, ok := given[field]; ok {
					policy[field] = v
				}
			}
			service, redis := w.listener.Addr().String(), w.redis.Addr()
			if e["name"] == out.Endpoint {
				service, redis = out.Addr, out.Addr
			}
			if here["url"] = "redis://" + redis; e["kind"] == string(registry.HTTP) {
				here["url"] = fmt.Sprintf("http://%s/%v", service, e["name"])
			}
			if len(policy) > 0 {
				here["policy"] = policy
			}
			table.Endpoint[i] = here
		}
		if text, err := toml.Marshal(table); err == nil {
			changed[file.Name()].Data = text
		}
	}
	return changed, nil
}

// serve answers a request to a service.
func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	s := w.services.Load()
	var canned []json.RawMessage
	known := false
	if s != nil {
		canned, known = s.canned[name]
	}
	if !known {
		http.Error(out, fmt.Sprintf("the test gives no answer of the service %s", name), http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(r.Body)
	var answer []byte
	switch {
	case err != nil:
	case len(canned) > 0:
		answer = canned[0]
	default:
		answer, err = s.serve(name, body)
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = out.Write(answer) // The engine says what is missing.
}

// dataset is what a test has stored. Immutable.
type dataset struct{ values map[string]any } // as rankdtest.Redis.Replace has them

// UnmarshalJSON implements json.Unmarshaler: an object by key, each a pair of kind and value.
func (d *dataset) UnmarshalJSON(text []byte) error {
	var pairs map[string][2]json.RawMessage
	if err := json.Unmarshal(text, &pairs); err != nil {
		return err
	}
	d.values = make(map[string]any, len(pairs))
	for key, pair := range pairs {
		var err error
		if d.values[key], err = stored(string(pair[0]), pair[1]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// stored returns a value in the form for rankdtest.Redis.Replace. Numbers keep their digits.
func stored(kind string, text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	switch kind {
	case `"set"`:
		var items []any
		err := decoder.Decode(&items)
		set := make(rankdtest.Set, len(items))
		for i, item := range items {
			set[i] = fmt.Sprint(item)
		}
		return set, err
	case `"sorted_set"`:
		var set rankdtest.SortedSet
		err := decoder.Decode(&set)
		return set, err
	default:
		var value any
		err := decoder.Decode(&value)
		return value, err
	}
}

// asked is a request of a test with the data and services that it meets. Immutable.
type asked struct {
	Request  map[string]json.RawMessage   `json:"request"`
	Data     int                          `json:"data"`
	Services map[string][]json.RawMessage `json:"services"`
	Out      outage                       `json:"out"`

	// Of explain alone.
	IDs    []json.RawMessage `json:"ids"`
	Pair   []json.RawMessage `json:"pair"`
	Column string            `json:"column"`
	Shelf  string            `json:"shelf"`
}

// rank runs a request over data, on an engine of its own if an endpoint is out. The error is an *rankd.Error, or says what is wrong with the data or the services.
func (w *world) rank(ctx context.Context, a *asked, data *dataset, serve func(string, []byte) ([]byte, error)) (*rankd.Answer, error) {
	for name := range a.Services {
		known := false
		for _, e := range w.tables.Endpoints() {
			known = known || e.Name == name && e.Kind == registry.HTTP
		}
		if !known {
			return nil, fmt.Errorf("no endpoint of kind http is named %q", name)
		}
	}
	doc, err := json.Marshal(a.Request)
	if err != nil {
		return nil, err
	}
	parse := func(e *rankd.Engine) (rankd.Request, error) {
		return e.Intake().Parse(doc, request.Given{RequestID: "test", Unknown: request.RefuseUnknown})
	}
	r, err := parse(w.engine)
	if err != nil {
		return nil, err
	}
	if last := w.now.Swap(&r.Now); w.data != data || last == nil || !last.Equal(r.Now) {
		if err := w.redis.Replace(data.values); err != nil {
			return nil, err
		}
		w.data = data
		if err := w.renew(); err != nil {
			return nil, err
		}
		if r, err = parse(w.engine); err != nil { // with the tables of the engine that is to answer
			return nil, err
		}
	}
	w.services.Store(&services{canned: a.Services, serve: serve})
	defer w.services.Store(nil)
	if a.Out.Endpoint == "" {
		return w.engine.Rank(ctx, r)
	}
	o, out := w.options, a.Out
	if out.Addr = nobody; out.Slow { // Nobody accepts the connections: the system takes them.
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer silent.Close()
		out.Addr = silent.Addr().String()
	}
	if o.Registry, err = w.moved(w.given, out); err != nil {
		return nil, err
	}
	e, err := rankd.Open(o)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if r, err = parse(e); err != nil {
		return nil, err
	}
	if out.Slow && r.Timeout == 0 {
		r.Timeout = slowDeadline
	}
	return e.Rank(ctx, r)
}

// endpoints returns the names of the endpoints.
func (w *world) endpoints() (names []string) {
	for _, e := range w.tables.Endpoints() {
		names = append(names, e.Name)
	}
	return names
}
