package program

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/devredis"
)

// TestAPlanFallsBackOnABatch ranks everybody with a plan and writes the answers to a second
// Redis. Then the first Redis loses its data, and after that it is gone. The plans of the page
// answer with the lists of the newest version.
func TestAPlanFallsBackOnABatch(t *testing.T) {
	page, err := os.ReadFile("../docs/batch.md")
	require.NoError(t, err)
	dir := t.TempDir()
	plans, tables := filepath.Join(dir, "plans"), filepath.Join(dir, "registry")
	require.NoError(t, os.Mkdir(plans, 0o755))
	require.NoError(t, os.Mkdir(tables, 0o755))
	for _, name := range [...]string{"home", "filled"} {
		_, source, found := strings.Cut(string(page), "```typescript\n// "+name+".plan.ts\n")
		require.True(t, found)
		source, _, _ = strings.Cut(source, "```")
		require.NoError(t, os.WriteFile(filepath.Join(plans, name+".plan.ts"), []byte(source), 0o600))
	}
	inbox := filepath.Join(plans, "inbox.plan.ts")
	require.NoError(t, os.WriteFile(inbox, []byte(`import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "inbox", build: (ctx) => ctx.candidates({ endpoint: EP.redis.serving, key: "inbox:{user}" }) });`), 0o600))

	const users = 30
	inboxes := func(first int) (commands []devredis.Command) {
		for user := 1; user <= users; user++ {
			commands = append(commands, devredis.Command{Name: "RPUSH", Key: fmt.Sprint("inbox:", user), Args: []string{fmt.Sprint(first + user), fmt.Sprint(first)}})
		}
		return commands
	}
	serving, err := devredis.StartWith(inboxes(1000))
	require.NoError(t, err)
	defer func() { serving.Close() }()
	answers, err := devredis.StartWith(nil)
	require.NoError(t, err)
	defer answers.Close()
	endpoints := func() {
		text := fmt.Sprintf(`
[[endpoint]]
id = "ep_0001"
name = "serving"
kind = "redis"
host = "127.0.0.1"
port = %d

[[endpoint]]
id = "ep_0002"
name = "answers"
kind = "redis"
host = "127.0.0.1"
port = %d
`, serving.Port(), answers.Port())
		for _, env := range [...]string{"dev", "test", "prod"} {
			require.NoError(t, os.WriteFile(filepath.Join(tables, "endpoints."+env+".toml"), []byte(text), 0o600))
		}
	}
	for _, name := range [...]string{"keys.toml", "params.toml"} {
		text, err := os.ReadFile("../registry/tables/" + name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(tables, name), text, 0o600))
	}
	endpoints()
	rank := func(plan string, user int) (ids []int64, fallback bool) {
		r := run(t, strings.NewReader(fmt.Sprintf(`{"user_id": %d}`, user)), "run", filepath.Join(plans, plan+".plan.ts"), "--registry_dir", tables)
		require.Equal(t, exitOK, r.status, r.stderr)
		var a struct {
			Candidates   []struct{ ID int64 }
			Completeness map[string]struct{ Status string }
		}
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &a))
		for _, c := range a.Candidates {
			ids = append(ids, c.ID)
		}
		for _, node := range a.Completeness {
			fallback = fallback || node.Status != "ok"
		}
		return ids, fallback
	}
	everybody := func() {
		r := run(t, strings.NewReader(""), "batch", "--plan", inbox, "--registry_dir", tables, "--users", "redis:inbox:{user}", "--users_redis", serving.Addr(),
			"--out", "redis://"+answers.Addr(), "--out_key", "home", "--checkpoints", filepath.Join(dir, "home.checkpoints"))
		require.Equal(t, exitOK, r.status, r.stderr)
		var sum batch.Summary
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &sum))
		assert.Equal(t, users, sum.Users)
		assert.True(t, sum.Current)
	}
	check := func(first int64, fails bool, plans ...string) {
		t.Helper()
		for _, user := range [...]int{1, 17, users} {
			for _, plan := range plans {
				ids, failed := rank(plan, user)
				assert.Equal(t, []int64{first + int64(user), first}, ids, plan)
				assert.Equal(t, fails, failed, plan)
			}
		}
	}
	check(1000, false, "home")
	everybody()
	require.NoError(t, serving.Replace(inboxes(2000)))
	check(2000, false, "home", "filled")
	wrong := inboxes(2000) // keys that are not lists any more
	for i := range wrong {
		wrong[i].Name, wrong[i].Args = "SET", []string{"lost"}
	}
	require.NoError(t, serving.Replace(wrong))
	check(1000, true, "home", "filled")
	require.NoError(t, serving.Replace(nil))
	check(1000, false, "filled")
	require.NoError(t, serving.Replace(inboxes(3000)))
	everybody()
	serving.Close()
	check(3000, true, "home", "filled")
	serving, err = devredis.StartWith(inboxes(4000))
	require.NoError(t, err)
	endpoints()
	check(4000, false, "home", "filled")
}
