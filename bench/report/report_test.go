package report

import (
	"bytes"
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

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/testworld"
)

// fixed is a comparison of two engines at two loads and two Redis latencies; one cell failed.
func fixed() *compare.Comparison {
	c := &compare.Comparison{
		Title: "Engines compared: <script>alert(1)</script>",
		Facts: compare.Facts{
			Command: "rankd bench compare --plan_name 'a & b' </script>", Time: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
			Version: "v1.2.3", Commit: "0123abc", Go: "go1.26", OS: "linux/amd64", CPU: "Some CPU", Cores: 2, Redis: "redis-server 7.0.15",
		},
		Settings: compare.Settings{Plan: "concat_plan", Users: load.Users{Spec: "zipf:1.1,1-9", Different: 9}, Rounds: 6, Duration: 2 * time.Second},
	}
	for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
		for _, inFlight := range []int{1, 64} {
			for i, engine := range []string{"reactor", "pool:redis_pool=16"} {
				x := 10_000 * float64(inFlight) / float64(1+i)
				c.Cells = append(c.Cells, compare.Cell{
					Engine: engine, Point: compare.Point{Conditions: compare.Conditions{RedisLatency: latency}, Concurrency: inFlight},
					Throughput: compare.Estimate{Median: x}, Latency: compare.Latencies{P50: 100.123456, P99: 400 * float64(inFlight)},
					PerRequest: compare.PerRequest{CPU: 12.34567},
				})
			}
		}
	}
	last := &c.Cells[len(c.Cells)-1]
	*last = compare.Cell{Engine: last.Engine, Point: last.Point, Failure: "out of <memory>"}
	c.FindKnees()
	return c
}

func render(t *testing.T, c *compare.Comparison) string {
	var out bytes.Buffer
	require.NoError(t, WriteHTML(&out, c))
	return out.String()
}

func TestThePageSaysWhatWasFound(t *testing.T) {
	page := render(t, fixed())
	text := html.UnescapeString(page)
	for _, want := range []string{
		"Some CPU, 2 cores", "rankd v1.2.3, commit 0123abc, go1.26, redis-server 7.0.15", "2026-11-21 09:00:00 UTC",
		"<code>rankd bench compare --plan_name 'a & b' </script></code>", "<td>pool:redis_pool=16</td>", "640000",
		"not measured: out of <memory>", "reactor: no knee", "Redis latency +5ms", "9 users by popularity (zipf:1.1,1-9)", "commands asked",
	} {
		assert.Contains(t, text, want)
	}
	answer := strings.Index(text, `<p class="answer">`+fixed().Answer()+`</p>`)
	require.Positive(t, answer)
	assert.Less(t, answer, strings.Index(text, "interleaved rounds"), "the answer comes before any figure")
	assert.NotContains(t, page, "<script>alert", "what comes from outside is escaped")
	assert.NotContains(t, text, "WARNING")
	assert.NotContains(t, text, "keeps nothing", "no engine has a cache")
	c := fixed()
	c.Facts.Embedded = true
	c.Cells[0].PerRequest.Traffic = &compare.TrafficPerRequest{Cache: &compare.CachePerRequest{Hits: 287, Misses: 13}}
	page = html.UnescapeString(render(t, c))
	assert.Contains(t, page, compare.EmbeddedWarning)
	assert.Contains(t, page, "<td>287.0</td><td>13.0</td><td>0.957</td>")
	assert.Contains(t, page, "<td>keeps nothing</td>", "of the other engine")
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page := render(t, fixed())
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
	charts := options(t, render(t, fixed()))
	var titles []string
	for _, c := range charts {
		titles = append(titles, c["title"].(map[string]any)["text"].(string))
	}
	section := []string{"Throughput", "Latency: p99, and p50 dashed", "CPU time per request", "Round trips to Redis per request"}
	assert.Equal(t, append(append([]string{"Throughput by conditions, 64 in flight", "p99 by conditions, 64 in flight"}, section...), section...), titles)

	series := func(chart int) (names []string, values [][]any) {
		for _, s := range charts[chart]["series"].([]any) {
			names = append(names, s.(map[string]any)["name"].(string))
			var line []any
			for _, point := range s.(map[string]any)["data"].([]any) {
				line = append(line, point.(map[string]any)["value"])
			}
			values = append(values, line)
		}
		return names, values
	}
	names, values := series(2)
	assert.Equal(t, []string{"reactor", "pool:redis_pool=16"}, names)
	assert.Equal(t, [][]any{{10_000.0, 640_000.0}, {5000.0, 320_000.0}}, values)
	names, values = series(3)
	assert.Equal(t, []string{"reactor", "pool:redis_pool=16", "reactor", "pool:redis_pool=16"}, names)
	assert.Equal(t, []any{0.1001, 0.1001}, values[2], "p50, in ms with four digits")
	_, values = series(0)
	assert.Equal(t, [][]any{{640_000.0, 640_000.0}, {320_000.0, nil}}, values, "what failed has no point")

	written := fixed()
	for i := range written.Cells[4:] {
		c := &written.Cells[4+i]
		c.Conditions, c.Written = compare.Conditions{ForeignWrites: 100}, 99.5
	}
	page := render(t, written)
	assert.Contains(t, page, "<h2>Redis as it is; somebody else writes 100 keys a second (reached: 100 to 100)</h2>")
	charts = options(t, page)
	assert.Equal(t, []any{"as it is", "100 foreign writes/s"}, charts[0]["xAxis"].([]any)[0].(map[string]any)["data"])

	one := fixed()
	one.Cells = one.Cells[:4]
	assert.Len(t, options(t, render(t, one)), 4, "no overview of a single latency")
}

func TestAnOpenLoopIsDrawnByRate(t *testing.T) {
	c := fixed()
	c.Cells = c.Cells[:4]
	for i := range c.Cells {
		c.Cells[i].Rate = float64(1000 * (1 + i/2))
		c.Cells[i].Concurrency = 1024
	}
	axis := options(t, render(t, c))[0]["xAxis"].([]any)[0].(map[string]any)
	assert.Equal(t, "arrivals per second", axis["name"])
	assert.Equal(t, []any{"1000/s", "2000/s"}, axis["data"])
}

func TestABrokenWriterIsReported(t *testing.T) {
	assert.ErrorContains(t, WriteHTML(brokenWriter{}, fixed()), "no space")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestInChromium opens the page in a browser. RANKD_REPORT names a page to open in place of one
// with made-up figures, and RANKD_SCREENSHOT a file for a picture of it.
func TestInChromium(t *testing.T) {
	b := testworld.NewBrowser(t)
	file := os.Getenv("RANKD_REPORT")
	if file == "" {
		file = filepath.Join(t.TempDir(), "report.html")
		require.NoError(t, os.WriteFile(file, []byte(render(t, fixed())), 0o644))
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
