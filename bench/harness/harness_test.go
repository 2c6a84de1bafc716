package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/testing/testworld"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// between is an estimate with an interval.
func between(low, median, high float64) Estimate {
	return Estimate{Median: median, Low: &low, High: &high}
}

func TestEstimate(t *testing.T) {
	few := EstimateOf([]float64{3, 1, 2})
	assert.Equal(t, 2.0, few.Median)
	assert.Nil(t, few.Low)
	assert.Equal(t, "±∞", few.Spread())
	assert.Equal(t, "2.00× (±∞)", few.Factor())
	values := []float64{6, 5, 4, 3, 2, 1}
	enough := EstimateOf(values)
	assert.Equal(t, []float64{6, 5, 4, 3, 2, 1}, values, "left as they are")
	assert.Equal(t, 3.5, enough.Median)
	assert.Equal(t, []float64{1, 6}, []float64{*enough.Low, *enough.High}, "six values: the least and the greatest")
	for n, bounds := range map[int][]float64{9: {2, 8}, 12: {3, 10}, 20: {6, 15}} { // of 95 %, by the binomial distribution
		values = values[:0]
		for i := range n {
			values = append(values, float64(i+1))
		}
		e := EstimateOf(values)
		assert.Equal(t, bounds, []float64{*e.Low, *e.High}, n)
		assert.Equal(t, float64(n+1)/2, e.Median, n)
	}
	assert.Equal(t, between(1./8, 1./4, 1./2), between(2, 4, 8).Inverse())
	assert.Equal(t, "±50%", between(5, 8, 12).Spread())
	assert.Equal(t, "±75%", between(1, 4, 5).Spread())
	assert.Equal(t, Estimate{}, EstimateOf(nil))
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		bound Bound
		e     Estimate
		want  Outcome
	}{
		{"wholly above", AtLeast(6), between(6.1, 7, 8), Met},
		{"from the bound on", AtLeast(6), between(6, 7, 8), Met},
		{"around the bound", AtLeast(6), between(5.9, 7, 8), Undecided},
		{"up to the bound", AtLeast(6), between(4, 5, 6), Undecided},
		{"wholly below", AtLeast(6), between(4, 5, 5.9), NotMet},
		{"wholly below what it may be at most", AtMost(30), between(20, 25, 29), Met},
		{"up to what it may be at most", AtMost(30), between(20, 25, 30), Met},
		{"around what it may be at most", AtMost(30), between(20, 29, 31), Undecided},
		{"wholly above what it may be at most", AtMost(30), between(31, 35, 40), NotMet},
		{"too few rounds", AtLeast(6), Estimate{Median: 100}, Undecided},
		{"not measured", AtMost(6), Estimate{}, Undecided},
	} {
		assert.Equal(t, c.want, c.bound.Judge(c.e), c.name)
	}
}

func TestVerdictText(t *testing.T) {
	v := Verdict{Aim: "p50 of adaptive", Unit: " µs", Estimate: between(28, 31.26, 33), Bound: AtMost(30)}
	assert.Equal(t, "not decided  p50 of adaptive: 31.3 µs (28.0–33.0), wanted <= 30 µs", v.String())
}

func TestFacts(t *testing.T) {
	f := ReadFacts()
	assert.Positive(t, f.Cores)
	for _, text := range []string{f.Version, f.Commit, f.Go, f.OS, f.CPU} {
		assert.NotEmpty(t, text)
	}
	assert.Equal(t, "Fast CPU @ 3 GHz", parseCPUModel("processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags: x\n"))
	assert.Equal(t, "unknown", parseCPUModel("CPU implementer : 0x41\n"))
	assert.Empty(t, firstLine("/nowhere"))
}

// latency returns a histogram of these durations, in ms.
func latency(t *testing.T, ms ...int) map[string]load.Histogram {
	h := load.NewHistogram()
	for _, l := range ms {
		require.NoError(t, h.RecordValue(int64(l)*int64(time.Millisecond)))
	}
	return map[string]load.Histogram{"all": h}
}

var table = TableSpec{Title: "table", Missing: "nothing", Figures: []Figure{
	{Key: "rate", Head: "rate", Text: Whole, Spread: true}, {Key: "to_a", Head: "to a", Text: Factor, Fold: Versus(0, "rate", Ratio)},
	{Key: "less_us", Head: "less", Text: Over, Fold: Versus(0, "rate", Difference)}, {Key: "to_nobody", Head: "to nobody", Fold: Versus(9, "rate", Ratio)},
	{Key: "failed", Head: "failed", Text: Whole, Fold: Sum}, {Key: "p50_us", Head: "p50", Text: Duration, Fold: Quantile("all", 50)},
	{Key: "max_us", Head: "max", Text: Duration, Fold: Quantile("all", 100)}, {Key: "mean_us", Fold: Mean("all")}, {Key: "rare", Head: "rare", Text: One},
}}

// drifting is an experiment on a machine that slows down. a has twice the rate of b in each
// round, and c fails in its second round.
func drifting(t *testing.T, progress *bytes.Buffer, order *[]string) *Experiment {
	return &Experiment{
		Scenarios: Named("scenario", "", "s", "t"), Subjects: Named("subject", "subject", "a", "b", "c"), Rounds: 6, Figures: table.Figures,
		Takes: func(scenario, subject int) bool { return scenario == 0 || subject < 2 },
		Run: func(_ context.Context, scenario, subject, round int) (Sample, error) {
			*order = append(*order, fmt.Sprint(scenario, subject))
			s := Sample{Figures: map[string]float64{"rate": 100 / float64(1+subject) / float64(1+round), "failed": 2}, Latencies: latency(t, 1, 2+round)}
			if subject == 2 && round == 1 {
				return Sample{Failure: "no luck"}, nil
			}
			if subject == 1 && scenario == 1 {
				s.Errors = map[string]string{"request": fmt.Sprint("lost in round ", round)}
			}
			return s, nil
		},
		Say: func(s Sample) string { return fmt.Sprintf("%.0f/s", s.Figures["rate"]) }, Progress: progress,
	}
}

func TestMeasure(t *testing.T) {
	var progress bytes.Buffer
	var order []string
	results, err := drifting(t, &progress, &order).Measure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"0 0", "0 1", "0 2", "0 1", "0 2", "0 0", "0 0", "0 1", "0 0", "0 1"}, order[:10], "no variant is always the first, and failed rounds are left out")
	a, b, c := results[0][0], results[0][1], results[0][2]
	assert.Nil(t, results[1][2], "it takes no part")
	assert.Len(t, Flatten(results), 5)
	assert.Equal(t, "no luck", c.Failure)
	assert.Equal(t, "1.00× (1.00–1.00)", a.Figures["to_a"].Factor())
	assert.Equal(t, "0.500× (0.500–0.500)", b.Figures["to_a"].Factor(), "drift cancels out")
	assert.Equal(t, "2.00× (2.00–2.00)", a.Against(b, "rate").Factor())
	assert.Equal(t, Estimate{Median: 12, Exact: true}, b.Figures["failed"], "a sum")
	assert.InEpsilon(t, 1000, b.Value("p50_us"), 0.01, "of all rounds together")
	assert.InEpsilon(t, 7000, b.Value("max_us"), 0.01)
	assert.InEpsilon(t, (6*1+2+3+4+5+6+7)*1000/12.0, b.Value("mean_us"), 0.01)
	assert.NotContains(t, b.Figures, "rare")
	assert.NotContains(t, b.Figures, "to_nobody")
	assert.Equal(t, "lost in round 0", results[1][1].Errors["request"])
	assert.Contains(t, progress.String(), "s, round 2 of 6, c: failed: no luck\n")
	assert.Regexp(t, `rankd: 36/36, .* left: t, round 6 of 6, \w: \d+/s\n|rankd: 35/36`, progress.String())

	rows := table.Table(results[0])
	assert.Equal(t, []string{"subject", "rate", "±", "to a", "less", "to nobody", "failed", "p50", "max", "rare"}, rows.Head())
	assert.Equal(t, []string{"b", "15", "±243%", "0.500× (0.500–0.500)", "-14.6", "–", "12", "1ms", "7ms", "–"}, rows.Body()[1])
	assert.Equal(t, []string{"c", "failed", "", "", "", "", "", "", "", ""}, rows.Body()[2])
	assert.Equal(t, []string{"d", "nothing"}, table.cells(&Result{Labels: Named("", "subject", "d")[0].Labels}))

	text, err := json.Marshal(b)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(text, []byte(`{"scenario":"s","subject":"b","rate":{"median":`)), string(text))
	var back struct {
		Rate   Estimate             `json:"rate"`
		Failed Estimate             `json:"failed"`
		Rounds []map[string]float64 `json:"rounds"`
	}
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, b.Figures["rate"], back.Rate)
	assert.Equal(t, b.Figures["failed"], back.Failed, "a number")
	assert.Len(t, back.Rounds, 6)
}

func TestMeasureErrors(t *testing.T) {
	gone := errors.New("worker gone")
	var order []string
	e := drifting(t, new(bytes.Buffer), &order)
	e.Run = func(context.Context, int, int, int) (Sample, error) { return Sample{}, gone }
	_, err := e.Measure(t.Context())
	assert.ErrorIs(t, err, gone)
	assert.EqualError(t, err, "s, a: worker gone")
	stopped := 0
	e.Prepare = func(context.Context, int) ([]string, func(), error) {
		return []string{"", "no capacity", ""}, func() { stopped++ }, nil
	}
	_, err = e.Measure(t.Context())
	assert.ErrorIs(t, err, gone)
	assert.Equal(t, 1, stopped, "also after an error")
	e.Prepare = func(context.Context, int) ([]string, func(), error) { return nil, nil, gone }
	_, err = e.Measure(t.Context())
	assert.EqualError(t, err, "s: worker gone")

	ctx, cancel := context.WithCancel(t.Context())
	e.Prepare, e.Run = nil, func(context.Context, int, int, int) (Sample, error) { cancel(); return Sample{}, errors.New("killed") }
	_, err = e.Measure(ctx)
	assert.ErrorIs(t, err, context.Canceled, "the worker was stopped; its own error is not the reason")
}

type settingsText struct{ Rounds int }

func (s settingsText) String() string { return fmt.Sprintf("%d interleaved rounds", s.Rounds) }

// fixed is a report with all its parts.
func fixed(t *testing.T) *Report {
	var order []string
	results, err := drifting(t, new(bytes.Buffer), &order).Measure(t.Context())
	require.NoError(t, err)
	return &Report{
		Title: "Compared: <script>alert(1)</script>", Answer: "a has twice the rate of b.", Settings: settingsText{6},
		Facts: Facts{
			Command: "rankd bench 'a & b' </script>", Time: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
			Version: "v1.2.3", Commit: "0123abc", Go: "go1.26", OS: "linux/amd64", CPU: "Some CPU", Cores: 2, Redis: "redis-server 7.0.15",
		},
		Sections: []Section{
			{Title: "charts alone", Charts: []Chart{Draw("Rate", "1/s", "load", []string{"1", "64"}, []Line{{Name: "a", Values: []float64{0.123456, 0}}, {Name: "b", Color: 1, Dashed: true, Values: []float64{5, 7}}})}},
			{Title: "scenario s", Lines: []string{"KEPT s, a"}, Tables: []Table{table.Table(results[0])}},
		},
		Troubles: []string{"c: out of <memory>"}, Notes: []Note{{"yardsticks", []string{"none"}}}, Results: Flatten(results),
		Verdicts: []Verdict{{Aim: "rate of a", Unit: "×", Estimate: between(2, 2, 2), Bound: AtLeast(1)}},
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, fixed(t).WriteText(&out))
	assertGolden(t, "report.txt", out.String())
	assert.ErrorContains(t, fixed(t).WriteText(brokenWriter{}), "broken")
	r := fixed(t)
	r.Facts.Embedded = true
	out.Reset()
	require.NoError(t, r.WriteText(&out))
	assert.Contains(t, out.String(), EmbeddedWarning)
}

// assertGolden compares got with a file of testdata. RANKD_UPDATE_GOLDEN=1 writes the file.
func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if os.Getenv("RANKD_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, fixed(t).WriteJSON(&out))
	assert.True(t, strings.HasPrefix(out.String(), "{\n  \"answer\": \"a has twice"), "the answer comes first")
	var back struct {
		Results  []map[string]any
		Verdicts []map[string]any
		Settings settingsText
		Notes    []Note
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Len(t, back.Results, 5)
	assert.Equal(t, "met", back.Verdicts[0]["outcome"])
	assert.Equal(t, settingsText{6}, back.Settings)
	assert.Equal(t, []Note{{"yardsticks", []string{"none"}}, {"scenario s", []string{"KEPT s, a"}}}, back.Notes)
}

func render(t *testing.T, r *Report) string {
	var out bytes.Buffer
	require.NoError(t, r.WriteHTML(&out))
	return out.String()
}

func TestThePageSaysWhatWasFound(t *testing.T) {
	page := render(t, fixed(t))
	text := html.UnescapeString(page)
	for _, want := range []string{
		"Some CPU, 2 cores", "rankd v1.2.3, commit 0123abc, go1.26, redis-server 7.0.15", "2026-11-21 09:00:00 UTC",
		"<code>rankd bench 'a & b' </script></code>", "<td>±243%</td>", "c: out of <memory>", "<h2>scenario s</h2>", "<li>KEPT s, a</li>", "<h2>yardsticks</h2>",
		"met          rate of a: 2.00× (2.00–2.00), wanted >= 1×",
	} {
		assert.Contains(t, text, want)
	}
	answer := strings.Index(text, `<p class="answer">a has twice the rate of b.</p>`)
	require.Positive(t, answer)
	assert.Less(t, answer, strings.Index(text, "interleaved rounds"), "the answer comes before any figure")
	assert.NotContains(t, page, "<script>alert", "what comes from outside is escaped")
	assert.NotContains(t, text, "WARNING")
	r := fixed(t)
	r.Facts.Embedded = true
	assert.Contains(t, html.UnescapeString(render(t, r)), EmbeddedWarning)
	assert.ErrorContains(t, r.WriteHTML(brokenWriter{}), "broken")
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page := render(t, fixed(t))
	assert.NotRegexp(t, `(?i)<(script|img|iframe)[^>]*\ssrc=|<link|@import|url\(`, strings.Replace(page, echartsJS, "", 1))
	assert.Contains(t, page, echartsJS[len(echartsJS)-1000:], "the library goes with it, as it is")
}

// options returns the charts of the page, as ECharts gets them.
func options(t *testing.T, page string) (charts []map[string]any) {
	for _, m := range regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(m[1]), &o), m[1])
		charts = append(charts, o)
	}
	return charts
}

func TestCharts(t *testing.T) {
	charts := options(t, render(t, fixed(t)))
	require.Len(t, charts, 1)
	series := charts[0]["series"].([]any)
	point := func(line, at int) any {
		return series[line].(map[string]any)["data"].([]any)[at].(map[string]any)["value"]
	}
	assert.Equal(t, []any{0.1235, nil, 5.0, 7.0}, []any{point(0, 0), point(0, 1), point(1, 0), point(1, 1)}, "four digits; what is not positive has no point")
	assert.Equal(t, "dashed", series[1].(map[string]any)["lineStyle"].(map[string]any)["type"])
}

// TestInChromium opens the page in a browser. RANKD_REPORT names a page to open in place of the
// one with made-up figures. RANKD_SCREENSHOT names a file for a picture.
func TestInChromium(t *testing.T) {
	b := testworld.NewBrowser(t)
	file := os.Getenv("RANKD_REPORT")
	if file == "" {
		file = filepath.Join(t.TempDir(), "report.html")
		require.NoError(t, os.WriteFile(file, []byte(render(t, fixed(t))), 0o644))
	}
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	dom := b.DOM(file)
	body := regexp.MustCompile(`<body[^>]*>`).FindString(dom)
	assert.NotContains(t, body, "data-error")
	want := len(options(t, string(page)))
	require.Positive(t, want)
	assert.Contains(t, body, fmt.Sprintf(`data-charts="%d"`, want), "all charts were drawn")
	assert.Equal(t, want, strings.Count(dom, "<canvas "), "each on a canvas")
	if picture := os.Getenv("RANKD_SCREENSHOT"); picture != "" {
		b.Screenshot(file, picture)
	}
}
