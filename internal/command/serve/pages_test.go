package serve

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/serve/access"
)

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", path))
	require.NoError(t, err)
	return string(text)
}

// TestTheOperatingPageShowsASoundFileOfTokens reads the file that the page shows.
func TestTheOperatingPageShowsASoundFileOfTokens(t *testing.T) {
	shown := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(page(t, "operating.md"))
	require.NotNil(t, shown)
	path := filepath.Join(t.TempDir(), "tokens.toml")
	require.NoError(t, os.WriteFile(path, []byte(shown[1]), 0o600))
	store, err := access.Open(path)
	require.NoError(t, err)
	assert.Equal(t, []string{"feed"}, store.Names())
	caller, ok := store.Lookup([]byte("test"))
	require.True(t, ok)
	assert.True(t, caller.MayPlan("feed_1"))
}

// TestTheOperatingPageMakesADigest runs the commands of the page that make a token.
func TestTheOperatingPageMakesADigest(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.token"), []byte("test\n"), 0o600)) // as openssl ends its output
	shown := regexp.MustCompile(`(?m)^\$ (tr .* sha256sum)$`).FindStringSubmatch(page(t, "operating.md"))
	require.NotNil(t, shown)
	command := exec.CommandContext(t.Context(), "sh", "-c", shown[1])
	command.Dir = dir
	output, err := command.Output()
	require.NoError(t, err)
	digest, _, _ := strings.Cut(string(output), " ")
	assert.Contains(t, page(t, "operating.md"), digest)
}

// TestDeployedCommandLines: rankd accepts the command lines of the unit and of the image. The
// image's build needs no C compiler.
func TestDeployedCommandLines(t *testing.T) {
	unit := regexp.MustCompile(`(?m)^ExecStart=\S+/rankd serve (.*)$`).FindStringSubmatch(strings.ReplaceAll(page(t, "deploy/rankd@.service"), "%i", "1"))
	require.NotNil(t, unit)
	o, err := parsed(strings.Fields(unit[1])...)
	require.NoError(t, err)
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=15$`).FindString(page(t, "deploy/rankd@.service"))
	assert.NotEmpty(t, stop)
	assert.Less(t, o.drainDelay+o.ShutdownGrace, 15*time.Second, "systemd waits for the drain")

	image := page(t, "deploy/Containerfile")
	entry := regexp.MustCompile(`(?m)^ENTRYPOINT (.*)$`).FindStringSubmatch(image)
	require.NotNil(t, entry)
	var words []string
	require.NoError(t, json.Unmarshal([]byte(entry[1]), &words))
	require.Equal(t, []string{"/rankd", "serve"}, words[:2])
	for _, more := range []string{"", " " + regexp.MustCompile(`(?m)^#.* rankd (--.*)$`).FindStringSubmatch(image)[1]} {
		_, err = parsed(append(words[2:], strings.Fields(more)...)...)
		assert.NoError(t, err, more)
	}
	pod := page(t, "deploy/kubernetes.yaml")
	var args []string
	require.NoError(t, json.Unmarshal([]byte(regexp.MustCompile(`(?m)^ +args: (.*)$`).FindStringSubmatch(pod)[1]), &args))
	o, err = parsed(append(words[2:], args...)...)
	require.NoError(t, err)
	assert.True(t, o.watch)
	assert.Contains(t, pod, "terminationGracePeriodSeconds: 15")
	for _, port := range []string{"8080", "6390", "8081"} {
		assert.Contains(t, pod, "containerPort: "+port)
		assert.Contains(t, strings.Join(words, " "), ":"+port)
	}
	assert.Contains(t, image, "RUN CGO_ENABLED=0 go build ")
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}", "./cmd/rankd")
	list.Dir, list.Env = "../../..", append(os.Environ(), "CGO_ENABLED=1")
	needCgo, err := list.Output()
	require.NoError(t, err)
	assert.Empty(t, strings.TrimSpace(string(needCgo)), "packages that need a C compiler")
}
