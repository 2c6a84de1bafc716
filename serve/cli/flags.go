package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/internal/engineflags"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/httpfront"
	"github.com/rankd/rankd/serve/respfront"
)

// The forms of the log.
const (
	logText = "text"
	logJSON = "json"
)

const long = `Serve applications over HTTP and over RESP, the protocol of Redis, until a signal comes.

  POST /v1/rank/PLAN      {"user_id": 1}            a request as on the stdin of rankd, and its answer
  RANK PLAN USER [JSON]   RANK complex_dag 1        the same for a Redis client

A port of its own serves operators: /livez, /readyz, /metrics for Prometheus, /v1/trace and /debug/pprof.

SIGTERM or SIGINT ends the server in order: /readyz answers 503, the server goes on for --drain_delay_ms, then it
accepts no more, answers what is in flight for at most --shutdown_grace_ms, and ends. A second signal ends it at
once. SIGHUP reads --tokens, --tls_cert and --tls_key again; a change of these files does so, too.

docs/serving.md describes each flag, metric and error.`

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

const usageTemplate = `Usage:
  {{.CommandPath}} [flags]

Examples:
{{.Example}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}

Exit status:
  0  a signal ended the server, and every request got its answer
  1  the server could not listen, --shutdown_grace_ms was too short for requests in flight, or traces could not be written
  2  bad usage, a bad plan, or a bad file of tokens or certificates
`

// options are the flags of rankd serve. Immutable once checked.
type options struct {
	engineflags.Flags

	listen, resp, admin string
	// The same, set by check.
	httpAddress, respAddress, adminAddress address

	maxInflight, maxQueue int
	drainDelayMS          int

	tokens                      string
	tlsCert, tlsKey             string
	allowPlans, allowOverrides  []string
	allowHosts                  []string
	log                         string
	logPerSecond                int
	maxConnections              int
	maxRequestBytes             int
	maxHeaderBytes              int
	maxBodyBytes                int
	batchInflight               int
	maxPipeline, maxUnsentBytes int
	maxBacklogBytes             int
	maxUnreadBytes              int
	maxUnsentTotalBytes         int
	respCancelAtEOF             bool

	httpIdleTimeoutMS, respIdleTimeoutMS, readTimeoutMS, writeTimeoutMS int
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
	cmd.SetUsageTemplate(usageTemplate)
	f := cmd.Flags()
	f.SortFlags = false
	f.SetNormalizeFunc(command.Normalize)

	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "serve HTTP at this `address`: host:port, :port for all addresses, port 0 for a free one, or off")
	f.StringVar(&o.resp, "resp", "127.0.0.1:6390", "serve RESP at this `address`, or off")
	f.StringVar(&o.admin, "admin", "127.0.0.1:8081", "serve operators at this `address`, or off; who reaches it may see everything, without a token")
	f.IntVar(&o.maxInflight, "max_inflight", 256, "run at most this `number` of requests at the same time")
	f.IntVar(&o.maxQueue, "max_queue", 1024, "let this `number` of requests wait beside those that run (0: none), and refuse the rest at once")
	f.IntVar(&o.drainDelayMS, "drain_delay_ms", 2000,
		"after SIGINT or SIGTERM say so at /readyz and serve on for this `number` of milliseconds, so that load balancers see it")
	o.AddGrace(f)
	f.StringVar(&o.tokens, "tokens", "", "serve only callers with a token in this `file`, which says what each may ask")
	f.StringSliceVar(&o.allowPlans, "allow_plans", []string{"*"}, "without --tokens: the plans that a request may name, `patterns` with commas between them")
	f.StringSliceVar(&o.allowOverrides, "allow_overrides", nil,
		"without --tokens: the parameters that a request may set in \"param_overrides\", `patterns` with commas between them (default none)")
	o.AddGrants(f)
	f.StringSliceVar(&o.allowHosts, "allow_hosts", nil, "HTTP: the names under which clients and operators may ask, beside localhost and addresses, `patterns` with commas between them "+
		"(default: all names, but none on a loopback address where no token is needed)")
	f.StringVar(&o.tlsCert, "tls_cert", "", "serve HTTP and RESP over TLS with the certificate in this `file`, and the chain that leads to it, PEM")
	f.StringVar(&o.tlsKey, "tls_key", "", "the key of --tls_cert, a PEM `file` that not everybody may read")
	f.StringVar(&o.log, "log", logText, "`form` of the log on stderr: text or json")
	f.IntVar(&o.logPerSecond, "log_per_second", 10, "log at most this `number` of failed requests a second")

	o.AddPlan(f)
	o.AddEngine(f)
	o.AddScheduling(f)
	o.AddDeadlines(f)
	o.AddResponse(f)
	o.AddRecording(f)

	f.IntVar(&o.maxConnections, "max_connections", httpfront.DefaultMaxConnections, "take at most this `number` of connections, for HTTP and for RESP each")
	f.IntVar(&o.maxUnsentTotalBytes, "max_unsent_total_bytes", serve.DefaultMaxUnsentBytes,
		"hold at most this `number` of bytes of answers that clients have not taken, of all connections; beyond it the slowest clients are cut")
	f.IntVar(&o.maxRequestBytes, "max_request_bytes", httpfront.DefaultMaxRequestBytes, "refuse requests longer than this `number` of bytes")
	f.IntVar(&o.maxHeaderBytes, "max_header_bytes", httpfront.DefaultMaxHeaderBytes, "HTTP: refuse requests whose headers are longer than this `number` of bytes")
	f.IntVar(&o.maxBodyBytes, "max_body_bytes", httpfront.DefaultMaxBodyBytes, "HTTP: hold at most this `number` of bytes of long bodies that are still arriving, of all connections")
	f.IntVar(&o.batchInflight, "batch_inflight", httpfront.DefaultBatchInflight, "HTTP: run at most this `number` of requests of one batch at the same time")
	f.IntVar(&o.maxPipeline, "max_pipeline", respfront.DefaultMaxPipeline, "RESP: run at most this `number` of commands of one connection; those behind them wait")
	f.IntVar(&o.maxUnsentBytes, "max_unsent_bytes", respfront.DefaultMaxUnsentBytes,
		"RESP: begin no command of a connection that leaves this `number` of bytes of answers unread; --write_timeout_ms cuts it")
	f.IntVar(&o.maxBacklogBytes, "max_backlog_bytes", respfront.DefaultMaxBacklogBytes,
		"RESP: cut a client that has sent this `number` of bytes of commands, beside --max_request_bytes, that have not begun")
	f.IntVar(&o.maxUnreadBytes, "max_unread_bytes", respfront.DefaultMaxUnreadBytes,
		"RESP: hold at most this `number` of bytes of commands that have not begun, of all connections")
	f.IntVar(&o.httpIdleTimeoutMS, "http_idle_timeout_ms", milliseconds(httpfront.DefaultIdleTimeout), "HTTP: close a connection without a request after this `number` of milliseconds")
	f.IntVar(&o.respIdleTimeoutMS, "resp_idle_timeout_ms", milliseconds(respfront.DefaultIdleTimeout), "RESP: close a connection without a command after this `number` of milliseconds")
	f.BoolVar(&o.respCancelAtEOF, "resp_cancel_at_eof", false, "RESP: cancel the requests of a client that stops sending; without this flag it gets its answers")
	f.IntVar(&o.readTimeoutMS, "read_timeout_ms", milliseconds(httpfront.DefaultReadTimeout), "cut a client that takes longer than this `number` of milliseconds to send one request")
	f.IntVar(&o.writeTimeoutMS, "write_timeout_ms", milliseconds(httpfront.DefaultWriteTimeout), "cut a client that takes nothing of its answer for this `number` of milliseconds")
	return cmd
}

func milliseconds(d time.Duration) int { return int(d / time.Millisecond) }

// check reports all that is wrong with the options at once, and completes them.
func (o *options) check(given *pflag.FlagSet) error {
	if err := command.CheckExclusive(given, "plan", "plan_name"); err != nil {
		return err
	}
	problems := []error{command.CheckValues(given)}
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := o.ChooseEngine(given); err != nil {
		problems = append(problems, err)
	} else {
		problems = append(problems, o.checkEffect(given))
	}
	problems = append(problems, o.Check(given), engineflags.CheckNumbers(given,
		engineflags.Number{Name: "max_inflight", Value: o.maxInflight, Least: 1, Most: 1 << 20},
		engineflags.Number{Name: "max_queue", Value: o.maxQueue, Least: 0, Most: 1 << 24},
		engineflags.Number{Name: "drain_delay_ms", Value: o.drainDelayMS, Least: 0, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "log_per_second", Value: o.logPerSecond, Least: 1, Most: 1 << 20},
		engineflags.Number{Name: "max_connections", Value: o.maxConnections, Least: 1, Most: 1 << 20},
		engineflags.Number{Name: "max_unsent_total_bytes", Value: o.maxUnsentTotalBytes, Least: 1 << 10, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "max_request_bytes", Value: o.maxRequestBytes, Least: 1, Most: 1 << 30},
		engineflags.Number{Name: "max_header_bytes", Value: o.maxHeaderBytes, Least: 1 << 10, Most: 1 << 20},
		engineflags.Number{Name: "max_body_bytes", Value: o.maxBodyBytes, Least: 1, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "batch_inflight", Value: o.batchInflight, Least: 1, Most: 1 << 16},
		engineflags.Number{Name: "max_pipeline", Value: o.maxPipeline, Least: 1, Most: 1 << 20},
		engineflags.Number{Name: "max_unsent_bytes", Value: o.maxUnsentBytes, Least: 1 << 10, Most: 1 << 30},
		engineflags.Number{Name: "max_backlog_bytes", Value: o.maxBacklogBytes, Least: 1 << 10, Most: 1 << 30},
		engineflags.Number{Name: "max_unread_bytes", Value: o.maxUnreadBytes, Least: 1 << 10, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "http_idle_timeout_ms", Value: o.httpIdleTimeoutMS, Least: 1, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "resp_idle_timeout_ms", Value: o.respIdleTimeoutMS, Least: 1, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "read_timeout_ms", Value: o.readTimeoutMS, Least: 1, Most: engineflags.LimitMSMax},
		engineflags.Number{Name: "write_timeout_ms", Value: o.writeTimeoutMS, Least: 1, Most: engineflags.LimitMSMax},
	), o.checkAddresses())
	if o.log != logText && o.log != logJSON {
		problem("--log is text or json, not %q", o.log)
	}
	if given.Changed("tls_cert") != given.Changed("tls_key") {
		problem("--tls_cert and --tls_key need each other")
	}
	if o.Engine != engineflags.Reactor && o.respAddress.on() {
		problem("RESP runs on the loop of --engine reactor; --resp off turns it off")
	}
	return errors.Join(problems...)
}

// checkEffect reports flags that have no effect beside others.
func (o *options) checkEffect(given *pflag.FlagSet) error {
	idle := command.IdleFlags{Given: given}
	if o.tokens != "" {
		for _, flag := range [...]string{"allow_plans", "allow_overrides", "allow_request_scheduling", "allow_request_trace", "allow_request_explain"} {
			idle.Add(flag, "with --tokens, whose file says what each caller may ask")
		}
	}
	if o.listen == off {
		for _, flag := range [...]string{"max_header_bytes", "max_body_bytes", "batch_inflight", "http_idle_timeout_ms"} {
			idle.Add(flag, "with --listen off")
		}
	}
	if o.listen == off && o.admin == off {
		idle.Add("allow_hosts", "with --listen off and --admin off")
	}
	if o.resp == off {
		for _, flag := range [...]string{"max_pipeline", "max_unsent_bytes", "max_backlog_bytes", "max_unread_bytes", "resp_idle_timeout_ms", "resp_cancel_at_eof"} {
			idle.Add(flag, "with --resp off")
		}
	}
	o.Idle(&idle, o.AllowRequestScheduling || o.tokens != "")
	o.IdleRecording(&idle, true) // /v1/trace records, too
	return idle.Problems()
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
	}{{o.AllowRequestScheduling, request.GrantScheduling}, {o.AllowRequestTrace, request.GrantTrace}, {o.AllowRequestExplain, request.GrantExplain}} {
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

// hosts returns the names under which a listener may be asked, nil for all. A web page must not get at a listener that needs no token
// through the name of this machine's loopback address.
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
	var o options
	return newCommand(&o, func() error { return p.serve(ctx, &o) })
}
