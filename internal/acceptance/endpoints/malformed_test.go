package endpoints_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// notRedis returns the address of a server that answers each LRANGE with a text, and all else with OK. It then waits
// for the client to close.
func notRedis(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			var words []string
			n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
			for range n {
				if line, err = in.ReadString('\n'); err != nil {
					return
				}
				length, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
				word := make([]byte, length+2)
				if _, err := io.ReadFull(in, word); err != nil {
					return
				}
				words = append(words, string(word[:length]))
			}
			answer := "+OK\r\n"
			if words[0] == "LRANGE" {
				answer = text
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// TestMalformedReplies: what is no reply of Redis has one text on all models, so that it leads to its row in the page
// of Redis, and not to those of connections.
func TestMalformedReplies(t *testing.T) {
	for i, text := range []string{
		"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 mail ESMTP\r\n", "\x15\x03\x01\x00\x02\x02\x46\r\n", "\x00\x00\x00\x00\r\n", "hello\r\n",
		"\r\n", "\n", " +OK\r\n", "?\r\n", "$\r\n", "$-2\r\n\r\n", "$a\r\nx\r\n", "$1a\r\nx\r\n", "$+1\r\nx\r\n", "$ 1\r\nx\r\n", "$-\r\n", "$5\r\nhelloxx", "$5\r\nhello\n\n",
		"$99999999999999999999\r\n", "*\r\n", "*-2\r\n", "*a\r\n", "*1a\r\n", "*99999999999999999999\r\n", "*1\r\nhello\r\n", "*1\r\n\r\n", "*2\r\n$1\r\n1\r\nx\r\n", "*1\r\n$1\r\n12\r\n",
		"*1\r\n$-3\r\n", ":\r\n", ":a\r\n", ":1.5\r\n", ":99999999999999999999\r\n", ":1 \r\n", "*1\r\n:x\r\n", "%1\r\n+a\r\n+b\r\n", "(1\r\n", strings.Repeat("*1\r\n", 40) + ":1\r\n",
		"!3\r\nERR\r\n", "=5\r\ntxt:a\r\n", "#t\r\n", "_\r\n", ",1.5\r\n", "~1\r\n:1\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", ">1\r\n:1\r\n",
	} {
		t.Run(fmt.Sprintf("%d %.20q", i, text), func(t *testing.T) {
			o := rankd.Options{Redis: notRedis(t, text), Plans: enginetest.Plans(map[string]string{
				"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`,
			})}
			enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
				for range 2 { // on a connection of its own each time
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
					var failed *rankd.Error
					require.ErrorAs(t, err, &failed)
					assert.Equal(t, "Redis protocol error", failed.Text, failed.Detail)
					assert.ErrorIs(t, err, rankd.ErrRedis)
				}
			})
		})
	}
}
