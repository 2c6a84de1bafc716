package backend

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/testworld"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// ask sends one command and returns the first line of the reply.
func ask(t *testing.T, addr, command string) string {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	words := strings.Fields(command)
	out := redcon.AppendArray(nil, len(words))
	for _, word := range words {
		out = redcon.AppendBulkString(out, word)
	}
	_, err = conn.Write(out)
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func TestEmbeddedWhereNoServerIsInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	const rtt = 20 * time.Millisecond
	b, err := Start(t.Context(), Options{Latencies: []time.Duration{0, rtt, rtt}})
	require.NoError(t, err)
	defer b.Close()
	assert.True(t, b.Embedded)
	assert.Zero(t, b.PID)
	assert.Equal(t, "embedded miniredis", b.Version)
	assert.Equal(t, ":120", ask(t, b.Addr(0), "LLEN follow:1"))

	began := time.Now()
	assert.Equal(t, ":120", ask(t, b.Addr(rtt), "LLEN follow:1"))
	assert.GreaterOrEqual(t, time.Since(began), rtt, "never sooner than asked for")
}

func TestARealServerIsNotEmbedded(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), Options{Real: true})
	assert.ErrorContains(t, err, "the data set needs a redis-server")
}

func TestFindProcess(t *testing.T) {
	own := fmt.Sprintf("process_id:%d\r\n", os.Getpid())
	for server, info := range map[string]string{
		"127.0.0.1:1": own, // this test
		"localhost:1": "process_id:0\r\n",
		"10.1.2.3:1":  own,
		"[::1]:1":     "redis_version:7\r\n",
	} {
		assert.Zero(t, findProcess(info, server), server)
	}
}

func TestServerOfSomebodyElse(t *testing.T) {
	other, err := devredis.Start()
	require.NoError(t, err)
	defer other.Close()
	b, err := Start(t.Context(), Options{Addr: other.Addr()})
	require.NoError(t, err)
	defer b.Close()
	assert.Equal(t, other.Addr(), b.Addr(0))
	assert.False(t, b.Embedded)
	assert.Zero(t, b.PID)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = Start(t.Context(), Options{Addr: addr})
	assert.ErrorContains(t, err, addr)
}

func TestServerOfItsOwn(t *testing.T) {
	testworld.StartRedis(t) // skips where there is none
	b, err := Start(t.Context(), Options{Server: os.Getenv("RANKD_REDIS_SERVER")})
	require.NoError(t, err)
	assert.False(t, b.Embedded)
	assert.Contains(t, b.Version, "redis-server ")
	assert.Equal(t, ":120", ask(t, b.Addr(0), "LLEN follow:1"))
	process, err := os.FindProcess(b.PID)
	require.NoError(t, err)
	// A server of another user on this machine also has a process. Data is written if asked
	// for.
	data := func(ctx context.Context, server string) error {
		return devredis.Write(ctx, server, func(write func(...string) error) error { return write("RPUSH", "mine", "1", "2") })
	}
	other, err := Start(t.Context(), Options{Addr: b.Addr(0), Data: data})
	require.NoError(t, err)
	assert.Equal(t, b.PID, other.PID)
	assert.Equal(t, ":2", ask(t, b.Addr(0), "LLEN mine"))
	other.Close()
	assert.NoError(t, process.Signal(syscall.Signal(0)), "it is not ours to end")
	_, err = Start(t.Context(), Options{Addr: b.Addr(0), Data: func(context.Context, string) error { return assert.AnError }})
	assert.ErrorIs(t, err, assert.AnError)
	b.Close()
	assert.Error(t, process.Signal(os.Interrupt), "gone")
}

func TestABrokenServerIsQuoted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "redis-server")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho no luck today\n"), 0o755))
	_, err := Start(t.Context(), Options{Server: script})
	assert.ErrorContains(t, err, "no luck today")
	_, err = Start(t.Context(), Options{Server: script + ".missing"})
	assert.Error(t, err)
}

func TestFindVersion(t *testing.T) {
	assert.Equal(t, "redis-server 7.0.15", findVersion("# Server\r\nredis_version:7.0.15\r\nredis_mode:x\r\n"))
	assert.Equal(t, "unknown", findVersion("hello"))
}

func TestCluster(t *testing.T) {
	testworld.StartRedis(t) // skips where there is none
	c, err := StartCluster(t.Context(), os.Getenv("RANKD_REDIS_SERVER"), 2, devredis.Load)
	require.NoError(t, err)
	defer c.Close()
	assert.Len(t, c.PIDs, 2)
	assert.Regexp(t, `^redis\+cluster://127\.0\.0\.1:\d+,127\.0\.0\.1:\d+$`, c.Addr)
	folders := c.folders
	_, err = StartCluster(t.Context(), "/nowhere/redis-server", 2, devredis.Load)
	assert.ErrorContains(t, err, "/nowhere/redis-server")
	lost := errors.New("lost")
	_, err = StartCluster(t.Context(), os.Getenv("RANKD_REDIS_SERVER"), 2, func(context.Context, string) error { return lost })
	assert.ErrorIs(t, err, lost)
	c.Close()
	for _, folder := range folders {
		assert.NoDirExists(t, folder)
	}
}
