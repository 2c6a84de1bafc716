package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// canary is a password that no output may show.
const canary = "c4n4ry"

// locked returns the address of a server with demo data that requires a user and a password.
func locked(t *testing.T) string {
	server := miniredis.RunT(t)
	o := run(t, nil, "--load_demo_data", "--redis", server.Addr())
	require.Equal(t, exitOK, o.status, o.stderr)
	server.RequireUserAuth("ranker", canary)
	return server.Addr()
}

// assertHidden checks that no output holds the canary, whole or in part.
func assertHidden(t *testing.T, o outcome) {
	t.Helper()
	for _, part := range []string{canary, "4n4r"} {
		assert.NotContains(t, o.stdout, part)
		assert.NotContains(t, o.stderr, part)
	}
}

// servers returns the ways to name a server with its password.
func servers(t *testing.T, addr, password string) map[string]string {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	t.Setenv("RANKD_TEST_PASSWORD", password)
	return map[string]string{
		"url":         "redis://ranker:" + password + "@" + addr + "/0",
		"query":       "redis://" + addr + "?username=ranker&password=" + password,
		"file":        "redis://ranker@" + addr + "?password_file=" + file,
		"environment": "redis://ranker@" + addr + "/0?password_env=RANKD_TEST_PASSWORD",
	}
}

// Every job logs in with each form of password, on each engine, and shows it nowhere.
func TestPasswordsAreUsedAndHidden(t *testing.T) {
	addr := locked(t)
	for form, redis := range servers(t, addr, canary) {
		t.Run(form, func(t *testing.T) {
			folder := t.TempDir()
			drawn := []string{filepath.Join(folder, "html"), filepath.Join(folder, "json"), filepath.Join(folder, "perfetto")}
			models, jobs := []string{cmdline.Reactor}, [][]string{{"--print-registry"}}
			if form == "url" || form == "environment" {
				models = append(models, cmdline.Pool, cmdline.Sequential)
				jobs = append(jobs, []string{"trace", "--plan_name", "simple_viewer", "--html", drawn[0], "--json", drawn[1], "--perfetto", drawn[2]},
					[]string{"--load_demo_data"}, []string{"--bench", "5", "--plan_name", "simple_viewer"})
			} else {
				drawn = nil
			}
			for _, engine := range models {
				metrics := []string{}
				if engine == cmdline.Reactor {
					metrics = []string{"--metrics"}
				}
				o := run(t, strings.NewReader(`{"user_id": 1}`), append(metrics, "--plan_name", "complex_dag", "--dump-run-trace", "--engine", engine, "--redis", redis)...)
				require.Equal(t, exitOK, o.status, o.stdout+o.stderr)
				assert.Len(t, decode(t, o.lines()[0]).Candidates, 50)
				assertHidden(t, o)
			}
			for _, args := range jobs {
				o := run(t, nil, append(args, "--redis", redis)...)
				require.Equal(t, exitOK, o.status, o.stdout+o.stderr)
				assertHidden(t, o)
				if args[0] == "--load_demo_data" || args[0] == "--print-registry" {
					assert.Contains(t, o.stdout+o.stderr, addr)
				}
			}
			for _, file := range drawn {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.NotEmpty(t, text)
				assert.NotContains(t, string(text), canary)
			}
		})
	}
}

// A report quotes its command line, and workers get the server's name.
func TestBenchmarksHidePasswords(t *testing.T) {
	forms := servers(t, locked(t), canary)
	t.Setenv("RANKD_TEST_RUN_MAIN", "1")
	for _, form := range []string{"url", "environment"} {
		page := filepath.Join(t.TempDir(), "report.html")
		o := run(t, nil, "bench", "compare", "--plan_name", "simple_viewer", "--engines", "reactor", "--concurrency", "1", "--rounds", "1",
			"--duration", "10ms", "--warmup", "0s", "--redis_latency", "0,1ms", "--redis="+forms[form], "--json", "--html", page)
		require.Equal(t, exitOK, o.status, o.stdout+o.stderr)
		assertHidden(t, o)
		assert.Contains(t, o.stdout, "bench compare --plan_name simple_viewer")
		report, err := os.ReadFile(page)
		require.NoError(t, err)
		assert.NotContains(t, string(report), canary)
	}
}

// A password that the server refuses is not shown, either.
func TestWrongPasswordsAreHidden(t *testing.T) {
	server := miniredis.RunT(t)
	server.RequireUserAuth("ranker", "another")
	for form, redis := range servers(t, server.Addr(), canary) {
		t.Run(form, func(t *testing.T) {
			for _, engine := range []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential} {
				o := run(t, strings.NewReader(`{"user_id": 1}`), "--plan_name", "simple_viewer", "--engine", engine, "--redis", redis)
				assert.Equal(t, exitFailed, o.status)
				answer := decode(t, o.lines()[0])
				assert.Equal(t, "Redis connection failed", answer.Error)
				assert.Contains(t, answer.Detail, "WRONGPASS")
				assertHidden(t, o)
			}
			o := run(t, nil, "--load_demo_data", "--redis", redis)
			assert.Equal(t, exitFailed, o.status)
			assert.Contains(t, o.stderr, "WRONGPASS")
			assertHidden(t, o)
		})
	}
}

// The error does not quote the password of a command line, whatever is wrong with that line.
func TestErrorsOfCommandLinesHidePasswords(t *testing.T) {
	bad := []string{
		"c4n4ry@h:6379", "u:c4n4ry@h:6379", "redis://u:c4n/4ryc4n4ry@h:6379", "redis://u:c4n4ry#@h", "redis://u:c4n4ry@h/x", "redis://u:c4n4ry@h:99999",
		"redisss://u:c4n4ry@h:6379", "http://u:c4n4ry@h", "redis://u:%zzc4n4ry@h", "redis://u:c4n4ry@a b", "unix://u:c4n4ry@h/s",
		"redis://h?password=c4n4ry&x=y", "redis://u:" + strings.Repeat("c4n4ry", 100) + "@h/x", "redis://u:c4n\"c4n4ry@h/x", "redis://u:a c4n4ry@h/x",
	}
	hidden := func(args ...string) {
		t.Helper()
		o := run(t, nil, args...)
		require.NotEqual(t, exitOK, o.status, args)
		require.NotEmpty(t, o.stderr, args)
		assertHidden(t, o)
		require.False(t, t.Failed(), args)
	}
	for i, redis := range bad {
		hidden("--redis", redis)
		hidden(redis)
		hidden("--redis_pool", redis)
		if i > 2 {
			continue
		}
		for _, args := range [][]string{
			{"--redis=" + redis}, {"--load_demo_data", "--redis", redis}, {"--print-registry", "--redis", redis}, {"--redis", redis, "--no_such_flag"},
			{"--plan", redis}, {"--registry_dir", redis}, {"--plan_name", redis}, {"--engine", redis}, {"--env", redis}, {"--" + redis}, {"bench", redis},
			{"bench", "compare", "--plan_name", "diamond", "--redis", redis}, {"bench", "loop", "--mode", "interference", "--redis", redis},
		} {
			hidden(args...)
		}
	}
	for _, text := range []string{"redis://u:c4n4ry@h", "redis://h?password=c4n4ry"} {
		for _, args := range [][]string{{text}, {"--plan", text}, {"--redis_pool=" + text}, {"bench", "compare", "--plan_name", "diamond", "--redis", text, "--engines", "peer:rueidis"}} {
			assertHidden(t, run(t, nil, args...))
		}
	}
}

// A registry of a user names its servers by URL, and keeps the password out of the table.
func TestRegistryWithURLs(t *testing.T) {
	addr := locked(t)
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS("../registry/tables")))
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(canary), 0o600))
	for _, endpoint := range []string{
		fmt.Sprintf("url = \"redis://ranker@%s/0?password_file=%s\"", addr, file),
		fmt.Sprintf("url = \"redis://%s\"\npolicy.username = \"ranker\"\npolicy.password_file = %q", addr, file),
		fmt.Sprintf("url = \"redis://ranker:%s@%s\"", canary, addr),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "endpoints.prod.toml"), []byte(
			"[[endpoint]]\nid = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\n"+endpoint+
				"\n[[endpoint]]\nid = \"ep_0002\"\nname = \"http_api\"\nkind = \"http\"\nhost = \"h\"\nport = 80\n"), 0o600))
		for _, engine := range []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential} {
			o := run(t, strings.NewReader(`{"user_id": 1}`), "--plan_name", "complex_dag", "--registry_dir", folder, "--env", "prod", "--engine", engine)
			require.Equal(t, exitOK, o.status, o.stdout+o.stderr)
			assertHidden(t, o)
		}
		o := run(t, nil, "--print-registry", "--registry_dir", folder, "--env", "prod")
		assert.Contains(t, o.stdout, addr)
		assertHidden(t, o)
	}
}

// The test uses a real server over its unix socket, with an ACL user and another database.
func TestRealServerOverItsSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "rankd") // short: systems bound the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	server := testworld.StartRedis(t, "--unixsocket", socket,
		// The rights are those that docs/redis.md names. CLIENT is not among them, since client
		// names are optional.
		"--user", "ranker", "on", ">"+canary, "~user:*", "~follow:*", "~recommendation:*", "~media:*", "+hgetall", "+lrange", "+select",
		"--user", "loader", "on", ">"+canary, "~*", "+select", "+hset", "+rpush", "+del",
		"--user", "reader", "on", ">"+canary, "~user:*", "+@read", "+@connection",
		"--user", "default", "off")
	t.Setenv("RANKD_TEST_PASSWORD", canary)
	unix := "unix://" + socket + "?db=5&username=ranker&password_env=RANKD_TEST_PASSWORD"
	o := run(t, nil, "--load_demo_data", "--redis", strings.Replace(unix, "ranker", "loader", 1))
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stderr, "to unix:"+socket)
	for _, engine := range []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential} {
		for redis, want := range map[string]string{
			unix: "",
			"redis://ranker@" + server.Addr + "/5?password_env=RANKD_TEST_PASSWORD": "",
			"unix://ranker:wrong@" + socket:                                         "WRONGPASS",
			"redis://nobody@" + server.Addr + "/5?password_env=RANKD_TEST_PASSWORD": "WRONGPASS",
			server.Addr: "NOAUTH",
			"redis://reader@" + server.Addr + "/5?password_env=RANKD_TEST_PASSWORD":  "NOPERM",
			"redis://ranker@" + server.Addr + "/99?password_env=RANKD_TEST_PASSWORD": "DB index is out of range",
			"unix://" + socket + ".none": "no such file or directory",
		} {
			o := run(t, strings.NewReader(`{"user_id": 1}`), "--plan_name", "complex_dag", "--engine", engine, "--redis", redis)
			answer := decode(t, o.lines()[0])
			if want == "" {
				assert.Equal(t, exitOK, o.status, o.stdout)
				assert.Len(t, answer.Candidates, 50)
			} else {
				assert.Equal(t, exitFailed, o.status)
				assert.Contains(t, answer.Detail, want)
			}
			assertHidden(t, o)
		}
	}
}
