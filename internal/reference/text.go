package reference

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
)

// textWidth is the width of texts for a terminal, in characters.
const textWidth = 100

// labelDoc says what the common parameter "trace" is for.
const labelDoc = "A label of the node. Traces and explanations show it, a service gets it in place of the id, and a request may require the node by it."

// WriteList writes one line per task. The error is w's.
func WriteList(w io.Writer, tasks []Task) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tTYPESCRIPT\tWHAT IT DOES")
	for i := range tasks {
		t := &tasks[i]
		object := "rows."
		if t.Source {
			object = "ctx."
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", t.Op, object+t.Methods[len(t.Methods)-1], t.Doc)
	}
	return table.Flush()
}

// WriteText describes a task for a terminal. The error is w's.
func WriteText(w io.Writer, t *Task) error {
	var b strings.Builder
	b.WriteString(wrap(t.Op+": "+t.Doc, ""))
	fmt.Fprintf(&b, "\n  %s\n", t.call())
	for paragraph := range strings.SplitSeq(t.Text, "\n\n") {
		if paragraph != "" {
			b.WriteString("\n" + block(plain(paragraph)))
		}
	}
	b.WriteString("\nParameters\n")
	writeParamTexts(&b, t.Params, "")
	b.WriteString("  trace\n" + wrap("string, optional. "+labelDoc, "      "))
	b.WriteString("\nRows and columns\n")
	for _, f := range t.facts() {
		fmt.Fprintf(&b, "  %s\n%s", f.title, wrap(plain(f.text), "      "))
	}
	if e := t.Example; e != nil {
		if e.Items != "" {
			fmt.Fprintf(&b, "\nExample, in TypeScript: the plan whose rows are kept\n%s\nThe plan that reads them\n%s", indent(e.Items), indent(e.TypeScript))
		} else {
			fmt.Fprintf(&b, "\nExample, in TypeScript\n%s", indent(e.TypeScript))
		}
		fmt.Fprintf(&b, "\nIts artifact\n%s", indent(e.artifactText()))
		fmt.Fprintf(&b, "\n%s", e.setting())
		if data := e.data(); data != nil {
			b.WriteString("\n" + indent(strings.Join(data, "\n")) + "\n")
		} else {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "the request %s gets\n%s", spaced(e.Request), indent(candidateLines(e.Answer)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeParamTexts(b *strings.Builder, params []Param, prefix string) {
	for i := range params {
		p := &params[i]
		fmt.Fprintf(b, "  %s%s\n", prefix, p.Name)
		b.WriteString(wrap(p.Rules()+". "+spellings(p)+plain(p.Doc), "      "))
		writeParamTexts(b, p.Fields, prefix+p.Name+".")
	}
}

// spellings says how TypeScript writes a parameter, if that differs from artifacts.
func spellings(p *Param) string {
	if len(p.Options) == 1 && p.Options[0] == p.Name {
		return ""
	}
	return "TypeScript: " + oneOf(p.Options) + ". "
}

var markdownLink = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)

// plain returns a text without its links.
func plain(markdown string) string { return markdownLink.ReplaceAllString(markdown, "$1") }

// block returns a paragraph, or a table of Markdown: the first cell of a row, and below it the others.
func block(text string) string {
	if !strings.HasPrefix(text, "|") {
		return wrap(text, "")
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "|--") {
			continue
		}
		first, rest, _ := strings.Cut(strings.Trim(line, "| "), " | ")
		b.WriteString("  " + first + "\n" + wrap(strings.ReplaceAll(rest, " | ", "; "), "      "))
	}
	return b.String()
}

// wrap breaks a text into indented lines.
func wrap(text, margin string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(margin)
			column = len(margin)
		case column+1+n > textWidth:
			b.WriteString("\n" + margin)
			column = len(margin)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

// indent indents each line of a text, and ends the last one.
func indent(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
