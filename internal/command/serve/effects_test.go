package serve

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/trace"
)

// built returns what a server with these flags is built with: the value of each field, by its path. Functions and sinks are
// set or not.
func built(t *testing.T, arguments ...string) map[string]string {
	t.Helper()
	o := new(options)
	cmd := newCommand(o, func() error { return nil })
	cmd.SetArgs(arguments)
	require.NoError(t, cmd.Execute(), "%v", arguments)
	var sink trace.Sink
	if o.TraceFile != "" {
		sink = new(trace.Writer)
	}
	engine, err := o.engineOptions(new(cmdline.EmbeddedRedis), sink)
	require.NoError(t, err)
	fields := make(map[string]string)
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				switch f := v.Type().Field(i); {
				case f.Anonymous:
					walk(path, v.Field(i))
				case f.Name != "PlansName" && f.Name != "RegistryName" && f.Name != "ModelsName": // of errors
					walk(path+"."+f.Name, v.Field(i))
				}
			}
		case reflect.Func, reflect.Interface, reflect.Pointer, reflect.Chan, reflect.Map:
			fields[path] = fmt.Sprint(!v.IsNil())
		case reflect.Int64:
			if v.Type() == reflect.TypeFor[time.Duration]() {
				fields[path] = time.Duration(v.Int()).String()
				return
			}
			fields[path] = fmt.Sprint(v.Int())
		default:
			fields[path] = fmt.Sprint(v)
		}
	}
	walk("engine", reflect.ValueOf(engine))
	walk("service", reflect.ValueOf(o.serviceOptions()))
	walk("http", reflect.ValueOf(o.httpOptions()))
	walk("resp", reflect.ValueOf(o.respOptions()))
	if engine.Now != nil {
		fields["engine.Now"] = engine.Now().UTC().Format(time.RFC3339)
	}
	fields["drainDelay"], fields["grace"] = o.drainDelay.String(), o.ShutdownGrace.String()
	fields["listen"], fields["resp"], fields["admin"] = o.listen, o.resp, o.admin
	fields["log"], fields["watch"], fields["reusePort"] = o.log, fmt.Sprint(o.watch), fmt.Sprint(o.reusePort)
	return fields
}

// TestEachFlagHasItsEffect: a flag changes these fields of what the server is built with, in their units, and no other.
func TestEachFlagHasItsEffect(t *testing.T) {
	folder := t.TempDir()
	effects := map[string]string{
		"plan_name complex_dag": "engine.Plan=complex_dag", "redis 10.0.0.1:7000": "engine.Redis=10.0.0.1:7000", "env prod": "engine.Env=prod engine.EmbeddedRedis=false",
		"plan_dir ../../../examples/demo/artifacts": "engine.Plans=true engine.PlansDir=../../../examples/demo/artifacts", "registry_dir ../../../examples/feed/registry": "engine.Registry=true", "model_dir " + folder: "engine.Models=true",
		"plan ../../../examples/demo/artifacts/diamond.plan.json": "engine.PlanFile=../../../examples/demo/artifacts/diamond.plan.json",
		"engine pool":                                       "engine.Model=pool",
		"async_scheduler=false":                             "engine.Model=sequential",
		"within_request_parallelism":                        "engine.Model=pool",
		"cpu_threads 7":                                     "engine.CPUThreads=7",
		"engine pool --io_threads 9":                        "engine.Model=pool engine.IOThreads=9",
		"redis_pool 5":                                      "engine.RedisConnections=5",
		"max_rows 1234":                                     "engine.MaxRows=1234",
		"max_reply_bytes 12345678":                          "engine.MaxReplyBytes=12345678",
		"coalesce_reads=false":                              "engine.NoCoalesceReads=true",
		"busy_poll_us 7":                                    "engine.BusyPoll=7µs",
		"busy_poll_us 0":                                    "engine.BusyPoll=-1ns",
		"now 2026-03-01T12:00:00Z":                          "engine.Now=2026-03-01T12:00:00Z",
		"scheduling inline_all":                             "engine.Scheduling.Mode=inline_all",
		"enable_inline_execution=false":                     "engine.Scheduling.NoInlineExecution=true",
		"inline_threshold_ns 77":                            "engine.Scheduling.InlineThreshold=77ns",
		"max_inline_depth 6":                                "engine.Scheduling.MaxInlineDepth=6",
		"enable_continuation_chaining=false":                "engine.Scheduling.NoContinuationChaining=true",
		"deadline_ms 70":                                    "engine.Timeout=70ms",
		"node_timeout_ms 7":                                 "engine.NodeTimeout=7ms",
		"shutdown_grace_ms 70":                              "grace=70ms",
		"response fields":                                   "service.Format=fields",
		"trace_file " + folder + "/t":                       "engine.TraceSink=true engine.TraceSample=1",
		"trace_file " + folder + "/t --trace_sample 7":      "engine.TraceSink=true engine.TraceSample=7",
		"trace_file " + folder + "/t --trace_detail nodes":  "engine.TraceSink=true engine.TraceSample=1 engine.TraceDetail=nodes",
		"listen 127.0.0.1:1234":                             "listen=127.0.0.1:1234",
		"resp 127.0.0.1:1234":                               "resp=127.0.0.1:1234",
		"admin 127.0.0.1:1234":                              "admin=127.0.0.1:1234",
		"max_inflight 7":                                    "engine.MaxInflight=7",
		"max_queue 7":                                       "engine.MaxQueue=7",
		"reuse_port":                                        "reusePort=true",
		"front_loops 3":                                     "http.Loops=3 resp.Loops=3",
		"drain_delay_ms 70":                                 "drainDelay=70ms",
		"log json":                                          "log=json",
		"log_per_second 7":                                  "service.LogPerSecond=7",
		"plan_dir ../../../examples/demo/artifacts --watch": "engine.Plans=true engine.PlansDir=../../../examples/demo/artifacts watch=true",
		"max_connections 7":                                 "http.MaxConnections=7 resp.MaxConnections=7",
		"max_unsent_total_bytes 1234567":                    "service.MaxUnsentBytes=1234567",
		"max_request_bytes 7":                               "http.MaxRequestBytes=7 resp.MaxRequestBytes=7",
		"strict":                                            "service.Strict=true",
		"max_header_bytes 2345":                             "http.MaxHeaderBytes=2345",
		"max_body_bytes 2345":                               "http.MaxBodyBytes=2345",
		"batch_inflight 7":                                  "http.BatchInflight=7",
		"max_pipeline 7":                                    "resp.MaxPipeline=7",
		"max_unsent_bytes 2345":                             "resp.MaxUnsentBytes=2345",
		"max_backlog_bytes 2345":                            "resp.MaxBacklogBytes=2345",
		"max_unread_bytes 2345":                             "resp.MaxUnreadBytes=2345",
		"http_idle_timeout_ms 70":                           "http.IdleTimeout=70ms",
		"resp_idle_timeout_ms 70":                           "resp.IdleTimeout=70ms",
		"resp_cancel_at_eof":                                "resp.CancelAtEOF=true",
		"read_timeout_ms 70":                                "http.ReadTimeout=70ms resp.ReadTimeout=70ms",
		"write_timeout_ms 70":                               "http.WriteTimeout=70ms resp.WriteTimeout=70ms",
	}
	// These have tests of their own, since what they name is opened: TestGrantsOfFlags, TestHostsOfFlags, those of the served
	// log, and those of the program.
	elsewhere := []string{"tokens", "allow_plans", "allow_overrides", "allow_request_scheduling", "allow_request_trace", "allow_request_explain",
		"allow_request_now", "allow_request_traffic", "allow_hosts", "tls_cert", "tls_key", "trace_sample", "trace_detail", "watch", "io_threads",
		"served_log", "served_log_key", "served_log_entries", "served_log_mb", "served_log_users", "user_key_file",
		"record", "record_users", "record_mb", "record_expire_h", "record_models", "encrypt_to"}
	standard := built(t)
	tried := make(map[string]bool)
	for arguments, want := range effects {
		t.Run(arguments, func(t *testing.T) {
			words := strings.Fields("--" + arguments)
			tried[strings.TrimPrefix(strings.SplitN(words[0], "=", 2)[0], "--")] = true
			now := built(t, words...)
			var changed []string
			for path, value := range now {
				if value != standard[path] {
					changed = append(changed, path+"="+value)
				}
			}
			assert.ElementsMatch(t, strings.Fields(want), changed)
		})
	}
	for _, s := range new(options).settings() {
		assert.True(t, tried[s.Name] || slices.Contains(elsewhere, s.Name), "--%s has no effect that a test knows", s.Name)
	}
}
