package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/adapters/rankdprom"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// Options say what the pages show. Service, Registry and Caller are required. Handler reads them once. One goroutine at a time.
type Options struct {
	Service *serve.Service
	// Registry is what /metrics shows. Handler registers the metrics of the engine, the process and the Go runtime.
	Registry *prometheus.Registry
	// Ready says why the process should not get requests now, for /readyz. Nil, or a nil error: it should get them.
	// Any goroutine.
	Ready func() error
	// Stuck returns how long a callback has held up the loop. Nil asks the engine. Any goroutine.
	Stuck func() time.Duration
	// Hosts are the names that operators may ask for. Nil: all. Another one: 403.
	Hosts *access.Hosts
	// Outputs are the process's outputs besides answers, by the label of their metrics.
	Outputs map[string]Output
	// Reload reads plans, models and tables again, or returns to those before. Nil asks the service. Any goroutine.
	Reload func(ctx context.Context, back bool) (rankd.Generation, error)
	// Caller is who asks in /v1/trace: it needs the grant request.GrantTrace.
	Caller *access.Caller
}

// An Output is a log or a file that never holds up the server. Any goroutine.
type Output interface {
	Dropped() uint64  // lines that came faster than they could be written
	Failures() uint64 // writes that ended with an error
}

// deadAfter is how long a callback may hold up the loop before /livez reports it and the process is restarted.
const deadAfter = 10 * time.Second

// stuckFor returns how long a callback has held up the loop.
func (o *Options) stuckFor() time.Duration {
	if o.Stuck != nil {
		return o.Stuck()
	}
	return o.Service.Engine().StuckFor()
}

// Handler returns the pages:
//
//	/livez          200, or 503 once a callback has held up the loop for 10 s
//	/readyz         200, or 503 and why; ?verbose adds the generation and the reloads
//	/reload         reads plans, models and tables again; ?back returns to those before; 422 and why
//	/metrics        in the format of Prometheus
//	/debug/pprof/   profiles, without the command line, which may hold a password
//	/v1/trace       runs one request, and shows its trace
func Handler(o Options) http.Handler {
	o.Registry.MustRegister(
		rankdprom.New(o.Service.Engine()), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	for name, output := range o.Outputs {
		register := func(metric, help string, read func() uint64) {
			o.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: metric, Help: help, ConstLabels: prometheus.Labels{"output": name},
			}, func() float64 { return float64(read()) }))
		}
		register("rankd_output_lines_dropped_total", "Lines of the log, or traces, that came faster than they could be written.", output.Dropped)
		register("rankd_output_write_errors_total", "Writes of the log, or of traces, that failed.", output.Failures)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if stuck := o.stuckFor(); stuck >= deadAfter {
			say(w, http.StatusServiceUnavailable, fmt.Sprintf("a callback has held up the loop for %v", stuck.Round(time.Second)))
			return
		}
		say(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, page := http.StatusOK, "ok"
		if o.Ready != nil {
			if err := o.Ready(); err != nil {
				status, page = http.StatusServiceUnavailable, err.Error()
			}
		}
		if r.URL.Query().Has("verbose") {
			page += "\n" + versions(o.Service.Engine())
		}
		say(w, status, page)
	})
	mux.HandleFunc("POST /reload", o.reload)
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{Registry: o.Registry}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.Handle("GET /debug/pprof/cmdline", http.NotFoundHandler())
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	t := &tracer{service: o.Service, caller: o.Caller}
	mux.Handle("GET /v1/trace", t)
	mux.Handle("POST /v1/trace", t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := o.Hosts.Check(r.Host, r.Header.Get("Origin")); err != nil {
			say(w, http.StatusForbidden, err.Error())
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// reload is POST /reload. Its answer is one line of JSON, or the lines of an error.
func (o *Options) reload(w http.ResponseWriter, r *http.Request) {
	change, back := o.Reload, r.URL.Query().Has("back")
	if change == nil {
		change = func(ctx context.Context, back bool) (rankd.Generation, error) {
			if back {
				return o.Service.Back(ctx)
			}
			return o.Service.Reload(ctx)
		}
	}
	g, err := change(r.Context(), back)
	if err != nil {
		say(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	body, _ := json.Marshal(Reloaded{g.Number, g.Digest, g.Plans}) // Strings and numbers always have a JSON form.
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // The client may have gone.
}

// Reloaded is the answer of /reload: what requests begin with from now on. Immutable.
type Reloaded struct {
	Generation uint64              `json:"generation"`
	Digest     string              `json:"digest"`
	Plans      []rankd.PlanVersion `json:"plans"`
}

// versions says what an engine has loaded, and how its reloads went.
func versions(e *rankd.Engine) string {
	g, reloads := e.Generation(), e.Reloads()
	text := fmt.Sprintf("generation %d, digest %s, loaded at %s", g.Number, g.Digest, g.Loaded.UTC().Format(time.RFC3339))
	for _, p := range g.Plans {
		text += fmt.Sprintf("\nplan %s, digest %s", p.Name, p.Digest)
	}
	for _, a := range g.Aliases {
		text += fmt.Sprintf("\nalias %s of %s", a.Name, a.String())
	}
	text += fmt.Sprintf("\nreloads: %d succeeded, %d failed", reloads.Succeeded, reloads.Failed)
	if reloads.Err != nil {
		text += fmt.Sprintf("\nthe last reload failed, and changed nothing: %v", reloads.Err)
	}
	return text
}

// say answers with lines of text.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // The client may have gone.
}
