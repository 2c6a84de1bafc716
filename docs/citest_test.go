package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCITestInstalls runs .ci/test with only the tools of a bare system. The package manager
// writes down its arguments. The first two times, another program holds a lock of it. A go that
// runs no tests reports which programs they would have found.
func TestCITestInstalls(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, ".ci", "test"))
	require.NoError(t, err)
	_, err = os.ReadFile(script) // so that go test runs again when it has changed
	require.NoError(t, err)
	realGo, err := exec.LookPath("go")
	require.NoError(t, err)
	for _, tt := range []struct {
		name      string
		arguments []string
		installed string
		found     string // names of variables that name programs
	}{
		{"nothing", []string{"./rowset"}, "", ""},
		{"a server", []string{"-run", "X", "./internal/acceptance/conformance"}, "redis-server", "REDIS_SERVER"},
		{"a browser", []string{"./trace/..."}, "chromium", "CHROMIUM"},
		{"both", []string{"./internal/acceptance/conformance", "./bench/harness"}, "redis-server chromium", "REDIS_SERVER CHROMIUM"},
		{"the folder itself", []string{"-run", "X"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			for _, tool := range []string{"bash", "sh", "env", "dirname", "id", "seq", "tr", "xargs", "grep", "head", "mktemp", "rm", "chmod", "cat", "mv"} {
				path, err := exec.LookPath(tool)
				require.NoError(t, err)
				require.NoError(t, os.Symlink(path, filepath.Join(bin, tool)))
			}
			program := func(name, body string) {
				require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
			}
			program("cc", "exit 0")
			program("sleep", "echo slept >>"+log)
			program("go", `case "$1" in list) exec '`+realGo+`' "$@" ;; env) echo cc ;; *)
				for name in REDIS_SERVER CHROMIUM; do eval "value=\${RANKD_$name:-}"; [ -z "$value" ] || echo "found $name"; done >>`+log+`
				redis-server && exit 1; echo "requires $RANKD_REQUIRE_REDIS$RANKD_REQUIRE_CHROMIUM" >>`+log+` ;; esac`)
			program("apt-get", `case "$*" in
				*update*) [ -e `+bin+`/b ] || { [ -e `+bin+`/a ] && mv `+bin+`/a `+bin+`/b || echo >`+bin+`/a
					echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt)"; exit 100; } ;;
				*install*) while [ $# -gt 0 ]; do case "$1" in redis-server|chromium) echo "installs $1" >>`+log+`
					echo '#!/bin/sh' >`+bin+`/$1; chmod +x `+bin+`/$1 ;; esac; shift; done ;; esac`)
			command := exec.CommandContext(t.Context(), "bash", append([]string{script}, tt.arguments...)...)
			command.Env = append(os.Environ(), "PATH="+bin, "RANKD_REDIS_SERVER=", "RANKD_CHROMIUM=")
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)

			said, err := os.ReadFile(log)
			require.NoError(t, err)
			words := map[string][]string{}
			for line := range strings.Lines(string(said)) {
				verb, object, _ := strings.Cut(strings.TrimSpace(line), " ")
				words[verb] = append(words[verb], object)
			}
			assert.Equal(t, tt.installed, strings.Join(words["installs"], " "))
			if tt.installed != "" {
				assert.Contains(t, string(output), "This will be installed:\n  through the system's packages: "+tt.installed+"\n")
			}
			assert.Equal(t, tt.found, strings.Join(words["found"], " "))
			if tt.installed != "" {
				assert.Len(t, words["slept"], 2, "it waits for the lock")
			}
			assert.Equal(t, []string{"11"}, words["requires"], "no test is skipped, and none takes the redis-server in PATH")
		})
	}
}
