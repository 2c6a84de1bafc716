package draw

import (
	_ "embed" // the style sheet
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/trace"
)

// pictureWidth is the width of every picture, in CSS pixels.
const pictureWidth = 1232

// cellWidth is the width of one cell of a monospaced text, in parts of its size.
const cellWidth = 0.605

// A document is SVG text under construction. One goroutine at a time.
type document struct{ strings.Builder }

// add writes markup.
func (d *document) add(format string, args ...any) { fmt.Fprintf(d, format, safe(args)...) }

// markup is fmt.Sprintf for SVG.
func markup(format string, args ...any) string { return fmt.Sprintf(format, safe(args)...) }

// safe rounds coordinates to two decimals, and escapes texts.
func safe(args []any) []any {
	for i, arg := range args {
		switch arg := arg.(type) {
		case float64:
			args[i] = number(arg)
		case string:
			if escaped := html.EscapeString(arg); escaped != arg { // Usually not: then nothing is allocated.
				args[i] = escaped
			}
		}
	}
	return args
}

// text writes a text. Its classes come first.
func (d *document) text(x, y float64, class, anchor, text string) {
	if text == "" {
		return
	}
	d.add(`<text x="%v" y="%v"`, x, y)
	if class != "" {
		d.add(` class="%v"`, class)
	}
	if anchor != "" {
		d.add(` text-anchor="%v"`, anchor)
	}
	d.add(">%v</text>\n", text)
}

// begin opens a drawing.
func (d *document) begin(class, label string, height float64) {
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" class="drawing %v" viewBox="0 0 %d %v" width="%d" height="%v" role="img" aria-label="%v">`+"\n",
		class, pictureWidth, height, pictureWidth, height, label)
}

// number returns a coordinate with at most two decimals.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// cells returns how many cells of a text fit into a width.
func cells(width, size float64) int { return max(0, int(width/(size*cellWidth))) }

// textWidth returns the width of a text.
func textWidth(text string, size float64) float64 {
	return float64(uniseg.StringWidth(text)) * size * cellWidth
}

// fit returns a name that takes at most the cells given.
func fit(name string, cells int) string {
	if cells < 2 {
		return ""
	}
	return clip(name, cells)
}

// fitTrack is fit for the name of a track: of "endpoint #2 lane 1" the end stays, which tells the lanes of a connection
// apart. The endpoint is cut in its middle, since the names of several differ at either end.
func fitTrack(name string, cells int) string {
	at := strings.LastIndex(name, " #")
	if at < 0 {
		at = len(name)
	}
	room := cells - uniseg.StringWidth(name[at:])
	if room < 4 || uniseg.StringWidth(name) <= cells {
		return fit(name, cells)
	}
	endpoint, half := errtext.Text(name[:at]), (room-1)/2
	tail, state := endpoint, -1
	for uniseg.StringWidth(tail) > half {
		_, tail, _, state = uniseg.FirstGraphemeClusterInString(tail, state)
	}
	return fit(endpoint, room-half) + tail + errtext.Text(name[at:])
}

// critClass returns " crit" for what is on the critical path.
func critClass(on bool) string {
	if on {
		return " crit"
	}
	return ""
}

// placeClass returns the class of a place, which has a color.
func placeClass(p trace.Place) string {
	switch p {
	case trace.OnLoop, trace.Inline, trace.OnPool, trace.OnIOWorker, trace.OnGoroutine:
		return string(p)
	default:
		return "nowhere"
	}
}

// style is the style sheet of all pictures. Colors follow the reader's preference. A page may use its variables, and may override them.
//
//go:embed style.css
var style string

// alone makes a picture of a drawing: it adds the style, and a background.
func alone(drawing string) string {
	head, rest, _ := strings.Cut(drawing, "\n")
	return head + "\n<style>\n" + style + "</style>\n<rect class=\"background\" width=\"100%\" height=\"100%\"/>\n" + rest
}
