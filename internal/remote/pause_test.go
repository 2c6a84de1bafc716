package remote_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/remote"
)

// A service that answers 429 with Retry-After gets no request for so long; calls fail at once and say so. Without the header,
// and with another status, the next call is made.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		status int
		after  string
		paused time.Duration // at most, and more than half of it
	}{
		{429, "30", 30 * time.Second},
		{429, "86400", time.Minute},
		{429, "4294967296000", time.Minute},
		{429, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Minute},
		{429, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
		{429, "", 0}, {429, "0", 0}, {429, "-1", 0}, {429, "soon", 0},
		{503, "30", 0},
	} {
		var calls atomic.Int64
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.status)
		})
		for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL)}) {
			calls.Store(0)
			var answer string
			require.ErrorIs(t, ask(t.Context(), echo("x", &answer)), remote.ErrStatus, name)
			err := ask(t.Context(), echo("x", &answer))
			if c.paused == 0 {
				require.ErrorIs(t, err, remote.ErrStatus, c.after)
				assert.Equal(t, int64(2), calls.Load())
				continue
			}
			require.ErrorIs(t, err, remote.ErrPaused, c.after)
			assert.Regexp(t, `^http \S+: the service asks for a pause: it has answered 429, and wants no request for another \S+$`, err.Error())
			assert.Equal(t, int64(1), calls.Load(), name)
		}
	}
}

// Calls that wait in line when a pause begins fail at once, too; those on their way go on. After the pause requests leave again.
func TestPauseEndsWaitingCalls(t *testing.T) {
	arrived, release := make(chan bool), make(chan int, 2)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		if status := <-release; status == 429 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
		}
	})
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL), Connections: 1}) {
		t.Run(name, func(t *testing.T) {
			var answer string
			first, later := make(chan error, 1), make(chan error, 3)
			go func() { first <- ask(t.Context(), echo("x", &answer)) }()
			<-arrived
			for range 3 {
				go func() {
					var answer string
					later <- ask(t.Context(), echo("x", &answer))
				}()
			}
			release <- 429
			require.ErrorIs(t, <-first, remote.ErrStatus)
			for range 3 {
				require.ErrorIs(t, <-later, remote.ErrPaused)
			}
			require.Eventually(t, func() bool {
				ended := make(chan error, 1)
				go func() { ended <- ask(t.Context(), echo("x", &answer)) }()
				select {
				case <-arrived:
					release <- 200
					return assert.NoError(t, <-ended)
				case err := <-ended:
					assert.ErrorIs(t, err, remote.ErrPaused)
					return false
				}
			}, ample, 20*time.Millisecond)
		})
	}
}

// A service is asked what it is before the first request, and again after an answer that did not fit, but not after each.
func TestDescribedServices(t *testing.T) {
	var asked atomic.Int64
	var fails atomic.Bool
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			assert.Equal(t, "/about%20it?key=1", r.URL.String())
			asked.Add(1)
			_, _ = io.WriteString(w, "blue")
			return
		}
		assert.Equal(t, []string{"own"}, r.Header["X-Own"])
		assert.Equal(t, "application/octet-stream", r.Header.Get("Content-Type"))
		w.Header().Set("X-Answer", "yes")
		if body, _ := io.ReadAll(r.Body); string(body) == "bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	o := remote.Options{URL: urlOf(t, s.URL+"/infer?key=1"), Describe: func(get func(string) ([]byte, error)) (string, error) {
		if fails.Load() {
			return "", remote.Malformedf("it is %s", "red")
		}
		body, err := get("/about%20it") // a path as an address has it
		return string(body), err
	}}
	for name, ask := range clients(t, o) {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			exchange := func(text string) error {
				x := &remote.Exchange{Wants: "X-Answer"}
				x.Request = func(dst []byte) ([]byte, error) {
					assert.Equal(t, "blue", x.Known)
					assert.True(t, x.Left > ample/2 && x.Left <= ample, x.Left)
					x.Header = http.Header{"X-Own": {"own"}, "Content-Type": {"application/octet-stream"}}
					return append(dst, text...), nil
				}
				x.Answer = func([]byte) error {
					assert.Equal(t, "yes", x.Got)
					if text == "wrong" {
						return remote.Malformedf("wrong")
					}
					return nil
				}
				return ask(context.Background(), x)
			}
			for i, c := range []struct {
				text string
				err  error
				asks int64 // so far
			}{{"x", nil, 1}, {"x", nil, 1}, {"bad", remote.ErrStatus, 1}, {"x", nil, 2}, {"wrong", remote.ErrProtocol, 2}, {"x", nil, 3}} {
				err := exchange(c.text)
				require.True(t, errors.Is(err, c.err), "%d: %v", i, err)
				require.Equal(t, c.asks, asked.Load(), i)
			}
			require.ErrorIs(t, exchange("bad"), remote.ErrStatus)
			fails.Store(true)
			defer fails.Store(false)
			err := exchange("x")
			require.ErrorIs(t, err, remote.ErrProtocol)
			require.ErrorContains(t, err, "it is red")
		})
	}
	require.NoError(t, remote.Once(t.Context(), o, nil))
	fails.Store(true)
	require.ErrorContains(t, remote.Once(t.Context(), o, nil), "it is red")
	require.NoError(t, remote.Once(t.Context(), remote.Options{URL: o.URL}, nil))
}
