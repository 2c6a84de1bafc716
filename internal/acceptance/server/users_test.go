package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/rankdtest"
)

// TestUsersThatAreStrings: each front accepts a string as the user, in a request for one user
// and for several.
func TestUsersThatAreStrings(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{"new:u-1": []string{"7"}, "new:1": []string{"8"}, "new:{u} 2": []string{"9"}})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"keys.toml": registrytest.ID, "params.toml": "", "endpoints.dev.toml": registrytest.Redis,
		"entities.toml": "[[entity]]\nname = \"user\"\nid = \"string\"\n",
		"new.plan.json": `{"schema_version": 1, "plan_name": "new", "outputs": ["new"],
			"nodes": [{"node_id": "new", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "new:{user}"}}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	server := serve(t, programs.plain.get(t, false), nil, "--registry_dir", folder, "--plan_dir", folder, "--redis", redis.Addr())
	users := []struct {
		name, json string
		want       []any // ids of candidates
	}{{"u-1", `"u-1"`, []any{7.}}, {"1", `"1"`, []any{8.}}, {"{u} 2", `"{u}\u00202"`, []any{9.}}, {"nobody", `"nobody"`, nil}}
	many, lines := []string{"RANK.MANY", "new"}, ""
	for _, user := range users {
		many, lines = append(many, user.name), lines+`{"plan": "new", "user_id": `+user.json+"}\n"
	}
	for name, c := range map[string]struct {
		addr       string
		one        func(name, json string) []byte
		read       func(*wire) (reply, error)
		many       []byte
		readMany   func(*wire) ([]reply, error)
		bad        []byte
		code, text string // of bad
	}{
		"HTTP": {
			server.HTTP, func(_, json string) []byte { return post("/v1/rank/new", `{"user_id": `+json+`}`) }, (*wire).readHTTP, post("/v1/batch", lines), (*wire).readBatch,
			post("/v1/rank/new", `{"user_id": 1}`), "400", "user_id must be a string of 1 to 256 bytes of UTF-8, got the integer 1",
		},
		"RESP": {
			server.RESP, func(name, _ string) []byte { return servetest.Command("RANK", "new", name) }, (*wire).readRESP, servetest.Command(many...), (*wire).readArray,
			servetest.Command("RANK", "new", "u-1", `{"user_id": "u-2"}`), "BADREQ", `user_id is "u-2", and the request came for user "u-1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := dialWire(c.addr)
			require.NoError(t, err)
			defer w.Close()
			ask := func(request []byte) reply {
				_, err := w.Write(request)
				require.NoError(t, err)
				got, err := c.read(w)
				require.NoError(t, err)
				return got
			}
			check := func(got reply, want []any) {
				var ids []any
				assert.Empty(t, got.code, got.text)
				for _, candidate := range decode(t, got.text).Candidates {
					ids = append(ids, candidate["id"])
				}
				assert.Equal(t, want, ids)
			}
			for _, user := range users {
				check(ask(c.one(user.name, user.json)), user.want)
			}
			refused := ask(c.bad)
			assert.Equal(t, c.code, refused.code)
			assert.Contains(t, refused.text, c.text)
			_, err = w.Write(c.many)
			require.NoError(t, err)
			replies, err := c.readMany(w)
			require.NoError(t, err)
			require.Len(t, replies, len(users))
			for i, user := range users {
				check(replies[i], user.want)
			}
		})
	}
}
