package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/redistest"
)

var updateYourOwnData = flag.Bool("update-your-own-data", false, "run the commands of docs/your-own-data.md, and write their outputs into the page")

// yourOwnData is the page whose commands follow each other in one folder.
const yourOwnData = "../../docs/your-own-data.md"

var (
	// shownFile is a file that the page shows: its first line is a comment with its path.
	shownFile = regexp.MustCompile("^(?:#|//) (\\S+)\n")
	// pageBlock is a file or a session of the page.
	pageBlock = regexp.MustCompile("(?s)```(toml|typescript|console)\n(.*?)```")
)

// TestYourOwnData follows docs/your-own-data.md in an empty folder, as a new user would, with an empty Redis and this program. It
// compares each output. With -update-your-own-data it writes them.
func TestYourOwnData(t *testing.T) {
	redis := redistest.Start(t)
	client, err := exec.LookPath("redis-cli")
	if err != nil && os.Getenv("RANKD_REQUIRE_REDIS") != "1" {
		t.Skip("redis-cli is missing")
	}
	require.NoError(t, err)
	page, err := filepath.Abs(yourOwnData)
	require.NoError(t, err)
	text, err := os.ReadFile(page)
	require.NoError(t, err)

	bin, folder := t.TempDir(), t.TempDir()
	_, port, _ := strings.Cut(redis.Addr, ":")
	script := func(name, line string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+line+" \"$@\"\n"), 0o755))
	}
	// On a terminal redis-cli prints types, too.
	script("redis-cli", fmt.Sprintf("exec '%s' --no-raw -p %s", client, port))
	script("rankd", fmt.Sprintf("RANKD_TEST_RUN_MAIN=1 exec '%s'", os.Args[0]))

	commands := 0
	updated := pageBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		match := pageBlock.FindStringSubmatch(block)
		language, body := match[1], match[2]
		if language != "console" {
			path := shownFile.FindStringSubmatch(body)
			require.NotNil(t, path, "a file of the page begins with its path:\n%s", body)
			file := filepath.Join(folder, path[1])
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			body = strings.ReplaceAll(body, "port = 6379", "port = "+port)
			require.NoError(t, os.WriteFile(file, []byte(body), 0o644))
			return block
		}
		shown := "```console\n"
		for _, s := range sessions(block) {
			commands++
			run := exec.Command("sh", "-c", strings.ReplaceAll(s.command, "127.0.0.1:6379", redis.Addr))
			run.Dir = folder
			run.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := run.CombinedOutput()
			if err != nil { // the page shows commands that fail
				require.ErrorAs(t, err, new(*exec.ExitError), s.command)
			}
			got := strings.TrimSpace(string(out))
			if !*updateYourOwnData {
				assert.Equal(t, changing.ReplaceAllString(s.output, "*"), changing.ReplaceAllString(got, "*"), s.command)
			}
			shown += "$ " + s.command + "\n"
			if got != "" {
				shown += got + "\n"
			}
		}
		return shown + "```"
	})
	assert.GreaterOrEqual(t, commands, 15)
	if *updateYourOwnData && !t.Failed() {
		require.NoError(t, os.WriteFile(page, []byte(updated), 0o644))
	}
}
