// Package svg, which follows the engine's needs, draws traces as SVG: the plan as a graph, and the timeline of threads
// and connections. A page may embed a drawing, and a drawing alone is a picture.
//
//	arrange.go    where the nodes of a graph stand
//	graph.go      the graph
//	edges.go      the ways of its edges, around the nodes
//	timeline.go   the timeline
//	style.go      colors, for light and dark pages
//	element.go    writes elements
//
// Texts are monospaced, so that the package knows their widths.
package svg
