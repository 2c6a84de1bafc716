//go:build unix

package program

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// TestSignalAnswersWhatIsInFlight runs the program as a process. Its Redis reports when a
// request has come, and answers when the test says so.
func TestSignalAnswersWhatIsInFlight(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			asked, answer := make(chan struct{}), make(chan struct{})
			addr := serveRedis(t, func(conn redcon.Conn, cmd redcon.Command) {
				if strings.EqualFold(string(cmd.Args[0]), "HGETALL") {
					asked <- struct{}{}
					<-answer
					conn.WriteArray(2)
					conn.WriteBulkString("country")
					conn.WriteBulkString("NZ")
					return
				}
				conn.WriteString("OK")
			})
			rankd := exec.Command(os.Args[0], "--plan_name", "simple_viewer", "--redis", addr)
			rankd.Env = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1")
			stdin, err := rankd.StdinPipe()
			require.NoError(t, err)
			stdout, err := rankd.StdoutPipe()
			require.NoError(t, err)
			rankd.Stderr = os.Stderr
			require.NoError(t, rankd.Start())
			killer := time.AfterFunc(30*time.Second, func() { _ = rankd.Process.Kill() })
			defer killer.Stop()

			_, err = io.WriteString(stdin, `{"user_id": 7, "request_id": "r7"}`+"\n") // and stdin stays open
			require.NoError(t, err)
			awaitAsked(t, asked)
			require.NoError(t, rankd.Process.Signal(signal))
			close(answer)

			lines := bufio.NewScanner(stdout)
			require.True(t, lines.Scan(), "an answer")
			a := decode(t, lines.Text())
			assert.Equal(t, "r7", a.RequestID)
			assert.Equal(t, []map[string]any{{"id": 7.0, "country": "NZ"}}, a.Candidates)
			assert.False(t, lines.Scan(), "and nothing else")
			assert.NoError(t, rankd.Wait(), "exit status 0")
		})
	}
}

// awaitAsked waits until a Redis has been asked. On a machine too busy to connect in time, the
// request fails and never asks.
func awaitAsked(t *testing.T, asked <-chan struct{}) {
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Fatal("the request has not reached Redis")
	}
}

// serveRedis answers commands on a loopback port until the test ends.
func serveRedis(t *testing.T, handle func(redcon.Conn, redcon.Command)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := redcon.NewServer(l.Addr().String(), handle,
		func(redcon.Conn) bool { return true }, func(redcon.Conn, error) {})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		<-served
	})
	return l.Addr().String()
}
