package admin_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/adapters/rankdprom"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/shop/data"
	"github.com/rankd/rankd/internal/outcome"
)

// TestOperatorFiles compares the alert rules and the dashboard with a server's metrics: names,
// labels and classes of requests.
func TestOperatorFiles(t *testing.T) {
	labels := make(map[string][]string)
	for _, m := range servedMetrics(t) {
		labels[m.name] = m.labels
	}
	name := regexp.MustCompile(`rankd_[a-z_]+`)
	grouped := regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	classes := regexp.MustCompile(`class!~\\?"([^"\\]*)`)
	for _, file := range []string{"alerts.yml", "grafana.json"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy", file))
		require.NoError(t, err)
		used := 0
		for _, expr := range expressions(string(text)) {
			known := []string{"job", "instance", "le"}
			for _, metric := range name.FindAllString(expr, -1) {
				family := metric
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					family = strings.TrimSuffix(family, suffix)
				}
				of, ok := labels[family]
				if !assert.True(t, ok, "%s: there is no metric %s", file, metric) {
					continue
				}
				known = append(known, of...)
				used++
			}
			for _, group := range grouped.FindAllStringSubmatch(expr, -1) {
				for _, label := range strings.Split(group[1], ", ") {
					assert.Contains(t, known, label, "%s: %s", file, expr)
				}
			}
			for _, list := range classes.FindAllStringSubmatch(expr, -1) {
				for _, class := range strings.Split(list[1], "|") {
					assert.True(t, slices.ContainsFunc(outcome.Classes(), func(c outcome.Class) bool { return c.Label() == class }), "%s: there is no class %s", file, class)
				}
			}
		}
		assert.Greater(t, used, 14, file)
	}
}

// expressions returns the expressions in a file of rules, or of a dashboard.
func expressions(text string) (all []string) {
	for _, at := range regexp.MustCompile(`(?m)"?expr"?: (\|\n(?: {10,}.*\n)+|.*$)`).FindAllStringSubmatch(text, -1) {
		all = append(all, at[1])
	}
	return all
}

// TestAColumnThatGoesNullFiresItsAlert breaks the data of the shop while it serves, and evaluates
// the rules of alerts.yml over what is exported: before, they are silent, and so they are until they have held for as long as they say.
func TestAColumnThatGoesNullFiresItsAlert(t *testing.T) {
	redis := miniredis.RunT(t)
	require.NoError(t, data.Fill(t.Context(), redis.Addr(), data.Size{Products: 300, Users: 3}, time.Now()))
	o, err := examples.Options("shop")
	require.NoError(t, err)
	o.Redis = redis.Addr()
	e, err := rankd.Open(o)
	require.NoError(t, err)
	defer func() { assert.NoError(t, e.Close()) }()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(rankdprom.New(e))
	h := &history{}
	begun := time.Now()
	scrape := func(minute int, samples float64) { // once so many requests are counted
		require.Eventually(t, func() bool {
			_, err := e.Rank(t.Context(), rankd.Request{UserIDText: "u-1"})
			require.NoError(t, err)
			h.take(t, begun.Add(time.Duration(minute)*time.Minute), metrics)
			return h.last["rankd_column_samples_total"] != nil && h.last["rankd_column_samples_total"][0].value >= samples
		}, 20*time.Second, time.Millisecond)
		h.scrapes = append(h.scrapes, h.last)
	}
	text, err := os.ReadFile("../../docs/deploy/alerts.yml")
	require.NoError(t, err)
	fired := func(alert string, minute int) (columns []string) { // by evaluations once a minute
		_, rule, ok := strings.Cut(string(text), "- alert: "+alert+"\n")
		require.True(t, ok)
		rule, _, _ = strings.Cut(rule, "- alert: ")
		held := regexp.MustCompile(`\n +for: (\w+)\n`).FindStringSubmatch(rule)
		require.NotNil(t, held, "%s fires at once", alert)
		now, times := begun.Add(time.Duration(minute)*time.Minute), map[string]int{}
		begin := now.Add(-promDuration(t, held[1]))
		for at := begin; !at.After(now); at = at.Add(time.Minute) {
			for labels := range h.evaluate(t, expressions(rule)[0], at) {
				times[regexp.MustCompile(`column=(\w+)`).FindStringSubmatch(labels)[1]]++
			}
		}
		for column, n := range times {
			if n == 1+int(now.Sub(begin)/time.Minute) {
				columns = append(columns, column)
			}
		}
		slices.Sort(columns)
		return columns
	}
	for i, minute := range []int{0, 60, 100, 105} {
		scrape(minute, float64(i+1))
	}
	assert.Empty(t, append(fired("RankdColumnNull", 106), fired("RankdColumnDefault", 106)...), "all is as before")
	for _, key := range redis.Keys() {
		switch kind, _, _ := strings.Cut(key, ":"); kind {
		case "product":
			redis.HDel(key, "rating") // The model reads it.
		case "stat":
			redis.HDel(key, "views") // It has a default.
		}
	}
	scrape(110, 5)
	scrape(115, 6)
	assert.Empty(t, append(fired("RankdColumnNull", 114), fired("RankdColumnDefault", 114)...), "it may be over in a moment")
	assert.Equal(t, []string{"rating"}, fired("RankdColumnNull", 115))
	assert.Contains(t, fired("RankdColumnDefault", 115), "views")
}

// history is what a Prometheus would have kept of one server. It evaluates the few kinds of
// expressions that the rules for columns have: sums of rates, and what + - * / > make of them.
// Rates are not extrapolated to the ends of their ranges: in a quotient of two rates over the same
// scrapes that cancels out.
type history struct {
	last    map[string][]point
	scrapes []map[string][]point
}

// point is one sample. labels has them sorted, as "column=price,plan=shop,".
type point struct {
	at     time.Time
	labels string
	value  float64
}

func (h *history) take(t *testing.T, at time.Time, from prometheus.Gatherer) {
	families, err := from.Gather()
	require.NoError(t, err)
	h.last = map[string][]point{}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += l.GetName() + "=" + l.GetValue() + ","
			}
			h.last[f.GetName()] = append(h.last[f.GetName()], point{at, labels, m.GetCounter().GetValue()})
		}
	}
}

var sumOfRates = regexp.MustCompile(`^sum by \(([a-z, ]+)\) \(rate\((\w+)\[(\w+)\](?: offset (\w+))?\)\)$`)

// evaluate returns the values of an expression by labels. Operators are those of PromQL, of equal
// rank from left to right, by their ranks: > below + and -, these below * and /.
func (h *history) evaluate(t *testing.T, expr string, now time.Time) map[string]float64 {
	expr = strings.Join(strings.Fields(strings.TrimPrefix(expr, "|")), " ")
	for _, rank := range [...][]string{{" > "}, {" - ", " + "}, {" / ", " * "}} {
		at, op := -1, ""
		for _, o := range rank {
			if i := strings.LastIndex(expr, o); i > at {
				at, op = i, o
			}
		}
		if at < 0 {
			continue
		}
		left, right := h.evaluate(t, expr[:at], now), map[string]float64(nil)
		constant, err := strconv.ParseFloat(expr[at+3:], 64)
		if err != nil {
			right = h.evaluate(t, expr[at+3:], now)
		}
		result := map[string]float64{}
		for labels, a := range left {
			b, ok := right[labels]
			if right == nil {
				b, ok = constant, true
			}
			if !ok {
				continue
			}
			switch op {
			case " > ":
				if a > b {
					result[labels] = a
				}
			case " - ":
				result[labels] = a - b
			case " + ":
				result[labels] = a + b
			case " / ":
				result[labels] = a / b
			case " * ":
				result[labels] = a * b
			}
		}
		return result
	}
	call := sumOfRates.FindStringSubmatch(expr)
	require.NotNil(t, call, "the test cannot evaluate %q", expr)
	until := now.Add(-promDuration(t, call[4]))
	from := until.Add(-promDuration(t, call[3]))
	first, last := map[string]point{}, map[string]point{}
	for _, scrape := range h.scrapes {
		for _, p := range scrape[call[2]] {
			if p.at.Before(from) || p.at.After(until) {
				continue
			}
			if _, seen := first[p.labels]; !seen {
				first[p.labels] = p
			}
			last[p.labels] = p
		}
	}
	sums := map[string]float64{}
	for labels, l := range last {
		if f := first[labels]; l.at.After(f.at) {
			key := ""
			for _, label := range strings.Split(labels, ",") {
				if name, _, _ := strings.Cut(label, "="); slices.Contains(strings.Split(call[1], ", "), name) {
					key += label + ","
				}
			}
			sums[key] += (l.value - f.value) / l.at.Sub(f.at).Seconds()
		}
	}
	return sums
}

func promDuration(t *testing.T, text string) time.Duration {
	if text == "" {
		return 0
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		require.NoError(t, err)
		return time.Duration(n) * 24 * time.Hour
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// metric is a metric as the documentation describes it.
type metric struct {
	name, kind, help string
	labels           []string
}

// servedMetrics returns the metrics of a server, in the order of their names. The server has
// served a plan that reads resident rows.
func servedMetrics(t *testing.T) (all []metric) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	w := openAdmin(t, rankd.Options{MaxInflight: 4, Plans: fstest.MapFS{
		"items.plan.json": file(`{"schema_version": 1, "plan_name": "items", "nodes": [{"node_id": "n", "op": "fixed_source", "inputs": []}], "outputs": ["n"]}`),
		"diamond.plan.json": file(`{"schema_version": 1, "plan_name": "diamond", "expr_table": {"e": {"op": "key_ref", "key_id": 1}}, "nodes": [
			{"node_id": "n", "op": "resident", "inputs": [], "params": {"plan": "items"}},
			{"node_id": "v", "op": "vm", "inputs": ["n"], "params": {"expr_id": "e", "out_key": 2002}},
			{"node_id": "s", "op": "sort", "inputs": ["v"], "params": {"by": 2002, "order": "desc"}}], "outputs": ["s"]}`),
	}})
	_, err := w.engine.Rank(context.Background(), rankd.Request{Plan: "diamond", UserID: 7}) // A plan has metrics from its first request on.
	require.NoError(t, err)
	w.get("/v1/trace?plan=diamond&user_id=7", "")
	h := &history{}
	counted := func() bool {
		h.take(t, time.Time{}, w.registry)
		return h.last["rankd_column_rows_total"] != nil
	}
	require.Eventually(t, counted, 20*time.Second, time.Millisecond)
	families, err := w.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		m := metric{name: f.GetName(), kind: strings.ToLower(f.GetType().String()), help: f.GetHelp()}
		for _, l := range f.Metric[0].Label {
			m.labels = append(m.labels, l.GetName())
		}
		all = append(all, m)
	}
	return all
}
