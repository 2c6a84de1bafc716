package reference

import (
	"fmt"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/plan"
)

// A member is one member of an object of the plan format. Rows of these tables make the page of the plan format.
type member struct {
	name     string
	kind     string // in words: "array of strings"
	required bool
	doc      string
}

// The plan format. Package plan reads it.
var (
	documentMembers = []member{
		{name: "schema_version", kind: "integer", required: true,
			doc: "The version of the format: 1."},
		{name: "plan_name", kind: "string", required: true,
			doc: "The name of the plan. In a folder of plans it is the name of the file, of letters, digits and _."},
		{name: "nodes", kind: "array of nodes", required: true,
			doc: "The nodes of the graph. Their order means nothing. The graph has no cycle."},
		{name: "outputs", kind: "array of strings", required: true,
			doc: "The ids of the nodes whose rows are the answer, one after the other. An id may repeat."},
		{name: "output_names", kind: "array of strings",
			doc: "The names of the outputs, in their order. The answer then has each output under its name in `outputs`, in place of `candidates`. It needs the capability `" +
				plan.OutputNamesCapability + "`, so that an older engine, which would show one list, refuses the plan."},
		{name: "returns", kind: "array of integers",
			doc: "The ids of the keys whose columns go out, beside the id of each row. Without it all columns go out. It needs the capability `" +
				plan.ReturnsCapability + "`, so that an older engine, which would send them all, refuses the plan."},
		{name: "expr_table", kind: "object", doc: "Expressions by their ids. See [expressions](expressions.md)."},
		{name: "pred_table", kind: "object", doc: "Predicates by their ids. See [expressions](expressions.md)."},
		{name: "capabilities_required", kind: "array of strings",
			doc: "The capabilities that the engine must have, sorted and without duplicates: " + codes(plan.Capabilities()) + ". The engine refuses " +
				"another name."},
		{name: "lenient", kind: "object",
			doc: "What holds for the nodes that read from outside, unless they say otherwise: `on_error`, which is `auto`; `timeout`, `timeout_ms`; `answer_by`, the " +
				"share of the request's deadline after which the engine gives up those that are lenient. It needs the capability `" + plan.LenientCapability + "`. See [partial answers](../partial-answers.md#one-line-for-all-of-them)."},
		{name: "min_rows", kind: "array of integers",
			doc: "How few rows each output should have, in their order; 0 is any number. Of an output that is a page (`take`), the rows before and behind it count, too, " +
				"but no more than a page and those before it can have are asked for. It needs the capability `" + plan.MinRowsCapability + "`."},
		{name: "below", kind: "string",
			doc: "What happens if an output has fewer rows than its `min_rows`. `mark`, the default: the answer says so in `below_minimum`. `error`: the request fails, with the error " +
				"`Below minimum`. The name of a plan: that one answers instead, in the time behind `answer_by` of `lenient`, which is then required. See [partial answers](../partial-answers.md#too-few-rows)."},
		{name: "log", kind: "object",
			doc: "What the [log of served rows](../served-log.md#which-values) has: `columns`, ids of keys; `at`, the id or label of the node whose rows have the values; `others`, how many rows " +
				"that are not in the answer are drawn, 1 to 1000. It needs the capability `" + plan.LogCapability + "`, so that an older engine, which would log other columns, refuses the plan."},
		{name: "extensions", kind: "object",
			doc: "An empty object for each of the capabilities that have an extension."},
		{name: "built_by", kind: "object",
			doc: "The tool, its version and a digest of the sources. The compiler writes it; the engine ignores it."},
	}
	nodeMembers = []member{
		{name: "node_id", kind: "string", required: true,
			doc: "The id of the node, which no other node of the plan has."},
		{name: "op", kind: "string", required: true,
			doc: "The task, with or without its namespace: `core::sort` or `sort`."},
		{name: "inputs", kind: "array of strings", required: true,
			doc: "The ids of the nodes whose rows the node takes. A source lists none."},
		{name: "params", kind: "object or null",
			doc: "The parameters of the task. The engine refuses an unknown one. An optional one may be null."},
		{name: "timeout_ms", kind: "integer of at least 1",
			doc: "The time that the node may take, in milliseconds. A node that takes longer has failed."},
		{name: "timeout", kind: "string",
			doc: "The same as a share, `1%` to `99%`, of what is left of the request's deadline when the node starts. It counts in place of `timeout_ms`, " +
				"unless the request has no deadline. It needs the capability `" + plan.LenientCapability + "`."},
		{name: "on_error", kind: "string or object",
			doc: "The rows that the readers of the node see when it fails. `fail`, the default: nothing, since the request fails. `empty`: no rows. `skip`: the " +
				"node's first input. `partial`: the rows whose keys did not fail; only some tasks take it. `null`: the node's first input, with nulls in the columns that the node would have written; for tasks that add columns. `{\"fallback\": \"node id\"}`: the " +
				"result of that node, which runs only then. It needs the capability `" + plan.OnErrorCapability + "`. See [partial answers](../partial-answers.md)."},
		{name: "optional", kind: "boolean",
			doc: "Whether the plan waits for the node only while a node that is not optional runs. It needs the same capability, and `on_error` " +
				"is then `empty` unless the node says otherwise."},
		{name: "scheduling", kind: "object",
			doc: "Hints of where to run the node."},
		{name: "source_span", kind: "object or string",
			doc: "The place in the plan's source that made the node, for errors. The compiler writes it."},
		{name: "expr_span", kind: "string",
			doc: "The place of the expression or predicate. The compiler writes it."},
		{name: "extensions", kind: "object",
			doc: "As of the plan."},
	}
	schedulingMembers = []member{
		{name: "inline", kind: "boolean",
			doc: "Whether the node may run on the loop. `false` keeps it off the loop; `true` permits, as no hint does, and the predicted time decides."},
		{name: "cost_estimate_us", kind: "integer of at least 0",
			doc: "The predicted time of the node until it has been measured, in microseconds."},
	}
)

// codes returns names as code in Markdown, with commas between them.
func codes(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

// formatPage returns the page of the plan format.
func formatPage() string {
	var b strings.Builder
	b.WriteString(generated + `# Plan format

A compiled plan, the *artifact*, is one JSON document, ` + "`<plan_name>.plan.json`" + `. ` + "`rankd compile`" + ` writes it, and the engine loads it. You can
also write one by hand, as [writing a plan](../writing-a-plan.md#by-hand) shows.

The engine checks an artifact before it runs anything. An error names file, node and member. The engine ignores unknown
members, except those of ` + "`params`" + ` and ` + "`scheduling`" + `, which it refuses.

Ids are unique, names refer to something, capabilities are sorted, and the graph has no cycle.

## The plan

`)
	writeMembers(&b, documentMembers)
	b.WriteString("\n## A node\n\n")
	writeMembers(&b, nodeMembers)
	b.WriteString("\n## scheduling\n\n")
	writeMembers(&b, schedulingMembers)
	fmt.Fprintf(&b, "\nThe artifacts of this compiler carry `tool_version` %s.\n", compiler.Version)
	return b.String()
}

func writeMembers(b *strings.Builder, members []member) {
	b.WriteString("| member | type | meaning |\n|---|---|---|\n")
	for _, m := range members {
		required := ""
		if m.required {
			required = ", required"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", m.name, m.kind+required, cell(m.doc))
	}
}
