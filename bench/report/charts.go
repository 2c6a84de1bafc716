package report

import (
	"cmp"
	"fmt"
	"math"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"github.com/rankd/rankd/bench/compare"
)

// chart is one picture. ECharts draws it from its options.
type chart struct {
	Title   string
	Options any // as JSON
}

// line is one line of a chart. A missing value is nil.
type line struct {
	name   string
	engine int // colors go by engine
	dashed bool
	values []any
}

// colors distinguish engines, also for most color-blind readers (Okabe and Ito).
var colors = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"}

// sectionCharts draws what was measured under the same conditions: throughput, latency, CPU time and round trips over
// the load.
func sectionCharts(c *compare.Comparison, under compare.Conditions) []chart {
	axis, axisName := loads(c, under)
	figure := func(of func(compare.Cell) float64) []line {
		var lines []line
		for i, engine := range c.Engines() {
			lines = append(lines, line{name: engine, engine: i, values: along(axis, c.Series(engine, under), of)})
		}
		return lines
	}
	tails := figure(func(cell compare.Cell) float64 { return cell.Latency.P99 / 1000 })
	medians := figure(func(cell compare.Cell) float64 { return cell.Latency.P50 / 1000 })
	for i := range medians {
		medians[i].dashed = true // the name stays the same: one entry of the legend shows or hides both
	}
	return []chart{
		draw("Throughput", "requests/s", axisName, axis, figure(func(cell compare.Cell) float64 { return cell.Throughput.Median })),
		draw("Latency: p99, and p50 dashed", "ms", axisName, axis, append(tails, medians...)),
		draw("CPU time per request", "µs", axisName, axis, figure(func(cell compare.Cell) float64 { return cell.PerRequest.CPU })),
		draw("Round trips to Redis per request", "", axisName, axis, figure(roundTrips)),
	}
}

func roundTrips(c compare.Cell) float64 {
	if c.PerRequest.Traffic == nil {
		return 0
	}
	return c.PerRequest.Traffic.RoundTrips
}

// overview draws throughput and latency over the conditions, at the highest load. It
// draws nothing if there is only one.
func overview(c *compare.Comparison) []chart {
	conditions := c.Conditions()
	if len(conditions) < 2 {
		return nil
	}
	var axis []string
	for _, under := range conditions {
		axis = append(axis, cmp.Or(under.String(), "as it is"))
	}
	loads, _ := loads(c, conditions[0])
	load := loads[len(loads)-1]
	figure := func(of func(compare.Cell) float64) (lines []line) {
		for i, engine := range c.Engines() {
			l := line{name: engine, engine: i}
			for _, under := range conditions {
				l.values = append(l.values, along([]string{load}, c.Series(engine, under), of)...)
			}
			lines = append(lines, l)
		}
		return lines
	}
	const axisName = "added to each round trip to Redis, and foreign writes"
	return []chart{
		draw("Throughput by conditions, "+load+" in flight", "requests/s", axisName, axis,
			figure(func(cell compare.Cell) float64 { return cell.Throughput.Median })),
		draw("p99 by conditions, "+load+" in flight", "ms", axisName, axis,
			figure(func(cell compare.Cell) float64 { return cell.Latency.P99 / 1000 })),
	}
}

// loads returns the values of the horizontal axis: the rates of an open loop, or the
// concurrencies of a closed loop.
func loads(c *compare.Comparison, under compare.Conditions) (axis []string, name string) {
	name = "requests in flight"
	seen := make(map[string]bool)
	for _, engine := range c.Engines() {
		for _, cell := range c.Series(engine, under) {
			if cell.Rate > 0 {
				name = "arrivals per second"
			}
			if at := loadOf(cell); !seen[at] {
				seen[at] = true
				axis = append(axis, at)
			}
		}
	}
	return axis, name
}

func loadOf(c compare.Cell) string {
	if c.Rate > 0 {
		return fmt.Sprintf("%g/s", c.Rate)
	}
	return fmt.Sprint(c.Concurrency)
}

// along returns one figure per cell in the order of the axis. It leaves out failed cells and
// figures that are not positive, for which a logarithmic axis has no place.
func along(axis []string, cells []compare.Cell, of func(compare.Cell) float64) []any {
	values := make([]any, len(axis))
	for i, at := range axis {
		for _, cell := range cells {
			if v := of(cell); loadOf(cell) == at && cell.Failure == "" && v > 0 {
				values[i] = significant(v)
			}
		}
	}
	return values
}

// significant keeps four digits. More digits would be noise in a tooltip.
func significant(v float64) float64 {
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// draw returns a chart with a logarithmic vertical axis, on which equal ratios are equal
// distances: the engines differ by factors.
func draw(title, unit, axisName string, axis []string, lines []line) chart {
	l := charts.NewLine()
	l.SetGlobalOptions(
		charts.WithTitleOpts(opts.Title{Title: title, TitleStyle: &opts.TextStyle{FontSize: 15}}),
		charts.WithLegendOpts(opts.Legend{Show: opts.Bool(true), Bottom: "0"}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis"}),
		charts.WithXAxisOpts(opts.XAxis{Name: axisName, NameLocation: "middle", NameGap: 28, Type: "category"}),
		charts.WithYAxisOpts(opts.YAxis{Name: unit, Type: "log", NameLocation: "end"}),
		charts.WithGridOpts(opts.Grid{Left: "64", Right: "24", Top: "64", Bottom: "92"}),
		charts.WithAnimation(false),
	)
	l.SetXAxis(axis)
	for _, line := range lines {
		var data []opts.LineData
		for _, v := range line.values {
			data = append(data, opts.LineData{Value: v, Symbol: "circle", SymbolSize: 7})
		}
		color := colors[line.engine%len(colors)]
		style := opts.LineStyle{Color: color, Width: 2, Type: "solid"}
		if line.dashed {
			style.Type = "dashed"
		}
		l.AddSeries(line.name, data, charts.WithLineStyleOpts(style), charts.WithItemStyleOpts(opts.ItemStyle{Color: color}))
	}
	l.Validate()
	return chart{Title: title, Options: l.JSON()}
}
