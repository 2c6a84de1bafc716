// Package text, which follows the engine's needs, draws traces for a terminal: who ran what when, as a timeline
// with one column per thread and one for Redis, and the nodes as a waterfall.
//
//	timeline.go   the instants of a trace, and which of them share a line
//	lines.go      draws the lines: texts, arrows, and calls under way
//	waterfall.go  the nodes, with the critical path
package text

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
)

// Options choose what is drawn. Immutable.
type Options struct {
	// Full draws all of a large trace. Otherwise the middle of a long timeline, and the light nodes of a
	// long waterfall, are left out.
	Full bool
}

// Write draws a trace: the answer in two sentences, the timeline, the waterfall, and the critical path. The error is w's.
func Write(w io.Writer, t *trace.Trace, o Options) error {
	var out strings.Builder
	out.WriteString(caption.Took(t) + "\n" + caption.Bound(t) + "\n")
	if dropped := caption.Dropped(t); dropped != "" {
		out.WriteString(dropped + "\n")
	}
	out.WriteString("\n")
	timeline(&out, t, o)
	out.WriteString("\n")
	waterfall(&out, t, o)
	criticalPaths(&out, t)
	_, err := io.WriteString(w, out.String())
	return err
}

// Compare draws the timelines of runs of the same request below each other, each under its name, after a bar for the
// time of each. The error is w's.
func Compare(w io.Writer, runs []caption.Run, o Options) error {
	var out strings.Builder
	width, longest := 0, time.Duration(1)
	for _, r := range runs {
		width, longest = max(width, uniseg.StringWidth(r.Name)), max(longest, r.Trace.Request.Ended)
	}
	for _, r := range runs {
		took := r.Trace.Request.Ended
		pad := strings.Repeat(" ", width-uniseg.StringWidth(r.Name))
		fmt.Fprintf(&out, "%s%s  %7s %s\n", r.Name, pad, caption.Time(took), strings.Repeat("█", max(1, int(took*40/longest))))
	}
	for _, r := range runs {
		fmt.Fprintf(&out, "\n── %s ──\n%s\n%s\n\n", r.Name, caption.Took(r.Trace), caption.Bound(r.Trace))
		timeline(&out, r.Trace, o)
		criticalPaths(&out, r.Trace)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// criticalPaths writes the critical path in both modes.
func criticalPaths(out *strings.Builder, t *trace.Trace) {
	if len(t.CriticalPath(trace.Latency).Steps) > 0 {
		fmt.Fprintf(out, "\nCritical path (latency) %s\n", caption.Path(t, trace.Latency))
		fmt.Fprintf(out, "Critical path (service) %s\n", caption.Path(t, trace.Service))
	}
}
