// Package draw, which is not covered by the compatibility promise, draws traces: as text for a terminal, as
// pictures, as a page for a browser, and as a document for Perfetto.
//
//	trace.Trace ──▶ scene: words, rows of spans, flows ──▶ Text, Graph, Timeline, HTML, Perfetto
//
// Every drawing shows the same scene, so that all agree in content and words.
//
//	scene.go      what the drawings share: a trace, arranged
//	words.go      times, names, and the sentences that say what bounds a request
//	text.go       Text: the answer, the timeline, the waterfall and the critical path, for a terminal
//	instants.go   the instants of a timeline of text, and which of them share a line
//	grid.go       its lines: texts, arrows, and calls under way
//	waterfall.go  the nodes as bars, with the critical path
//	graph.go      Graph: the plan as a picture; arrange.go places its nodes, edges.go leads its edges around them
//	timeline.go   Timeline: threads and connections as a picture
//	svg.go        the elements of pictures; style.css has their colors, for light and dark pages
//	page.go       HTML: the pictures and a table of the nodes on one page, which page.js makes lively
//	perfetto.go   Perfetto: Chrome's trace event format
//
// A picture is part of a page, or a file of its own. Its texts are monospaced, so that the package knows their
// widths.
package draw
