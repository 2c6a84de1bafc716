package draw

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rankd/rankd/trace"
)

// Perfetto writes traces in Chrome's trace event format, which Perfetto and chrome://tracing open, as one document. The error is w's.
//
// A trace becomes a process, a row a thread, a span a complete event ("X"), and a flow one flow event per point ("s", "t",
// "f"). The format is described in "Trace Event Format" by the Chromium project;
// https://perfetto.dev/docs/concepts/other-data-sources says which parts Perfetto reads.
func Perfetto(w io.Writer, runs ...Run) error {
	d := chromeTrace{Events: []event{}, Unit: "ns"}
	for i, r := range runs {
		p := process{chromeTrace: &d, scene: newScene(r.Trace), pid: i + 1, first: d.threads + 1}
		p.write(r.Name)
		d.threads += len(p.drawn)
	}
	return json.NewEncoder(w).Encode(&d)
}

// chromeTrace is the JSON document. One goroutine at a time.
type chromeTrace struct {
	Events []event `json:"traceEvents"`
	Unit   string  `json:"displayTimeUnit"`
	last   int     // id of the last flow
	// threads counts the threads so far. Their ids differ between processes, too, and none is 0, which stands for an idle
	// processor.
	threads int
}

// event is one event of the format. Which fields it has depends on its phase.
type event struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	At       micros         `json:"ts"`
	Duration *micros        `json:"dur,omitempty"` // of "X"
	Flow     int            `json:"id,omitempty"`  // of a flow
	Bind     string         `json:"bp,omitempty"`  // "e": a flow ends in the slice around it, not in the next one
	Scope    string         `json:"s,omitempty"`   // "t": an instant of a thread
	Args     map[string]any `json:"args,omitempty"`
}

// micros is a time, in JSON the µs with the ns behind the point.
type micros time.Duration

func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", int64(m)/1000, int64(m)%1000), nil
}

// process writes one trace. One goroutine at a time.
type process struct {
	*chromeTrace
	*scene
	pid   int
	first int      // id of the first thread
	drawn [][]span // of each row: the end of each lies after its start
}

func (p *process) add(e event) {
	e.PID = p.pid
	p.Events = append(p.Events, e)
}

func (p *process) write(name string) {
	title := p.took()
	if name != "" {
		title = name + ": " + title
	}
	p.add(event{Phase: "M", Name: "process_name", Args: map[string]any{"name": title}})
	for k, row := range p.rows {
		p.thread(k, row)
	}
	for _, f := range p.flows {
		p.flow(f)
	}
	for _, t := range p.Timers {
		if len(p.Tracks) > 0 {
			p.add(event{Phase: "i", Scope: "t", Category: "timer", Name: string(t.Kind) + " timer of " + p.name(t.Node), TID: p.first + 1, At: micros(t.Fired)})
		}
	}
}

// thread writes a row. Threads are shown in the order of their ids.
func (p *process) thread(k int, r row) {
	tid := p.first + k
	p.add(event{Phase: "M", Name: "thread_name", TID: tid, Args: map[string]any{"name": r.name}})
	p.add(event{Phase: "M", Name: "thread_sort_index", TID: tid, Args: map[string]any{"sort_index": tid}})
	p.drawn = append(p.drawn, stretched(r.spans))
	for i, s := range r.spans {
		e := event{Phase: "X", Category: cmp.Or(string(s.Kind), s.kind), Name: p.name(s.Node), TID: tid, Args: p.args(s.Slice)}
		if k == 0 {
			e.Category, e.Name, e.Args = string(r.kind), p.segmentName(p.segments[i]), nil
		}
		drawn := p.drawn[k][i]
		took := micros(drawn.End - drawn.Start)
		e.At, e.Duration = micros(drawn.Start), &took
		p.add(e)
	}
}

// stretched returns spans as drawn. A flow cannot be bound to an empty slice, since a slice ends before its end. So an empty
// span takes 1 ns, and those that follow directly give way.
func stretched(spans []span) []span {
	all := slices.Clone(spans)
	var free time.Duration
	for i := range all {
		s := &all[i]
		s.Start = max(s.Start, free)
		s.End = max(s.End, s.Start+1)
		free = s.End
	}
	return all
}

// name returns the name of a node, or of the engine.
func (p *process) name(node int) string {
	if node < 0 {
		return "engine"
	}
	return title(&p.Nodes[node], 100)
}

// segmentName returns the name of a segment of the critical path.
func (p *process) segmentName(g trace.Segment) string {
	name := "answer"
	if g.Node >= 0 {
		name = p.name(g.Node)
	}
	if g.For == trace.Running {
		return name
	}
	return name + ": " + waiting(p.Trace, g.For)
}

// args are the details of a slice.
func (p *process) args(s trace.Slice) map[string]any {
	args := make(map[string]any)
	if s.Kind == trace.CallSlice {
		args["commands"], args["bytes_sent"], args["bytes_received"], args["given_up"] = s.Commands, s.Sent, s.Received, s.GivenUp
	}
	if s.Node < 0 {
		return args
	}
	n := &p.Nodes[s.Node]
	args["op"], args["place"], args["status"] = n.Op, p.nodes[s.Node].Place, status(n)
	if n.Label != "" {
		args["node_id"] = clip(n.ID, 100)
	}
	if n.SourceSpan != "" {
		args["source_span"] = n.SourceSpan
	}
	args["rows_in"], args["rows_out"] = n.RowsIn, n.RowsOut
	if n.Cached > 0 {
		args["cached_values"], args["cached_age_ns"] = n.Cached, int64(n.CachedAge)
	}
	args["wait_ns"], args["run_ns"], args["own_ns"] = int64(n.Wait()), int64(n.Run()), int64(p.own[s.Node])
	return args
}

// flow writes a flow. Each point is within a slice as drawn.
func (p *process) flow(f flow) {
	p.last++
	for k, point := range f.points {
		e := event{Phase: "t", Category: string(f.Kind), Name: string(f.Kind), TID: p.first + point.row, Flow: p.last, At: micros(p.inside(point))}
		switch k {
		case 0:
			e.Phase = "s"
		case len(f.points) - 1:
			e.Phase, e.Bind = "f", "e"
		}
		p.add(e)
	}
}

// inside returns the instant of a point, moved into a slice as drawn. Between two slices it belongs to the one that it
// ends, or to the one that it begins.
func (p *process) inside(point point) time.Duration {
	begins := point.step == trace.Sent || point.step == trace.Started || point.step == trace.Resumed
	at := point.at
	for i, s := range p.rows[point.row].spans {
		if s.Start > point.at || point.at > s.End {
			continue
		}
		drawn := p.drawn[point.row][i]
		at = max(drawn.Start, min(point.at, drawn.End-1))
		if !begins || point.at < s.End {
			break
		}
	}
	return at
}
