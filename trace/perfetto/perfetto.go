// Package perfetto, which follows the engine's needs, writes traces in Chrome's trace event format, which
// Perfetto and chrome://tracing open.
//
// A trace becomes a process, a track a thread, a slice a complete event ("X"), and a flow one flow event per point ("s",
// "t", "f"). One more thread shows what the critical path was doing. The format is described in "Trace Event Format"
// by the Chromium project; https://perfetto.dev/docs/concepts/other-data-sources says which parts Perfetto reads.
package perfetto

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
)

// Write writes one document with a process per run. The error is w's.
func Write(w io.Writer, runs ...caption.Run) error {
	d := document{Events: []event{}, Unit: "ns"}
	for i, n := range runs {
		p := process{document: &d, pid: i + 1, path: d.threads + 1, trace: n.Trace, own: n.Trace.Own()}
		p.write(n.Name)
		d.threads += 1 + len(n.Trace.Tracks)
	}
	return json.NewEncoder(w).Encode(&d)
}

// document is the JSON document.
type document struct {
	Events []event `json:"traceEvents"`
	Unit   string  `json:"displayTimeUnit"`
	flows  int
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

// process writes one trace.
type process struct {
	*document
	pid   int
	path  int // id of the thread of the critical path; those of the tracks follow
	trace *trace.Trace
	own   []time.Duration // of each node
	drawn [][]span        // of each track, its slices as drawn
}

// span is a slice as drawn: its end lies after its start.
type span struct{ start, end time.Duration }

func (p *process) add(e event) {
	e.PID = p.pid
	p.Events = append(p.Events, e)
}

func (p *process) write(name string) {
	title := caption.Took(p.trace)
	if name != "" {
		title = name + ": " + title
	}
	p.add(event{Phase: "M", Name: "process_name", Args: map[string]any{"name": title}})
	p.thread(p.path, "Critical path")
	for _, s := range p.trace.Segments() {
		p.add(complete("critical path", p.segment(s), p.path, span{s.Start, s.End}, nil))
	}
	for k, track := range p.trace.Tracks {
		p.thread(p.tid(k), track.Name)
		p.drawn = append(p.drawn, spans(track.Slices))
		for i, s := range track.Slices {
			p.add(complete(string(s.Kind), p.sliceName(s), p.tid(k), p.drawn[k][i], p.args(s)))
		}
	}
	for _, f := range p.trace.Flows {
		p.flow(f)
	}
	for _, t := range p.trace.Timers {
		if len(p.trace.Tracks) > 0 {
			p.add(event{Phase: "i", Scope: "t", Category: "timer", Name: string(t.Kind) + " timer of " + p.nodeName(t.Node), TID: p.tid(0), At: micros(t.Fired)})
		}
	}
}

// tid returns the id of the thread that shows a track.
func (p *process) tid(track int) int { return p.path + 1 + track }

// thread names a thread. Threads are shown in the order of their ids.
func (p *process) thread(tid int, name string) {
	p.add(event{Phase: "M", Name: "thread_name", TID: tid, Args: map[string]any{"name": name}})
	p.add(event{Phase: "M", Name: "thread_sort_index", TID: tid, Args: map[string]any{"sort_index": tid}})
}

func complete(category, name string, tid int, s span, args map[string]any) event {
	d := micros(s.end - s.start)
	return event{Phase: "X", Category: category, Name: name, TID: tid, At: micros(s.start), Duration: &d, Args: args}
}

// spans returns slices as drawn. A flow cannot be bound to an empty slice, since a slice ends before its end. So an empty
// slice takes 1 ns, and those that follow directly give way.
func spans(slices []trace.Slice) []span {
	all := make([]span, len(slices))
	var free time.Duration
	for i, s := range slices {
		start := max(s.Start, free)
		all[i] = span{start, max(s.End, start+1)}
		free = all[i].end
	}
	return all
}

func (p *process) segment(s trace.Segment) string {
	name := "answer"
	if s.Node >= 0 {
		name = p.nodeName(s.Node)
	}
	if s.For == trace.Running {
		return name
	}
	return name + ": " + caption.Waiting(p.trace, s.For)
}

func (p *process) nodeName(node int) string { return caption.Title(&p.trace.Nodes[node], 100) }

func (p *process) sliceName(s trace.Slice) string {
	if s.Node < 0 {
		return "engine"
	}
	return p.nodeName(s.Node)
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
	n := &p.trace.Nodes[s.Node]
	args["op"], args["place"], args["status"] = n.Op, caption.Place(p.trace, n), caption.Status(n)
	if n.Label != "" {
		args["node_id"] = caption.Name(n.ID, 100)
	}
	if n.SourceSpan != "" {
		args["source_span"] = n.SourceSpan
	}
	args["rows_in"], args["rows_out"] = n.RowsIn, n.RowsOut
	args["wait_ns"], args["run_ns"], args["own_ns"] = int64(n.Wait()), int64(n.Run()), int64(p.own[s.Node])
	return args
}

// flow writes a flow. Each point is within a slice as drawn.
func (p *process) flow(f trace.Flow) {
	p.flows++
	for k, point := range f.Points {
		e := event{Phase: "t", Category: string(f.Kind), Name: string(f.Kind), TID: p.tid(point.Track), Flow: p.flows, At: micros(p.inside(point))}
		switch k {
		case 0:
			e.Phase = "s"
		case len(f.Points) - 1:
			e.Phase, e.Bind = "f", "e"
		}
		p.add(e)
	}
}

// inside returns the instant of a point, moved into a slice as drawn. Between two slices it belongs to the one that it
// ends, or to the one that it begins.
func (p *process) inside(point trace.Point) time.Duration {
	begins := point.Step == trace.Sent || point.Step == trace.Started || point.Step == trace.Resumed
	at := point.At
	for i, s := range p.trace.Tracks[point.Track].Slices {
		if s.Start > point.At || point.At > s.End {
			continue
		}
		drawn := p.drawn[point.Track][i]
		at = max(drawn.start, min(point.At, drawn.end-1))
		if !begins || point.At < s.End {
			break
		}
	}
	return at
}
