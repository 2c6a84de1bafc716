// Package report, which follows the engine's needs, shows a comparison as one HTML page,
// which opens with the answer in one sentence. The page needs neither a network nor
// other files: it can be mailed, archived and printed.
//
// Apache ECharts draws the charts in the reader's browser. The folder echarts holds the
// build that goes into each page ("common": the usual charts, on a canvas), unchanged from
// the npm package echarts 6.1.0, with its license and notice. charts.go defines the charts
// by means of go-echarts.
package report
