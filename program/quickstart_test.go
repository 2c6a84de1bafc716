//go:build unix

package program

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheQuickStart runs the commands of the README's section about serving, with the ports of
// a server of the test. It skips a client that is not installed, or fails if there must be one.
func TestTheQuickStart(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "\n## Serve it\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	commands := sessions(section)
	require.Len(t, commands, 3, "three commands")
	assert.Equal(t, "rankd serve &", commands[0].command)
	s := startServer(t, "--drain_delay_ms", "0")
	port := func(addr string) string {
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		return port
	}
	ports := strings.NewReplacer("localhost:8080", s.http, "-p 6390", "-p "+port(s.resp))
	for _, c := range commands[1:] {
		program, _, _ := strings.Cut(c.command, " ")
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				require.Empty(t, os.Getenv("RANKD_REQUIRE_CLIENTS"), err)
				t.Skip(err)
			}
			command := exec.CommandContext(t.Context(), "sh", "-c", ports.Replace(c.command))
			command.Stderr = nil // curl shows its progress there
			output, err := command.Output()
			require.NoError(t, err)
			want, cut := strings.CutSuffix(changing.ReplaceAllString(c.output, "*"), "…")
			require.True(t, cut)
			assert.True(t, strings.HasPrefix(changing.ReplaceAllString(string(output), "*"), want), "%s", output)
		})
	}
}

// TestTheQuickStartNamesTheDefaults: the README's ports are those that the server listens on without flags.
func TestTheQuickStartNamesTheDefaults(t *testing.T) {
	o := run(t, nil, "serve", "--help")
	assert.Equal(t, exitOK, o.status)
	assert.Contains(t, o.stdout, `(default "127.0.0.1:8080")`)
	assert.Contains(t, o.stdout, `(default "127.0.0.1:6390")`)
}
