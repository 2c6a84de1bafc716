package draw

import (
	_ "embed" // the page and its script
	"html/template"
	"io"
	"time"
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
	Nodes                                  []node // for the table, and on hover
}

// legend explains a color.
type legend struct{ Class, Text string }

var legends = []legend{
	{"loop", "on the loop, or the request's goroutine"}, {"inline", "inline on the loop"}, {"pool", "on a worker"},
	{"call", "commands on a connection"}, {"engine", "engine"}, {"sleep", "sleep"},
}

// HTML writes a page: the plan as a graph, what ran when as a timeline, and a table of the nodes. With several runs their timelines
// come first, above each other and on one time axis. The error is w's.
//
// The page needs neither a network nor other files. Its script adds details on hover, zooms the timeline, and makes the table.
// Without scripts the page shows the same pictures.
func HTML(w io.Writer, runs ...Run) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Title: "A trace", Style: template.CSS(style), Script: template.JS(script), Compared: len(runs) > 1, Colors: legends}
	var longest time.Duration
	scenes := make([]*scene, len(runs))
	for i, r := range runs {
		scenes[i] = newScene(r.Trace)
		p.Title = "A trace of " + clip(r.Trace.Plan, 60)
		longest = max(longest, scenes[i].end)
	}
	for i, s := range scenes {
		p.Runs = append(p.Runs, run{
			Name: runs[i].Name, Took: s.took(), Bound: s.bound(), Dropped: s.dropped(), Latency: s.path(s.latency), Service: s.path(s.service),
			Facts: "Request " + clip(s.RequestID, 60) + ", trace " + clip(s.TraceID, 40) + ".",
			// The pictures escape all names and texts of the trace.
			Timeline: template.HTML(s.timeline(longest)), Graph: template.HTML(s.graph()), Nodes: s.nodes,
		})
	}
	return t.Execute(w, &p)
}
