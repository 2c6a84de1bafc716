// Package html, which follows the engine's needs, shows traces as one HTML page: the plan as a graph, what ran when as a
// timeline, and a table of the nodes. The page needs neither a network nor other files.
//
// Package svg draws; page.js adds details on hover and zooms the timeline. It also makes the table. Without
// scripts the page shows the same drawings.
package html

import (
	_ "embed" // the page and its script
	"html/template"
	"io"
	"time"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
	"github.com/rankd/rankd/trace/svg"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.js
var script string

// page is the data of the template.
type page struct {
	Title    string
	Style    template.CSS
	Script   template.JS
	Runs     []run
	Compared bool
	Colors   []legend
}

// run is one trace on the page.
type run struct {
	Name                                   string
	Took, Bound, Dropped, Latency, Service string
	Facts                                  string
	Timeline, Graph                        template.HTML
	Nodes                                  []node
}

// node is what the page shows of a node on hover, and in the table.
type node struct {
	ID, Op, Place, Rows     string // ID is behind the label, if there is one
	Ready, Wait, Run, Own   string
	Share, Status, Critical string
}

// legend explains a color.
type legend struct{ Class, Text string }

var legends = []legend{
	{"loop", "on the loop, or the request's goroutine"}, {"inline", "inline on the loop"}, {"pool", "on a worker"},
	{"call", "commands on a connection"}, {"engine", "engine"}, {"sleep", "sleep"},
}

// Write writes the page. With several runs their timelines come first, above each other and on one time axis. The
// error is w's.
func Write(w io.Writer, runs ...caption.Run) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Title: "A trace", Style: template.CSS(svg.Style), Script: template.JS(script), Compared: len(runs) > 1, Colors: legends}
	var longest time.Duration
	for _, n := range runs {
		p.Title = "A trace of " + caption.Name(n.Trace.Plan, 60)
		longest = max(longest, svg.End(n.Trace))
	}
	for _, n := range runs {
		p.Runs = append(p.Runs, newRun(n, longest))
	}
	return t.Execute(w, &p)
}

func newRun(n caption.Run, until time.Duration) run {
	t := n.Trace
	r := run{
		Name: n.Name, Took: caption.Took(t), Bound: caption.Bound(t), Dropped: caption.Dropped(t),
		Latency: caption.Path(t, trace.Latency), Service: caption.Path(t, trace.Service),
		// The drawings escape all names and texts of the trace.
		Timeline: template.HTML(svg.Timeline(t, until)), Graph: template.HTML(svg.Graph(t)),
	}
	r.Facts = "Request " + caption.Name(t.RequestID, 60) + ", trace " + caption.Name(t.TraceID, 40) + "."
	own := t.Own()
	critical := make([]string, len(t.Nodes))
	for _, s := range t.CriticalPath(trace.Latency).Steps {
		critical[s.Node] = "●"
	}
	for i := range t.Nodes {
		one := &t.Nodes[i]
		shown := node{ID: caption.Titles(one, 60), Op: caption.Name(one.Op, 60), Place: caption.Place(t, one), Status: caption.Status(one), Critical: critical[i]}
		if one.Error != "" {
			shown.Status += ": " + caption.Name(one.Error, 200)
		}
		if one.Ran() {
			shown.Rows, shown.Ready, shown.Wait = caption.Rows(one), caption.Time(one.Ready), caption.Time(one.Wait())
			shown.Run, shown.Own, shown.Share = caption.Time(one.Run()), caption.Time(own[i]), caption.Share(one.Run(), t.Request.Ended)
		}
		r.Nodes = append(r.Nodes, shown)
	}
	return r
}
