package compiler

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Diagnostic is an error, a warning or advice about one place in a source. Immutable once built; any
// goroutine.
type Diagnostic struct {
	Severity string `json:"severity"` // Error, Warning or Advice
	Code     string `json:"code"`     // one word for tools: "unknown-key"
	File     string `json:"file"`     // the folder as the caller wrote it, and the path in it
	Line     int    `json:"line"`     // from 1
	Column   int    `json:"column"`   // from 1, in UTF-16 units, as tsc and editors count
	Message  string `json:"message"`  // one line
	Hint     string `json:"hint,omitempty"`
	Excerpt  string `json:"excerpt,omitempty"` // the line of the source
}

// The severities.
const (
	Error   = "error"
	Warning = "warning"
	Advice  = "advice" // the plan is sound, but its requests could cost less
)

// excerptLimit bounds how many characters of a line String shows.
const excerptLimit = 160

// Place returns "plans/a.plan.ts:14:9".
func (d *Diagnostic) Place() string { return fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column) }

// String returns the diagnostic for a terminal: place and message, the line of the source, a caret
// and the hint. It has several lines and no line end.
func (d *Diagnostic) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s [%s]", d.Place(), d.Severity, d.Message, d.Code)
	if d.Excerpt != "" {
		line, caret := d.window()
		number := fmt.Sprintf("%5d", d.Line)
		fmt.Fprintf(&b, "\n%s | %s\n%s | %s^", number, line, strings.Repeat(" ", len(number)), caret)
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "\n  hint: %s", d.Hint)
	}
	return b.String()
}

// window returns the part of the line around the column, and the white space before the caret. Tabs
// stay tabs, so that the caret stands under its character.
func (d *Diagnostic) window() (line, caret string) {
	var before, after []rune
	units := 1
	for _, r := range d.Excerpt {
		if units < d.Column {
			before = append(before, r)
		} else {
			after = append(after, r)
		}
		units += utf16.RuneLen(r)
	}
	if len(before) > excerptLimit/2 {
		before = append([]rune{'…'}, before[len(before)-excerptLimit/2:]...)
	}
	if room := excerptLimit - len(before); len(after) > room {
		after = append(after[:room:room], '…')
	}
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\t'
		}
		return ' '
	}, string(before))
	return string(before) + string(after), pad
}
