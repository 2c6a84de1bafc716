package reload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func TestReload(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			p := enginetest.OpenProject(t, rankd.Options{Model: model, Plan: "versioned"})
			first := p.Generation()
			assert.EqualValues(t, 1, first.Number)
			assert.Empty(t, first.Digest, "not all plans are loaded")
			_, err := p.Plans()
			require.NoError(t, err)
			first = p.Generation()
			assert.Len(t, first.Digest, 64)
			assert.Equal(t, 1, p.Says("versioned"))

			same, err := p.Reload(t.Context())
			require.NoError(t, err)
			assert.Equal(t, first, same, "nothing has changed")

			p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", 2))
			p.Write("plans/more.plan.json", enginetest.VersionPlan("more", 7))
			assert.Equal(t, 1, p.Says("versioned"), "a file without a reload changes nothing")
			second, err := p.Reload(t.Context())
			require.NoError(t, err)
			assert.EqualValues(t, 2, second.Number)
			assert.NotEqual(t, first.Digest, second.Digest)
			assert.Equal(t, second, p.Generation())
			assert.Equal(t, []string{"more", "versioned"}, []string{second.Plans[0].Name, second.Plans[1].Name})
			assert.Equal(t, []int{2, 2, 7}, []int{p.Says("versioned"), p.Says(""), p.Says("more")})

			back, err := p.Back(t.Context())
			require.NoError(t, err)
			assert.Equal(t, first, back)
			assert.Equal(t, []int{1, 1}, []int{p.Says("versioned"), p.Says("")})
			_, err = p.PlanInfo("more")
			assert.NoError(t, err, "a library finds a plan when it is first asked for")

			forth, err := p.Back(t.Context())
			require.NoError(t, err)
			assert.Equal(t, second, forth)

			require.NoError(t, os.Remove(filepath.Join(p.Dir, "plans/more.plan.json")))
			p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", 1))
			again, err := p.Reload(t.Context())
			require.NoError(t, err)
			assert.EqualValues(t, 3, again.Number)
			assert.Equal(t, first.Digest, again.Digest, "the digest is of what is there, not of how it came")
			_, err = p.Rank(t.Context(), rankd.Request{Plan: "more", UserID: 1})
			assert.ErrorIs(t, err, rankd.ErrUnknownPlan)
			assert.Equal(t, rankd.Reloads{Succeeded: 5}, p.Reloads())
		})
	}
}

func TestNoFormerGeneration(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	_, err := p.Back(t.Context())
	assert.ErrorIs(t, err, rankd.ErrNoFormer)
	assert.Equal(t, rankd.Reloads{Failed: 1, Err: rankd.ErrNoFormer}, p.Reloads())
}

// TestABrokenReloadChangesNothing breaks each kind of file, while a plan changes that is sound.
func TestABrokenReloadChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string // in the error
	}{
		"a plan that is not JSON":           {"plans/b.plan.json", "{\n  x", []string{"b.plan.json", "line 2"}},
		"a plan of an op that is not there": {"plans/b.plan.json", strings.Replace(enginetest.VersionPlan("b", 1), "core::follow", "core::folow", 1), []string{"b.plan.json", "rows", "core::folow"}},
		"a plan under another's name":       {"plans/b.plan.json", enginetest.VersionPlan("versioned", 1), []string{"b.plan.json", "plan_name"}},
		"two plans":                         {"plans/versioned.plan.ts", "export", []string{"versioned.plan.json and versioned.plan.ts"}},
		"a source without a compiler":       {"plans/b.plan.ts", "export", []string{"b.plan.ts", "no compiler"}},
		"a table":                           {"tables/keys.toml", "[[key]]\nid = x", []string{"folder tables: keys.toml", "line 2"}},
		"an endpoint":                       {"tables/endpoints.dev.toml", "6379=x", []string{"folder tables: endpoints.dev.toml", "line "}},
		"a model":                           {"models/m.json", "{", []string{"folder models: m.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := enginetest.OpenProject(t, rankd.Options{})
			_, err := p.Plans()
			require.NoError(t, err)
			before := p.Generation()
			p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", 2))
			sound, _ := os.ReadFile(filepath.Join(p.Dir, c.file))
			text := c.text
			if old, by, edits := strings.Cut(c.text, "="); edits && len(old) == 4 {
				text = strings.Replace(string(sound), old, by, 1)
			}
			p.Write(c.file, text)
			got, err := p.Reload(t.Context())
			require.Error(t, err)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			assert.Equal(t, before, got)
			assert.Equal(t, before, p.Generation())
			assert.Equal(t, rankd.Reloads{Failed: 1, Err: err}, p.Reloads())
			assert.Equal(t, 1, p.Says("versioned"))

			if sound != nil {
				p.Write(c.file, string(sound))
			} else {
				require.NoError(t, os.Remove(filepath.Join(p.Dir, c.file)))
			}
			p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", 2))
			_, err = p.Reload(t.Context())
			require.NoError(t, err)
			assert.Equal(t, rankd.Reloads{Succeeded: 1, Failed: 1}, p.Reloads())
			assert.Equal(t, 2, p.Says("versioned"))
		})
	}
}

// hooked is a folder that calls a function before each file that is opened. One goroutine at a time calls it.
type hooked struct {
	fs.FS
	mu   sync.Mutex
	hook func()
}

func (h *hooked) Open(name string) (fs.File, error) {
	h.mu.Lock()
	h.hook()
	h.mu.Unlock()
	return h.FS.Open(name)
}

// TestALinkThatIsReplacedDuringAReload replaces the link to the folder of plans, and the link that all files lead
// through, as Kubernetes does, before each step of a reload. All plans are then of the one folder or of the other.
func TestALinkThatIsReplacedDuringAReload(t *testing.T) {
	const plans = 6
	for name, inside := range map[string]bool{"a link to the folder": false, "links in the folder": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for version := 1; version <= 2; version++ {
				folder := filepath.Join(dir, fmt.Sprint("v", version))
				require.NoError(t, os.Mkdir(folder, 0o755))
				for i := range plans {
					plan := fmt.Sprint("p", i)
					enginetest.WriteFile(t, filepath.Join(folder, plan+".plan.json"), enginetest.VersionPlan(plan, version))
				}
			}
			link, folder := filepath.Join(dir, "data"), filepath.Join(dir, "data")
			swap := func(version int) {
				require.NoError(t, errors.Join(os.Symlink(fmt.Sprint("v", version), link+"~"), os.Rename(link+"~", link)))
			}
			swap(1)
			if inside {
				folder = filepath.Join(dir, "plans")
				require.NoError(t, os.Mkdir(folder, 0o755))
				for i := range plans {
					file := fmt.Sprint("p", i, ".plan.json")
					require.NoError(t, os.Symlink("../data/"+file, filepath.Join(folder, file)))
				}
			}
			files := &hooked{FS: os.DirFS(folder), hook: func() {}}
			p := enginetest.OpenProject(t, rankd.Options{Plans: files})
			_, err := p.Plans()
			require.NoError(t, err)
			swapped := true
			for at, version := 1, 1; swapped; at++ {
				swapped = false
				opened := 0
				files.hook = func() {
					if opened++; opened == at {
						version, swapped = 3-version, true
						swap(version)
					}
				}
				_, err := p.Reload(t.Context())
				require.NoError(t, err)
				assert.Less(t, opened, 200)
				for i := range plans {
					assert.Equal(t, version, p.Says(fmt.Sprint("p", i)), "the link was replaced before open %d", at)
				}
			}
		})
	}
}

// TestFilesThatNeverStay: a reload does not read for ever, and does not take what is of several times.
func TestFilesThatNeverStay(t *testing.T) {
	files := &hooked{hook: func() {}}
	dir := t.TempDir()
	files.FS = os.DirFS(dir)
	enginetest.WriteFile(t, filepath.Join(dir, "versioned.plan.json"), enginetest.VersionPlan("versioned", 1))
	p := enginetest.OpenProject(t, rankd.Options{Plans: files})
	n := 1
	files.hook = func() {
		n++
		enginetest.WriteFile(t, filepath.Join(dir, "versioned.plan.json"), enginetest.VersionPlan("versioned", n))
	}
	_, err := p.Reload(t.Context())
	require.ErrorContains(t, err, "have changed while they were read")
	files.hook = func() {}
	assert.Equal(t, n, p.Says("versioned"), "a plan is read when it is first asked for")
}

// A folder that has lost all plans is not mounted, or half copied. A plan whose file has become a folder is none.
func TestAFolderWithoutPlansIsRefused(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	assert.Equal(t, 1, p.Says("versioned"))
	file := filepath.Join(p.Dir, "plans/versioned.plan.json")
	require.NoError(t, os.Remove(file))
	_, err := p.Reload(t.Context())
	require.EqualError(t, err, "folder plans holds no plan any more: is it mounted, or half copied?")

	require.NoError(t, os.Mkdir(file, 0o755))
	_, err = p.Reload(t.Context())
	require.EqualError(t, err, "versioned.plan.json: is a folder, must be a regular file")
	require.NoError(t, os.Rename(file, filepath.Join(p.Dir, "plans/b.plan.ts")))
	_, err = p.Reload(t.Context())
	require.ErrorContains(t, err, "b.plan.ts: ")
	require.NoError(t, os.Remove(filepath.Join(p.Dir, "plans/b.plan.ts")))
	require.NoError(t, os.Symlink("gone", file))
	_, err = p.Reload(t.Context())
	require.EqualError(t, err, "versioned.plan.json: is a link to a file that does not exist")
	assert.Equal(t, 1, p.Says("versioned"))
}

// A plan that came with a reload that was refused is unknown to those who keep a list of plans, and its error says why.
func TestUnknownAfterARefusedReload(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	p.Write("plans/new.plan.json", enginetest.VersionPlan("new", 1))
	p.Write("plans/broken.plan.json", "{")
	_, err := p.Reload(t.Context())
	require.Error(t, err)
	refused := p.Intake().UnknownPlan("r", "new")
	require.ErrorIs(t, refused, rankd.ErrUnknownPlan)
	assert.Equal(t, `unknown plan "new": its file in folder plans is not loaded yet; the last reload was refused`, refused.Detail)
	require.NoError(t, os.Remove(filepath.Join(p.Dir, "plans/broken.plan.json")))
	_, err = p.Reload(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, p.Intake().UnknownPlan("r", "newer").Detail, "reload")
}

// TestReloadChangesEndpoints moves an endpoint to another server while a request that uses it
// waits. It also adds an endpoint, and removes it again.
func TestReloadChangesEndpoints(t *testing.T) {
	endpoint := func(id string, s *miniredis.Miniredis, policy string) string {
		return fmt.Sprintf("[[endpoint]]\nid = %q\nname = %q\nkind = \"redis\"\nhost = \"127.0.0.1\"\nport = %s\n[endpoint.policy]\nconnect_timeout_ms = 2000\n%s\n", id, "name_"+id, s.Port(), policy)
	}
	read := func(name, id string) string {
		return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["out"], "nodes": [
			{"node_id": "one", "op": "fixed_source", "inputs": []}, {"node_id": "held", "op": "test::held", "inputs": ["one"]},
			{"node_id": "rows", "op": "candidates", "inputs": [], "params": {"endpoint": %q, "key": "rows"}},
			{"node_id": "each", "op": "candidates", "inputs": ["held"], "params": {"endpoint": %q, "key": "of:{id}"}},
			{"node_id": "out", "op": "union", "inputs": ["rows", "each"]}]}`, name, id, id)
	}
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			servers := []*miniredis.Miniredis{miniredis.RunT(t), miniredis.RunT(t), miniredis.RunT(t)}
			for i, s := range servers {
				_, err := s.Lpush("rows", strconv.Itoa(10*(i+1)))
				require.NoError(t, err)
				_, err = s.Lpush("of:1", strconv.Itoa(10*(i+1)+1))
				require.NoError(t, err)
			}
			p := &enginetest.Project{T: t, Dir: t.TempDir()}
			for _, sub := range []string{"plans", "tables"} {
				require.NoError(t, os.Mkdir(filepath.Join(p.Dir, sub), 0o755))
			}
			for name, file := range (registrytest.Tables{Keys: registrytest.ID}).FS() {
				if !strings.HasPrefix(name, "endpoints.") {
					p.Write("tables/"+name, string(file.Data))
				}
			}
			p.Write("plans/first.plan.json", read("first", "ep_0001"))
			p.Write("tables/endpoints.test.toml", endpoint("ep_0001", servers[0], ""))
			entered, leave := make(chan struct{}), make(chan struct{})
			holds := atomic.Bool{}
			held := heldSpec(entered, leave)
			body := held.Run
			held.Run = func(c *task.Ctx) (rowset.RowSet, error) {
				if holds.Load() {
					return body(c)
				}
				return c.Inputs[0], nil
			}
			var err error
			p.Engine, err = rankd.Open(rankd.Options{
				Model: model, Env: "test", Registry: os.DirFS(filepath.Join(p.Dir, "tables")), Plans: os.DirFS(filepath.Join(p.Dir, "plans")), Tasks: []task.Spec{held},
			})
			require.NoError(t, err)
			defer func() { assert.NoError(t, p.Close()) }()
			ask := func(plan string) []int64 {
				a, err := p.Rank(t.Context(), rankd.Request{Plan: plan, UserID: 1})
				if !assert.NoError(t, err) {
					return nil
				}
				return slices.Collect(enginetest.IDs(a.Output(0)))
			}
			reload := func() error {
				_, err := p.Reload(t.Context())
				return err
			}
			require.Equal(t, []int64{10, 11}, ask("first"))

			holds.Store(true)
			before := make(chan []int64, 1)
			go func() { before <- ask("first") }()
			<-entered
			holds.Store(false)
			p.Write("tables/endpoints.test.toml", endpoint("ep_0001", servers[1], enginetest.CacheForAnHour)+endpoint("ep_0002", servers[2], ""))
			p.Write("plans/second.plan.json", read("second", "ep_0002"))
			require.NoError(t, reload())
			if model != rankd.Sequential { // It runs one request at a time.
				require.Equal(t, []int64{20, 21}, ask("first"))
				require.Equal(t, []int64{30, 31}, ask("second"))
			}
			p.Write("tables/endpoints.test.toml", endpoint("ep_0001", servers[1], enginetest.CacheForAnHour))
			require.NoError(t, os.Remove(filepath.Join(p.Dir, "plans/second.plan.json")))
			require.NoError(t, reload())
			assert.Positive(t, servers[0].CurrentConnectionCount(), "a request uses the server that it began with")
			close(leave)
			require.Equal(t, []int64{10, 11}, <-before)
			require.Eventually(t, func() bool { return servers[0].CurrentConnectionCount() == 0 }, 10*time.Second, time.Millisecond, "the last request for it has ended")
			require.Equal(t, []int64{20, 21}, ask("first"))
			if model == rankd.Reactor {
				require.Equal(t, []int64{20, 21}, ask("first"))
				assert.Positive(t, p.Metrics().Caches[p.Registry().Endpoints()[0].Index].Hits, "the policy has changed, too")
			}
			_, err = p.Back(t.Context())
			require.NoError(t, err)
			require.Equal(t, []int64{30, 31}, ask("second"))

			port := servers[2].Port()
			servers[2].Close()
			p.Write("tables/endpoints.test.toml", endpoint("ep_0001", servers[1], enginetest.CacheForAnHour)+strings.Replace(endpoint("ep_0003", servers[0], ""), servers[0].Port(), port, 1))
			generation := p.Generation()
			require.ErrorContains(t, reload(), "endpoint ep_0003, which is new or has changed: ")
			assert.Equal(t, generation, p.Generation())
			require.Equal(t, []int64{20, 21}, ask("first"))
		})
	}
}

// TestAFallbackIsOfTheGenerationOfItsRequest: a request that began before a reload falls back to the plan of that time. A reload
// that takes the fallback away, or gives it other outputs, is refused.
func TestAFallbackIsOfTheGenerationOfItsRequest(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			entered, leave := make(chan struct{}), make(chan struct{})
			p := enginetest.OpenProject(t, rankd.Options{Model: model, Tasks: []task.Spec{heldSpec(entered, leave)}})
			fixed := func(name string, rows int) string {
				return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["a"], "nodes": [{"node_id": "a", "op": "fixed_source", "inputs": [], "params": {"row_count": %d}}]}`, name, rows)
			}
			p.Write("plans/spare.plan.json", fixed("spare", 5))
			p.Write("plans/home.plan.json", fmt.Sprintf(`{"schema_version": 1, "plan_name": "home", "outputs": ["b"], "min_rows": [3], "below": "spare",
				"lenient": {"answer_by": "50%%"}, "capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1"],
				"nodes": [{"node_id": "a", "op": "fixed_source", "inputs": [], "params": {"row_count": 2}}, {"node_id": "b", "op": %q, "inputs": ["a"], "params": {}}]}`, heldSpec(nil, nil).Op))
			reload := func() error {
				_, err := p.Reload(t.Context())
				return err
			}
			warmed := make(chan error, 1)
			go func() { warmed <- reload() }()
			<-entered // by the first request of the new plan, which is the engine's own
			leave <- struct{}{}
			require.NoError(t, <-warmed)
			parsed, err := p.ParseRequest([]byte(`{"user_id": 1, "plan": "home", "param_overrides": {"weight": 3}}`))
			require.NoError(t, err)
			before := make(chan *rankd.Answer, 2)
			rank := func(r rankd.Request) {
				a, err := p.Rank(t.Context(), r)
				assert.NoError(t, err)
				before <- a
			}
			go rank(rankd.Request{Plan: "home", UserID: 1})
			<-entered
			p.Write("plans/spare.plan.json", fixed("spare", 7))
			params, err := os.ReadFile(filepath.Join(p.Dir, "tables/params.toml"))
			require.NoError(t, err)
			p.Write("tables/params.toml", string(params)+"\n[[param]]\nid = 900\nname = \"more\"\ntype = \"int\"\n")
			go func() { warmed <- reload() }()
			<-entered // The plan is new again: its tables are.
			leave <- struct{}{}
			leave <- struct{}{}
			require.NoError(t, <-warmed)
			go rank(parsed) // It begins with the tables that it was parsed with.
			<-entered
			leave <- struct{}{}
			for range 2 {
				a := <-before
				require.NotNil(t, a)
				assert.Equal(t, 5, a.Len())
				assert.EqualValues(t, 2, a.Version().Generation)
			}
			p.Write("plans/spare.plan.json", strings.Replace(fixed("spare", 8), `["a"]`, `["a", "a"]`, 1))
			require.ErrorContains(t, reload(), "plan home: below: plan spare cannot answer in its place: the outputs differ: 1 without names, and there 2 without names")
			require.NoError(t, os.Remove(filepath.Join(p.Dir, "plans/spare.plan.json")))
			require.ErrorContains(t, reload(), `plan home: below: plan spare cannot answer in its place: unknown plan "spare"`)
			close(leave)
			go func() { <-entered }()
			a, err := p.Rank(t.Context(), rankd.Request{Plan: "home", UserID: 1})
			require.NoError(t, err)
			assert.Equal(t, 7, a.Len())
		})
	}
}

// A plan that was already refused before may stay so. The others change all the same.
func TestAPlanThatStaysRefused(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	p.Write("plans/draft.plan.json", "{")
	_, err := p.Plans()
	require.NoError(t, err)
	p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", 2))
	_, err = p.Reload(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, p.Says("versioned"))
	p.Write("plans/draft.plan.json", enginetest.VersionPlan("draft", 3))
	_, err = p.Reload(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, p.Says("draft"))
	p.Write("plans/draft.plan.json", "{")
	_, err = p.Reload(t.Context())
	assert.ErrorContains(t, err, "draft.plan.json")
}

// heldSpec is a task that waits in the middle of its plan while the generation changes.
func heldSpec(entered chan<- struct{}, leave <-chan struct{}) task.Spec {
	return task.Spec{Op: "test::held", Inputs: 1, Output: task.PassThrough, Place: task.Waits, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		err := c.Await(func(context.Context) error {
			entered <- struct{}{}
			<-leave
			return nil
		})
		return c.Inputs[0], err
	}}
}

// TestARequestEndsOnItsGeneration changes a plan, a table and the plan's column while a request
// waits in the middle of its plan.
func TestARequestEndsOnItsGeneration(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			entered, leave := make(chan struct{}, 8), make(chan struct{})
			p := enginetest.OpenProject(t, rankd.Options{Model: model, Tasks: []task.Spec{heldSpec(entered, leave)}})
			held := func(version int) string {
				text := strings.Replace(enginetest.VersionPlan("held", version), `{"node_id": "score", "op": "core::vm", "inputs": ["rows"]`,
					`{"node_id": "held", "op": "test::held", "inputs": ["rows"]}, {"node_id": "score", "op": "core::vm", "inputs": ["held"]`, 1)
				return text
			}
			p.Write("plans/held.plan.json", held(1))
			answers := make(chan string, 1)
			p.Submit(t.Context(), rankd.Request{Plan: "held", UserID: 1}, func(a *rankd.Answer, err error) {
				if err != nil {
					answers <- err.Error()
					return
				}
				v, err := enginetest.AnsweredVersion(a)
				answers <- fmt.Sprint(v, err, " ", a.Output(0).Columns()[0].Name)
			})
			<-entered
			p.Write("plans/held.plan.json", held(2))
			keys, err := os.ReadFile(filepath.Join(p.Dir, "tables/keys.toml"))
			require.NoError(t, err)
			p.Write("tables/keys.toml", string(keys)+"\n[[key]]\nid = 77001\nname = \"of_the_second\"\ntype = \"float\"\nwritable = true\n")
			reloaded := make(chan error, 1)
			go func() {
				_, err := p.Reload(t.Context())
				reloaded <- err
			}()
			<-entered // the request of the new plan's own
			close(leave)
			require.NoError(t, <-reloaded)
			assert.Equal(t, "1 <nil> final_score", <-answers)
			assert.Equal(t, 2, p.Says("held"))
			_, known := p.Registry().KeyByName("of_the_second")
			assert.True(t, known)
		})
	}
}

// TestARequestThatWasParsedBefore: a request that was parsed before a reload begins with the
// tables that it was parsed with, or not at all.
func TestARequestThatWasParsedBefore(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	r, err := p.ParseRequest([]byte(`{"user_id": 1, "plan": "versioned", "param_overrides": {"weight": 3}}`))
	require.NoError(t, err)
	plain, err := p.ParseRequest([]byte(`{"user_id": 1, "plan": "versioned"}`))
	require.NoError(t, err)
	rank := func(r rankd.Request) (int, error) {
		a, err := p.Rank(t.Context(), r)
		if err != nil {
			return 0, err
		}
		return enginetest.AnsweredVersion(a)
	}
	params, err := os.ReadFile(filepath.Join(p.Dir, "tables/params.toml"))
	require.NoError(t, err)
	for i, want := range []struct {
		parsed  int
		refused bool
	}{{1, false}, {1, false}, {0, true}} {
		got, err := rank(r)
		assert.Equal(t, want.parsed, got)
		assert.Equal(t, want.refused, errors.Is(err, rankd.ErrInvalidRequest), err)
		got, err = rank(plain)
		require.NoError(t, err)
		assert.Equal(t, i+1, got)
		p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", i+2))
		p.Write("tables/params.toml", string(params)+fmt.Sprintf("\n[[param]]\nid = %d\nname = \"more_%d\"\ntype = \"int\"\n", 900+i, i))
		_, err = p.Reload(t.Context())
		require.NoError(t, err)
	}
}

// TestReloadUnderLoad changes the plan as fast as it can, every second time to a broken one,
// while requests run.
func TestReloadUnderLoad(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			p := enginetest.OpenProject(t, rankd.Options{Model: model})
			var asked atomic.Int64
			var sent atomic.Int64 // the version that was written last
			sent.Store(1)
			ctx, end := context.WithCancel(t.Context())
			var load sync.WaitGroup
			for range 4 {
				load.Go(func() {
					for last := 0; ctx.Err() == nil; asked.Add(1) {
						doc, err := p.ParseRequest([]byte(`{"user_id": 1, "plan": "versioned", "param_overrides": {"weight": 3}}`))
						if !assert.NoError(t, err) {
							return
						}
						a, err := p.Rank(context.Background(), doc)
						if !assert.NoError(t, err) {
							return
						}
						v, err := enginetest.AnsweredVersion(a)
						if !assert.NoError(t, err) || !assert.GreaterOrEqual(t, v, last, "an older generation") || !assert.LessOrEqual(t, int64(v), sent.Load()) {
							return
						}
						last = v
					}
				})
			}
			const reloads = 60
			for v := 2; v < reloads; v++ {
				sent.Store(int64(v))
				broken := v%2 == 0
				if p.Write("plans/versioned.plan.json", enginetest.VersionPlan("versioned", v)); broken {
					p.Write("plans/broken.plan.json", "{")
				} else {
					require.NoError(t, os.Remove(filepath.Join(p.Dir, "plans/broken.plan.json")))
				}
				_, err := p.Reload(t.Context())
				assert.Equal(t, broken, err != nil, err)
			}
			seen := asked.Load()
			require.Eventually(t, func() bool { return asked.Load() > seen+8 }, 10*time.Second, time.Millisecond)
			end()
			load.Wait()
			assert.Equal(t, reloads-1, p.Says("versioned"))
			assert.EqualValues(t, reloads/2-1, p.Reloads().Succeeded)
		})
	}
}

// TestReloadInACallback: a reload there would wait for its own end.
func TestReloadInACallback(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	refused := make(chan error, 1)
	p.Submit(t.Context(), rankd.Request{Plan: "versioned", UserID: 1}, func(*rankd.Answer, error) {
		_, err := p.Reload(context.Background())
		refused <- err
	})
	assert.ErrorIs(t, <-refused, rankd.ErrCallback)
	require.NoError(t, p.Close())
	_, err := p.Reload(t.Context())
	assert.ErrorIs(t, err, rankd.ErrClosed)
}

// aliasPlans are two versions of a plan, and what aliases.toml says.
func aliasPlans(aliases string) fstest.MapFS {
	folder := enginetest.Plans(map[string]string{"home_v7": enginetest.ThreeRows, "home_v8": `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}}`})
	folder[plan.AliasesFile] = &fstest.MapFile{Data: []byte(aliases)}
	return folder
}

const halfHome = `home = { a = "home_v7", b = "home_v8", b_share = 50 }` + "\n" + `start = "home_v7"` + "\n"

// TestAlias: each user gets the plan of the same side on all models. The answer, its trace and
// its explanation say which.
func TestAlias(t *testing.T) {
	o := rankd.Options{Plans: aliasPlans(halfHome), Plan: "home", AllowRequestTrace: true, AllowRequestExplain: true}
	side := plan.Alias{Name: "home", A: "home_v7", B: "home_v8", BShare: 50, Salt: "home"}
	enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Plans()
		require.NoError(t, err)
		g := e.Generation()
		assert.Equal(t, []rankd.Alias{side, {Name: "start", A: "home_v7", Salt: "start"}}, g.Aliases)
		sides := map[string]int{}
		for user := int64(1); user <= 40; user++ {
			wantSide, wantPlan := side.Side(strconv.AppendInt(nil, user, 10))
			for _, name := range []string{"home", ""} { // The engine may also choose the plan itself.
				a, err := e.Rank(t.Context(), rankd.Request{Plan: name, UserID: user, Trace: true, Explain: rankd.Explain{All: true}})
				require.NoError(t, err)
				v := a.Version()
				info, err := e.PlanInfo(wantPlan)
				require.NoError(t, err)
				assert.Equal(t, rankd.Version{Plan: wantPlan, Digest: info.Digest, Alias: "home", Side: wantSide, Generation: 1, GenerationDigest: g.Digest}, v)
				assert.Equal(t, wantPlan, a.Plan)
				assert.Equal(t, map[string]int{"a": 3, "b": 2}[wantSide], a.Len())
				var shown struct {
					Of    rankd.Version `json:"plan_version"`
					Trace struct {
						Of rankd.Version `json:"plan_version"`
					} `json:"trace"`
					Explain struct {
						Of rankd.Version `json:"plan_version"`
					} `json:"explain"`
				}
				require.NoError(t, json.Unmarshal(a.AppendJSON(nil, rankd.FormatFlat), &shown))
				assert.Equal(t, []rankd.Version{v, v, v}, []rankd.Version{shown.Of, shown.Trace.Of, shown.Explain.Of})
				sides[wantSide]++
			}
		}
		assert.Greater(t, min(sides["a"], sides["b"]), 20)

		a, err := e.Rank(t.Context(), rankd.Request{Plan: "start", UserID: 1})
		require.NoError(t, err)
		assert.Equal(t, []string{"start", "a", "home_v7"}, []string{a.Version().Alias, a.Version().Side, a.Version().Plan})
		a, err = e.Rank(t.Context(), rankd.Request{Plan: "home_v8", UserID: 1})
		require.NoError(t, err)
		assert.NotContains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), "plan_version", "nobody has asked")
		r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "home_v8", "plan_version": true}`))
		require.NoError(t, err)
		a, err = e.Rank(t.Context(), r)
		require.NoError(t, err)
		assert.Contains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), fmt.Sprintf(`"plan_version":{"plan":"home_v8","digest":%q,"generation":1,"generation_digest":%q}`, a.Version().Digest, g.Digest))
		info, err := e.PlanInfo("")
		require.NoError(t, err)
		assert.Equal(t, "home_v7", info.Name, "side a stands for an alias")
	})
}

// TestAnAliasFailsAsItsSide: the error of a request for an alias says which plan ran.
func TestAnAliasFailsAsItsSide(t *testing.T) {
	folder := enginetest.Plans(map[string]string{"home_v7": `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": -1}}`})
	folder[plan.AliasesFile] = &fstest.MapFile{Data: []byte(`home = "home_v7"`)}
	e := enginetest.Open(t, rankd.Options{Plans: folder})
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "home", UserID: 1})
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "home_v7", failed.Version().Plan)
	assert.Equal(t, "home", failed.Version().Alias)
	_, err = e.Rank(t.Context(), rankd.Request{Plan: "nothing", UserID: 1})
	require.ErrorAs(t, err, &failed)
	assert.Zero(t, failed.Version())
}

func TestAliasesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`home = "home_v9"`:                            "aliases.toml: home: there is no plan home_v9",
		`home_v7 = "home_v8"`:                         "aliases.toml: home_v7 is the name of a plan, too",
		`home = "start"` + "\n" + `start = "home_v7"`: "home: there is no plan start",
		`home = 5`: "folder p: aliases.toml: \"home\": must be the name of a plan",
	} {
		_, err := rankd.Open(rankd.Options{Plans: aliasPlans(text), PlansName: "folder p"})
		require.ErrorContains(t, err, want)
	}
}

// TestAReloadMovesAShare: a canary grows, becomes everybody's plan, and goes back. A file with
// an error changes nothing.
func TestAReloadMovesAShare(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	p.Write("plans/home_v7.plan.json", enginetest.VersionPlan("home_v7", 7))
	p.Write("plans/home_v8.plan.json", enginetest.VersionPlan("home_v8", 8))
	share := func(share string) {
		p.Write("plans/aliases.toml", `home = { a = "home_v7", b = "home_v8", b_share = `+share+` }`)
	}
	inB := func() (users []int64) {
		for user := int64(1); user <= 60; user++ {
			a, err := p.Rank(t.Context(), rankd.Request{Plan: "home", UserID: user})
			require.NoError(t, err)
			if a.Version().Side == "b" {
				users = append(users, user)
			}
		}
		return users
	}
	reload := func() error {
		_, err := p.Reload(t.Context())
		return err
	}
	share("5")
	require.NoError(t, reload())
	few := inB()
	share("60")
	require.NoError(t, reload())
	many := inB()
	assert.Subset(t, many, few)
	assert.Greater(t, len(many), len(few))
	before := p.Generation()
	p.Write("plans/home_v8.plan.json", `{"plan_name": 5}`)
	require.Error(t, reload(), "a plan that was sound")
	share("101")
	require.ErrorContains(t, reload(), "b_share must be a number from 0 to 100")
	p.Write("plans/aliases.toml", `home = { a = "home_v7", b = "home_v9", b_share = 5 }`)
	p.Write("plans/home_v8.plan.json", enginetest.VersionPlan("home_v8", 8))
	require.ErrorContains(t, reload(), "home: there is no plan home_v9")
	assert.Equal(t, before, p.Generation())
	assert.Equal(t, many, inB())
	p.Write("plans/aliases.toml", `home = "home_v8"`)
	require.NoError(t, reload())
	assert.Empty(t, inB(), "all have side a, which is the new plan")
	assert.Equal(t, 8, p.Says("home"))
	_, err := p.Back(t.Context())
	require.NoError(t, err)
	assert.Equal(t, many, inB())
}
