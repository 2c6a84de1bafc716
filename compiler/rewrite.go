package compiler

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
)

// span is a piece of the script: the offsets of its first byte and of the byte after it.
type span struct{ from, to int }

// edit replaces a piece of the script.
type edit struct {
	span
	text string
}

// A rewriter replaces operators, conditions and equalities of a script by calls of the prelude, at
// the positions of the syntax tree. The rest of the script stays as it is. One goroutine at a time.
//
// The tree has no parentheses, so "(a + b) * c" and "a" start at the same place for it. extent
// therefore finds out which parentheses belong to an operand: each closing one between the operand
// and the operator has its opening one right before the operand.
type rewriter struct {
	script  string
	edits   []edit
	extents map[ast.Expression]span
	calls   map[int]*callSite // by the offset of the opening parenthesis
	refused []int             // offsets of assignments that cannot be rewritten
	// arguments are offsets of functions that use their arguments in their parameters.
	arguments []int
	members   map[string][]int // offsets of the names after a dot
	json      bool             // the present module is a document
	// defaults are the parts x = y of patterns.
	defaults map[*ast.AssignExpression]bool
	changes
}

// callSite says where the parts of a call are, for diagnostics.
type callSite struct {
	start   int             // of the whole call
	at      int             // of the callee's last name
	args    []int           // of each argument
	options map[string]span // of an object literal as first argument: name, value
}

// rewritten is the script to run, and the way back to the offsets of the bundle.
type rewritten struct {
	script  string
	lines   []int
	edits   []edit // ascending
	starts  []int  // of each edit in script
	calls   map[int]*callSite
	members map[string][]int // offsets of the names after a dot, ascending
	// refused are the offsets of assignments with a yield or an await on the right side.
	refused []int
	// arguments are the offsets of functions that use arguments in their parameters.
	arguments []int
}

// rewrite rewrites the script of a bundle.
func rewrite(script string, program *ast.Program) *rewritten {
	r := &rewriter{script: script, extents: make(map[ast.Expression]span), calls: make(map[int]*callSite), members: make(map[string][]int), defaults: make(map[*ast.AssignExpression]bool)}
	r.written, r.methods = make(map[ast.Expression]string), make(map[*ast.FunctionLiteral]bool)
	for _, statement := range program.Body {
		module := statement.(*ast.ExpressionStatement).Expression.(*ast.CallExpression)
		r.json = strings.HasSuffix(module.ArgumentList[0].(*ast.StringLiteral).Value.String(), ".json")
		r.module(module.ArgumentList[1].(*ast.FunctionLiteral).Body)
	}
	slices.SortStableFunc(r.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	out := &rewritten{edits: r.edits, calls: r.calls, refused: r.refused, arguments: r.arguments, members: r.members}
	for _, places := range r.members {
		slices.Sort(places)
	}
	at := 0
	for _, e := range r.edits {
		b.WriteString(script[at:e.from])
		out.starts = append(out.starts, b.Len())
		b.WriteString(e.text)
		at = e.to
	}
	b.WriteString(script[at:])
	out.script = b.String()
	out.lines = lineOffsets(out.script)
	return out
}

// module rewrites a module. esbuild makes its exports and imports first; there it yields, and all modules of the plan are
// linked.
func (r *rewriter) module(body *ast.BlockStatement) {
	list := body.List
	for i, statement := range list { // What is before are functions of esbuild, which see no token.
		if s, ok := statement.(*ast.VariableStatement); ok {
			if name, _ := s.List[0].Target.(*ast.Identifier); name != nil && name.Name == "stdin_exports" {
				list = list[i:]
				break
			}
		}
	}
	r.statements(list)
	yield := offset(body.LeftBrace) + 1
	for _, statement := range body.List {
		if end, ok := r.links(statement); ok {
			yield = end
		}
	}
	r.insert(yield, "yield;")
}

// links reports whether a statement of esbuild makes exports or imports of the module, and where it ends.
func (r *rewriter) links(statement ast.Statement) (end int, ok bool) {
	var made ast.Expression
	switch s := statement.(type) {
	case *ast.VariableStatement: // var import_b = require("./b"), perhaps inside of __toESM(…)
		name, _ := s.List[0].Target.(*ast.Identifier)
		if made = s.List[0].Initializer; name != nil && strings.HasPrefix(name.Name.String(), "stdin_default") {
			r.replace(offset(s.Var), offset(s.Var)+len("var"), "const") // JavaScript refuses to read it before it has a value
		}
	case *ast.ExpressionStatement: // module.exports = …, or __reExport(stdin_exports, require("./d"), module.exports)
		made = s.Expression
		if assign, is := made.(*ast.AssignExpression); is && (r.isName(assign.Right, "__toCommonJS") || r.json) {
			ok = r.rename(assign.Left)
		}
	}
	if call, is := made.(*ast.CallExpression); is {
		ok = r.rename(call)
		if r.isName(call, "__toESM") || r.isName(call, "__reExport") {
			for _, argument := range call.ArgumentList {
				ok = r.rename(argument) || ok
			}
		}
	}
	if ok {
		end = r.extent(made).to
		end += strings.IndexByte(r.script[end:], ';') + 1
	}
	return end, ok
}

// isName reports whether an expression calls a helper of esbuild, whose name may end with a number.
func (r *rewriter) isName(e ast.Expression, name string) bool {
	call, ok := e.(*ast.CallExpression)
	if !ok {
		return false
	}
	callee, ok := call.Callee.(*ast.Identifier)
	return ok && strings.HasPrefix(callee.Name.String(), name)
}

// rename renames require and module where esbuild uses them.
func (r *rewriter) rename(e ast.Expression) bool {
	var used ast.Expression
	switch e := e.(type) {
	case *ast.CallExpression:
		used = e.Callee
	case *ast.DotExpression:
		used = e.Left
	}
	name, ok := used.(*ast.Identifier)
	if !ok {
		return false
	}
	renamed, ok := map[string]string{"require": requireName, "module": moduleName}[name.Name.String()]
	if at := offset(name.Idx); ok {
		r.replace(at, at+len(name.Name.String()), renamed)
	}
	return ok
}

// original returns the offset in the bundle of a place in the rewritten script. A place inside of inserted text maps
// to the point of insertion.
func (r *rewritten) original(line, column int) int {
	if line < 1 || line > len(r.lines) {
		return 0
	}
	offset := r.lines[line-1] + column - 1
	i, _ := slices.BinarySearch(r.starts, offset+1)
	if i == 0 {
		return offset
	}
	e, start := r.edits[i-1], r.starts[i-1]
	if offset < start+len(e.text) {
		return e.from
	}
	return e.to + offset - start - len(e.text)
}

func (r *rewriter) replace(from, to int, text string) {
	r.edits = append(r.edits, edit{span{from, to}, text})
}

func (r *rewriter) insert(at int, format string, args ...any) {
	r.replace(at, at, fmt.Sprintf(format, args...))
}

// call is the text before the arguments of a call of the prelude.
func call(function string) string { return hostName + ".calls." + function + "(" }

func offset(i file.Idx) int { return int(i) - 1 }

// walk rewrites a node and its parts. Edits at one place are in the order of the walk, so that an
// outer call opens before an inner one and closes after it.
func (r *rewriter) walk(node ast.Node) {
	switch n := node.(type) {
	case *ast.BinaryExpression:
		r.binary(n)
	case *ast.UnaryExpression:
		r.checked(n, r.changedBy(n), func() { r.unary(n) })
	case *ast.AssignExpression:
		questions := r.changedBy(n)
		if lazy[n.Operator] != "" { // asks only if it assigns
			r.assign(n, questions)
			return
		}
		r.checked(n, questions, func() { r.assign(n, nil) })
	case *ast.ConditionalExpression:
		r.conditional(n)
	case *ast.IfStatement:
		r.wrap("test", n.Test)
		r.walk(n.Consequent)
		if n.Alternate != nil {
			r.walk(n.Alternate)
		}
	case *ast.WhileStatement:
		r.wrap("test", n.Test)
		r.walk(n.Body)
	case *ast.DoWhileStatement:
		r.walk(n.Body)
		r.wrap("test", n.Test)
	case *ast.ForStatement:
		r.inside(r.in(), lexical(n.Initializer), func() {
			if n.Initializer != nil {
				r.walk(n.Initializer)
			}
			if n.Test != nil {
				r.wrap("test", n.Test)
			}
			if n.Update != nil {
				r.walk(n.Update)
			}
			r.walk(n.Body)
		})
	case *ast.ForInStatement:
		r.each(n.Into, n.Source, n.Body)
	case *ast.ForOfStatement:
		r.each(n.Into, n.Source, n.Body)
	case *ast.SwitchStatement:
		r.wrap("value", n.Discriminant)
		var names []string
		for _, c := range n.Body {
			names = append(names, lexicals(c.Consequent)...)
		}
		r.inside(r.in(), names, func() {
			for _, c := range n.Body {
				if c.Test != nil {
					r.wrap("value", c.Test)
				}
				r.statements(c.Consequent)
			}
		})
	case *ast.BlockStatement:
		r.inside(r.in(), lexicals(n.List), func() { r.statements(n.List) })
	case *ast.CatchStatement:
		r.inside(r.in(), namesIn(n.Parameter), func() { r.parts(n) })
	case *ast.VariableStatement:
		r.bindings(n.List)
	case *ast.LexicalDeclaration:
		r.bindings(n.List)
	case *ast.ArrowFunctionLiteral:
		r.arrow(n)
	case *ast.ClassLiteral:
		r.class(n)
	case *ast.ObjectLiteral, *ast.ArrayLiteral:
		r.born(n.(ast.Expression), func() { r.parts(n) })
	case *ast.NewExpression:
		r.made(n)
	case *ast.PropertyKeyed:
		r.walk(n.Key)
		if name, ok := n.Key.(*ast.StringLiteral); ok && !n.Computed && n.Kind == ast.PropertyKindValue && name.Value == "__proto__" {
			r.wrap("ancestor", n.Value)
			return
		}
		r.walk(n.Value)
	case *ast.YieldExpression:
		r.resumed(n)
	case *ast.AwaitExpression:
		r.checked(n.Argument, []string{r.outer(offset(n.Await))}, func() { r.walk(n.Argument) })
	case *ast.FunctionLiteral:
		if n.Body != nil && namesArguments(n) {
			// The engine mistakes arguments in an arrow function, which operators become, unless the function itself has them.
			r.insert(offset(n.Body.LeftBrace)+1, "%sarguments);", call("iterable"))
			if n.ParameterList != nil && namesArguments(n.ParameterList) {
				r.arguments = append(r.arguments, offset(n.Idx0()))
			}
		}
		r.function(n)
	case *ast.ObjectPattern:
		for _, property := range n.Properties {
			if keyed, ok := property.(*ast.PropertyKeyed); ok {
				r.targets(keyed.Value)
			}
		}
		r.parts(n)
	case *ast.ArrayPattern:
		for _, element := range n.Elements {
			r.targets(element)
		}
		r.parts(n)
	case *ast.DotExpression:
		name := n.Identifier.Name.String()
		r.members[name] = append(r.members[name], offset(n.Identifier.Idx))
		r.member(n, n.Left)
	case *ast.BracketExpression:
		r.member(n, n.Left)
	case *ast.PrivateDotExpression:
		r.member(n, n.Left)
	case *ast.RegExpLiteral:
		r.born(n, func() {
			if strings.Contains(n.Pattern, `\p{`) || strings.Contains(n.Pattern, `\P{`) {
				r.insert(offset(n.Idx), "%s", call("pattern"))
				r.insert(offset(n.Idx)+len(n.Literal), ")")
			}
		})
	case *ast.TemplateLiteral:
		r.template(n)
	case *ast.CallExpression:
		r.calls[offset(n.LeftParenthesis)] = r.callSite(n)
		if _, super := n.Callee.(*ast.SuperExpression); super {
			r.made(n)
			return
		}
		if makesIterator(n) {
			r.born(n, func() { r.parts(n) })
			return
		}
		if callee, ok := n.Callee.(*ast.DotExpression); ok && callee.Identifier.Name == "next" { // of an iterator
			r.written[callee] = "step"
		}
		r.parts(n)
	default:
		r.parts(node)
	}
}

// targets notes a target of a destructuring with a default, x[i] = y, which is no assignment.
func (r *rewriter) targets(target ast.Expression) {
	if assign, ok := target.(*ast.AssignExpression); ok {
		r.defaults[assign] = true
	}
}

// bindings walks a declaration, behind which the host sees the targets with defaults, and the lists and objects of ...rest are born.
func (r *rewriter) bindings(list []*ast.Binding) {
	for _, binding := range list {
		defaults := patternDefaults(nil, "", binding.Target, nil)
		r.taken(defaults, binding.Target)
		if binding.Initializer == nil {
			continue
		}
		r.walk(binding.Initializer)
		behind := func(text string) {
			r.functions++
			r.insert(r.enclosed(binding.Initializer).to, ", %sr%d = (%s)", hostName, r.functions, text)
		}
		if looks := looksAt(defaults); looks != "" {
			behind(looks)
		}
		if r.in() == nil {
			continue
		}
		for _, name := range rests(binding.Target) {
			behind(call("born") + name + ")")
		}
	}
}

// statements marks where each statement of a list begins to run, so that a plan that has to be
// killed is killed at a line.
func (r *rewriter) statements(list []ast.Statement) {
	for _, statement := range list {
		at := -1
		switch n := statement.(type) {
		case *ast.VariableStatement, *ast.LexicalDeclaration, *ast.ReturnStatement, *ast.ThrowStatement,
			*ast.ForStatement, *ast.ForInStatement, *ast.ForOfStatement, *ast.WhileStatement, *ast.SwitchStatement:
			at = offset(statement.Idx0())
		case *ast.IfStatement: // the tree lacks its position
			at = strings.LastIndex(r.script[:r.extent(n.Test).from], "if")
		case *ast.ExpressionStatement:
			// A statement that starts with a parenthesis, or is a directive, stays as it is.
			from := r.extent(n.Expression).from
			if c := r.script[from]; c != '"' && c != '\'' && r.before(from) != '(' {
				at = from
			}
		}
		if at >= 0 {
			r.insert(at, "%s%d);", call("at"), at)
		}
		r.walk(statement)
	}
}

// before returns the last character before an offset that is not white space.
func (r *rewriter) before(at int) byte {
	for at--; at >= 0; at-- {
		if c := r.script[at]; c != ' ' && c != '\n' {
			return c
		}
	}
	return 0
}

// wrap passes an expression through a function of the prelude.
func (r *rewriter) wrap(function string, e ast.Expression) {
	s := r.extent(e)
	r.insert(s.from, "%s(", call(function))
	r.walk(e)
	r.insert(s.to, "), %d)", s.from)
}

// template passes the parts of a template through a function of the prelude: `a${x}b` becomes template(at, `a`, (x), `b`).
func (r *rewriter) template(n *ast.TemplateLiteral) {
	if n.Tag != nil || len(n.Expressions) == 0 {
		r.parts(n)
		return
	}
	from := offset(n.OpenQuote)
	r.insert(from, "%s%d, ", call("template"), from)
	for i, e := range n.Expressions {
		before, after := n.Elements[i], n.Elements[i+1] // The parser reports each one character too far.
		dollar, brace := offset(before.Idx)-1+len(before.Literal), offset(after.Idx)-2
		r.replace(dollar, dollar+len("${"), "`, (")
		r.walk(e)
		r.replace(brace, brace+1, "), `")
	}
	r.insert(offset(n.CloseQuote)+1, ")")
}

// lazy are the operators that may skip their right side.
var lazy = map[token.Token]string{token.LOGICAL_AND: "and", token.LOGICAL_OR: "or", token.COALESCE: "nullish"}

func (r *rewriter) binary(n *ast.BinaryExpression) {
	if _, private := n.Left.(*ast.PrivateIdentifier); private {
		r.parts(n)
		return
	}
	r.associate(n)
	left, right, at := r.around(n.Left, n.Right, n.Operator.String())
	to := at + len(n.Operator.String())
	function, isLazy := lazy[n.Operator]
	if kept := keptRight(n); kept != nil {
		n = &ast.BinaryExpression{Operator: token.COALESCE, Left: n.Left, Right: kept}
		function, to = lazy[n.Operator], right.from+strings.Index(r.script[right.from:], "&&")+len("&&")
		right = r.after(to, kept)
	}
	switch {
	case n.Operator == token.INSTANCEOF:
		r.insert(left.from, "%s", call("instance"))
		r.walk(n.Left)
		r.replace(at, to, ",")
		r.walk(n.Right)
		r.insert(right.to, ", %d)", left.from)
	case isLazy && suspends(n.Right):
		// A function around the right side would capture its yield or await.
		r.insert(left.from, "%s", call("value"))
		r.walk(n.Left)
		r.insert(left.to, ", %d)", left.from)
		r.replace(at, to, n.Operator.String())
		r.walk(n.Right)
	case isLazy:
		r.insert(left.from, "%s", call(function))
		r.walk(n.Left)
		r.replace(at, to, ", () => (")
		r.side(n.Right)
		r.insert(right.to, "), %d)", left.from)
	default:
		r.insert(left.from, "%s%s, ", call("infix"), strconv.Quote(n.Operator.String()))
		r.walk(n.Left)
		r.replace(at, to, ",")
		r.walk(n.Right)
		r.insert(right.to, ", %d)", left.from)
	}
}

var relational = []token.Token{token.LESS, token.LESS_OR_EQUAL, token.GREATER, token.GREATER_OR_EQUAL, token.IN, token.INSTANCEOF}

// associate makes (a < b) < c of a < (b < c), which the parser makes of a < b < c.
func (r *rewriter) associate(n *ast.BinaryExpression) {
	for slices.Contains(relational, n.Operator) {
		right, ok := n.Right.(*ast.BinaryExpression)
		if !ok || !slices.Contains(relational, right.Operator) {
			return
		}
		if _, around, _ := r.around(n.Left, right, n.Operator.String()); around != r.extent(right) {
			return // It has parentheses.
		}
		n.Left = &ast.BinaryExpression{Operator: n.Operator, Left: n.Left, Right: right.Left}
		n.Operator, n.Right = right.Operator, right.Right
	}
}

// keptRight returns d of an operator x ?? d that transform has kept from esbuild, or nil.
func keptRight(n *ast.BinaryExpression) ast.Expression {
	right, ok := n.Right.(*ast.BinaryExpression)
	if !ok || n.Operator != token.LOGICAL_OR || right.Operator != token.LOGICAL_AND {
		return nil
	}
	if name, ok := right.Left.(*ast.Identifier); !ok || name.Name.String() != hostName {
		return nil
	}
	return right.Right
}

// conditional passes both branches as functions, because both run if the condition is a token.
func (r *rewriter) conditional(n *ast.ConditionalExpression) {
	if suspends(n.Consequent) || suspends(n.Alternate) {
		// A function around a branch would capture its yield or await.
		r.wrap("test", n.Test)
		r.walk(n.Consequent)
		r.walk(n.Alternate)
		return
	}
	test, _, question := r.around(n.Test, n.Consequent, "?")
	_, alternate, colon := r.around(n.Consequent, n.Alternate, ":")
	r.insert(test.from, "%s", call("choose"))
	r.walk(n.Test)
	r.replace(question, question+1, ", () => (")
	r.side(n.Consequent)
	r.replace(colon, colon+1, "), () => (")
	r.side(n.Alternate)
	r.insert(alternate.to, "), %d)", test.from)
}

func (r *rewriter) unary(n *ast.UnaryExpression) {
	written := n.Operator.String()
	if n.Operator == token.TYPEOF {
		r.typeOf(n)
		return
	}
	if n.Postfix || n.Operator != token.MINUS && n.Operator != token.PLUS && n.Operator != token.NOT && n.Operator != token.BITWISE_NOT {
		r.parts(n)
		return
	}
	at := offset(n.Idx)
	operand := r.after(at+len(written), n.Operand)
	r.replace(at, at+len(written), call("prefix")+strconv.Quote(written)+", ")
	r.walk(n.Operand)
	r.insert(operand.to, ", %d)", at)
}

// typeOf rewrites typeof, which may ask for a name that does not exist.
func (r *rewriter) typeOf(n *ast.UnaryExpression) {
	at := offset(n.Idx)
	operand := r.after(at+len("typeof"), n.Operand)
	if _, ok := n.Operand.(*ast.Identifier); ok {
		r.replace(at, operand.to, fmt.Sprintf(`(typeof %s === "object" ? %s%[1]s, %[3]d) : typeof %[1]s)`, r.script[operand.from:operand.to], call("typed"), at))
		return
	}
	r.replace(at, at+len("typeof"), call("typed"))
	r.walk(n.Operand)
	r.insert(operand.to, ", %d)", at)
}

// plainTarget matches the left side of an assignment that may be evaluated twice.
var plainTarget = regexp.MustCompile(`^[\w$.#]+$`)

// assign rewrites "x += y" to "x = x + y" in terms of the prelude.
func (r *rewriter) assign(n *ast.AssignExpression, questions []string) {
	if n.Operator == token.ASSIGN {
		if target, ok := n.Left.(*ast.BracketExpression); ok && !r.defaults[n] {
			r.put(target, n.Right)
			return
		}
		if r.defaults[n] { // a part of a pattern, whose defaults the host sees behind it
			r.parts(n)
			return
		}
		defaults := patternDefaults(nil, "", n.Left, nil)
		looks := looksAt(defaults)
		if looks != "" {
			r.insert(r.extent(n).from, "%s", call("first"))
		}
		r.taken(defaults, n.Left)
		r.walk(n.Right)
		if looks != "" {
			r.insert(r.enclosed(n.Right).to, ", %s)", looks)
		}
		return
	}
	written := n.Operator.String()
	left, right, at := r.around(n.Left, n.Right, written+"=")
	to := at + len(written) + 1
	target := r.script[left.from:left.to]
	_, isLazy := lazy[n.Operator]
	switch {
	case suspends(n.Right):
		r.refused = append(r.refused, at)
		r.parts(n)
		return
	case plainTarget.MatchString(target) && isLazy:
		// JavaScript assigns only if it takes the right side.
		r.replace(left.from, to, fmt.Sprintf("%s%q, %s, () => (%[3]s =", call("logical"), written, target))
		r.side(n.Right)
		r.insert(right.to, "), (%s) => (%s = %[1]s), %[3]d", hostName+"value", target, left.from)
		if len(questions) > 0 && r.in() != nil {
			r.insert(right.to, ", () => %s", questions[0])
		}
		r.insert(right.to, ")")
		return
	case plainTarget.MatchString(target):
		r.replace(at, to, "= "+call("infix")+strconv.Quote(written)+", "+target+",")
		r.walk(n.Right)
		r.insert(right.to, ", %d)", left.from)
		return
	}
	switch target := n.Left.(type) {
	case *ast.DotExpression:
		r.insert(left.from, "%s%s, ", call("assign"), strconv.Quote(written))
		r.walk(target.Left)
		dot := r.closing(r.extent(target.Left).to, nil)
		r.replace(dot, offset(target.Identifier.Idx), ", \"")
		r.replace(left.to, left.to, "\"")
	case *ast.BracketExpression:
		r.insert(left.from, "%s%s, ", call("assign"), strconv.Quote(written))
		r.walk(target.Left)
		bracket := offset(target.LeftBracket)
		r.replace(bracket, bracket+1, ", (")
		r.walk(target.Member)
		r.replace(offset(target.RightBracket), offset(target.RightBracket)+1, ")")
	default:
		r.parts(n)
		return
	}
	r.replace(at, to, ", () => (")
	if isLazy {
		r.side(n.Right)
	} else {
		r.walk(n.Right)
	}
	r.insert(right.to, "), %d)", left.from)
}

// put rewrites "x[i] = y".
func (r *rewriter) put(target *ast.BracketExpression, value ast.Expression) {
	if _, super := target.Left.(*ast.SuperExpression); super || suspends(target.Left) || suspends(target.Member) || suspends(value) {
		r.walk(target)
		r.walk(value)
		return
	}
	left, right, at := r.around(target, value, "=")
	r.insert(left.from, "%s", call("put"))
	r.walk(target.Left)
	bracket := offset(target.LeftBracket)
	r.replace(bracket, bracket+1, ", (")
	r.walk(target.Member)
	r.replace(offset(target.RightBracket), offset(target.RightBracket)+1, ")")
	r.replace(at, at+1, ",")
	r.walk(value)
	r.insert(right.to, ", %d)", left.from)
}

// callSite notes where the parts of a call are.
func (r *rewriter) callSite(n *ast.CallExpression) *callSite {
	start := r.extent(n).from
	site := &callSite{start: start, at: start}
	if dot, ok := n.Callee.(*ast.DotExpression); ok {
		site.at = offset(dot.Identifier.Idx)
	}
	for _, arg := range n.ArgumentList {
		if spread, ok := arg.(*ast.SpreadElement); ok {
			arg = spread.Expression
		}
		site.args = append(site.args, r.extent(arg).from)
	}
	if len(n.ArgumentList) == 0 {
		return site
	}
	options, ok := n.ArgumentList[0].(*ast.ObjectLiteral)
	if !ok {
		return site
	}
	site.options = make(map[string]span)
	for _, property := range options.Value {
		switch p := property.(type) {
		case *ast.PropertyShort:
			at := offset(p.Name.Idx)
			site.options[p.Name.Name.String()] = span{at, at}
		case *ast.PropertyKeyed:
			if name, ok := p.Key.(*ast.StringLiteral); ok && !p.Computed {
				site.options[name.Value.String()] = span{offset(name.Idx), r.extent(p.Value).from}
			}
		}
	}
	return site
}

// suspends reports whether an expression yields or awaits itself, not in a function inside.
func suspends(e ast.Expression) bool {
	found := false
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n.(type) {
		case *ast.YieldExpression, *ast.AwaitExpression:
			found = true
		case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		default:
			if !found {
				eachPart(n, look)
			}
		}
	}
	look(e)
	return found
}

// namesArguments reports whether a function or its parameters, or an arrow function inside, use its arguments.
func namesArguments(part ast.Node) bool {
	found := false
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Identifier:
			found = found || n.Name == "arguments"
		case *ast.FunctionLiteral:
		default:
			if !found {
				eachPart(n, look)
			}
		}
	}
	eachPart(part, look)
	return found
}

// parts walks the parts of a node.
func (r *rewriter) parts(n ast.Node) { eachPart(n, r.walk) }

var nodeType = reflect.TypeFor[ast.Node]()

// eachPart calls visit with the nodes right below n, in the order of their fields. The text has
// the same order.
func eachPart(n ast.Node, visit func(ast.Node)) {
	v := reflect.ValueOf(n)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Name == "DeclarationList" {
			continue // of declarations that the body has too
		}
		eachIn(v.Field(i), visit)
	}
}

func eachIn(v reflect.Value, visit func(ast.Node)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if n, ok := v.Interface().(ast.Node); ok {
			visit(n)
		}
	case reflect.Struct:
		if v.CanAddr() && v.Addr().Type().Implements(nodeType) {
			visit(v.Addr().Interface().(ast.Node))
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachIn(v.Index(i), visit)
		}
	}
}
