package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteText writes the answer, then the comparison as text tables.
func (c *Comparison) WriteText(w io.Writer) error {
	out := &errWriter{w: w}
	c.writeHead(out)
	all := c.Conditions()
	for _, under := range all {
		if slices.ContainsFunc(all, func(other Conditions) bool { return other.RedisLatency > 0 }) {
			fmt.Fprintf(out, "\nadded to each round trip to Redis: %v\n", under.RedisLatency)
		}
		if slices.ContainsFunc(all, func(other Conditions) bool { return other.ForeignWrites > 0 }) {
			fmt.Fprintf(out, "\n%s\n", c.Writes(under))
		}
		c.writeSpeed(out, under)
		c.writeCosts(out, under)
		c.writeCaches(out, under)
	}
	c.writeTroubles(out)
	writeLines(out, "redis-server by itself:", c.CeilingLines())
	writeLines(out, "aims:", verdictLines(c.Verdicts))
	if len(c.Knees) > 0 {
		fmt.Fprintln(out)
	}
	for _, k := range c.Knees {
		fmt.Fprintln(out, k)
	}
	return out.err
}

func (c *Comparison) writeHead(w io.Writer) {
	f, s := c.Facts, c.Settings
	fmt.Fprintf(w, "%s\n%s\n\n", c.Title, c.Answer())
	fmt.Fprintf(w, "%s, %d cores, %s, %s, %s, rankd %s, commit %s\n", f.CPU, f.Cores, f.OS, f.Go, f.Redis, f.Version, f.Commit)
	fmt.Fprintf(w, "%s\n", s)
	if f.Embedded {
		fmt.Fprintln(w, EmbeddedWarning)
	}
}

// EmbeddedWarning is shown beside all figures measured with the embedded Redis.
const EmbeddedWarning = "WARNING: Redis is the one inside this process (miniredis): " +
	"these figures are mostly its own. Install redis-server, or use --redis."

// String returns the settings as a line of text.
func (s Settings) String() string {
	fanout := ""
	if s.Fanout > 0 {
		fanout = fmt.Sprintf(" at fanout %d", s.Fanout)
	}
	unshared := ""
	if s.Unshared {
		unshared = ", equal reads not shared"
	}
	scenario := ""
	if s.Scenario != "" {
		scenario = "scenario " + s.Scenario + ": "
	}
	return fmt.Sprintf("%splan %s%s, %s%s, %d interleaved rounds of %v after %v of warm-up each; medians with 95 %% intervals",
		scenario, s.Plan, fanout, s.Users, unshared, s.Rounds, s.Duration, s.Warmup)
}

// writeLines writes lines under a head, and nothing if there are none.
func writeLines(w io.Writer, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", head)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func verdictLines(verdicts []Verdict) (lines []string) {
	for _, v := range verdicts {
		lines = append(lines, v.String())
	}
	return lines
}

// table writes rows with their columns aligned to the right.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	_ = t.Flush() // w keeps the error
}

func (c *Comparison) writeSpeed(w io.Writer, under Conditions) {
	rows := [][]string{SpeedColumns}
	for _, cell := range c.Cells {
		if cell.Conditions == under {
			rows = append(rows, cell.SpeedRow())
		}
	}
	fmt.Fprintln(w)
	table(w, rows)
}

func (c *Comparison) writeCosts(w io.Writer, under Conditions) {
	rows := [][]string{CostColumns}
	for _, cell := range c.Cells {
		if cell.Conditions == under {
			rows = append(rows, cell.CostRow())
		}
	}
	fmt.Fprintln(w, "\nper request:")
	table(w, rows)
}

// writeCaches writes what came from memory, if some engine keeps what it read.
func (c *Comparison) writeCaches(w io.Writer, under Conditions) {
	if !c.Keeps() {
		return
	}
	rows := [][]string{CacheColumns}
	for _, cell := range c.Cells {
		if cell.Conditions == under {
			rows = append(rows, cell.CacheRow())
		}
	}
	fmt.Fprintln(w, "\nfrom memory, per request:")
	table(w, rows)
}

// Writes says how many keys somebody else was to write meanwhile, and how many were written.
func (c *Comparison) Writes(under Conditions) string {
	if under.ForeignWrites == 0 {
		return "nobody else writes"
	}
	least, most := math.Inf(1), 0.0
	for _, cell := range c.Cells {
		if cell.Conditions == under {
			least, most = min(least, cell.Written), max(most, cell.Written)
		}
	}
	return fmt.Sprintf("somebody else writes %d keys a second (reached: %.0f to %.0f)", under.ForeignWrites, least, most)
}

// Keeps reports whether some engine keeps what it read.
func (c *Comparison) Keeps() bool {
	return slices.ContainsFunc(c.Cells, func(cell Cell) bool { return cell.PerRequest.cache() != nil })
}

// cache returns what comes from memory, or nil.
func (p *PerRequest) cache() *CachePerRequest {
	if p.Traffic == nil {
		return nil
	}
	return p.Traffic.Cache
}

// writeTroubles lists failures in sentences, so that nobody has to search the tables.
func (c *Comparison) writeTroubles(w io.Writer) {
	for _, t := range c.Troubles() {
		fmt.Fprintf(w, "\n%s\n", t)
	}
}

// Troubles describes each cell with failed requests, shed arrivals or late arrivals, one
// sentence each.
func (c *Comparison) Troubles() (troubles []string) {
	for _, cell := range c.Cells {
		at := fmt.Sprintf("%s, %s: ", cell.Engine, cell.Point)
		switch {
		case cell.Failure != "":
			troubles = append(troubles, at+"not measured: "+cell.Failure)
		case cell.Errors > 0:
			troubles = append(troubles, fmt.Sprintf("%s%d of %d requests failed, the first with: %s",
				at, cell.Errors, cell.Requests, cell.FirstError))
		}
		if cell.Shed > 0 {
			troubles = append(troubles, fmt.Sprintf("%s%d of %d arrivals were shed, with %d in flight",
				at, cell.Shed, cell.Shed+cell.Requests, cell.Concurrency))
		}
		if cell.LagP99 > lagThreshold(cell) {
			troubles = append(troubles, fmt.Sprintf("%sarrivals were sent up to %v late (p99), which counts as latency",
				at, duration(cell.LagP99)))
		}
	}
	return troubles
}

// lagThreshold is the lag, in µs, above which the driver's share in the p99 gets a line: a
// tenth of the p99, and at least the time that a sleeping goroutine takes to wake.
func lagThreshold(c Cell) float64 { return max(200, c.Latency.P99/10) }

// SpeedColumns are the heads of SpeedRow.
var SpeedColumns = []string{
	"in flight", "engine", "placement", "reads", "requests/s", "±", "to the first", "p50", "p90", "p99", "p99.9", "max", "p99 to the first",
	"errors", "shed",
}

// SpeedRow returns the cell's throughput and latencies as text.
func (c Cell) SpeedRow() []string {
	if c.Failure != "" {
		return append(c.rowHead(), "failed")
	}
	l := c.Latency
	return append(c.rowHead(),
		fmt.Sprintf("%.0f", c.Throughput.Median), c.Throughput.Spread(), c.ThroughputRatio.Factor(),
		duration(l.P50).String(), duration(l.P90).String(), duration(l.P99).String(), duration(l.P999).String(),
		duration(l.Max).String(), c.P99Ratio.Factor(), fmt.Sprint(c.Errors), fmt.Sprint(c.Shed))
}

// rowHead returns the load and the engine with its modes: what both rows of a cell begin with.
func (c Cell) rowHead() []string {
	inFlight := fmt.Sprint(c.Concurrency)
	if c.Rate > 0 {
		inFlight = fmt.Sprintf("%g/s", c.Rate)
	}
	return []string{inFlight, c.Engine, known(c.Placement != "", c.Placement), known(c.Reads != "", c.Reads)}
}

// CostColumns are the heads of CostRow.
var CostColumns = []string{
	"in flight", "engine", "placement", "reads", "CPU", "Redis CPU", "allocs", "bytes", "round trips", "commands asked", "commands sent", "bytes sent", "bytes received", "RSS", "live",
}

// CostRow returns the cost of a request as text.
func (c Cell) CostRow() []string {
	row := c.rowHead()
	if c.Failure != "" {
		return append(row, "failed")
	}
	p := c.PerRequest
	row = append(row, duration(p.CPU).String(), known(p.RedisCPU > 0, duration(p.RedisCPU)),
		fmt.Sprintf("%.1f", p.Allocs), fmt.Sprintf("%.0f", p.AllocBytes))
	if t := p.Traffic; t != nil {
		row = append(row, fmt.Sprintf("%.2f", t.RoundTrips), known(t.Asked > 0, fmt.Sprintf("%.1f", t.Asked)), fmt.Sprintf("%.1f", t.Commands),
			fmt.Sprintf("%.0f B", t.BytesSent), fmt.Sprintf("%.0f B", t.BytesReceived))
	} else {
		row = append(row, "–", "–", "–", "–", "–")
	}
	return append(row, known(c.RSSMB > 0, fmt.Sprintf("%.0f MiB", c.RSSMB)), known(c.LiveMB > 0, fmt.Sprintf("%.0f MiB", c.LiveMB)))
}

// CacheColumns are the heads of CacheRow.
var CacheColumns = []string{
	"in flight", "engine", "placement", "reads", "hits", "misses", "hit ratio", "invalidated", "evicted", "table", "mean age",
	"stale answers", "since the OK: p50", "p99", "max",
}

// CacheRow returns what a request takes from memory as text. An engine that has no cache, as the blocking ones, says so.
func (c Cell) CacheRow() []string {
	row := c.rowHead()
	cache := c.PerRequest.cache()
	switch {
	case c.Failure != "":
		return append(row, "failed")
	case cache == nil:
		return append(row, "keeps nothing")
	}
	row = append(row, fmt.Sprintf("%.1f", cache.Hits), fmt.Sprintf("%.1f", cache.Misses),
		known(cache.Hits+cache.Misses > 0, fmt.Sprintf("%.3f", cache.Hits/(cache.Hits+cache.Misses))),
		known(cache.MB > 0, fmt.Sprintf("%.2f", cache.Invalidated)), known(cache.MB > 0, fmt.Sprintf("%.2f", cache.Evicted)),
		known(cache.MB > 0, fmt.Sprintf("%.1f MiB", cache.MB)), known(cache.MB > 0, fmt.Sprintf("%.2f s", cache.HitAge)))
	a := c.Ages
	if a == nil {
		return append(row, "–", "–", "–", "–")
	}
	age := func(us float64) string { return known(a.Stale > 0, duration(us)) }
	return append(row, fmt.Sprintf("%d of %d", a.Stale, a.Answers), age(a.P50), age(a.P99), age(a.Max))
}

// known returns v as text, or a dash if it is unknown.
func known(is bool, v any) string {
	if !is {
		return "–"
	}
	return fmt.Sprint(v)
}

// errWriter keeps the first error, so that the caller checks it once. One goroutine.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err == nil {
		_, e.err = e.w.Write(p)
	}
	return len(p), nil
}
