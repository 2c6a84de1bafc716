package rankd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/registry"
)

// TestPasswordsThatChange: each new connection logs in with the password that the file, or the program, has then, on all models.
func TestPasswordsThatChange(t *testing.T) {
	folder := plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	for _, model := range models {
		for _, from := range []string{"file", "program"} {
			t.Run(string(model)+" "+from, func(t *testing.T) {
				server := miniredis.RunT(t)
				_, err := server.Lpush("rows", "7")
				require.NoError(t, err)
				file := filepath.Join(t.TempDir(), "password")
				var password atomic.Pointer[string]
				change := func(to string) {
					require.NoError(t, errors.Join(os.WriteFile(file+"~", []byte(to+"\n"), 0o600), os.Rename(file+"~", file)))
					password.Store(&to)
				}
				change("one")
				server.RequireUserAuth("ranker", "one")
				o := rankd.Options{Model: model, Plans: folder, Redis: "redis://ranker@" + server.Addr() + "?password_file=" + file}
				failing := atomic.Bool{}
				if from == "program" {
					o.Redis = server.Addr()
					o.Credentials = map[string]func() (string, string, error){"ep_0001": func() (string, string, error) {
						if failing.Load() {
							return "", "", errors.New("the vault is closed")
						}
						return "ranker", *password.Load(), nil
					}}
				}
				e := open(t, o)
				ask := func() error {
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
					return err
				}
				require.NoError(t, ask())
				change("two")
				require.NoError(t, ask(), "a connection stays")

				server.RequireUserAuth("ranker", "two")
				server.Close()
				require.Eventually(t, func() bool { return ask() != nil }, 10*time.Second, time.Millisecond)
				require.NoError(t, server.Restart())
				require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, time.Millisecond, "the next one has the new password")

				server.RequireUserAuth("ranker", "three")
				server.Close()
				require.Eventually(t, func() bool { return ask() != nil }, 10*time.Second, time.Millisecond)
				require.NoError(t, server.Restart())
				require.Eventually(t, func() bool {
					err := ask()
					return err != nil && strings.Contains(err.Error(), "WRONGPASS")
				}, 10*time.Second, time.Millisecond, "the file is late")
				if from == "program" {
					failing.Store(true)
					require.Eventually(t, func() bool {
						err := ask()
						return err != nil && strings.Contains(err.Error(), "the password: the vault is closed")
					}, 10*time.Second, time.Millisecond)
					failing.Store(false)
				}
				change("three")
				require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, time.Millisecond)
			})
		}
	}
}

// TestServersThatAllowLittle: a user who may do nothing but read, as managed services give them, needs neither CLIENT nor CONFIG. With a tracked cache the
// engine says what it lacks, and keeps values by their age.
func TestServersThatAllowLittle(t *testing.T) {
	server := testworld.StartRedis(t)
	store(t, server.Addr, []string{"RPUSH", "rows", "7"}, []string{"ACL", "SETUSER", "ranker", "on", ">pw", "~*", "-@all", "+@read", "+ping"},
		[]string{"ACL", "SETUSER", "tracker", "on", ">pw", "~*", "-@all", "+@read", "+ping", "+hello", "+client|tracking"})
	folder := plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	for _, model := range models {
		e := open(t, rankd.Options{Model: model, Plans: folder, Redis: "redis://ranker:pw@" + server.Addr})
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.NoError(t, err, model)
	}
	for _, user := range []string{"ranker", "tracker"} {
		e := open(t, rankd.Options{Plans: folder, Redis: "redis://" + user + ":pw@" + server.Addr, Cache: registry.CacheBroadcast})
		require.Eventually(t, func() bool {
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
			return assert.NoError(t, err) && e.Metrics().Caches[0].Hits > 0
		}, 10*time.Second, time.Millisecond, user)
	}
}

// TestIdleConnectionsThatEnd: a server that hangs up on idle clients fails no request.
func TestIdleConnectionsThatEnd(t *testing.T) {
	server := testworld.StartRedis(t)
	store(t, server.Addr, []string{"RPUSH", "rows", "7"})
	folder := plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	for _, model := range models {
		e := open(t, rankd.Options{Model: model, Plans: folder, Redis: server.Addr})
		for range 5 {
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
			require.NoError(t, err, model)
			before := e.Metrics().Redis[0].Reconnects
			store(t, server.Addr, []string{"CLIENT", "KILL", "TYPE", "normal"})
			if model == rankd.Reactor { // The others look before they send.
				require.Eventually(t, func() bool {
					s := e.Metrics().Redis[0]
					return s.Ready == 0 || s.Reconnects > before
				}, 10*time.Second, time.Millisecond)
			}
		}
	}
}
