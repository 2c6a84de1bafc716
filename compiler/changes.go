package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// Behind a token both sides of ?: and the right side of && run, where JavaScript runs one for each row or none. So they may
// change only what they have made themselves, and so may the functions that they call. The prelude counts tries of
// such sides. The rewritten code tells it in which try a variable or an object came into being, and asks it before each
// change.

// changes is what the rewriter knows about variables while it walks. One goroutine at a time.
type changes struct {
	scope     *scope
	functions int // number of those that the walk has met
	// written are members that are changed, or are methods that change their object, with the function that asks.
	written map[ast.Expression]string
	methods map[*ast.FunctionLiteral]bool // of classes
}

// scope has the variables of a function, a block or a side.
type scope struct {
	up    *scope
	in    *function // nil: a module
	names []string
}

// function is a function, or something that runs at another time than what is around it: a side, a field of a class.
type function struct {
	number int
	body   bool // the walk is where a marker is visible
	marked bool // something inside changes a variable, so that it needs a marker: the number of tries when it began
}

func (f *function) marker() string { return fmt.Sprintf("%sm%d", hostName, f.number) }

// generatorMarker is a parameter of each generator, whose default is evaluated when the generator is made.
const generatorMarker = hostName + "g"

func (r *rewriter) in() *function {
	if r.scope == nil {
		return nil
	}
	return r.scope.in
}

// inside walks what sees these names.
func (r *rewriter) inside(f *function, names []string, walk func()) {
	r.scope = &scope{up: r.scope, in: f, names: names}
	walk()
	r.scope = r.scope.up
}

// side walks an expression that may be skipped.
func (r *rewriter) side(e ast.Expression) {
	r.inside(&function{}, nil, func() { r.walk(e) })
}

// changesName returns the question before the change of a variable; none if the function that changes it has declared it.
func (r *rewriter) changesName(name string, at int) []string {
	s := r.scope
	for s != nil && !slices.Contains(s.names, name) {
		s = s.up
	}
	var f *function
	if s != nil {
		f = s.in
	}
	switch {
	case f == r.in():
		return nil
	case f == nil || !f.body:
		return []string{r.outer(at)}
	}
	f.marked = true
	return []string{fmt.Sprintf("%s%s, %d)", call("own"), f.marker(), at)}
}

// outer is the question before something that is always older than a try.
func (r *rewriter) outer(at int) string { return fmt.Sprintf("%s0, %d)", call("own"), at) }

// changedBy returns the questions before an expression that changes something. Objects that stand in it ask later.
func (r *rewriter) changedBy(e ast.Expression) []string {
	switch n := e.(type) {
	case *ast.AssignExpression:
		if r.defaults[n] {
			return nil
		}
		if n.Operator != token.ASSIGN && plainTarget.MatchString(r.textOf(n.Left)) {
			switch target := n.Left.(type) {
			case *ast.DotExpression:
				return r.changesObject(r.textOf(target.Left), n)
			case *ast.PrivateDotExpression:
				return r.changesObject(r.textOf(target.Left), n)
			}
		}
		return r.changesTarget(n.Left)
	case *ast.UnaryExpression:
		if n.Operator == token.INCREMENT || n.Operator == token.DECREMENT || n.Operator == token.DELETE {
			return r.changesTarget(n.Operand)
		}
	}
	return nil
}

func (r *rewriter) textOf(e ast.Expression) string {
	s := r.extent(e)
	return r.script[s.from:s.to]
}

// changesObject returns the question before the change of an object that may be named twice.
func (r *rewriter) changesObject(object string, e ast.Expression) []string {
	if object == "super" {
		object = "this"
	}
	return []string{fmt.Sprintf("%s%s, %d)", call("mine"), object, r.extent(e).from)}
}

// changesTarget returns the questions before the change of a target and of its parts, and notes the members.
func (r *rewriter) changesTarget(target ast.Node) (all []string) {
	member := func(e, object ast.Expression) {
		if _, super := object.(*ast.SuperExpression); super {
			all = append(all, r.changesObject("this", e)...)
			return
		}
		r.written[e] = "mine"
	}
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Identifier:
			all = append(all, r.changesName(n.Name.String(), offset(n.Idx))...)
		case *ast.DotExpression:
			member(n, n.Left)
		case *ast.BracketExpression:
			member(n, n.Left)
		case *ast.PrivateDotExpression:
			member(n, n.Left)
		case *ast.AssignExpression: // with a default
			look(n.Left)
		case *ast.PropertyShort:
			look(&n.Name)
		case *ast.PropertyKeyed:
			look(n.Value)
		case *ast.OptionalChain: // delete x?.y
			if of, ok := n.Expression.(*ast.DotExpression); ok {
				if _, direct := of.Left.(*ast.Optional); direct {
					look(of)
					return
				}
			}
			all = append(all, r.outer(r.extent(n).from))
		case *ast.ObjectPattern, *ast.ArrayPattern:
			eachPart(n, look)
		}
	}
	look(target)
	return all
}

// checked walks an expression behind questions.
func (r *rewriter) checked(e ast.Expression, questions []string, walk func()) {
	if len(questions) == 0 || r.in() == nil {
		walk()
		return
	}
	s := r.extent(e)
	r.insert(s.from, "(%s, ", strings.Join(questions, ", "))
	walk()
	r.insert(s.to, ")")
}

// member walks x.y, x[y] or x.#y.
func (r *rewriter) member(n, object ast.Expression) {
	ask := r.written[n]
	if ask == "" || r.in() == nil {
		r.parts(n)
		return
	}
	s := r.extent(object)
	r.insert(s.from, "%s", call(ask))
	r.walk(object)
	r.insert(s.to, ", %d)", s.from)
	if bracket, ok := n.(*ast.BracketExpression); ok {
		r.walk(bracket.Member)
	}
}

// makesIterator reports whether a call makes an iterator of the engine.
func makesIterator(n *ast.CallExpression) bool {
	switch callee := n.Callee.(type) {
	case *ast.DotExpression:
		chained := false
		var look func(ast.Node)
		look = func(n ast.Node) {
			if _, ok := n.(*ast.Optional); ok {
				chained = true
			}
			eachPart(n, look)
		}
		look(callee) // What stands behind x?.y is part of it.
		return !chained && slices.Contains([]string{"entries", "keys", "values", "matchAll"}, callee.Identifier.Name.String())
	}
	return false
}

// born walks an expression that makes an object.
func (r *rewriter) born(e ast.Expression, walk func()) {
	s := r.extent(e)
	if r.in() == nil || strings.HasSuffix(strings.TrimRight(r.script[:s.from], " \n"), "new") {
		walk()
		return
	}
	r.insert(s.from, "%s", call("born"))
	walk()
	r.insert(s.to, ")")
}

// made walks what calls a constructor.
func (r *rewriter) made(e ast.Expression) {
	s := r.extent(e)
	if strings.HasSuffix(strings.TrimRight(r.script[:s.from], " \n"), "new") { // new new A()()
		r.parts(e)
		return
	}
	r.insert(s.from, "%s", call("constructed"))
	r.parts(e)
	r.insert(s.to, ", %d)", s.from)
}

// function walks a function that is not an arrow function.
func (r *rewriter) function(n *ast.FunctionLiteral) {
	if n.Body == nil {
		r.parts(n)
		return
	}
	f, at := r.enter(n.ParameterList, n.Body, n.Body), offset(n.Body.LeftBrace)+1
	if usesThis(n.Body) && !r.methods[n] {
		r.insert(at, "new.target && %sthis);", call("born"))
	}
	switch {
	case n.Generator && (directed(n.Body) || n.ParameterList.Rest != nil):
		r.insert(at, "const %s = 0;%[2]s%[1]s, %[3]d);", generatorMarker, call("own"), at)
	case n.Generator:
		comma := ""
		if len(n.ParameterList.List) > 0 {
			comma = ", "
		}
		r.insert(offset(n.ParameterList.Closing), "%s%s = %s)", comma, generatorMarker, call("now"))
		r.insert(at, "%s%s, %d);", call("own"), generatorMarker, at)
	}
	r.insert(at, "%s", f.begins(n.ParameterList))
}

// enter walks the parameters and the body of a function. hoists is the block that may declare variables by var, or nil.
func (r *rewriter) enter(parameters *ast.ParameterList, body ast.Node, hoists *ast.BlockStatement) *function {
	r.functions++
	f := &function{number: r.functions}
	r.inside(f, append(namesIn(parameters), hoisted(hoists)...), func() {
		r.taken(parameterDefaults(parameters), parameters)
		f.body = true
		r.walk(body)
	})
	return f
}

// begins is the code with which the body of a function begins.
func (f *function) begins(parameters *ast.ParameterList) (text string) {
	if f.marked {
		text = fmt.Sprintf("const %s = %s);", f.marker(), call("now"))
	}
	for _, name := range rests(parameters) {
		text += call("born") + name + ");"
	}
	if looks := looksAt(parameterDefaults(parameters)); looks != "" {
		text += looks + ";"
	}
	return text
}

// patternDefault is a default of a parameter, or of a part that a pattern takes from an object or a list.
type patternDefault struct {
	target string // that gets the value; "" if a text cannot name it twice
	member string // of the object; "" for a parameter
	at     int    // offset of the default
	value  ast.Expression
}

// patternDefaults appends the defaults of a target, which takes a member and has a default or nil, and of its parts.
func patternDefaults(all []patternDefault, member string, target ast.Node, value ast.Expression) []patternDefault {
	if value != nil {
		all = append(all, patternDefault{targetText(target), member, offset(value.Idx0()), value})
	}
	assigned := func(name string, target ast.Expression) {
		if assign, ok := target.(*ast.AssignExpression); ok {
			all = patternDefaults(all, name, assign.Left, assign.Right)
			return
		}
		all = patternDefaults(all, name, target, nil)
	}
	switch p := target.(type) {
	case *ast.ObjectPattern:
		for _, property := range p.Properties {
			switch p := property.(type) {
			case *ast.PropertyShort:
				all = patternDefaults(all, p.Name.Name.String(), &p.Name, p.Initializer)
			case *ast.PropertyKeyed:
				member, _ := p.Key.(*ast.StringLiteral)
				if member == nil || p.Computed {
					member = new(ast.StringLiteral)
				}
				assigned(member.Value.String(), p.Value)
			}
		}
	case *ast.ArrayPattern:
		for _, element := range p.Elements {
			assigned("", element)
		}
	}
	return all
}

// targetText returns the text of a variable, or of a member of one. Of a target that a second look may change it returns "".
func targetText(target ast.Node) string {
	switch t := target.(type) {
	case *ast.Identifier:
		return t.Name.String()
	case *ast.ThisExpression:
		return "this"
	case *ast.NumberLiteral:
		return t.Literal
	case *ast.DotExpression:
		if of := targetText(t.Left); of != "" {
			return of + "." + t.Identifier.Name.String()
		}
	case *ast.PrivateDotExpression:
		if of := targetText(t.Left); of != "" {
			return of + ".#" + t.Identifier.Name.String()
		}
	case *ast.BracketExpression:
		if of, member := targetText(t.Left), targetText(t.Member); of != "" && member != "" {
			return of + "[" + member + "]"
		}
	}
	return ""
}

// parameterDefaults returns the defaults of the parameters of a function.
func parameterDefaults(parameters *ast.ParameterList) (all []patternDefault) {
	for _, b := range parameters.List {
		all = patternDefaults(all, "", b.Target, b.Initializer)
	}
	return all
}

// looksAt is an expression that has the host see the targets with defaults; "" if there are none.
func looksAt(defaults []patternDefault) string {
	var looks []string
	for _, d := range defaults {
		if d.target != "" {
			looks = append(looks, fmt.Sprintf("%s%s, %d, %q)", call("given"), d.target, d.at, d.member))
		}
	}
	return strings.Join(looks, ", ")
}

// taken walks a target with defaults. The host sees which of them are taken.
func (r *rewriter) taken(defaults []patternDefault, target ast.Node) {
	defaults = slices.DeleteFunc(slices.Clone(defaults), func(d patternDefault) bool { return !mayBeToken(d.value) })
	for _, d := range defaults {
		r.insert(r.extent(d.value).from, "%s(", call("taken"))
	}
	r.walk(target)
	for _, d := range defaults {
		r.insert(r.extent(d.value).to, "), %d)", d.at)
	}
}

// mayBeToken reports whether an expression may be a token that a request or a row may lack.
func mayBeToken(e ast.Expression) bool {
	switch e.(type) {
	case *ast.Identifier, *ast.DotExpression, *ast.BracketExpression, *ast.PrivateDotExpression, *ast.CallExpression,
		*ast.ConditionalExpression, *ast.AssignExpression, *ast.SequenceExpression, *ast.OptionalChain, *ast.BinaryExpression, *ast.AwaitExpression, *ast.NewExpression:
		return true
	}
	return false
}

// arrow walks an arrow function. An expression becomes a block if something stands before it.
func (r *rewriter) arrow(n *ast.ArrowFunctionLiteral) {
	if block, ok := n.Body.(*ast.BlockStatement); ok {
		f := r.enter(n.ParameterList, block, block)
		r.insert(offset(block.LeftBrace)+1, "%s", f.begins(n.ParameterList))
		return
	}
	e := n.Body.(*ast.ExpressionBody).Expression
	arrow := strings.LastIndex(r.script[:r.extent(e).from], "=>")
	s := r.after(arrow+len("=>"), e)
	first := len(r.edits)
	f := r.enter(n.ParameterList, n.Body, nil)
	if begins := f.begins(n.ParameterList); begins != "" {
		r.edits = slices.Insert(r.edits, first, edit{span{s.from, s.from}, "{ " + begins + " return ("})
		r.insert(s.to, "); }")
	}
}

// class walks a class. Its fields get their values when an object is made.
func (r *rewriter) class(n *ast.ClassLiteral) {
	if n.SuperClass != nil {
		r.wrap("heritage", n.SuperClass)
	}
	constructs := n.SuperClass != nil
	for _, element := range n.Body {
		if method, ok := element.(*ast.MethodDefinition); ok && isConstructor(method) {
			constructs = true
		}
	}
	for _, element := range n.Body {
		switch e := element.(type) {
		case *ast.FieldDefinition:
			r.walk(e.Key)
			if e.Initializer != nil {
				r.side(e.Initializer)
			}
		case *ast.MethodDefinition:
			r.walk(e.Key)
			r.methods[e.Body] = true
			if isConstructor(e) && n.SuperClass == nil {
				r.insert(offset(e.Body.Body.LeftBrace)+1, "%sthis);", call("born"))
			}
			r.walk(e.Body)
		case *ast.ClassStaticBlock:
			r.inside(&function{}, hoisted(e.Block), func() { r.walk(e.Block) })
		}
	}
	if !constructs { // It tells of what it makes, as one that the plan writes.
		r.insert(offset(n.RightBrace), "; constructor() { %sthis); } ", call("born"))
	}
}

func isConstructor(e *ast.MethodDefinition) bool {
	name, ok := e.Key.(*ast.StringLiteral)
	return ok && !e.Static && !e.Computed && name.Value == "constructor"
}

// resumed walks a yield, behind which the generator asks whether it is older than the try.
func (r *rewriter) resumed(n *ast.YieldExpression) {
	s := r.extent(n)
	r.insert(s.from, "%s", call("resumed"))
	r.parts(n)
	r.insert(s.to, ", %s, %d)", generatorMarker, s.from)
}

// each walks a loop over members or elements.
func (r *rewriter) each(into ast.ForInto, source ast.Expression, body ast.Statement) {
	var names, questions []string
	var defaults []patternDefault
	switch to := into.(type) {
	case *ast.ForDeclaration:
		names, defaults = namesIn(to.Target), patternDefaults(nil, "", to.Target, nil)
	case *ast.ForIntoExpression:
		questions, defaults = r.changesTarget(to.Expression), patternDefaults(nil, "", to.Expression, nil)
	}
	r.inside(r.in(), names, func() {
		r.taken(defaults, into)
		s := r.extent(source)
		r.insert(s.from, "%s", call("each"))
		r.checked(source, questions, func() { r.walk(source) })
		r.insert(s.to, ", %d)", s.from)
		if looks := looksAt(defaults); looks != "" {
			r.insert(s.to+strings.IndexByte(r.script[s.to:], ')')+1, "if (%s, true)", looks)
		}
		r.walk(body)
	})
}

// directed reports whether a function begins with a directive, such as "use strict".
func directed(body *ast.BlockStatement) bool {
	if len(body.List) == 0 {
		return false
	}
	first, ok := body.List[0].(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	_, ok = first.Expression.(*ast.StringLiteral)
	return ok
}

// usesThis reports whether a function, or an arrow function inside, has this.
func usesThis(body ast.Node) bool {
	found := false
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n.(type) {
		case *ast.ThisExpression:
			found = true
		case *ast.FunctionLiteral:
		default:
			if !found {
				eachPart(n, look)
			}
		}
	}
	look(body)
	return found
}

// rests returns the names of the lists and objects that ...rest makes in parameters or in a pattern.
func rests(n ast.Node) (names []string) {
	rest := func(e ast.Expression) {
		if name, ok := e.(*ast.Identifier); ok {
			names = append(names, name.Name.String())
		}
	}
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n := n.(type) {
		case *ast.PropertyKeyed:
			look(n.Value)
			return
		case *ast.AssignExpression:
			look(n.Left)
			return
		case *ast.Binding:
			look(n.Target)
			return
		case *ast.ParameterList:
			rest(n.Rest)
		case *ast.ObjectPattern:
			rest(n.Rest)
		case *ast.ArrayPattern:
			rest(n.Rest)
		default:
			return
		}
		eachPart(n, look)
	}
	look(n)
	return names
}

// namesIn returns the names that a declaration, a pattern or parameters declare.
func namesIn(n ast.Node) (names []string) {
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Identifier:
			names = append(names, n.Name.String())
		case *ast.PropertyShort:
			names = append(names, n.Name.Name.String())
		case *ast.PropertyKeyed:
			look(n.Value)
		case *ast.AssignExpression:
			look(n.Left)
		case *ast.Binding:
			look(n.Target)
		case *ast.ParameterList, *ast.ObjectPattern, *ast.ArrayPattern, *ast.LexicalDeclaration:
			eachPart(n, look)
		}
	}
	look(n)
	return names
}

// lexicals returns the names that the statements of a block declare for it.
func lexicals(list []ast.Statement) (names []string) {
	for _, statement := range list {
		switch n := statement.(type) {
		case *ast.LexicalDeclaration:
			names = append(names, namesIn(n)...)
		case *ast.FunctionDeclaration:
			names = append(names, n.Function.Name.Name.String())
		case *ast.ClassDeclaration:
			names = append(names, n.Class.Name.Name.String())
		}
	}
	return names
}

// lexical returns the names that the head of a loop declares for it.
func lexical(head ast.ForLoopInitializer) []string {
	if declaration, ok := head.(*ast.ForLoopInitializerLexicalDecl); ok {
		return namesIn(&declaration.LexicalDeclaration)
	}
	return nil
}

// hoisted returns the names that var declares in a function.
func hoisted(body *ast.BlockStatement) (names []string) {
	if body == nil {
		return nil
	}
	var look func(ast.Node)
	look = func(n ast.Node) {
		var list []*ast.Binding
		switch n := n.(type) {
		case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral, *ast.ClassLiteral:
			return
		case *ast.VariableStatement:
			list = n.List
		case *ast.ForLoopInitializerVarDeclList:
			list = n.List
		case *ast.ForIntoVar:
			list = []*ast.Binding{n.Binding}
		}
		for _, binding := range list {
			names = append(names, namesIn(binding)...)
		}
		eachPart(n, look)
	}
	look(body)
	return names
}
