package builtin

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The bounds that are not in a range.
const (
	exclusiveNone = "none"
	exclusiveMin  = "min"
	exclusiveMax  = "max"
	exclusiveBoth = "both"
)

// memberRange is the part of a sorted set that a node takes. Immutable once built; any goroutine.
type memberRange struct {
	order    string // BYSCORE or BYLEX
	min, max rangeBound
}

// rangeBound is an end of a memberRange. Immutable once built; any goroutine.
type rangeBound struct {
	param     string            // of the node
	score     *expr.Expr        // of BYSCORE; nil: no bound
	member    *plan.KeyTemplate // of BYLEX; nil: no bound
	exclusive bool
	open      string // what Redis takes for no bound
}

// rangeOf returns the range that the parameters state, nil if they state none.
func rangeOf(p *plan.NodeParams) (*memberRange, error) {
	r := &memberRange{order: "BYSCORE", min: rangeBound{param: "min", open: "-inf"}, max: rangeBound{param: "max", open: "+inf"}}
	scores := p.Given("min") || p.Given("max")
	if p.Given("min_member") || p.Given("max_member") {
		if scores {
			return nil, plan.ParamErrorf("min_member", "and max_member are a range of members, and min and max one of scores: a node takes one of the two")
		}
		r = &memberRange{order: "BYLEX", min: rangeBound{param: "min_member", open: "-"}, max: rangeBound{param: "max_member", open: "+"}}
	}
	exclusive := p.String("exclusive")
	r.min.exclusive, r.max.exclusive = exclusive == exclusiveMin || exclusive == exclusiveBoth, exclusive == exclusiveMax || exclusive == exclusiveBoth
	stated := false
	for _, b := range []*rangeBound{&r.min, &r.max} {
		if !p.Given(b.param) {
			if b.exclusive {
				return nil, plan.ParamErrorf("exclusive", "is %q, and there is no %s", exclusive, b.param)
			}
			continue
		}
		stated = true
		if p.String("kind") != kindSortedSet {
			return nil, plan.ParamErrorf(b.param, "is for kind %q, not %q", kindSortedSet, p.String("kind"))
		}
		if r.order == "BYLEX" {
			b.member = p.Template(b.param)
		} else {
			b.score = p.Expr(b.param)
		}
		if err := b.check(); err != nil {
			return nil, err
		}
	}
	switch {
	case !stated:
		return nil, nil
	case r.order == "BYLEX" && p.Key("score") != nil:
		return nil, plan.ParamErrorf("score", "is not for a range of members, whose scores are all the same")
	}
	return r, nil
}

// check refuses a bound that differs by row, or that is wrong for each request.
func (b *rangeBound) check() error {
	if b.member != nil {
		if b.member.PerRow() {
			return plan.ParamErrorf(b.param, "has {id}, and one range serves all rows")
		}
		return nil
	}
	if len(b.score.Keys()) > 0 {
		return plan.ParamErrorf(b.param, "reads a column, and one range serves all rows")
	}
	if b.score.IsConstant() {
		if value, ok := b.score.Value(nil); !ok || math.IsNaN(value) {
			return plan.ParamErrorf(b.param, "is %s, must be a number", nullOrNaN(ok))
		}
	}
	return nil
}

func nullOrNaN(there bool) string {
	if there {
		return "not a number"
	}
	return "null"
}

// shape returns the meaning of a read with the range in it, or "" if the range depends on the request.
func (r *memberRange) shape(of string) string {
	of += " " + r.order
	for _, b := range []*rangeBound{&r.min, &r.max} {
		text := b.open
		switch {
		case b.score != nil:
			if !b.score.IsConstant() {
				return ""
			}
			value, _ := b.score.Value(nil)
			text = b.scoreText(value)
		case b.member != nil:
			before, _, ok := b.member.Literal()
			if !ok {
				return ""
			}
			text = b.memberText(before)
		}
		of += " " + strconv.Quote(text)
	}
	return of
}

// rangeArgs is a memberRange as a command takes it. Immutable once built; any goroutine.
type rangeArgs struct{ order, min, max string }

// arguments returns the range of this request. The error says that a bound is not a number, or null: then which parameter of the request is.
func (r *memberRange) arguments(c *task.Ctx) (*rangeArgs, error) {
	args := &rangeArgs{order: r.order}
	var err error
	if args.min, err = r.min.argument(c); err != nil {
		return nil, err
	}
	args.max, err = r.max.argument(c)
	return args, err
}

func (b *rangeBound) argument(c *task.Ctx) (string, error) {
	switch {
	case b.score != nil:
		value, ok := b.score.Value(c.Params)
		if !ok || math.IsNaN(value) {
			return "", b.fault(c, b.score.Params(), nullOrNaN(ok))
		}
		return b.scoreText(value), nil
	case b.member != nil:
		text, err := c.RedisKey(b.member)
		if lacked := (*expr.ParamError)(nil); errors.As(err, &lacked) && !c.Params.Has(lacked.Param) {
			return "", b.fault(c, []registry.ParamID{lacked.Param}, "null")
		} else if err != nil {
			return "", err
		}
		return b.memberText(text.Prefix), nil
	}
	return b.open, nil
}

// fault returns the error for a bound without a value in this request. If a parameter is missing, the request is at
// fault.
func (b *rangeBound) fault(c *task.Ctx, params []registry.ParamID, what string) error {
	err := task.Invalidf("%s is %s", b.param, what)
	for _, id := range params {
		if !c.Params.Has(id) {
			return &expr.ParamError{Param: id, Err: err}
		}
	}
	return err
}

func (b *rangeBound) scoreText(value float64) string {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if math.IsInf(value, 0) {
		text += "inity" // The embedded Redis treats +Inf as inclusive, whatever precedes it.
	}
	if b.exclusive {
		return "(" + text
	}
	return text
}

func (b *rangeBound) memberText(member string) string {
	if b.exclusive {
		return "(" + member
	}
	return "[" + member
}

// ask appends the command for so many members of the range, from first on.
func (a *rangeArgs) ask(b *resp.Batch, key []byte, reverse bool, first, count int, scores bool) {
	from, to, arguments := a.min, a.max, 8
	if !reverse {
		from, to, arguments = a.max, a.min, arguments+1
	}
	if scores {
		arguments++
	}
	b.Begin(arguments)
	b.ArgString("ZRANGE")
	b.ArgBytes(key)
	b.ArgString(from)
	b.ArgString(to)
	b.ArgString(a.order)
	if !reverse {
		b.ArgString("REV")
	}
	b.ArgString("LIMIT")
	b.ArgInt(int64(first))
	b.ArgInt(int64(count))
	if scores {
		b.ArgString("WITHSCORES")
	}
}

// explainCandidates says which range a row is from, or which command found it.
func explainCandidates(c *task.Ctx, _ rowset.RowSet) task.Account {
	prepared := c.Node.Prepared.(*preparedCandidates)
	var values []task.Value
	switch {
	case prepared.stated != nil:
		asked, err := prepared.stated.arguments(c)
		if err != nil {
			return task.Account{}
		}
		values = []task.Value{{Name: "command", Value: errtext.Cut(strings.Join(asked.texts, " "))}}
	case prepared.within != nil:
		args, err := prepared.within.arguments(c)
		if err != nil {
			return task.Account{}
		}
		values = []task.Value{{Name: prepared.within.min.param, Value: args.min}, {Name: prepared.within.max.param, Value: args.max}}
	default:
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		if at.Side != task.InResult {
			return task.Reason{}
		}
		return task.Reason{Values: values}
	}}
}
