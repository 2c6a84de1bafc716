package reactor

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goexits are callbacks that end gnet's goroutine.
var goexits = map[string]func(t *testing.T, r *Reactor){
	"post":    func(_ *testing.T, r *Reactor) { r.Loop().Post(leavesByGoexit) },
	"connect": func(t *testing.T, r *Reactor) { dialFor(t, r, &probe{onConnect: func(error) { leavesByGoexit() }}) },
	"data": func(t *testing.T, r *Reactor) {
		p := &probe{onData: func([]byte) int { leavesByGoexit(); return 0 }}
		p.onConnect = func(error) { _ = p.conn.Write([]byte("x")) }
		dialFor(t, r, p)
	},
}

func leavesByGoexit() { runtime.Goexit() }

func dialFor(t *testing.T, r *Reactor, p *probe) {
	p.connected, p.closed = make(chan error, 10), make(chan error, 10)
	addr := echoServer(t)
	r.Loop().Post(func() { p.dial(r, addr) })
}

// Goexit on gnet's goroutine ends the process, with the callback's stack on stderr. The test
// runs itself in another process for each case.
func TestGoexitEndsTheProcess(t *testing.T) {
	const variable = "RANKD_TEST_GOEXIT"
	if name := os.Getenv(variable); name != "" {
		r := New(Config{})
		require.NoError(t, r.Start())
		goexits[name](t, r)
		<-r.Loop().Done() // which does not come
		return
	}
	for name := range goexits {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGoexitEndsTheProcess$", "-test.timeout=30s")
			c.Env = append(os.Environ(), variable+"="+name)
			out, err := c.CombinedOutput()
			var status *exec.ExitError
			require.ErrorAs(t, err, &status)
			assert.Contains(t, string(out), "a callback called runtime.Goexit")
			assert.Contains(t, string(out), "leavesByGoexit")
			assert.NotContains(t, string(out), "test timed out")
		})
	}
}
