package testworld_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/internal/testing/testworld"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ping(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if reply != "+PONG\r\n" {
		return fmt.Errorf("unexpected reply %q", reply)
	}
	return nil
}

func TestStartKillRestart(t *testing.T) {
	s := testworld.StartRedis(t, "--maxclients", "7")
	require.NoError(t, ping(s.Addr))
	assert.NotNil(t, s.Process())

	s.Kill()
	s.Kill()
	assert.Error(t, ping(s.Addr))
	assert.Nil(t, s.Process())

	s.Restart(t)
	assert.NoError(t, ping(s.Addr))
}

func TestServersDoNotShareAPort(t *testing.T) {
	a, b := testworld.StartRedis(t), testworld.StartRedis(t)
	assert.NotEqual(t, a.Addr, b.Addr)
	assert.NoError(t, ping(a.Addr))
	assert.NoError(t, ping(b.Addr))
}

// TestWithoutServer runs StartRedis in an environment that names no server.
func TestWithoutServer(t *testing.T) {
	for _, tc := range []struct {
		name    string
		require string
		want    string
	}{
		{"Skips", "", "skip"},
		{"FailsIfRequired", "1", "fatal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("RANKD_REDIS_SERVER", "")
			t.Setenv("RANKD_REQUIRE_REDIS", tc.require)
			assert.Equal(t, tc.want, outcome(func(tb testing.TB) { testworld.StartRedis(tb) }))
		})
	}
}

// recorder notes how a test body ended.
type recorder struct {
	testing.TB
	how string
}

func (r *recorder) Helper()        {}
func (r *recorder) Skip(...any)    { r.end("skip") }
func (r *recorder) Fatal(...any)   { r.end("fatal") }
func (r *recorder) end(how string) { r.how = how; panic(r) }

func outcome(body func(testing.TB)) (how string) {
	r := &recorder{how: "returned"}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		how = r.how
	}()
	body(r)
	return r.how
}
