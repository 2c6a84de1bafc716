package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
)

// conditions are what surrounds the engines while they are measured. Immutable; comparable.
type conditions struct {
	latency time.Duration // added to each round trip to Redis
	writes  int           // keys a second that somebody else writes
}

// String returns the conditions as text, such as "Redis +5ms, 100 foreign writes/s"; empty if there is nothing special.
func (c conditions) String() string {
	var parts []string
	if c.latency > 0 {
		parts = append(parts, fmt.Sprintf("Redis +%v", c.latency))
	}
	if c.writes > 0 {
		parts = append(parts, fmt.Sprintf("%d foreign writes/s", c.writes))
	}
	return strings.Join(parts, ", ")
}

// point is a load, and the conditions, at which engines are compared. Immutable; comparable.
type point struct {
	conditions
	concurrency int     // requests in flight; the bound in an open loop
	rate        float64 // arrivals per second; 0 means a closed loop
}

// String returns the point as text, such as "64 in flight, Redis +5ms".
func (p point) String() string {
	text := fmt.Sprintf("%d in flight", p.concurrency)
	if p.rate > 0 {
		text = fmt.Sprintf("%g/s, at most %s", p.rate, text)
	}
	if special := p.conditions.String(); special != "" {
		text += ", " + special
	}
	return text
}

// load returns "64 in flight", "20000/s (Redis +5ms)" and the like, as a part of a sentence.
func (p point) load() string {
	text := p.short()
	if p.rate == 0 {
		text += " in flight"
	}
	if special := p.conditions.String(); special != "" {
		text += " (" + special + ")"
	}
	return text
}

// short returns the load alone, as an axis has it.
func (p point) short() string {
	if p.rate > 0 {
		return fmt.Sprintf("%g/s", p.rate)
	}
	return fmt.Sprint(p.concurrency)
}

func (p point) item() harness.Item {
	return harness.Item{Name: p.String(), Labels: []harness.Label{
		{Key: "concurrency", Value: p.concurrency, Head: "in flight", Text: p.short()}, {Key: "rate", Value: p.rate},
		{Key: "redis_latency_ns", Value: p.latency}, {Key: "foreign_writes", Value: p.writes},
	}}
}

// settings are common to all rounds. Immutable.
type settings struct {
	Scenario string        `json:"scenario,omitempty"` // that brought plan, data and users; empty means that flags did
	Plan     string        `json:"plan"`
	Fanout   int           `json:"fanout,omitempty"` // 0 means the plan's own
	Users    load.Users    `json:"users"`
	Unshared bool          `json:"reads_unshared,omitempty"`
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"duration_ns"`   // of a round
	Warmup   time.Duration `json:"warmup_ns"`     // before each round
	Now      string        `json:"now,omitempty"` // what now() is; empty: the present
}

// String returns the settings as a line of text.
func (s settings) String() string {
	text := "plan " + s.Plan
	if s.Scenario != "" {
		text = "scenario " + s.Scenario + ": " + text
	}
	if s.Fanout > 0 {
		text += fmt.Sprintf(" at fanout %d", s.Fanout)
	}
	text += fmt.Sprintf(", %s", s.Users)
	if s.Now != "" {
		text += ", now() is " + s.Now
	}
	if s.Unshared {
		text += ", equal reads not shared"
	}
	return fmt.Sprintf("%s, %d interleaved rounds of %v after %v of warm-up each; medians with 95 %% intervals", text, s.Rounds, s.Duration, s.Warmup)
}

// The figures of rounds that aims, answers and other figures name.
const (
	throughput = "throughput_rps"      // successes per second
	perSecond  = "commands_per_second" // to Redis; absent if the engine does not count them
	p50        = "p50_us"
	p99        = "p99_us"
)

var speedTable = harness.TableSpec{Title: "throughput and latency", Figures: []harness.Figure{
	{Key: throughput, Head: "requests/s", Text: harness.Whole, Spread: true},
	{Key: "throughput_ratio", Head: "to the first", Text: harness.Factor, Fold: harness.Versus(0, throughput, harness.Ratio)},
	{Key: "mean_us", Fold: harness.Mean("answers")},
	{Key: p50, Head: "p50", Text: harness.Duration, Fold: harness.Quantile("answers", 50)},
	{Key: "p90_us", Head: "p90", Text: harness.Duration, Fold: harness.Quantile("answers", 90)},
	{Key: p99, Head: "p99", Text: harness.Duration, Fold: harness.Quantile("answers", 99)},
	{Key: "p999_us", Head: "p99.9", Text: harness.Duration, Fold: harness.Quantile("answers", 99.9)},
	{Key: "max_us", Head: "max", Text: harness.Duration, Fold: harness.Quantile("answers", 100)},
	{Key: "p99_ratio", Head: "p99 to the first", Text: harness.Factor, Fold: harness.Versus(0, p99, harness.Ratio)},
	{Key: "requests", Fold: harness.Sum},
	{Key: "errors", Head: "errors", Text: harness.Whole, Fold: harness.Sum},
	{Key: "shed", Head: "shed", Text: harness.Whole, Fold: harness.Sum},
	{Key: "lag_p99_us", Fold: harness.Quantile("lag", 99)}, // how late arrivals were sent
	{Key: "foreign_writes_per_second"},
	{Key: perSecond},
}}

var costTable = harness.TableSpec{Title: "per request", Figures: []harness.Figure{
	{Key: "cpu_us", Head: "CPU", Text: harness.Duration},
	{Key: "redis_cpu_us", Head: "Redis CPU", Text: harness.Duration},
	{Key: "allocs", Head: "allocs", Text: harness.One},
	{Key: "alloc_bytes", Head: "bytes", Text: harness.Whole},
	{Key: "round_trips", Head: "round trips", Text: harness.Two},
	{Key: "commands_asked", Head: "commands asked", Text: harness.One},
	{Key: "commands", Head: "commands sent", Text: harness.One},
	{Key: "bytes_sent", Head: "bytes sent", Text: harness.Bytes},
	{Key: "bytes_received", Head: "bytes received", Text: harness.Bytes},
	{Key: "rss_mb", Head: "RSS", Text: harness.MiB},
	{Key: "live_mb", Head: "live", Text: harness.MiB}, // of the heap, after a garbage collection under load
}}

var cacheTable = harness.TableSpec{Title: "from memory, per request", Missing: "keeps nothing", Figures: []harness.Figure{
	{Key: "cache_hits", Head: "hits", Text: harness.One}, // values
	{Key: "cache_misses", Head: "misses", Text: harness.One},
	{Key: "cache_hit_ratio", Head: "hit ratio", Text: harness.Three},
	{Key: "cache_invalidated", Head: "invalidated", Text: harness.Two}, // values that were dropped since their keys changed
	{Key: "cache_evicted", Head: "evicted", Text: harness.Two},         // values that left because others came
	{Key: "cache_mb", Head: "table", Text: func(e harness.Estimate) string { return harness.One(e) + " MiB" }},
	{Key: "cache_hit_age_s", Head: "mean age", Text: func(e harness.Estimate) string { return harness.Two(e) + " s" }},
	{Key: "answers_asked", Head: "answers asked", Text: harness.Whole, Fold: harness.Sum}, // for their age
	{Key: "answers_stale", Head: "stale", Text: harness.Whole, Fold: harness.Sum},
	{Key: "age_p50_us", Head: "since the OK: p50", Text: harness.Duration, Fold: harness.Quantile("ages", 50)},
	{Key: "age_p99_us", Head: "p99", Text: harness.Duration, Fold: harness.Quantile("ages", 99)},
	{Key: "age_max_us", Head: "max", Text: harness.Duration, Fold: harness.Quantile("ages", 100)},
}}

func compareFigures() []harness.Figure {
	return slices.Concat(speedTable.Figures, costTable.Figures, cacheTable.Figures)
}

// sampleOf returns the figures of a round. Costs are of one request.
func sampleOf(r *worker.Report) harness.Sample {
	if r.Failure != "" {
		return harness.Sample{Failure: r.Failure}
	}
	n, mib := float64(max(1, r.Answered)), float64(1<<20)
	s := harness.Sample{
		Figures: map[string]float64{
			throughput: r.PerSecond(), "requests": float64(r.Answered), "errors": float64(r.Errors), "shed": float64(r.Shed),
			p50: r.Latency.Micros(50), p99: r.Latency.Micros(99),
			"cpu_us": harness.InMicros(r.CPU) / n, "allocs": float64(r.Allocs) / n, "alloc_bytes": float64(r.AllocBytes) / n,
		},
		Latencies: map[string]load.Histogram{"answers": r.Latency, "lag": r.Lag},
		Errors:    map[string]string{"request": r.FirstError},
	}
	known := func(key string, v float64) {
		if v > 0 {
			s.Figures[key] = v
		}
	}
	known("redis_cpu_us", harness.InMicros(r.RedisCPU)/n)
	known("rss_mb", float64(r.RSSBytes)/mib)
	known("live_mb", float64(r.LiveBytes)/mib)
	if t := r.Traffic; t != nil {
		s.Figures["round_trips"], s.Figures["commands"] = float64(t.RoundTrips)/n, float64(t.Commands)/n
		s.Figures["bytes_sent"], s.Figures["bytes_received"] = float64(t.BytesSent)/n, float64(t.BytesReceived)/n
		known("commands_asked", float64(t.Asked)/n)
		known(perSecond, float64(t.Commands)/max(r.Elapsed.Seconds(), math.SmallestNonzeroFloat32))
		if c := t.Cache; c != nil {
			s.Figures["cache_hits"], s.Figures["cache_misses"] = float64(c.Hits)/n, float64(c.Misses)/n
			known("cache_hit_ratio", float64(c.Hits)/float64(max(1, c.Hits+c.Misses)))
			if known("cache_mb", float64(c.Bytes)/mib); c.Bytes > 0 {
				s.Figures["cache_invalidated"], s.Figures["cache_evicted"] = float64(c.Invalidated)/n, float64(c.Evicted)/n
				s.Figures["cache_hit_age_s"] = c.HitAge / float64(max(1, c.Hits))
			}
		}
	}
	return s
}

// withAges adds how old the answers of a further round were. A worker of another build may not tell.
func withAges(s harness.Sample, r *worker.Report) harness.Sample {
	if r.Failure != "" || r.Ages == nil {
		s.Failure = r.Failure
		return s
	}
	s.Figures["answers_asked"], s.Figures["answers_stale"] = float64(r.Ages.Answers), float64(r.Ages.Stale)
	if r.Ages.Stale > 0 {
		s.Latencies["ages"] = r.Ages.Ages
	}
	return s
}

func sayThroughput(s harness.Sample) string {
	if commands, ok := s.Figures[perSecond]; ok && len(s.Figures) == 1 {
		return fmt.Sprintf("%.0f commands/s", commands)
	}
	return fmt.Sprintf("%.0f requests/s, p99 %v", s.Figures[throughput], harness.Micros(s.Figures[p99]))
}

// comparison is what compare has measured. Immutable once built.
type comparison struct {
	points  []point
	engines []string            // by name; ratios are to the first
	results [][]*harness.Result // by point and engine; redis-benchmark is the last, if it ran
	ceiling string              // the command line of redis-benchmark with its version; empty: it did not run
}

// cell is what one engine reached at one point.
type cell struct {
	point
	engine string
	*harness.Result
}

// measured reports whether the cell has a throughput.
func (c cell) measured() bool { return c.Failure == "" && c.Value(throughput) > 0 }

// cells returns what the engines reached, point by point.
func (c *comparison) cells() (all []cell) {
	for i, at := range c.points {
		for j, engine := range c.engines {
			all = append(all, cell{at, engine, c.results[i][j]})
		}
	}
	return all
}

// series returns the cells of one engine under the same conditions, by ascending rate and concurrency.
func (c *comparison) series(engine string, under conditions) []cell {
	series := slices.DeleteFunc(c.cells(), func(cell cell) bool { return cell.engine != engine || cell.conditions != under })
	slices.SortStableFunc(series, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.concurrency, b.concurrency))
	})
	return series
}

// conditions returns the conditions in the order in which they were given.
func (c *comparison) conditions() (all []conditions) {
	for _, at := range c.points {
		if !slices.Contains(all, at.conditions) {
			all = append(all, at.conditions)
		}
	}
	return all
}

// report shows the comparison.
func (c *comparison) report(wants []want) *harness.Report {
	r := &harness.Report{Results: harness.Flatten(c.results), Troubles: c.troubles(), Verdicts: c.judge(wants)}
	r.Answer = c.answer()
	all := c.conditions()
	if charts := c.overview(); charts != nil {
		r.Sections = append(r.Sections, harness.Section{Title: "By Redis latency and foreign writes", Charts: charts})
	}
	for _, under := range all {
		r.Sections = append(r.Sections, c.section(under, all))
	}
	if c.ceiling != "" {
		r.Notes = append(r.Notes, harness.Note{Title: "redis-server by itself", Lines: c.ceilings()})
	}
	for _, cell := range c.cells() {
		r.Failed = r.Failed || cell.Failure != "" || cell.Value("errors") > 0
	}
	return r
}

// section shows what was measured under the same conditions.
func (c *comparison) section(under conditions, all []conditions) harness.Section {
	s := harness.Section{Title: "Redis as it is", Charts: c.charts(under)}
	if under.latency > 0 {
		s.Title = fmt.Sprintf("Redis latency +%v", under.latency)
	}
	var rows []*harness.Result
	least, most, keeps := math.Inf(1), 0.0, false
	for _, cell := range c.cells() {
		if _, ok := cell.Figures["cache_hits"]; ok {
			keeps = true
		}
		if cell.conditions == under {
			rows = append(rows, cell.Result)
			written := cell.Value("foreign_writes_per_second")
			least, most = min(least, written), max(most, written)
		}
	}
	switch {
	case under.writes > 0:
		s.Title += fmt.Sprintf("; somebody else writes %d keys a second (reached: %.0f to %.0f)", under.writes, least, most)
	case slices.ContainsFunc(all, func(c conditions) bool { return c.writes > 0 }):
		s.Title += "; nobody else writes"
	}
	s.Tables = []harness.Table{speedTable.Table(rows), costTable.Table(rows)}
	if keeps {
		s.Tables = append(s.Tables, cacheTable.Table(rows))
	}
	return s
}

// ceilings say, one line for each load, what redis-benchmark reaches, and how near the engines come.
func (c *comparison) ceilings() (lines []string) {
	for i, at := range c.points {
		most := c.results[i][len(c.engines)]
		var shares []string
		for j, engine := range c.engines {
			if share := c.results[i][j].Against(most, perSecond); share.Median > 0 {
				shares = append(shares, engine+" "+share.Factor())
			}
		}
		e := most.Figures[perSecond]
		lines = append(lines, fmt.Sprintf("%s: %.0f commands/s (%s) from %s; of these: %s", at.load(), e.Median, e.Spread(), c.ceiling, strings.Join(shares, ", ")))
	}
	return lines
}

// troubles describes each cell with failed requests, shed arrivals or late arrivals, one sentence each.
func (c *comparison) troubles() (troubles []string) {
	for _, cell := range c.cells() {
		say := func(format string, args ...any) {
			troubles = append(troubles, fmt.Sprintf("%s, %s: ", cell.engine, cell.point)+fmt.Sprintf(format, args...))
		}
		errors, requests, shed := cell.Value("errors"), cell.Value("requests"), cell.Value("shed")
		switch {
		case cell.Failure != "":
			say("not measured: %s", cell.Failure)
		case errors > 0:
			say("%.0f of %.0f requests failed, the first with: %s", errors, requests, cell.Errors["request"])
		}
		if shed > 0 {
			say("%.0f of %.0f arrivals were shed, with %d in flight", shed, shed+requests, cell.concurrency)
		}
		// A tenth of the p99 gets a line, and at least the time that a sleeping goroutine takes to wake.
		if lag := cell.Value("lag_p99_us"); lag > max(200, cell.Value(p99)/10) {
			say("arrivals were sent up to %v late (p99), which counts as latency", harness.Micros(lag))
		}
	}
	return troubles
}

// charts draw throughput, latency, CPU time and round trips over the load.
func (c *comparison) charts(under conditions) []harness.Chart {
	axis, axisName := c.axis(under)
	lines := func(key string, scale float64, dashed bool) (lines []harness.Line) {
		for i, engine := range c.engines {
			lines = append(lines, harness.Line{Name: engine, Color: i, Dashed: dashed, Values: along(axis, c.series(engine, under), key, scale)})
		}
		return lines
	}
	return []harness.Chart{
		harness.Draw("Throughput", "requests/s", axisName, axis, lines(throughput, 1, false)),
		// The names are the same: one entry of the legend shows or hides both lines.
		harness.Draw("Latency: p99, and p50 dashed", "ms", axisName, axis, append(lines(p99, 1e-3, false), lines(p50, 1e-3, true)...)),
		harness.Draw("CPU time per request", "µs", axisName, axis, lines("cpu_us", 1, false)),
		harness.Draw("Round trips to Redis per request", "", axisName, axis, lines("round_trips", 1, false)),
	}
}

// overview draws throughput and latency over the conditions, at the highest load. It draws nothing if there is only one.
func (c *comparison) overview() []harness.Chart {
	all := c.conditions()
	if len(all) < 2 {
		return nil
	}
	var axis []string
	for _, under := range all {
		axis = append(axis, cmp.Or(under.String(), "as it is"))
	}
	loads, _ := c.axis(all[0])
	highest := loads[len(loads)-1:]
	lines := func(key string, scale float64) (lines []harness.Line) {
		for i, engine := range c.engines {
			l := harness.Line{Name: engine, Color: i}
			for _, under := range all {
				l.Values = append(l.Values, along(highest, c.series(engine, under), key, scale)...)
			}
			lines = append(lines, l)
		}
		return lines
	}
	const axisName = "added to each round trip to Redis, and foreign writes"
	return []harness.Chart{
		harness.Draw("Throughput by conditions, "+highest[0]+" in flight", "requests/s", axisName, axis, lines(throughput, 1)),
		harness.Draw("p99 by conditions, "+highest[0]+" in flight", "ms", axisName, axis, lines(p99, 1e-3)),
	}
}

// axis returns the values of the horizontal axis: the rates of an open loop, or the concurrencies of a closed loop.
func (c *comparison) axis(under conditions) (axis []string, name string) {
	name = "requests in flight"
	for _, cell := range c.series(c.engines[0], under) {
		if axis = append(axis, cell.short()); cell.rate > 0 {
			name = "arrivals per second"
		}
	}
	return axis, name
}

// along returns one figure per load of the axis, 0 where there is none.
func along(axis []string, cells []cell, key string, scale float64) []float64 {
	values := make([]float64, len(axis))
	for _, cell := range cells {
		if i := slices.Index(axis, cell.short()); i >= 0 {
			values[i] = scale * cell.Value(key)
		}
	}
	return values
}
