package harness

import (
	"math"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
)

// Chart is one picture. ECharts draws it from its options. Immutable.
type Chart struct {
	Title   string
	Options any // as JSON
}

// Line is one line of a chart. Immutable.
type Line struct {
	Name   string
	Color  int // equal numbers have one color
	Dashed bool
	// Values are in the order of the axis. Where a value is not positive, the line has a gap: a logarithmic axis has no place for it.
	Values []float64
}

// colors distinguish subjects, also for most color-blind readers (Okabe and Ito).
var colors = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"}

// significant keeps four digits. More digits would be noise in a tooltip.
func significant(v float64) float64 {
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// Draw returns a chart with a logarithmic vertical axis, on which equal ratios are equal
// distances: subjects differ by factors.
func Draw(title, unit, axisName string, axis []string, lines []Line) Chart {
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
		for _, v := range line.Values {
			point := opts.LineData{Symbol: "circle", SymbolSize: 7}
			if v > 0 {
				point.Value = significant(v)
			}
			data = append(data, point)
		}
		color := colors[line.Color%len(colors)]
		style := opts.LineStyle{Color: color, Width: 2, Type: "solid"}
		if line.Dashed {
			style.Type = "dashed"
		}
		l.AddSeries(line.Name, data, charts.WithLineStyleOpts(style), charts.WithItemStyleOpts(opts.ItemStyle{Color: color}))
	}
	l.Validate()
	return Chart{Title: title, Options: l.JSON()}
}
