package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	service "github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/httpfront"
	"github.com/rankd/rankd/serve/respfront"
	"github.com/rankd/rankd/task"
)

// Ten connections send all that they may, and fill the places and the queue. A client that
// sends one request at a time then waits for one request of each of them at most. It is never
// refused.
func TestGreedyClientsDoNotStarveAPoliteOne(t *testing.T) {
	const greedy, pipeline, polite = 10, 128, 99
	began, proceed, over := make(chan int64), make(chan struct{}), make(chan struct{})
	step := task.Spec{Op: "test::step", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		select {
		case began <- c.UserID:
		case <-over:
		}
		select {
		case <-proceed:
		case <-over:
		}
		return rankdtest.Rows(1), nil
	}}
	logger := slog.New(slog.DiscardHandler)
	e, err := rankd.Open(rankd.Options{
		Redis: "127.0.0.1:1" /* not used */, Logger: logger, Tasks: []task.Spec{step}, MaxInflight: 1, MaxQueue: greedy*pipeline - 1,
		Plans: fstest.MapFS{"slow.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "slow", "nodes": [{"node_id": "out", "op": "test::step", "inputs": []}], "outputs": ["out"]}`)}},
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
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		close(over)
		client.CloseIdleConnections()
		assert.NoError(t, resp.Close())
		assert.NoError(t, web.Close())
		assert.NoError(t, e.Close())
		assert.NoError(t, <-served)
		assert.NoError(t, <-served)
	})

	addr := listen(resp.Serve)
	for i := range greedy {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		user := fmt.Sprint(i + 1)
		_, err = c.Write(bytes.Repeat([]byte(fmt.Sprintf("*3\r\n$4\r\nRANK\r\n$4\r\nslow\r\n$%d\r\n%s\r\n", len(user), user)), pipeline))
		require.NoError(t, err)
	}
	<-began
	inQueue := func(n int) func() bool {
		return func() bool {
			a := e.Metrics().Admission
			return a.Waiting+int(a.Refused) == n // A full queue makes room by refusing another request.
		}
	}
	waiting := greedy*pipeline - 1
	require.Eventually(t, inQueue(waiting), time.Minute, time.Millisecond, "the queue is full")
	url := "http://" + listen(web.Serve) + "/v1/rank/slow"
	for round := range 5 {
		status := make(chan int, 1)
		go func() {
			answer, err := client.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"user_id": %d}`, polite)))
			if !assert.NoError(t, err) {
				close(status)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			status <- answer.StatusCode
		}()
		waiting++
		require.Eventually(t, inQueue(waiting), time.Minute, time.Millisecond, "the polite client waits")
		turns := map[int64]int{}
		for turns[polite] == 0 {
			proceed <- struct{}{}
			user := <-began
			turns[user]++
			waiting--
			require.Equal(t, 1, turns[user], "client %d in round %d: %v", user, round, turns)
		}
		assert.LessOrEqual(t, len(turns), greedy+1)
		proceed <- struct{}{}
		require.Equal(t, http.StatusOK, <-status)
		<-began
		waiting--
	}
	assert.EqualValues(t, 1, e.Metrics().Admission.Refused, "a greedy client is refused when the queue is full")
}
