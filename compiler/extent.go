package compiler

import (
	"strings"

	"github.com/dop251/goja/ast"
)

// extent returns where an expression begins and ends. Parentheses inside count, those around it do
// not.
func (r *rewriter) extent(e ast.Expression) span {
	if s, ok := r.extents[e]; ok {
		return s
	}
	s := r.measure(e)
	r.extents[e] = s
	return s
}

func (r *rewriter) measure(e ast.Expression) span {
	switch n := e.(type) {
	case *ast.BinaryExpression:
		operator := n.Operator.String()
		if _, private := n.Left.(*ast.PrivateIdentifier); private { // The tree has what follows the operator.
			operator = "in"
		}
		left, right, _ := r.around(n.Left, n.Right, operator)
		return span{left.from, right.to}
	case *ast.AssignExpression:
		written := "="
		if n.Operator.String() != "=" {
			written = n.Operator.String() + "="
		}
		left, right, _ := r.around(n.Left, n.Right, written)
		return span{left.from, right.to}
	case *ast.ConditionalExpression:
		left, _, _ := r.around(n.Test, n.Consequent, "?")
		_, right, _ := r.around(n.Consequent, n.Alternate, ":")
		return span{left.from, right.to}
	case *ast.SequenceExpression:
		last := len(n.Sequence) - 1
		left, _, _ := r.around(n.Sequence[0], n.Sequence[min(1, last)], ",")
		_, right, _ := r.around(n.Sequence[max(0, last-1)], n.Sequence[last], ",")
		return span{left.from, right.to}
	case *ast.DotExpression:
		return span{r.enclosed(n.Left).from, r.nameEnd(offset(n.Identifier.Idx))}
	case *ast.PrivateDotExpression:
		return span{r.enclosed(n.Left).from, r.nameEnd(offset(n.Identifier.Idx))}
	case *ast.BracketExpression:
		return span{r.enclosed(n.Left).from, offset(n.RightBracket) + 1}
	case *ast.CallExpression:
		return span{r.enclosed(n.Callee).from, offset(n.RightParenthesis) + 1}
	case *ast.TemplateLiteral:
		from := offset(n.OpenQuote)
		if n.Tag != nil {
			from = r.enclosed(n.Tag).from
		}
		return span{from, offset(n.CloseQuote) + 1}
	case *ast.UnaryExpression:
		return r.measureUnary(n)
	case *ast.OptionalChain:
		return r.extent(n.Expression)
	case *ast.Optional:
		return r.extent(n.Expression)
	case *ast.SpreadElement:
		return r.extent(n.Expression)
	}
	if n, ok := e.(*ast.MetaProperty); ok { // new.target, whose first position the tree lacks
		property := offset(n.Property.Idx)
		return span{strings.LastIndex(r.script[:property], "new"), r.nameEnd(property)}
	}
	// All others start with a token of their own, so their first position is exact.
	from := offset(e.Idx0())
	switch n := e.(type) {
	case *ast.NewExpression:
		if n.RightParenthesis > 0 {
			return span{from, offset(n.RightParenthesis) + 1}
		}
		return span{from, r.after(from+len("new"), n.Callee).to}
	case *ast.YieldExpression:
		if n.Argument == nil {
			return span{from, from + len("yield")}
		}
		return span{from, r.after(from+len("yield"), n.Argument).to}
	case *ast.AwaitExpression:
		return span{from, r.after(from+len("await"), n.Argument).to}
	case *ast.ArrowFunctionLiteral:
		if body, ok := n.Body.(*ast.ExpressionBody); ok {
			arrow := strings.LastIndex(r.script[:r.extent(body.Expression).from], "=>")
			return span{from, r.after(arrow+len("=>"), body.Expression).to}
		}
		return span{from, offset(n.Body.Idx1())}
	case *ast.Identifier:
		return span{from, r.nameEnd(from)}
	case *ast.PrivateIdentifier: // of #x in y
		return span{from, r.nameEnd(from)}
	}
	return span{from, offset(e.Idx1())} // exact for literals
}

func (r *rewriter) measureUnary(n *ast.UnaryExpression) span {
	written := n.Operator.String()
	if n.Postfix {
		operand := r.enclosed(n.Operand)
		return span{operand.from, operand.to + strings.Index(r.script[operand.to:], written) + len(written)}
	}
	from := offset(n.Idx)
	return span{from, r.after(from+len(written), n.Operand).to}
}

// around returns the operands of an operator with the parentheses around them, and where the
// operator is.
func (r *rewriter) around(left, right ast.Expression, operator string) (l, x span, at int) {
	l = r.enclosed(left)
	at = l.to + strings.Index(r.script[l.to:], operator)
	return l, r.after(at+len(operator), right), at
}

// enclosed returns an operand on the left side of something, with the parentheses around it.
func (r *rewriter) enclosed(e ast.Expression) span {
	s := r.extent(e)
	s.to = r.closing(s.to, func() { s.from = r.opening(s.from) })
	return s
}

// closing returns the end of the closing parentheses that follow an offset. It calls each for every
// one.
func (r *rewriter) closing(at int, each func()) int {
	for next := at; next < len(r.script); next++ {
		switch r.script[next] {
		case ' ', '\n':
			continue
		case ')':
			at = next + 1
			if each != nil {
				each()
			}
			continue
		}
		break
	}
	return at
}

// opening returns where the parenthesis is that opens before an offset.
func (r *rewriter) opening(at int) int {
	return max(0, strings.LastIndexByte(r.script[:at], '('))
}

// after returns an operand that follows an operator, which ends at from, with the parentheses
// around it.
func (r *rewriter) after(from int, e ast.Expression) span {
	s := r.extent(e)
	gap := r.script[from:s.from]
	if comment := strings.Index(gap, "/*"); comment >= 0 { // esbuild writes /* @__PURE__ */
		gap = gap[:comment]
	}
	for range strings.Count(gap, "(") {
		s.from = r.opening(s.from)
		s.to = s.to + strings.IndexByte(r.script[s.to:], ')') + 1
	}
	return s
}

// nameEnd returns the end of the name at an offset, including escapes.
func (r *rewriter) nameEnd(at int) int {
	for ; at < len(r.script); at++ {
		switch c := r.script[at]; {
		case c == '_', c == '$', c == '#', '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case c == '\\': // \u0061 or \u{61}
			if end := strings.IndexByte(r.script[at:], '}'); strings.HasPrefix(r.script[at:], `\u{`) && end > 0 {
				at += end
			}
		default:
			return at
		}
	}
	return at
}
