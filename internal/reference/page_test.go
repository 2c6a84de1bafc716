package reference

import (
	"fmt"
	"strings"

	"github.com/rankd/rankd/plan/expr"
)

// generated is the first line of a page.
const generated = "<!-- `go test ./internal/reference -update` writes this page from the specs of the tasks. -->\n"

// Pages returns the pages of docs/reference by their path there.
func Pages(tasks []Task) map[string]string {
	pages := map[string]string{
		"README.md":      indexPage(tasks),
		"plan-format.md": formatPage(),
		"expressions.md": expressionsPage(expr.Operators()),
	}
	for i := range tasks {
		pages["tasks/"+tasks[i].Name()+".md"] = taskPage(&tasks[i])
	}
	return pages
}

func indexPage(tasks []Task) string {
	var b strings.Builder
	b.WriteString(generated + `# Reference

- [Plan format](plan-format.md): the artifact, member by member.
- [Expressions](expressions.md): every operator of expressions and predicates.
- [Trace format](trace-format.md): the JSON of a trace, field by field.
- [Record format](record-format.md): a file of recorded requests, byte by byte.
- [Metrics](metrics.md): what ` + "`rankd serve`" + ` counts.
- The tasks below. ` + "`rankd tasks`" + ` prints this list, and ` + "`rankd tasks sort`" + ` one of the pages.

| task | what it does |
|---|---|
`)
	for i := range tasks {
		t := &tasks[i]
		fmt.Fprintf(&b, "| [`%s`](tasks/%s.md) | %s |\n", t.Op, t.Name(), cell(t.Doc))
	}
	return b.String()
}

func taskPage(t *Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n\n%s\n\n```typescript\n%s\n```\n", generated, t.Op, t.Doc, t.call())
	if t.Text != "" {
		b.WriteString("\n" + t.Text + "\n")
	}
	b.WriteString("\n## Parameters\n\n| parameter | in TypeScript | type | meaning |\n|---|---|---|---|\n")
	writeParams(&b, t.Params, "")
	b.WriteString("| `trace` | `trace` | string, optional | " + labelDoc + " |\n")
	b.WriteString("\n## Rows and columns\n\n| | |\n|---|---|\n")
	for _, f := range t.facts() {
		fmt.Fprintf(&b, "| %s | %s |\n", f.title, cell(f.text))
	}
	if e := t.Example; e != nil {
		b.WriteString("\n## Example\n\n")
		if e.Items != "" {
			fmt.Fprintf(&b, "The plan whose rows are kept:\n\n```typescript\n%s```\n\nThe plan that reads them:\n\n", e.Items)
		}
		fmt.Fprintf(&b, "```typescript\n%s```\n\nIts artifact:\n\n```json\n%s\n```\n\n", e.TypeScript, e.artifactText())
		if data := e.data(); data != nil {
			fmt.Fprintf(&b, "%s:\n\n```\n%s\n```\n\n", e.setting(), strings.Join(data, "\n"))
		} else {
			b.WriteString(e.setting() + " ")
		}
		fmt.Fprintf(&b, "the request `%s` gets these candidates:\n\n```json\n%s\n```\n", spaced(e.Request), candidateLines(e.Answer))
	}
	return b.String()
}

// cell returns a text as a cell of a table: one line, with bars escaped.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// writeParams writes one row of the table per parameter, and per field of an object.
func writeParams(b *strings.Builder, params []Param, prefix string) {
	for i := range params {
		p := &params[i]
		options := make([]string, len(p.Options))
		for i, option := range p.Options {
			options[i] = "`" + option + "`"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, p.Name, oneOf(options), cell(p.Rules()), cell(p.Doc))
		writeParams(b, p.Fields, prefix+p.Name+".")
	}
}
