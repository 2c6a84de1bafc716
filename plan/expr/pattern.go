package expr

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Bounds of a pattern. With them, compiling one takes a worker some 20 ms at most, and
// matching a string of some 100 bytes no longer. Nothing stops either half-way.
const (
	patternMaxBytes      = 4 << 10   // of its text
	patternMaxClassSteps = 256 << 10 // of parsing its character classes, see patternScan
	patternMaxSize       = 256 << 10 // of the compiled pattern, in bytes; some 6,500 instructions
)

// patternsKept is how many compiled patterns from requests one leaf keeps, because the
// same few come again and again. A further one replaces any of them.
const patternsKept = 64

// matchSteps is the most steps that a match may take without asking whether to stop. A
// step is one instruction of the program at one byte of the string: some 10 ns.
const matchSteps = 1 << 20

// A pattern is the regular expression of a leaf: a literal, compiled with the plan, or
// a parameter. Any goroutine.
type pattern struct {
	literal    *matcher // nil: it is a parameter
	param      registry.ParamID
	ignoreCase bool

	mu   sync.RWMutex
	kept map[string]*matcher // guarded by mu; at most patternsKept
}

// A matcher is a compiled pattern or the error of compiling it. Immutable once built; any
// goroutine.
type matcher struct {
	re           *regexp.Regexp // has no captures
	instructions int            // upper bound of its program's size
	err          error
}

func newLiteralPattern(text string, ignoreCase bool) *pattern {
	return &pattern{literal: compilePattern(text, ignoreCase)}
}

func newParamPattern(param registry.ParamID, ignoreCase bool) *pattern {
	return &pattern{param: param, ignoreCase: ignoreCase}
}

// match reports whether the pattern matches somewhere in s. It returns
// rowset.ErrStopped once stop says so.
func (m *matcher) match(stop rowset.Stop, s string) (bool, error) {
	if stop == nil || len(s)*m.instructions <= matchSteps {
		return m.re.MatchString(s), nil
	}
	return m.matchSlowly(stop, s)
}

// matchSlowly is match for a string that takes many steps. It asks on its way whether to stop.
func (m *matcher) matchSlowly(stop rowset.Stop, s string) (bool, error) {
	runes := stoppableRunes{rest: s, stop: stop, interval: 1 + matchSteps/m.instructions}
	matched := m.re.MatchReader(&runes)
	if runes.stopped {
		return false, rowset.ErrStopped
	}
	return matched, nil
}

// stoppableRunes reads the characters of a string up to its end or until stop says so.
type stoppableRunes struct {
	rest     string
	stop     rowset.Stop
	interval int // characters from one question to the next
	left     int // characters until the next question
	stopped  bool
}

// ReadRune implements io.RuneReader.
func (r *stoppableRunes) ReadRune() (rune, int, error) {
	if r.left--; r.left < 0 {
		if r.stop.Cancelled() {
			r.rest, r.stopped = "", true
		}
		r.left = r.interval - 1
	}
	if r.rest == "" {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(r.rest)
	r.rest = r.rest[size:]
	return c, size, nil
}

// matcher returns the pattern compiled, for one request. The error wraps
// ErrBadPattern or ErrNullPattern, in a *ParamError if a parameter has the pattern.
func (p *pattern) matcher(params *Params) (*matcher, error) {
	m := p.literal
	if m == nil {
		text, ok := params.String(p.param)
		if !ok {
			return nil, &ParamError{p.param, ErrNullPattern}
		}
		if m = p.compiled(text); m.err != nil {
			return nil, &ParamError{p.param, m.err}
		}
	}
	return m, m.err
}

// compiled returns a pattern of a request from the cache, or compiles it.
func (p *pattern) compiled(text string) *matcher {
	if len(text) > patternMaxBytes { // refused, and not worth keeping
		return compilePattern(text, p.ignoreCase)
	}
	p.mu.RLock()
	m := p.kept[text]
	p.mu.RUnlock()
	if m != nil {
		return m
	}
	m = compilePattern(text, p.ignoreCase) // without the lock, so that others need not wait
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = make(map[string]*matcher)
	}
	if len(p.kept) >= patternsKept {
		for victim := range p.kept { // a random one
			delete(p.kept, victim)
			break
		}
	}
	p.kept[strings.Clone(text)] = m // the request's memory may be much larger
	return m
}

// compilePattern compiles an RE2 pattern for partial matches, without captures. It
// refuses a pattern that breaks one of the bounds.
func compilePattern(text string, ignoreCase bool) *matcher {
	refuse := func(format string, args ...any) *matcher {
		return &matcher{err: fmt.Errorf("%w: "+format, append([]any{ErrBadPattern}, args...)...)}
	}
	if len(text) > patternMaxBytes {
		return refuse("pattern of %d bytes, at most %d are accepted", len(text), patternMaxBytes)
	}
	scan := scanPattern(text, ignoreCase)
	switch {
	case scan.foreign != "":
		return refuse("no class %s in RE2", errtext.Text(scan.foreign))
	case scan.classSteps > patternMaxClassSteps:
		return refuse("pattern of %d bytes with character classes of %d steps, at most %d are accepted",
			len(text), scan.classSteps, patternMaxClassSteps)
	}
	flags, prefix := syntax.Perl, ""
	if ignoreCase {
		flags, prefix = flags|syntax.FoldCase, "(?i)"
	}
	tree, err := syntax.Parse(text, flags)
	if err != nil {
		return refuse("%s", syntaxWords(err))
	}
	if name := twice(tree.CapNames()); name != "" { // package regexp takes such a pattern, RE2 does not
		return refuse("two groups have the name %s", errtext.Quote(name))
	}
	size := sizeOf(tree)
	if size.bytes() > patternMaxSize {
		return refuse("pattern compiles to %d bytes, at most %d are accepted", size.bytes(), patternMaxSize)
	}
	// The text differs only in its captures, so it is as well-formed.
	return &matcher{re: regexp.MustCompile(prefix + scan.plain.String()), instructions: size.instructions + programFrame}
}

// twice returns the first name that is there a second time, "" if none is. A group without a name has the name "".
func twice(names []string) string {
	for i, name := range names {
		if name != "" && slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

// syntaxWords says what is wrong with a pattern and quotes the faulty part.
func syntaxWords(err error) string {
	var at *syntax.Error
	if !errors.As(err, &at) {
		return errtext.Text(err.Error())
	}
	return at.Code.String() + ": " + errtext.Quote(at.Expr)
}

// CheckPattern returns why a pattern of a regex predicate cannot be compiled, or nil.
func CheckPattern(text string, ignoreCase bool) error { return compilePattern(text, ignoreCase).err }
