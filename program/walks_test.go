package program

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/modelserver"
	"github.com/rankd/rankd/internal/testing/testworld"
)

var updateWalks = flag.Bool("update-walks", false, "run the commands of the pages that lead through an empty folder, and write their outputs into the pages")

// walks are the pages with commands that follow each other in one folder. Each has a minimum
// number of commands.
var walks = map[string]int{"docs/your-own-data.md": 20, "examples/shop/README.md": 8, "docs/learn.md": 10, "docs/model-servers.md": 14, "docs/is-it-better.md": 4}

var (
	// shownFile is a file that the page shows: its first line is a comment with its path.
	shownFile = regexp.MustCompile("^(?:#|//) (\\S+)\n")
	// pageBlock is a file or a session of the page.
	pageBlock = regexp.MustCompile("(?s)```(toml|typescript|console)\n(.*?)```")
)

// TestWalks follows each page in an empty folder, as a new user would, with an empty Redis and
// this program. It compares each output. With -update-walks it writes the outputs into the
// pages.
func TestWalks(t *testing.T) {
	for page, least := range walks {
		t.Run(page, func(t *testing.T) { walk(t, page, least) })
	}
}

func walk(t *testing.T, name string, least int) {
	redis := testworld.StartRedis(t)
	client, err := exec.LookPath("redis-cli")
	if err != nil && os.Getenv("RANKD_REQUIRE_REDIS") != "1" {
		t.Skip("redis-cli is missing")
	}
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	page := filepath.Join(root, name)
	text, err := os.ReadFile(page)
	require.NoError(t, err)

	bin, folder := t.TempDir(), t.TempDir()
	_, port, _ := strings.Cut(redis.Addr, ":")
	script := func(name, line string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+line+" \"$@\"\n"), 0o755))
	}
	// On a terminal redis-cli prints types, too.
	script("redis-cli", fmt.Sprintf("exec '%s' --no-raw -p %s", client, port))
	example, ofExample := strings.CutPrefix(filepath.Dir(name), "examples/")
	if name == "docs/learn.md" { // It trains a model of the shop.
		python := os.Getenv("RANKD_XGBOOST_PYTHON")
		if python == "" && os.Getenv("RANKD_REQUIRE_XGBOOST") != "1" {
			t.Skip("CI trains the model: RANKD_XGBOOST_PYTHON")
		}
		script("python3", "exec '"+python+"'")
		example, ofExample = "shop", true
	}
	if ofExample { // It has a program of its own.
		build := exec.Command("go", "build", "-o", bin, "./examples/"+example)
		build.Dir = root
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	script("rankd", fmt.Sprintf("RANKD_TEST_RUN_MAIN=1 exec '%s'", os.Args[0]))

	models := httptest.NewServer(modelserver.Demo())
	t.Cleanup(models.Close)
	modelsAt := models.Listener.Addr().String()

	commands := 0
	updated := pageBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		match := pageBlock.FindStringSubmatch(block)
		language, body := match[1], match[2]
		if language != "console" {
			path := shownFile.FindStringSubmatch(body)
			require.NotNil(t, path, "a file of the page begins with its path:\n%s", body)
			file := filepath.Join(folder, path[1])
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			body = strings.NewReplacer("port = 6379", "port = "+port, "127.0.0.1:8000", modelsAt).Replace(body)
			require.NoError(t, os.WriteFile(file, []byte(body), 0o644))
			return block
		}
		shown := "```console\n"
		for _, s := range sessions(block) {
			commands++
			run := exec.Command("sh", "-c", strings.NewReplacer("127.0.0.1:6379", redis.Addr, "127.0.0.1:8000", modelsAt, "~/rankd", root).Replace(s.command))
			run.Dir = folder
			run.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := run.CombinedOutput()
			if err != nil { // the page shows commands that fail
				require.ErrorAs(t, err, new(*exec.ExitError), s.command)
			}
			got := strings.NewReplacer(redis.Addr, "127.0.0.1:6379", modelsAt, "127.0.0.1:8000").Replace(strings.TrimSpace(string(out)))
			if !*updateWalks {
				assert.Equal(t, changing.ReplaceAllString(s.output, "*"), changing.ReplaceAllString(got, "*"), s.command)
			}
			shown += "$ " + s.command + "\n"
			if got != "" {
				shown += got + "\n"
			}
		}
		return shown + "```"
	})
	assert.GreaterOrEqual(t, commands, least)
	if *updateWalks && !t.Failed() {
		require.NoError(t, os.WriteFile(page, []byte(updated), 0o644))
	}
}
