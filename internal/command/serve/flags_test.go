package serve

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
)

// parsed parses and checks a command line, without running it.
func parsed(args ...string) (*options, error) {
	o := new(options)
	cmd := newCommand(o, func() error { return nil })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(cmdline.FlagError) // as the root command has it
	cmd.SetOut(io.Discard)
	cmd.SetArgs(args)
	return o, cmd.Execute()
}

func TestFlagsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ args, refused string }{
		{"", ""},
		{"--listen :8080 --resp :6390 --plan_dir plans --redis 127.0.0.1:6379", ""},
		{"--listen 127.0.0.1:0 --resp 127.0.0.1:0 --admin 127.0.0.1:0", ""},
		{"--listen 127.0.0.1:80 --resp 127.0.0.2:80 --admin off", ""},
		{"--listen [::1]:80 --resp 127.0.0.1:80", ""},
		{"--engine pool --resp off --io_threads 2", ""},
		{"--max_queue 0 --drain_delay_ms 0 --shutdown_grace_ms 0", ""},
		{"--tokens f --scheduling offload_all --inline_threshold_ns 5", ""}, // a token may choose another mode

		{"--listen :80 --resp :80", "--listen and --resp have the same port 80"},
		{"--listen :80 --resp 127.0.0.1:80", "--listen and --resp have the same port 80"},
		{"--listen 127.0.0.1:80 --resp 0.0.0.0:80", "--listen and --resp have the same port 80"},
		{"--listen [::]:80 --admin 10.0.0.1:80", "--listen and --admin have the same port 80"},
		{"--resp 127.0.0.1:9 --admin 127.0.0.1:9", "--resp and --admin have the same port 9"},
		{"--listen localhost", `--listen is host:port, :port or off, not "localhost"`},
		{"--resp :65536", `--resp is host:port, :port or off, not ":65536"`},
		{"--admin :http", `--admin is host:port, :port or off, not ":http"`},
		{"--listen off --resp off", "--listen off and --resp off leave nothing to serve"},
		{"--listen off --max_header_bytes 5000 --batch_inflight 2", "--max_header_bytes has no effect with --listen off\n--batch_inflight has no effect with --listen off"},
		{"--listen off --admin off --allow_hosts x", "--allow_hosts has no effect with --listen off and --admin off"},
		{"--resp off --max_pipeline 5", "--max_pipeline has no effect with --resp off"},
		{"--tokens f --allow_request_trace", "--allow_request_trace has no effect with --tokens, whose file says what each caller may ask"},
		{"--tokens=", "--tokens needs a value, but it is empty"},
		{"--allow_plans=", "--allow_plans needs a value, but it is empty"},
		{"--tls_key k", "--tls_cert and --tls_key need each other"},
		{"--io_threads 4", "--io_threads has no effect with engine reactor; --engine pool has I/O workers"},
		{"--scheduling offload_all --inline_threshold_ns 5", "--inline_threshold_ns has no effect with --scheduling offload_all"},
		{"--trace_sample 5", "--trace_sample has no effect without --trace_file"},
		{"--log yaml", `--log is text or json, not "yaml"`},
		{"--max_queue -1", "--max_queue is a number from 0 to 16777216, not -1"},
		{"--read_timeout_ms 0 --deadline_ms -1", "--deadline_ms is a number from 0 to 2147483647, not -1\n--read_timeout_ms is a number from 1 to 2147483647, not 0"},
		{"--max_inflight many", `--max_inflight is a whole number, not "many"`},
		{"--plan f --plan_name g", "--plan and --plan_name exclude each other: give one of them"},
		{"--redis h", "--redis is host:port or a URL: "},
	} {
		_, err := parsed(strings.Fields(c.args)...)
		switch {
		case c.refused == "":
			assert.NoError(t, err, c.args)
		case strings.HasSuffix(c.refused, ": "):
			assert.ErrorContains(t, err, c.refused, c.args)
		default:
			assert.EqualError(t, err, c.refused, c.args)
		}
	}
}

func TestGrantsOfFlags(t *testing.T) {
	for args, want := range map[string]struct {
		plan, override bool
		grants         []request.Grant
	}{
		"":                           {true, false, nil},
		"--allow_plans feed_*,x":     {false, false, nil},
		"--allow_plans d*":           {true, false, nil},
		"--allow_overrides weight,x": {true, true, nil},
		"--allow_request_trace":      {true, false, []request.Grant{request.GrantTrace}},
		"--allow_request_now":        {true, false, []request.Grant{request.GrantNow}},
		"--allow_request_explain --allow_request_scheduling": {true, false, []request.Grant{request.GrantExplain, request.GrantScheduling}},
	} {
		o, err := parsed(strings.Fields(args)...)
		require.NoError(t, err, args)
		store, err := o.store()
		require.NoError(t, err, args)
		caller := store.Anonymous()
		assert.Equal(t, "anonymous", caller.Name())
		assert.Equal(t, want.plan, caller.MayPlan("diamond"), args)
		assert.Equal(t, want.override, caller.MayOverride("weight"), args)
		for _, g := range []request.Grant{request.GrantScheduling, request.GrantTrace, request.GrantExplain, request.GrantNow} {
			assert.Equal(t, slices.Contains(want.grants, g), caller.Granted()[g], "%s: %s", args, g)
		}
	}
}

// TestHostsOfFlags: on a loopback address without tokens, clients must use an allowed name.
func TestHostsOfFlags(t *testing.T) {
	for args, want := range map[string]struct{ http, admin string }{ // the names that are allowed in addition to localhost
		"":                                     {"", ""},
		"--listen localhost:0 --admin [::1]:0": {"", ""},
		"--tokens f":                           {"*", ""},
		"--listen :8080":                       {"*", ""},
		"--listen :8080 --admin :8081":         {"*", "*"},
		"--allow_hosts rankd,other":            {"rankd", "rankd"},
		"--tokens f --allow_hosts rankd":       {"rankd", "rankd"},
		"--listen :1 --admin :2 --allow_hosts rankd": {"rankd", "rankd"},
		"--allow_hosts *": {"*", "*"},
	} {
		o, err := parsed(strings.Fields(args)...)
		require.NoError(t, err, args)
		for _, l := range []struct {
			address address
			tokens  bool
			want    string
		}{{o.httpAddress, o.tokens != "", want.http}, {o.adminAddress, false, want.admin}} {
			hosts, err := o.hosts(l.address, l.tokens)
			require.NoError(t, err, args)
			assert.Equal(t, l.want != "", hosts.Check("rankd", "") == nil, "%s: %v", args, l.address)
			assert.Equal(t, l.want == "*", hosts.Check("evil.test", "") == nil, "%s: %v", args, l.address)
			assert.NoError(t, hosts.Check("localhost", ""))
		}
	}
	o, err := parsed("--allow_hosts", "[")
	require.NoError(t, err)
	_, err = o.hosts(o.adminAddress, false)
	assert.EqualError(t, err, `--allow_hosts: pattern 1 is malformed; it has letters, "*", "?" and sets such as [a-z]`)
}

func TestLocalAddresses(t *testing.T) {
	for value, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, ":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false, "host:1": false,
	} {
		a, err := parseAddress("listen", value)
		require.NoError(t, err)
		assert.Equal(t, want, a.local(), value)
	}
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:80", ":0", "off", "[::1]:1", "a:b:c", "x:99999", strings.Repeat("\xff", 128), strings.Repeat("\xff", 500)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		a, err := parseAddress("listen", value)
		if err != nil {
			assert.Less(t, len(err.Error()), 512)
			return
		}
		if a.on() {
			again, err := parseAddress("listen", a.String())
			require.NoError(t, err)
			assert.Equal(t, a, again)
			assert.Equal(t, a.port != "0", a.clashes(again))
		}
	})
}
