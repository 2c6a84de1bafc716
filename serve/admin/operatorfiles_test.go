package admin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
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
		"items.plan.json":   file(`{"schema_version": 1, "plan_name": "items", "nodes": [{"node_id": "n", "op": "fixed_source", "inputs": []}], "outputs": ["n"]}`),
		"diamond.plan.json": file(`{"schema_version": 1, "plan_name": "diamond", "nodes": [{"node_id": "n", "op": "resident", "inputs": [], "params": {"plan": "items"}}], "outputs": ["n"]}`),
	}})
	w.get("/v1/trace?plan=diamond&user_id=7", "") // A plan has metrics from its first request on.
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
