// Package text draws traces for a terminal: who ran what when, as a timeline with one column per thread and one
// for Redis, and the nodes as a waterfall.
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
	if len(t.CriticalPath(trace.Latency).Steps) > 0 {
		fmt.Fprintf(&out, "\nCritical path (latency) %s\n", caption.Path(t, trace.Latency))
		fmt.Fprintf(&out, "Critical path (service) %s\n", caption.Path(t, trace.Service))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Compare draws the timelines of traces of the same request below each other, each under its name, and says how
// their times compare. The error is w's.
func Compare(w io.Writer, names []string, traces []*trace.Trace, o Options) error {
	var out strings.Builder
	width := 0
	for i, t := range traces {
		width = max(width, len(names[i]), len(caption.Time(t.Request.Ended)))
	}
	longest := time.Duration(1)
	for _, t := range traces {
		longest = max(longest, t.Request.Ended)
	}
	for i, t := range traces {
		bar := strings.Repeat("█", int(max(1, t.Request.Ended*40/longest)))
		fmt.Fprintf(&out, "%-*s %8s %s\n", width, names[i], caption.Time(t.Request.Ended), bar)
	}
	for i, t := range traces {
		fmt.Fprintf(&out, "\n── %s ──\n%s\n%s\n\n", names[i], caption.Took(t), caption.Bound(t))
		timeline(&out, t, o)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
