package draw

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// Options choose what Text draws. Immutable.
type Options struct {
	// Full draws all of a large trace. Otherwise the middle of a long timeline, and the light nodes of a
	// long waterfall, are left out.
	Full bool
}

// Text draws a trace for a terminal: the answer in two sentences, a timeline with one column per thread and one for Redis, the nodes
// as a waterfall, and the critical path. Several runs of the same request stand below each other, each under its name and without
// its waterfall, after a bar for the time of each. The error is w's.
func Text(w io.Writer, o Options, runs ...Run) error {
	var out strings.Builder
	compared := len(runs) > 1
	if compared {
		writeBars(&out, runs)
	}
	for _, r := range runs {
		s := newScene(r.Trace)
		if compared {
			fmt.Fprintf(&out, "\n── %s ──\n", r.Name)
		}
		out.WriteString(s.took() + "\n" + s.bound() + "\n")
		if dropped := s.dropped(); dropped != "" {
			out.WriteString(dropped + "\n")
		}
		out.WriteString("\n")
		s.writeTimeline(&out, o)
		if !compared {
			out.WriteString("\n")
			s.writeWaterfall(&out, o)
		}
		if len(s.latency.Steps) > 0 {
			fmt.Fprintf(&out, "\nCritical path (latency) %s\nCritical path (service) %s\n", s.path(s.latency), s.path(s.service))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeBars writes a bar for the time of each run.
func writeBars(out *strings.Builder, runs []Run) {
	width, longest := 0, time.Duration(1)
	for _, r := range runs {
		width, longest = max(width, uniseg.StringWidth(r.Name)), max(longest, r.Trace.Request.Ended)
	}
	for _, r := range runs {
		took := r.Trace.Request.Ended
		pad := strings.Repeat(" ", width-uniseg.StringWidth(r.Name))
		fmt.Fprintf(out, "%s%s  %7s %s\n", r.Name, pad, duration(took), strings.Repeat("█", max(1, int(took*40/longest))))
	}
}
