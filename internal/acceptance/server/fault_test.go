package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/internal/testing/testworld"
	service "github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/httpfront"
	"github.com/rankd/rankd/serve/respfront"
	"github.com/rankd/rankd/task"
)

// TestAnAnswerThatCannotBeEncodedIsAnError: rankd itself panics while it encodes the answers of even users, on the loop
// or, if they are long, on a goroutine. Their clients get an error, and the connection goes on.
func TestAnAnswerThatCannotBeEncodedIsAnError(t *testing.T) {
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		for _, rows := range []int{3, 3000} {
			t.Run(fmt.Sprint(model, rows), func(t *testing.T) {
				broken := &testworld.BrokenRows{Rows: rows}
				logger := slog.New(slog.DiscardHandler)
				e, err := rankd.Open(rankd.Options{
					Model: model, Redis: "127.0.0.1:1" /* not used */, Logger: logger, TraceSink: broken, TraceSample: 1,
					Tasks: []task.Spec{broken.Task()}, Plans: fstest.MapFS{"p.plan.json": servetest.Artifact("p", `{"node_id": "out", "op": "test::broken", "inputs": []}`)},
				})
				require.NoError(t, err)
				s, err := service.New(e, service.Options{Logger: logger})
				require.NoError(t, err)
				anyone, err := access.NewCaller(access.Rules{Name: access.Anonymous, Plans: []string{"*"}})
				require.NoError(t, err)
				resp, err := respfront.New(s, access.Anyone(anyone), e.Intake().Reactor(), respfront.Options{})
				require.NoError(t, err)
				web, err := httpfront.New(s, access.Anyone(anyone), e.Intake().Reactor(), httpfront.Options{})
				require.NoError(t, err)
				served := make(chan error, 2)
				listen := func(serve func(net.Listener) error) string {
					l, err := net.Listen("tcp", "127.0.0.1:0")
					require.NoError(t, err)
					go func() { served <- serve(l) }()
					return l.Addr().String()
				}
				t.Cleanup(func() {
					assert.NoError(t, resp.Close())
					assert.NoError(t, web.Close())
					assert.NoError(t, e.Close())
					assert.NoError(t, <-served)
					assert.NoError(t, <-served)
				})

				c, err := net.Dial("tcp", listen(resp.Serve))
				require.NoError(t, err)
				defer c.Close()
				_, err = io.WriteString(c, "RANK p 1\r\nRANK p 2\r\nRANK p 3\r\nRANK.MANY p 4 5\r\n")
				require.NoError(t, err)
				in := bufio.NewReader(c)
				for user := range 3 {
					checkRESP(t, in, user+1)
				}
				reply, err := servetest.ReadReply(in)
				require.NoError(t, err)
				assert.Equal(t, 1, strings.Count(reply, "INTERNAL "), "%.200s", reply)
				assert.Equal(t, 1, strings.Count(reply, `"candidates":[{"id":1}`))

				url := "http://" + listen(web.Serve)
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for user := 1; user <= 3; user++ {
					answer, err := client.Post(url+"/v1/rank/p", "application/json", strings.NewReader(fmt.Sprintf(`{"user_id": %d, "request_id": "r%d"}`, user, user)))
					require.NoError(t, err)
					body, err := io.ReadAll(answer.Body)
					require.NoError(t, err)
					require.NoError(t, answer.Body.Close())
					assert.Equal(t, map[bool]int{true: 500, false: 200}[user%2 == 0], answer.StatusCode)
					assert.Contains(t, string(body[:40]), fmt.Sprintf(`"request_id":"r%d"`, user))
				}
				answer, err := client.Post(url+"/v1/batch", "application/json", strings.NewReader("{\"plan\":\"p\",\"user_id\":1}\n{\"plan\":\"p\",\"user_id\":2}\n{\"plan\":\"p\",\"user_id\":3}\n"))
				require.NoError(t, err)
				body, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				lines := strings.Split(strings.TrimSpace(string(body)), "\n")
				require.Len(t, lines, 3)
				for i, line := range lines {
					assert.Equal(t, i == 1, strings.Contains(line, `"error":"Request failed"`), "%.200s", line)
				}
			})
		}
	}
}

func checkRESP(t *testing.T, in *bufio.Reader, user int) {
	reply, err := servetest.ReadReply(in)
	require.NoError(t, err)
	assert.Equal(t, user%2 == 0, strings.HasPrefix(reply, "-INTERNAL "), "user %d: %.200s", user, reply)
}
