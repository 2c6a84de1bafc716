package rankd_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/plan"
)

// aliasPlans are two versions of a plan, and what aliases.toml says.
func aliasPlans(aliases string) fstest.MapFS {
	folder := plans(map[string]string{"home_v7": threeRows, "home_v8": `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}}`})
	folder[plan.AliasesFile] = &fstest.MapFile{Data: []byte(aliases)}
	return folder
}

const halfHome = `home = { a = "home_v7", b = "home_v8", b_share = 50 }` + "\n" + `start = "home_v7"` + "\n"

// TestAlias: each user gets the plan of the same side on all models, and the answer, its trace and its explanation say which.
func TestAlias(t *testing.T) {
	o := rankd.Options{Plans: aliasPlans(halfHome), Plan: "home", AllowRequestTrace: true, AllowRequestExplain: true}
	side := plan.Alias{Name: "home", A: "home_v7", B: "home_v8", BShare: 50, Salt: "home"}
	forModels(t, o, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Plans()
		require.NoError(t, err)
		g := e.Generation()
		assert.Equal(t, []rankd.Alias{side, {Name: "start", A: "home_v7", Salt: "start"}}, g.Aliases)
		sides := map[string]int{}
		for user := int64(1); user <= 40; user++ {
			wantSide, wantPlan := side.Side(strconv.AppendInt(nil, user, 10))
			for _, name := range []string{"home", ""} { // It is the engine's own choice, too.
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
	folder := plans(map[string]string{"home_v7": `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": -1}}`})
	folder[plan.AliasesFile] = &fstest.MapFile{Data: []byte(`home = "home_v7"`)}
	e := open(t, rankd.Options{Plans: folder})
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

// TestAReloadMovesAShare: a canary grows, becomes the plan of all, and goes back; a file that is wrong changes nothing.
func TestAReloadMovesAShare(t *testing.T) {
	p := openProject(t, rankd.Options{})
	p.write("plans/home_v7.plan.json", versionPlan("home_v7", 7))
	p.write("plans/home_v8.plan.json", versionPlan("home_v8", 8))
	share := func(share string) {
		p.write("plans/aliases.toml", `home = { a = "home_v7", b = "home_v8", b_share = `+share+` }`)
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
	p.write("plans/home_v8.plan.json", `{"plan_name": 5}`)
	require.Error(t, reload(), "a plan that was sound")
	share("101")
	require.ErrorContains(t, reload(), "b_share must be a number from 0 to 100")
	p.write("plans/aliases.toml", `home = { a = "home_v7", b = "home_v9", b_share = 5 }`)
	p.write("plans/home_v8.plan.json", versionPlan("home_v8", 8))
	require.ErrorContains(t, reload(), "home: there is no plan home_v9")
	assert.Equal(t, before, p.Generation())
	assert.Equal(t, many, inB())
	p.write("plans/aliases.toml", `home = "home_v8"`)
	require.NoError(t, reload())
	assert.Empty(t, inB(), "all have side a, which is the new plan")
	assert.Equal(t, 8, p.says("home"))
	_, err := p.Back(t.Context())
	require.NoError(t, err)
	assert.Equal(t, many, inB())
}
