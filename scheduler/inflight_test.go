package scheduler_test

import (
	"net"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/scheduler"
)

// One thread has more than a hundred Redis calls in flight: the server answers none of them before it
// has them all, on one connection. A suspended body costs a coroutine, and no thread.
func TestAHundredRedisCallsInFlight(t *testing.T) {
	const calls = 150
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	threads := func() int { return pprof.Lookup("threadcreate").Count() }
	began := make(chan int, 1) // threads, when the server has all calls
	served := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		served <- answerTogether(conn, calls, func() { began <- threads() })
	}()
	reg := registryAt(t, ln.Addr().String(), longPolicy)
	e := openAsync(t, scheduler.Config{Registry: reg, NoCoalesceReads: true}) // All ask for the same user.
	g := examplePlan(t, reg, "simple_viewer")
	before := threads()
	results := make(chan *scheduler.Result, calls)
	for range calls {
		e.Submit(&scheduler.Execution{Graph: g, UserID: user}, func(r *scheduler.Result) { results <- r })
	}
	for range calls {
		r := <-results
		require.NoError(t, r.Err)
		assert.Equal(t, []row{{user, "US"}}, plainRows(r))
	}
	assert.Less(t, <-began-before, calls/10)
	e.Close(scheduler.Forever)
	require.ErrorIs(t, <-served, net.ErrClosed)
	require.NoError(t, ln.Close())
}

// answerTogether answers the greeting, and reads that many other commands, calls allHeld, and answers them. It
// returns when the client has hung up.
func answerTogether(conn net.Conn, calls int, allHeld func()) error {
	commands := redcon.NewReader(conn)
	for held := 0; ; {
		command, err := commands.ReadCommand()
		if err != nil {
			return net.ErrClosed
		}
		if strings.EqualFold(string(command.Args[0]), "CLIENT") {
			if _, err := conn.Write(redcon.AppendOK(nil)); err != nil {
				return err
			}
			continue
		}
		if held++; held < calls {
			continue
		}
		allHeld()
		var out []byte
		for range calls {
			out = redcon.AppendArray(out, 2)
			out = redcon.AppendBulkString(out, "country")
			out = redcon.AppendBulkString(out, "US")
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}
