// Package report shows a comparison as one HTML page that needs nothing else: no
// network, no files beside it. It can be mailed, archived and printed.
//
// Charts are drawn by Apache ECharts in the reader's browser. The folder echarts holds the
// build that goes into each page ("common": the usual charts, on a canvas), unchanged from the
// npm package echarts 6.1.0, with its license and notice; charts.go says what to
// draw, by way of go-echarts.
package report
