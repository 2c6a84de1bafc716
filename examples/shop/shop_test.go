package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/shop/data"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/internal/joinlog"
	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// A forest has what a prediction needs of the model's file.
type forest struct {
	Learner struct {
		Names   []string `json:"feature_names"`
		Booster struct {
			Model struct {
				Trees []struct {
					Left    []int     `json:"left_children"`
					Right   []int     `json:"right_children"`
					Feature []int     `json:"split_indices"`
					Value   []float32 `json:"split_conditions"` // of a leaf: what it adds
					Default []int     `json:"default_left"`
				}
			}
		} `json:"gradient_booster"`
	}
}

func readForest(t *testing.T) *forest {
	text, err := os.ReadFile("models/clicks.json")
	require.NoError(t, err)
	f := new(forest)
	require.NoError(t, json.Unmarshal(text, f))
	require.NotEmpty(t, f.Learner.Booster.Model.Trees)
	return f
}

// predict returns how likely a click is; NaN is a missing feature.
func (f *forest) predict(features map[string]float64) float64 {
	var margin float32
	for _, tree := range f.Learner.Booster.Model.Trees {
		node := 0
		for tree.Left[node] >= 0 {
			v := float32(features[f.Learner.Names[tree.Feature[node]]])
			if v < tree.Value[node] || v != v && tree.Default[node] == 1 {
				node = tree.Left[node]
			} else {
				node = tree.Right[node]
			}
		}
		margin += tree.Value[node]
	}
	return 1 / (1 + math.Exp(-float64(margin)))
}

// A shown product is a row of the test's own ranking.
type shown struct {
	sku, name, brand, category string
	price, score               float64
	source                     []string
}

// A naive shop ranks as the plan does, in the plainest way. It has a command for each value and
// a loop for each rule.
type naive struct {
	redis *miniredis.Miniredis
	model *forest
	now   time.Time
}

// number reads a field that is a number. It returns NaN if it is not.
func (n naive) number(key, field string) float64 {
	v, err := strconv.ParseFloat(n.redis.HGet(key, field), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// integer reads a field that is an integer. It returns NaN if it is not.
func (n naive) integer(key, field string) float64 {
	v, err := strconv.ParseInt(n.redis.HGet(key, field), 10, 64)
	if err != nil {
		return math.NaN()
	}
	return float64(v)
}

// highest returns the members of a sorted set with the highest scores, down to the score least.
func (n naive) highest(key string, least float64) (members []string) {
	scores, _ := n.redis.SortedSet(key)
	for member, score := range scores {
		if score >= least {
			members = append(members, member)
		}
	}
	slices.SortFunc(members, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), strings.Compare(b, a)) })
	return members[:min(len(members), 100)]
}

// home returns the candidates of the start page.
func (n naive) home(user string) (rows []shown) {
	add := func(sku, source string) {
		for i := range rows {
			if rows[i].sku == sku {
				if !slices.Contains(rows[i].source, source) {
					rows[i].source = append(rows[i].source, source)
				}
				return
			}
		}
		rows = append(rows, shown{sku: sku, source: []string{source}})
	}
	for _, sku := range n.highest("added", float64(n.now.Add(-14*24*time.Hour).Unix())) {
		add(sku, "new")
	}
	viewed, _ := n.redis.List("viewed:" + user)
	for _, sku := range viewed {
		also, _ := n.redis.List("also:" + sku)
		for _, other := range also[:min(len(also), 10)] {
			add(other, "similar")
		}
	}
	return rows
}

// rank returns the best rows in order.
func (n naive) rank(user string, rows []shown, count int) (ranked []shown) {
	var left []shown
	for _, r := range rows {
		product := "product:" + r.sku
		r.name, r.brand, r.category = n.redis.HGet(product, "name"), n.redis.HGet(product, "brand"), n.redis.HGet(product, "category")
		r.price = n.number(product, "price")
		bought, _ := n.redis.SIsMember("bought:"+user, r.sku)
		if bought || math.IsNaN(r.price) || !(n.integer(product, "stock") > 0) {
			continue
		}
		known := func(field string) float64 {
			if v := n.integer("stat:"+user+":"+r.category, field); v == v {
				return v
			}
			return 0
		}
		r.score = n.model.predict(map[string]float64{
			"price": r.price, "rating": n.number(product, "rating"), "sold": n.integer(product, "sold"), "views": known("views"), "buys": known("buys"),
			"age_days": (float64(n.now.Unix()) - n.integer(product, "added")) / (24 * 3600), "over_budget": r.price / n.number("user:"+user, "budget"),
		})
		left = append(left, r)
	}
	slices.SortStableFunc(left, func(a, b shown) int { return cmp.Compare(b.score, a.score) })
	for len(left) > 0 && len(ranked) < count {
		next := slices.IndexFunc(left, func(r shown) bool { return newBrand(ranked, r) && fewOfCategory(ranked, r) })
		if next < 0 {
			next = max(0, slices.IndexFunc(left, func(r shown) bool { return newBrand(ranked, r) }))
		}
		ranked = append(ranked, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return ranked
}

func newBrand(before []shown, r shown) bool {
	for _, b := range before[max(0, len(before)-2):] {
		if b.brand == r.brand {
			return false
		}
	}
	return true
}

func fewOfCategory(before []shown, r shown) bool {
	same := 0
	for _, b := range before[max(0, len(before)-3):] {
		if b.category == r.category {
			same++
		}
	}
	return same < 2
}

// damage breaks the data in ways that happen in practice.
func damage(r *rand.Rand, redis *miniredis.Miniredis) {
	for _, key := range redis.Keys() {
		switch kind, _, _ := strings.Cut(key, ":"); {
		case kind == "product" && r.IntN(4) == 0:
			field := []string{"price", "rating", "sold", "stock", "added"}[r.IntN(5)]
			if r.IntN(2) == 0 {
				redis.HDel(key, field)
			} else {
				redis.HSet(key, field, []string{"cheap", "", "nan", "-1", "1e3"}[r.IntN(5)])
			}
		case (kind == "user" || kind == "stat" || kind == "viewed" || kind == "bought" || kind == "also" || kind == "product") && r.IntN(12) == 0:
			redis.Del(key)
		}
	}
}

// TestShop compares the start page and a page of a category with a second implementation of the
// ranking, on all engines and in all modes.
func TestShop(t *testing.T) {
	options, err := examples.Options("shop")
	require.NoError(t, err)
	now := time.Date(2026, time.May, 2, 9, 30, 0, 0, time.UTC)
	redis := miniredis.RunT(t)
	options.Redis, options.Now = redis.Addr(), func() time.Time { return now }
	engines := make(map[string]*rankd.Engine)
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		o := options
		o.Model = model
		if engines[string(model)], err = rankd.Open(o); err != nil {
			require.NoError(t, err)
		}
		defer engines[string(model)].Close()
	}
	for _, mode := range []rankd.SchedulingMode{rankd.OffloadAll, rankd.InlineAll} {
		o := options
		o.Scheduling.Mode = mode
		if engines[string(mode)], err = rankd.Open(o); err != nil {
			require.NoError(t, err)
		}
		defer engines[string(mode)].Close()
	}
	model := readForest(t)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		size := data.Size{Products: 1 + r.IntN(600), Users: 8}
		redis.FlushAll()
		require.NoError(t, data.Fill(t.Context(), redis.Addr(), size, now))
		if seed > 0 {
			damage(r, redis)
		}
		want := naive{redis, model, now}
		for user := range size.Users + 1 { // the last one is a stranger
			id := fmt.Sprintf("u-%d", user+1)
			shelves := map[string][]shown{"home": want.rank(id, want.home(id), 12)}
			var deals []shown
			for _, sku := range want.highest("deals", 0) {
				deals = append(deals, shown{sku: sku})
			}
			shelves["deals"] = want.rank(id, deals, 4)
			category := data.Categories()[r.IntN(len(data.Categories()))]
			var best []shown
			for _, sku := range want.highest("best:"+category, 0) {
				best = append(best, shown{sku: sku})
			}
			offset, size := r.IntN(30), 1+r.IntN(50)
			page := want.rank(id, best, offset+size)
			page = page[min(offset, len(page)):]
			for name, e := range engines {
				answer, err := e.Rank(t.Context(), rankd.Request{UserIDText: id})
				require.NoError(t, err)
				for shelf, rows := range shelves {
					out, ok := answer.OutputNamed(shelf)
					require.True(t, ok, shelf)
					checkRows(t, fmt.Sprintf("seed %d, %s, %s of %s", seed, name, shelf, id), out, rows)
				}
				answer, err = e.Rank(t.Context(), rankd.Request{Plan: "category", UserIDText: id,
					Context: map[string]any{"in_category": category, "offset": offset, "page_size": size}})
				require.NoError(t, err)
				checkRows(t, fmt.Sprintf("seed %d, %s, %s of %s from %d on", seed, name, category, id, offset), answer.Output(0), page)
			}
		}
	}
}

func checkRows(t *testing.T, what string, out rankd.Output, want []shown) {
	require.Equal(t, len(want), out.Len(), what)
	i := 0
	for c := range out.Candidates() {
		w := want[i]
		i++
		sku := c.IDText()
		name, _ := c.String("name")
		score, _ := c.Float("score")
		source, _ := c.Set("source")
		slices.Sort(w.source)
		require.Equal(t, []any{w.sku, w.name, w.source}, []any{sku, name, source}, "%s, place %d", what, i)
		require.InEpsilon(t, w.score, score, 1e-6, "%s, place %d", what, i)
		price, _ := c.Float("price")
		require.Equal(t, w.price, price)
		_, private := c.Float("budget")
		require.False(t, private, "what the user pays goes out")
	}
}

// TestTrain trains the model again, with the XGBoost of the machine.
func TestTrain(t *testing.T) {
	python := os.Getenv("RANKD_XGBOOST_PYTHON")
	if python == "" && os.Getenv("RANKD_REQUIRE_XGBOOST") != "1" {
		t.Skip("CI trains it: RANKD_XGBOOST_PYTHON")
	}
	folder := t.TempDir()
	var log bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &log, []string{"clicks"}, time.Now()))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "clicks.csv"), log.Bytes(), 0o644))
	out, err := exec.Command(python, "train.py", filepath.Join(folder, "clicks.csv"), filepath.Join(folder, "clicks.json")).CombinedOutput()
	require.NoError(t, err, string(out))
	var round int
	var auc float64
	_, err = fmt.Sscanf(strings.ReplaceAll(string(out), ":", " "), "[%d] eval-auc %g", &round, &auc)
	require.NoError(t, err, string(out))
	assert.Greater(t, auc, 0.8, "it knows clicks that it has not seen")
	assert.FileExists(t, filepath.Join(folder, "clicks.json"))
}

// learnRequests is how many requests TestLearn serves.
var learnRequests = flag.Int("learn_requests", 800, "serve this `number` of requests in TestLearn")

// scoreAgain has XGBoost itself score the rows of train.csv, and prints by how much made.score differs at most, and of how many rows.
const scoreAgain = `
import csv, sys, numpy, xgboost
rows = list(csv.DictReader(open(sys.argv[1])))
number = lambda text: float(text) if text else float("nan")
names = sys.argv[3:]
data = numpy.array([[number(r[n]) for n in names] for r in rows])
model = xgboost.Booster({"nthread": 1}, model_file=sys.argv[2])
scores = model.predict(xgboost.DMatrix(data, feature_names=names))
print(max(abs(scores - numpy.array([number(r["made.score"]) for r in rows]))), len(rows))
`

// TestLearn serves from a poor model and a warm cache, joins what was served with what users clicked, and trains on that alone. Before, it
// scores each logged row again: by rankd's model code, equal in each bit, and by XGBoost, within 1e-6; with nulls, defaults and text ids.
func TestLearn(t *testing.T) {
	redis := miniredis.RunT(t)
	now := time.Now()
	require.NoError(t, data.Fill(t.Context(), redis.Addr(), data.Size{Products: 600, Users: 100}, now))
	r := rand.New(rand.NewPCG(5, 5))
	for _, key := range redis.Keys() { // The model has nulls to score, and defaults.
		if strings.HasPrefix(key, "stat:") && r.IntN(5) == 0 {
			redis.Del(key)
		}
		if strings.HasPrefix(key, "user:") && r.IntN(5) == 0 {
			redis.HDel(key, "budget")
		}
	}
	folder := t.TempDir()
	served := filepath.Join(folder, "served")
	require.NoError(t, os.Mkdir(served, 0o755))
	log, err := os.Create(filepath.Join(served, "served-1.jsonl"))
	require.NoError(t, err)
	o, err := examples.Options("shop")
	require.NoError(t, err)
	o.Redis, o.Served, o.Registry = redis.Addr(), log, cached(t, o.Registry)
	e, err := rankd.Open(o)
	require.NoError(t, err)
	shown := 0
	for i := range *learnRequests {
		answer, err := e.Rank(t.Context(), rankd.Request{UserIDText: fmt.Sprintf("u-%d", 1+i%100)})
		require.NoError(t, err)
		shown += answer.Len()
	}
	require.NoError(t, e.Close())
	require.NoError(t, log.Close())
	require.EqualValues(t, *learnRequests, e.ServedLines().Written)
	lines, err := os.ReadFile(log.Name())
	require.NoError(t, err)
	for _, marked := range []string{`,"cached":{"`, `"at_default":{"`, `"ids":["`} {
		assert.Contains(t, string(lines), marked)
	}

	var clicks bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &clicks, []string{"clicks", "--served", served}, now))
	outcomes, out := filepath.Join(folder, "clicks.jsonl"), filepath.Join(folder, "train.csv")
	require.NoError(t, os.WriteFile(outcomes, clicks.Bytes(), 0o644))
	counts, err := joinlog.Run(t.Context(), joinlog.Options{Served: served, Outcomes: outcomes, Window: time.Hour, Label: joinlog.Max,
		Until: time.Now().Add(2 * time.Hour), Out: out, Memory: 1 << 20})
	require.NoError(t, err)
	// The log has what one of both models has scored. A row that both shelves show is clicked in both.
	assert.Equal(t, []int{shown, *learnRequests}, []int{counts.Rows + counts.Absent, counts.Groups})
	assert.GreaterOrEqual(t, counts.Positives, bytes.Count(clicks.Bytes(), []byte("\n")))

	text, err := os.ReadFile(out)
	require.NoError(t, err)
	table, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	require.NoError(t, err)
	set, err := gbdt.ReadFolder(os.DirFS("models"), "models")
	require.NoError(t, err)
	model, err := set.Get("clicks")
	require.NoError(t, err)
	nulls := 0
	for _, row := range table[1:] {
		cell := func(name string) float64 {
			text := row[slices.Index(table[0], name)]
			if text == "" {
				nulls++
				return math.NaN()
			}
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			return v
		}
		var columns []gbdt.Column
		for _, name := range model.Names() {
			v := cell(name)
			columns = append(columns, func(values []float64, _ int) { values[0] = v })
		}
		score := make([]float64, 1)
		require.True(t, model.Predict(nil, columns, gbdt.Prediction, score))
		require.Equal(t, math.Float64bits(cell("made.score")), math.Float64bits(score[0]))
	}
	assert.Positive(t, nulls)

	python := os.Getenv("RANKD_XGBOOST_PYTHON")
	if python == "" && os.Getenv("RANKD_REQUIRE_XGBOOST") != "1" {
		t.Skip("CI trains it: RANKD_XGBOOST_PYTHON")
	}
	compared, err := exec.Command(python, append([]string{"-c", scoreAgain, out, "models/clicks.json"}, model.Names()...)...).CombinedOutput()
	require.NoError(t, err, string(compared))
	var off float64
	var rows int
	_, err = fmt.Sscan(string(compared), &off, &rows)
	require.NoError(t, err, string(compared))
	t.Logf("XGBoost's scores of %d rows differ by %g at most", rows, off)
	assert.Less(t, off, 1e-6)
	assert.Equal(t, len(table)-1, rows)
	learned := filepath.Join(folder, "models", "clicks.json")
	require.NoError(t, os.Mkdir(filepath.Dir(learned), 0o755))
	said, err := exec.Command(python, append([]string{"train.py", out, learned}, model.Names()...)...).CombinedOutput()
	require.NoError(t, err, string(said))
	t.Logf("%s", said)
	var aucs []float64
	for _, auc := range regexp.MustCompile(`auc:([0-9.]+)`).FindAllStringSubmatch(string(said), -1) {
		v, err := strconv.ParseFloat(auc[1], 64)
		require.NoError(t, err)
		aucs = append(aucs, v)
	}
	require.Len(t, aucs, 2)
	assert.Greater(t, aucs[0], 0.6, "it knows clicks that it has not seen")
	o.Served, o.Models = nil, os.DirFS(filepath.Dir(learned))
	e, err = rankd.Open(o)
	require.NoError(t, err, "the learned model is loaded")
	_, err = e.Rank(t.Context(), rankd.Request{UserIDText: "u-1"})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// cached returns the tables with rows that stay in memory.
func cached(t *testing.T, tables fs.FS) fs.FS {
	changed := fstest.MapFS{}
	files, err := fs.ReadDir(tables, ".")
	require.NoError(t, err)
	for _, file := range files {
		text, err := fs.ReadFile(tables, file.Name())
		require.NoError(t, err)
		if strings.HasPrefix(file.Name(), "endpoints.") {
			text = append(text, "\n[endpoint.policy]\ncache = \"ttl\"\ncache_max_age_ms = 3600000\n"...)
		}
		changed[file.Name()] = &fstest.MapFile{Data: text}
	}
	return changed
}

func TestTheProgramSaysWhatItLacks(t *testing.T) {
	redis := miniredis.RunT(t)
	var out bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &out, []string{"fill", "--redis", redis.Addr(), "--products", "20", "--users", "3"}, time.Now()))
	assert.Equal(t, "wrote 20 products and 3 users to "+redis.Addr()+"\n", out.String())
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "say what to do: fill or clicks"},
		{[]string{"serve"}, "cannot serve: say fill or clicks"},
		{[]string{"clicks", "--rows", "0"}, "--rows must be at least 1"},
		{[]string{"fill", "--products", "1", "--users", "1", "--redis", "127.0.0.1:1"}, "filling Redis at 127.0.0.1:1"},
	} {
		assert.ErrorContains(t, program().Run(t.Context(), &out, c.args, time.Now()), c.want)
	}
}
