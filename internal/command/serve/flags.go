package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/bounds"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/httpfront"
	"github.com/rankd/rankd/serve/respfront"
	"github.com/rankd/rankd/serve/session"
	"github.com/rankd/rankd/trace"
)

// The forms of the log.
const (
	logText = "text"
	logJSON = "json"
)

const long = `Serve applications over HTTP and over RESP, the protocol of Redis, until a signal comes.

  POST /v1/rank/PLAN      {"user_id": 1}            a request as on the stdin of rankd, and its answer
  RANK PLAN USER [JSON]   RANK complex_dag 1        the same for a Redis client

A port of its own serves operators: /livez, /readyz, /reload, /metrics for Prometheus, /v1/trace and /debug/pprof.

SIGTERM or SIGINT ends the server in order: /readyz answers 503, the server goes on for --drain_delay_ms, then it
accepts no more, answers what is in flight for at most --shutdown_grace_ms, and ends. A second signal ends it at
once. SIGHUP reads --tokens, --tls_cert and --tls_key again; a change of these files does so, too.

SIGHUP and "rankd reload" also read plans, models and tables again, and change all of them at once or nothing; --watch does so after a change.

docs/operating.md describes each flag and metric, docs/serving.md each error.`

const examples = `  # The example plans, with a Redis inside the process:
  rankd serve

  # Your plans and your Redis, on all addresses:
  rankd serve --listen :8080 --resp :6390 --plan_dir plans --redis 127.0.0.1:6379

  # Ask it:
  curl -d '{"user_id": 1}' localhost:8080/v1/rank/complex_dag
  redis-cli -p 6390 RANK complex_dag 1

  # For strangers: tokens, TLS, a deadline, and at most 64 requests at once with 256 waiting:
  rankd serve --listen :8443 --resp off --tokens tokens.toml --tls_cert cert.pem --tls_key key.pem \
    --deadline_ms 200 --max_inflight 64 --max_queue 256`

// options are the flags of rankd serve. Immutable once checked.
type options struct {
	cmdline.EngineFlags

	listen, resp, admin string
	// The same, set by check.
	httpAddress, respAddress, adminAddress address

	drainDelay time.Duration

	tokens                     string
	tlsCert, tlsKey            string
	allowPlans, allowOverrides []string
	allowHosts                 []string
	log                        string
	logPerSecond               int
	strict                     bool
	watch                      bool
	reusePort                  bool
	frontLoops                 int
	maxUnsentTotalBytes        int

	// Of both fronts.
	maxConnections, maxRequestBytes int
	readTimeout, writeTimeout       time.Duration
	// Of one front alone.
	ofHTTP httpfront.Options
	ofRESP respfront.Options
}

// newCommand returns the command, which fills o, checks it and calls run.
func newCommand(o *options, run func() error) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve applications over HTTP and RESP", Long: long, Example: examples,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return run()
		},
	}
	return cmdline.Dress(cmd, o.settings(), "0  a signal ended the server, and every request got its answer",
		"1  the server could not listen, --shutdown_grace_ms was too short for requests in flight, or traces could not be written",
		"2  bad usage, a bad plan, or a bad file of tokens or certificates")
}

// settings are the flags of rankd serve.
func (o *options) settings() []cmdline.Setting {
	ms := func(name string, to *time.Duration, standard time.Duration, least int64, help string) cmdline.Setting {
		return cmdline.Setting{Name: name, To: cmdline.Duration(to, time.Millisecond), Default: int(standard / time.Millisecond),
			Least: least, Most: bounds.MSMax, Help: help}
	}
	return slices.Concat([]cmdline.Setting{
		{Name: "listen", To: &o.listen, Default: "127.0.0.1:8080",
			Help: "serve HTTP at this `address`: host:port, :port for all addresses, port 0 for a free one, or off"},
		{Name: "resp", To: &o.resp, Default: "127.0.0.1:6390", Help: "serve RESP at this `address`, or off"},
		{Name: "admin", To: &o.admin, Default: "127.0.0.1:8081",
			Help: "serve operators at this `address`, or off; whoever reaches it may see everything, without a token"},
		{Name: "max_inflight", To: &o.MaxInflight, Default: 256, Option: "MaxInflight", Help: "run at most this `number` of requests at the same time"},
		{Name: "max_queue", To: &o.MaxQueue, Default: 1024, Option: "MaxQueue", See: "reliability.md#admission",
			Help: "let this `number` of requests wait while others run (0: none), and refuse the rest at once"},
		{Name: "reuse_port", To: &o.reusePort, See: "operating.md#several-processes-on-one-port",
			Help: "share the ports of HTTP and RESP with other processes that have this flag; the kernel spreads the connections"},
		{Name: "front_loops", To: &o.frontLoops, Most: 64, See: "threading.md#sessions",
			Help: "run connections on this `number` of loops of their own, for HTTP and for RESP each; 0: on the engine's"},
		ms("drain_delay_ms", &o.drainDelay, 2*time.Second, 0,
			"after SIGINT or SIGTERM, report it at /readyz and keep serving for this `number` of milliseconds, so that load balancers notice"),
	}, o.GraceSettings(), []cmdline.Setting{
		{Name: "tokens", To: &o.tokens, See: "operating.md#tokens", Help: "serve only callers with a token in this `file`, which says what each may ask"},
		{Name: "allow_plans", To: &o.allowPlans, Default: []string{"*"}, Idle: o.withTokens,
			Help: "without --tokens: the plans that a request may name, `patterns` with commas between them"},
		{Name: "allow_overrides", To: &o.allowOverrides, Idle: o.withTokens,
			Help: "without --tokens: the parameters that a request may set in \"param_overrides\", `patterns` with commas between them (default none)"},
	}, o.GrantSettings(o.withTokens), []cmdline.Setting{
		{Name: "allow_hosts", To: &o.allowHosts, See: "operating.md#names-and-web-pages", Idle: o.withoutHosts,
			Help: "HTTP: the host names that requests of clients and operators may have, besides localhost and addresses, `patterns` with commas between them " +
				"(default: all names, but none on a loopback address where no token is needed)"},
		{Name: "tls_cert", To: &o.tlsCert, Help: "serve HTTP and RESP over TLS with the certificate in this `file`, and the chain that leads to it, PEM"},
		{Name: "tls_key", To: &o.tlsKey, Help: "the key of --tls_cert, a PEM `file` that not everybody may read"},
		{Name: "log", To: &o.log, Default: logText, OneOf: []string{logText, logJSON}, Help: "`form` of the log on stderr: text or json"},
		{Name: "log_per_second", To: &o.logPerSecond, Default: 10, Least: 1, Most: 1 << 20, Help: "log at most this `number` of failed requests a second, and count the others"},
		{Name: "watch", To: &o.watch, See: "change-a-plan.md", Idle: o.withoutFolders,
			Help: "read plans, models and tables again when their files change, as SIGHUP does"},
	}, o.PlanSettings(), o.EngineSettings(), o.SchedulingSettings(), o.DeadlineSettings(), o.ResponseSettings(), o.RecordingSettings(), o.ServedSettings(), o.RecordSettings(), []cmdline.Setting{
		{Name: "max_connections", To: &o.maxConnections, Default: httpfront.DefaultMaxConnections, Least: 1, Most: 1 << 20,
			Help: "take at most this `number` of connections, for HTTP and for RESP each"},
		{Name: "max_unsent_total_bytes", To: &o.maxUnsentTotalBytes, Default: serve.DefaultMaxUnsentBytes, Least: 1 << 10, Most: math.MaxInt32, See: "operating.md#memory",
			Help: "hold at most this `number` of bytes of answers that clients have not read, over all connections; beyond it the slowest clients are cut off"},
		{Name: "max_request_bytes", To: &o.maxRequestBytes, Default: httpfront.DefaultMaxRequestBytes, Least: 1, Most: 1 << 30,
			Help: "refuse requests, each a body, a line of a batch or a command, longer than this `number` of bytes"},
		{Name: "strict", To: &o.strict, See: "serving.md#fields-that-rankd-does-not-know",
			Help: "refuse a request with a field that rankd does not know; without this flag only names that look mistyped are refused"},
	}, withIdle(o.withoutHTTP,
		cmdline.Setting{Name: "max_header_bytes", To: &o.ofHTTP.MaxHeaderBytes, Default: httpfront.DefaultMaxHeaderBytes, Least: 1 << 10, Most: 1 << 20,
			Help: "HTTP: refuse requests whose headers are longer than this `number` of bytes"},
		cmdline.Setting{Name: "max_body_bytes", To: &o.ofHTTP.MaxBodyBytes, Default: httpfront.DefaultMaxBodyBytes, Least: 1, Most: math.MaxInt32,
			Help: "HTTP: hold at most this `number` of bytes of long bodies that are still arriving, over all connections"},
		cmdline.Setting{Name: "batch_inflight", To: &o.ofHTTP.BatchInflight, Default: httpfront.DefaultBatchInflight, Least: 1, Most: 1 << 16,
			Help: "HTTP: run at most this `number` of requests of one batch at the same time"},
	), withIdle(o.withoutRESP,
		cmdline.Setting{Name: "max_pipeline", To: &o.ofRESP.MaxPipeline, Default: session.DefaultMaxPipeline, Least: 1, Most: 1 << 20,
			Help: "RESP: run at most this `number` of commands of one connection; later ones wait, as far as --max_backlog_bytes allows"},
		cmdline.Setting{Name: "max_unsent_bytes", To: &o.ofRESP.MaxUnsentBytes, Default: session.DefaultMaxUnsentBytes, Least: 1 << 10, Most: 1 << 30,
			Help: "RESP: start no further command of a connection with this `number` of bytes of unread answers; --write_timeout_ms cuts it off"},
		cmdline.Setting{Name: "max_backlog_bytes", To: &o.ofRESP.MaxBacklogBytes, Default: session.DefaultMaxBacklogBytes, Least: 1 << 10, Most: 1 << 30,
			Help: "RESP: cut off a client, with -TOOLARGE, that has sent this `number` of bytes of commands that have not begun, besides --max_request_bytes"},
		cmdline.Setting{Name: "max_unread_bytes", To: &o.ofRESP.MaxUnreadBytes, Default: session.DefaultMaxUnreadBytes, Least: 1 << 10, Most: math.MaxInt32,
			Help: "RESP: hold at most this `number` of bytes of commands that have not begun, over all connections; beyond it a client that sends more is cut off"},
	), withIdle(o.withoutHTTP,
		ms("http_idle_timeout_ms", &o.ofHTTP.IdleTimeout, httpfront.DefaultIdleTimeout, 1, "HTTP: close a connection without a request after this `number` of milliseconds"),
	), withIdle(o.withoutRESP,
		ms("resp_idle_timeout_ms", &o.ofRESP.IdleTimeout, session.DefaultIdleTimeout, 1, "RESP: close a connection without a command after this `number` of milliseconds"),
		cmdline.Setting{Name: "resp_cancel_at_eof", To: &o.ofRESP.CancelAtEOF,
			Help: "RESP: cancel the requests of a client that stops sending; without this flag it gets its answers"},
	), []cmdline.Setting{
		ms("read_timeout_ms", &o.readTimeout, httpfront.DefaultReadTimeout, 1, "cut a client that takes longer than this `number` of milliseconds to send one request"),
		ms("write_timeout_ms", &o.writeTimeout, httpfront.DefaultWriteTimeout, 1, "cut a client that takes nothing of its answer for this `number` of milliseconds"),
	})
}

// withIdle returns settings that all have no effect for the same reason.
func withIdle(idle func() string, table ...cmdline.Setting) []cmdline.Setting {
	for i := range table {
		table[i].Idle = idle
	}
	return table
}

// The reasons why a flag has no effect, or "" if it has one: see cmdline.Setting.Idle.

func (o *options) withTokens() string {
	if o.tokens == "" {
		return ""
	}
	return "with --tokens, whose file says what each caller may ask"
}

func (o *options) withoutFolders() string {
	if len(o.watched()) > 0 {
		return ""
	}
	return "without --plan_dir, --plan, --model_dir and --registry_dir, since the built-in plans and tables have no files"
}

func (o *options) withoutHTTP() string {
	if o.listen != off {
		return ""
	}
	return "with --listen off"
}

func (o *options) withoutRESP() string {
	if o.resp != off {
		return ""
	}
	return "with --resp off"
}

func (o *options) withoutHosts() string {
	if o.listen != off || o.admin != off {
		return ""
	}
	return "with --listen off and --admin off"
}

// check reports all that is wrong with the options at once, and completes them.
func (o *options) check(given *pflag.FlagSet) error {
	if err := cmdline.CheckExclusive(given, "plan", "plan_name"); err != nil {
		return err
	}
	problems := []error{cmdline.CheckValues(given)}
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := o.ChooseEngine(given); err != nil {
		problems = append(problems, err)
	} else {
		o.StdoutIsFree = true
		o.GrantsModes, o.GrantsTraces = o.tokens != "", true // /v1/trace records, too
		idle := cmdline.IdleFlags{Given: given}
		idle.AddSettings(o.settings())
		problems = append(problems, idle.Problems())
	}
	problems = append(problems, o.Check(given, o.settings()), o.checkAddresses())
	if given.Changed("tls_cert") != given.Changed("tls_key") {
		problem("--tls_cert and --tls_key need each other")
	}
	return errors.Join(problems...)
}

// checkAddresses sets the addresses and refuses those that are equal.
func (o *options) checkAddresses() error {
	var problems []error
	all := []struct {
		flag, value string
		set         *address
	}{{"listen", o.listen, &o.httpAddress}, {"resp", o.resp, &o.respAddress}, {"admin", o.admin, &o.adminAddress}}
	for i, a := range all {
		var err error
		*a.set, err = parseAddress(a.flag, a.value)
		problems = append(problems, err)
		for _, b := range all[:i] {
			if a.set.clashes(*b.set) {
				problems = append(problems, fmt.Errorf("--%s and --%s have the same port %s", b.flag, a.flag, a.set.port))
			}
		}
	}
	if o.listen == off && o.resp == off {
		problems = append(problems, errors.New("--listen off and --resp off leave nothing to serve"))
	}
	return errors.Join(problems...)
}

// engineOptions returns the options of the engine. It lets requests choose everything; the callers' rights limit that.
func (o *options) engineOptions(redis *cmdline.EmbeddedRedis, traces trace.Sink) (rankd.Options, error) {
	engine, err := o.EngineOptions()
	engine.AllowRequestScheduling, engine.AllowRequestTrace, engine.AllowRequestExplain, engine.AllowRequestNow = true, true, true, true
	engine.AllowRequestTraffic = true
	o.Record(&engine, traces)
	if o.Env == "dev" {
		engine.EmbeddedRedis = redis.Start
	}
	return engine, err
}

// serviceOptions returns the options of the service of all fronts.
func (o *options) serviceOptions() serve.Options {
	return serve.Options{Format: o.Format(), LogPerSecond: o.logPerSecond, MaxUnsentBytes: o.maxUnsentTotalBytes, Strict: o.strict}
}

// httpOptions returns the options of HTTP.
func (o *options) httpOptions() httpfront.Options {
	front := o.ofHTTP
	front.MaxConnections, front.MaxRequestBytes = o.maxConnections, o.maxRequestBytes
	front.ReadTimeout, front.WriteTimeout, front.Loops = o.readTimeout, o.writeTimeout, o.frontLoops
	return front
}

// respOptions returns the options of RESP.
func (o *options) respOptions() respfront.Options {
	front := o.ofRESP
	front.MaxConnections, front.MaxRequestBytes = o.maxConnections, o.maxRequestBytes
	front.ReadTimeout, front.WriteTimeout, front.Loops = o.readTimeout, o.writeTimeout, o.frontLoops
	return front
}

// store returns the callers that the flags allow.
func (o *options) store() (*access.Store, error) {
	if o.tokens != "" {
		store, err := access.Open(o.tokens)
		if err != nil {
			return nil, fmt.Errorf("--tokens: %w", err)
		}
		return store, nil
	}
	rules := access.Rules{Name: access.Anonymous, Plans: o.allowPlans, Overrides: o.allowOverrides}
	for _, grant := range []struct {
		allowed bool
		grant   request.Grant
	}{{o.AllowRequestScheduling, request.GrantScheduling}, {o.AllowRequestTrace, request.GrantTrace}, {o.AllowRequestExplain, request.GrantExplain},
		{o.AllowRequestNow, request.GrantNow}, {o.AllowRequestTraffic, request.GrantTraffic}} {
		if grant.allowed {
			rules.Grants = append(rules.Grants, grant.grant)
		}
	}
	anyone, err := access.NewCaller(rules)
	if err != nil {
		return nil, fmt.Errorf("--allow_%w", err) // The error begins with plans or overrides.
	}
	return access.Anyone(anyone), nil
}

// hosts returns the host names that a listener accepts, nil for all. A web page must not reach a listener without
// tokens through a name of this machine's loopback address.
func (o *options) hosts(a address, tokens bool) (*access.Hosts, error) {
	if len(o.allowHosts) == 0 && (tokens || !a.local()) {
		return nil, nil
	}
	hosts, err := access.NewHosts(o.allowHosts)
	if err != nil {
		return nil, fmt.Errorf("--allow_%w", err) // The error begins with hosts.
	}
	return hosts, nil
}

// certificates returns the certificates that the flags name, or nil.
func (o *options) certificates() (*access.Certificates, error) {
	if o.tlsCert == "" {
		return nil, nil
	}
	certificates, err := access.OpenCertificates(o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, fmt.Errorf("--tls_cert: %w", err)
	}
	return certificates, nil
}

// Command returns "rankd serve". The server ends when ctx does.
func (p *Program) Command(ctx context.Context) *cobra.Command {
	o := options{EngineFlags: cmdline.EngineFlags{Options: p.Own}}
	return newCommand(&o, func() error { return p.serve(ctx, &o) })
}
